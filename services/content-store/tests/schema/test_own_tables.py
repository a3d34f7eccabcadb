"""A site's own tables, by the example of the documentation: from the file to a written, captured, published record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from content_store.access.policy import BackendUser
from content_store.capture.grouping import group_rows
from content_store.capture.model import RowDelta
from content_store.capture.reader import take_capture
from content_store.capture.relations import relation_ends
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.result import ProcessResult
from content_store.datahandler.sites import Sites
from content_store.events.records import Origin, record_changes
from content_store.records.gateway import RecordGateway
from content_store.schema.labels import field_label
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from content_store.sites import load_sites
from remit_harness.databases import Databases
from store_support.database import prepare_test_database

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]

EXAMPLE = Path(__file__).parent / "example"
ADMINISTRATOR = HandlerActor(BackendUser(uid=1, admin=True))


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema([EXAMPLE / "tables"])


@pytest.fixture
async def urls(databases: Databases, postgres: str, schema: Schema) -> DatabaseUrls:
    return await prepare_test_database(await databases.create("own_tables"), schema, server_url=postgres)


@pytest.fixture
async def service(urls: DatabaseUrls) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(urls.service)
    yield connection
    await connection.close()


async def write(
    connection: Connection, schema: Schema, datamap: dict[str, Any], cmdmap: dict[str, Any] | None = None
) -> tuple[ProcessResult, list[RowDelta]]:
    async with connection.transaction():
        sites = Sites(load_sites([EXAMPLE / "sites"]))
        handler = DataHandler(RecordGateway(connection, schema), ADMINISTRATOR, sites=sites)
        result = await handler.process(datamap, cmdmap or {})
        return result, group_rows(await take_capture(connection, None))


async def test_a_file_becomes_a_table_that_works(service: Connection, schema: Schema) -> None:
    result, deltas = await write(
        service,
        schema,
        {
            "pages": {"NEWroot": {"pid": 0, "title": "Town", "town_colour": "#ff8700", "hidden": 0}},
            "tx_town_event": {
                "NEWevent": {"pid": "NEWroot", "title": "  Market  ", "kind": "market", "slots": "NEWslot"}
            },
            "tx_town_slot": {"NEWslot": {"pid": "NEWroot", "title": "Opening"}},
        },
    )
    page, event, slot = (result.substNEWwithIDs[name] for name in ("NEWroot", "NEWevent", "NEWslot"))
    row = await service.fetchrow("SELECT * FROM public.tx_town_event WHERE uid = $1", event)
    assert row is not None
    assert (row["pid"], row["title"], row["kind"], row["slots"]) == (page, "Market", "market", 1)
    assert await service.fetchval("SELECT event FROM public.tx_town_slot WHERE uid = $1", slot) == event
    assert await service.fetchval("SELECT town_colour FROM public.pages WHERE uid = $1", page) == "#ff8700"
    seen = {
        (change.table, change.uid): change.action for change in record_changes(deltas, relation_ends(schema), Origin())
    }
    assert seen == {("pages", page): "created", ("tx_town_event", event): "created", ("tx_town_slot", slot): "created"}
    child = next(delta for delta in deltas if delta.table == "tx_town_slot")
    assert child.after is not None
    assert child.after.pointers == {"event": event}
    history = await service.fetchval("SELECT count(*) FROM public.sys_history WHERE tablename = 'tx_town_event'")
    assert history >= 1
    assert field_label(schema, "tx_town_event", "places", "de") == "Freie Plätze"


async def test_its_records_are_translated_and_deleted_like_any_other(service: Connection, schema: Schema) -> None:
    root = {"pages": {"NEWroot": {"pid": 0, "title": "Town", "is_siteroot": 1}}}
    result, _ = await write(service, schema, {**root, "tx_town_event": {"NEWe": {"pid": "NEWroot", "title": "Market"}}})
    event = result.substNEWwithIDs["NEWe"]
    _, localized = await write(service, schema, {}, {"tx_town_event": {str(event): {"localize": 1}}})
    (translation,) = (delta for delta in localized if delta.is_new)
    assert translation.after is not None
    assert (translation.after.language, translation.after.parent) == (1, event)
    _, deleted = await write(service, schema, {}, {"tx_town_event": {str(event): {"delete": 1}}})
    gone = {delta.uid for delta in deleted if delta.after is not None and delta.after.deleted}
    assert gone == {event, translation.uid}


async def test_its_categories_are_told_as_a_change_of_both_ends(service: Connection, schema: Schema) -> None:
    result, deltas = await write(
        service,
        schema,
        {
            "pages": {"NEWroot": {"pid": 0, "title": "Town"}},
            "sys_category": {"NEWcat": {"pid": "NEWroot", "title": "Outdoors"}},
            "tx_town_event": {"NEWe": {"pid": "NEWroot", "title": "Market", "categories": "NEWcat"}},
        },
    )
    (relation,) = (delta for delta in deltas if delta.relation is not None and delta.relation_change)
    assert relation.relation is not None
    ends = relation_ends(schema)[relation.table].of(relation.relation)
    assert ends == [
        ("sys_category", result.substNEWwithIDs["NEWcat"]),
        ("tx_town_event", result.substNEWwithIDs["NEWe"]),
    ]
