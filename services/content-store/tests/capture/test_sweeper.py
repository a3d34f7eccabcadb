from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from content_store.capture.reader import take_capture
from content_store.capture.sweeper import CaptureSweeper
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from service_kit.outbox import Outbox

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]
    Pool = asyncpg.Pool[Any]


@pytest.fixture
async def pool(urls: DatabaseUrls) -> AsyncIterator[Pool]:
    async with asyncpg.create_pool(urls.service, min_size=1, max_size=3) as opened:
        yield opened


def sweeper(pool: Pool, schema: Schema, **options: Any) -> CaptureSweeper:
    return CaptureSweeper(pool, schema, Outbox(), **{"age": 0.0, **options})


async def events(connection: Connection) -> list[dict[str, Any]]:
    rows = await connection.fetch("SELECT data::text AS data FROM public.outbox ORDER BY created_at, stream, seq")
    return [json.loads(row["data"]) for row in rows]


async def test_what_nobody_took_is_published_with_an_unknown_actor(
    pool: Pool, schema: Schema, owner: Connection
) -> None:
    await owner.execute("INSERT INTO public.pages (uid, pid, title) VALUES (7, 1, 'secret')")
    await owner.execute("UPDATE public.pages SET deleted = 1 WHERE uid = 7")
    await owner.execute("UPDATE public.pages SET sorting = 9 WHERE uid = 7")
    rung: list[None] = []
    assert await sweeper(pool, schema, published=lambda: rung.append(None)).sweep() == 3
    found = await events(owner)
    assert [(event["table"], event["uid"], event["action"]) for event in found] == [
        ("pages", 7, "created"),
        ("pages", 7, "deleted"),
    ]
    assert all(event["actor"]["kind"] == "unknown" and event["callId"] is None for event in found)
    assert "secret" not in json.dumps(found)
    assert rung == [None]
    assert await sweeper(pool, schema).sweep() == 0
    assert rung == [None]


async def test_both_ends_of_an_mm_row_are_published(pool: Pool, schema: Schema, owner: Connection) -> None:
    await owner.execute(
        "INSERT INTO public.sys_category_record_mm (uid_local, uid_foreign, tablenames, fieldname) "
        "VALUES (4, 5, 'tt_content', 'categories')"
    )
    await sweeper(pool, schema).sweep()
    found = {(event["table"], event["uid"]): (event["action"], event["relation"]) for event in await events(owner)}
    assert found == {("sys_category", 4): ("updated", True), ("tt_content", 5): ("updated", True)}


async def test_young_rows_and_open_transactions_are_left_alone(pool: Pool, schema: Schema, owner: Connection) -> None:
    async with owner.transaction():
        await owner.execute("INSERT INTO public.pages (uid) VALUES (1)")
        assert await sweeper(pool, schema).sweep() == 0
        assert len(await take_capture(owner, None)) == 1
    await owner.execute("INSERT INTO public.pages (uid) VALUES (2)")
    assert await sweeper(pool, schema, age=3600.0).sweep() == 0
    assert await sweeper(pool, schema).sweep() == 1


async def test_a_transaction_cannot_sweep_its_own_rows_away(service: Connection) -> None:
    async with service.transaction():
        await service.execute("INSERT INTO public.pages (uid) VALUES (1)")
        assert await service.fetch("SELECT * FROM public.capture_sweep('-1 hour', 100)") == []
        assert len(await take_capture(service, None)) == 1


async def test_two_sweepers_publish_once(pool: Pool, schema: Schema, owner: Connection) -> None:
    for uid in range(1, 41):
        await owner.execute("INSERT INTO public.pages (uid) VALUES ($1)", uid)
    taken = 0
    while swept := sum(await asyncio.gather(*(sweeper(pool, schema, batch=10).sweep() for _ in range(2)))):
        taken += swept
    assert taken == 40
    assert sorted(event["uid"] for event in await events(owner)) == list(range(1, 41))


async def test_the_loop_goes_on_after_an_error(own_urls: DatabaseUrls, schema: Schema) -> None:
    published = asyncio.Event()
    owner: Connection = await asyncpg.connect(own_urls.owner)
    await owner.execute("ALTER FUNCTION public.capture_sweep RENAME TO away")
    async with asyncpg.create_pool(own_urls.service, min_size=1, max_size=1) as pool:
        task = asyncio.create_task(sweeper(pool, schema, published=published.set).run(0.01))
        await asyncio.sleep(0.05)
        assert not task.done()
        await owner.execute("ALTER FUNCTION public.away RENAME TO capture_sweep")
        await owner.execute("INSERT INTO public.pages (uid) VALUES (1)")
        await published.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await owner.close()
