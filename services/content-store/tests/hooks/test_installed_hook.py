"""The documented example, found as an installed package is, in the real application (SEMANTICS 20, S-68, S-69)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from content_store.access.rights import SYSTEM_USER
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.hooks import DataHandlerHook, load_hooks
from content_store.datahandler.policy import AdministratorPolicy
from content_store.records.gateway import RecordGateway
from content_store.records.overlay import OverlayReader
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from remit_harness.databases import Databases, built
from remit_harness.run import TestRun
from store_support.app import StoreUnderTest
from store_support.database import prepare_test_database
from store_support.rows import ALL_BITS

_EXAMPLE = Path(__file__).parent / "example"
ADMIN = 2


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema()


@pytest.fixture(scope="module")
def urls(postgres: str, test_run: TestRun, schema: Schema) -> Iterator[DatabaseUrls]:
    async def build(made: Databases) -> DatabaseUrls:
        return await prepare_test_database(await made.create("dh_hook"), schema, server_url=postgres)

    yield from built(postgres, test_run, build)


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DataHandlerHook]]:
    """The example as if it were installed: its folder with the metadata is on the path."""
    monkeypatch.syspath_prepend(str(_EXAMPLE))
    importlib.invalidate_caches()
    yield load_hooks()
    sys.modules.pop("town_hooks", None)


@pytest.fixture
async def store(
    urls: DatabaseUrls, schema: Schema, tmp_path: Path, hooks: list[DataHandlerHook]
) -> AsyncIterator[StoreUnderTest]:
    async with StoreUnderTest(urls, schema, tmp_path, hooks=tuple(hooks)).run() as started:
        await started.owner.execute("DELETE FROM tt_content; DELETE FROM pages; DELETE FROM be_users")
        await started.rows.page(10, 0, "Town", everybody=ALL_BITS)
        await started.rows.user(ADMIN, "root", admin=1)
        await started.owner.execute("SELECT count(*) FROM capture_take(NULL)")
        yield started


async def send(store: StoreUnderTest, **fields: Any) -> dict[str, Any]:
    body = {"datamap": {"tt_content": {"NEW1": {"pid": 10, "CType": "text", **fields}}}}
    response = await store.client.post("/v1/datamap", json=body, headers=await store.token(ADMIN))
    assert response.status_code == 200, response.text
    entry: dict[str, Any] = response.json()["entries"][0]
    return entry


def test_it_is_found_by_its_entry_point_and_only_there(hooks: list[DataHandlerHook]) -> None:
    assert [type(hook).__name__ for hook in hooks] == ["TownHook"]


def test_without_the_package_there_is_no_hook() -> None:
    assert load_hooks() == []


async def test_it_changes_objects_writes_and_tells_after_the_commit(store: StoreUnderTest) -> None:
    sent: list[int] = sys.modules["town_hooks"].SENT
    sent.clear()
    written = await send(store, header="opening hours")
    assert written["status"] == "written"
    header = await store.owner.fetchval("SELECT header FROM tt_content WHERE uid = $1", written["uid"])
    assert header == "Opening hours"
    # Written by the hook, in the same transaction: with history, and one correlation for both.
    assert await store.owner.fetchval("SELECT abstract FROM pages WHERE uid = 10") == "Newest: Opening hours"
    scopes = await store.owner.fetch("SELECT DISTINCT split_part(correlation_id, ':', 1) FROM sys_history")
    assert len(scopes) == 1
    assert sent == [written["uid"]]
    refused = await send(store, header="")
    assert (refused["status"], refused["code"]) == ("vetoed", "town_heading_missing")
    assert await store.owner.fetchval("SELECT count(*) FROM tt_content") == 1
    assert sent == [written["uid"]]


@pytest.mark.req("S-69")
async def test_in_a_rehearsal_nothing_leaves_the_process(
    urls: DatabaseUrls, schema: Schema, store: StoreUnderTest, hooks: list[DataHandlerHook]
) -> None:
    sent: list[int] = sys.modules["town_hooks"].SENT
    sent.clear()
    connection = await asyncpg.connect(urls.owner)
    transaction = connection.transaction()
    await transaction.start()
    gateway = RecordGateway(connection, schema)
    actor = HandlerActor(SYSTEM_USER)
    policy = AdministratorPolicy(actor.user, schema, OverlayReader(gateway))
    handler = DataHandler(gateway, actor, hooks, policy=policy, rehearsal=True)
    result = await handler.process({"tt_content": {"NEW1": {"pid": 10, "CType": "text", "header": "x"}}})
    assert not result.failed
    assert (handler.ctx.after_commit, handler.ctx.flush_requests) == ([], [])
    await transaction.rollback()
    await connection.close()
    assert await store.owner.fetchval("SELECT count(*) FROM tt_content") == 0
    assert sent == []
