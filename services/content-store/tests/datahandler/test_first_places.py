"""Who is the first on a page is remembered, and asked for again once somebody else wrote (SEMANTICS 6)."""

from __future__ import annotations

from typing import Any

from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler


async def _numbers(connection: Connection, page: int = 2) -> list[int]:
    return [row["sorting"] for row in await all_rows(connection, "tt_content", pid=page, deleted=0)]


async def test_records_on_top_of_each_other(connection: Connection, schema: Schema) -> None:
    entries = {f"NEW{n}": {"pid": 2} for n in range(12)}
    assert not (await open_handler(connection, schema).process({"tt_content": entries})).failed
    # The tenth has 0, so that the eleventh makes room: all go up by 512.
    expected = [n + 512 for n in (256, 128, 64, 32, 16, 8, 4, 2, 1, 0)]
    assert await _numbers(connection) == [*expected, 256, 128]


class _WritesBehindTheBack(DataHandlerHook):
    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if record_id == "NEW1":
            name = run.ctx.gateway.table("tt_content")
            await run.ctx.gateway.fetch(f"UPDATE {name} SET sorting = 40 WHERE uid = $1", uid)


async def test_a_hook_with_sql_of_its_own(connection: Connection, schema: Schema) -> None:
    entries = {"NEW1": {"pid": 2}, "NEW2": {"pid": 2}}
    assert not (
        await open_handler(connection, schema, [_WritesBehindTheBack()]).process({"tt_content": entries})
    ).failed
    assert await _numbers(connection) == [40, 20]


async def test_an_entry_that_is_undone_leaves_its_place(connection: Connection, schema: Schema) -> None:
    await connection.execute("ALTER TABLE public.tt_content ADD CONSTRAINT refuses CHECK (title <> 'refused')")
    entries: dict[str, Any] = {"NEW1": {"pid": 2}, "NEW2": {"pid": 2, "title": "refused"}, "NEW3": {"pid": 2}}
    result = await open_handler(connection, schema).process({"tt_content": entries})
    assert [o.status for o in result.outcomes] == ["written", "error", "written"]
    assert await _numbers(connection) == [256, 128]


async def test_the_first_is_moved_away_and_deleted(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tt_content": {f"NEW{n}": {"pid": 2} for n in range(4)}})
    first, second, _, fourth = (made.substNEWwithIDs[f"NEW{n}"] for n in range(4))
    commands: dict[str, Any] = {
        str(first): {"copy": 2},
        str(fourth): {"move": 1},
        str(second): {"delete": 1},
    }
    await handler.process(None, {"tt_content": {**commands}})
    result = await handler.process(None, {"tt_content": {str(first): {"copy": 2}}})
    assert not result.failed
    assert sorted(await _numbers(connection)) == [8, 16, 64, 256]
