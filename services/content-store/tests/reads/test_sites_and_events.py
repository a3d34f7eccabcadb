from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from content_store.datahandler.sites import Site
from content_store.schema.loader import schema_hash
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from store_support.app import StoreUnderTest
from store_support.rows import empty_tables

TOWN = Site.from_data(
    {
        "identifier": "town",
        "rootPageId": 10,
        "base": "/town/",
        "languages": [
            {"languageId": 0, "title": "English"},
            {"languageId": 1, "title": "Deutsch", "locale": "de_DE", "fallbacks": [0], "fallbackType": "fallback"},
        ],
    }
)
OTHER = Site.from_data({"identifier": "other", "rootPageId": 20, "languages": [{"languageId": 0, "title": "English"}]})


@pytest.fixture
async def store(
    store_database: tuple[str, DatabaseUrls], schema: Schema, tmp_path: Path
) -> AsyncIterator[StoreUnderTest]:
    admin_url, urls = store_database
    async with StoreUnderTest(urls, schema, tmp_path, sites=(TOWN, OTHER)).run() as started:
        rows = started.rows
        await rows.page(10, 0, everybody=1)
        await rows.page(11, 10, everybody=1)
        await rows.page(20, 0, everybody=1)
        await rows.add("be_groups", uid=1, title="g", db_mountpoints="11", allowed_languages="1", tables_select="pages")
        await rows.user(1, "ed", "1")
        await rows.user(2, "root", admin=1)
        yield started
    admin = await asyncpg.connect(admin_url)
    await empty_tables(admin)
    await admin.close()


async def sites(store: StoreUnderTest, user: int) -> list[Any]:
    response = await store.client.get("/v1/sites", headers=store.assertion("agent-runtime", user))
    found: list[Any] = response.json()["sites"]
    return found


async def test_sites_whose_pages_the_reader_works_on(store: StoreUnderTest) -> None:
    (town,) = await sites(store, 1)
    # The mount lies below the root of the site; the default language is not among those of the user.
    assert (town["identifier"], town["rootPageId"], town["base"]) == ("town", 10, "/town/")
    german = {"languageId": 1, "title": "Deutsch", "locale": "de_DE", "fallbacks": [0], "fallbackType": "fallback"}
    assert town["languages"] == [german]
    assert [site["identifier"] for site in await sites(store, 2)] == ["town", "other"]
    await store.owner.execute("UPDATE pages SET perms_everybody = 0 WHERE uid = 11")
    assert await sites(store, 1) == []


async def test_record_events_are_for_the_gateway_and_administrators(store: StoreUnderTest) -> None:
    admin = await store.token(2)
    body = {"datamap": {"pages": {"11": {"title": "Changed"}}}}
    assert (await store.client.post("/v1/datamap", json=body, headers=admin)).status_code == 200
    # Events are told once the relay has published them.
    assert (await store.client.get("/v1/record-events", headers=admin)).json() == {"events": []}
    await store.owner.execute("UPDATE outbox SET published_at = now()")
    for headers in (admin, store.assertion("chat-gateway", 1)):
        (event,) = (await store.client.get("/v1/record-events", headers=headers)).json()["events"]
        assert (event["stream"], event["sequence"], event["change"]["action"]) == ("pages:11", 1, "updated")
        query = {"after": event["position"]}
        assert (await store.client.get("/v1/record-events", params=query, headers=headers)).json() == {"events": []}
    refused = await store.client.get("/v1/record-events", headers=await store.token(1))
    assert (refused.status_code, refused.json()["code"]) == (403, "administrators_only")
    wrong = await store.client.get("/v1/record-events", params={"after": "x"}, headers=admin)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "cursor_invalid")


async def test_readiness_and_health(store: StoreUnderTest) -> None:
    assert (await store.client.get("/healthz")).status_code == 200
    ready = await store.client.get("/readyz")
    assert ready.json()["checks"] == {"database": "ok", "schema": "ok"}
    await store.owner.execute("UPDATE schema_state SET schema_hash = 'other'")
    try:
        assert (await store.client.get("/readyz")).status_code == 503
    finally:
        services = store.app.state.services
        await store.owner.execute("UPDATE schema_state SET schema_hash = $1", schema_hash(services.schema))
