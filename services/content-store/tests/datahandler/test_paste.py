"""The update of a pasted copy or move: applied alone, and told with the command it came with (SEMANTICS 8)."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto, Status
from content_store.datahandler.run import HandlerRun
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler


class ObjectsAfterwards(DataHandlerHook):
    """Vetoes a row with this title after it was written."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if fields.get("title") == "refused":
            raise HookVeto("no such title")


class ObjectsToMoves(DataHandlerHook):
    """Vetoes every move once it is done."""

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        if command == "move":
            raise HookVeto("not moved")


@pytest.fixture
async def uids(connection: Connection, schema: Schema) -> list[int]:
    entries = {f"NEW{n}": {"pid": 2, "title": f"t{n}"} for n in range(3)}
    made = await open_handler(connection, schema).process({"tt_content": entries})
    return list(made.substNEWwithIDs.values())


def paste(target: int = 1, **update: Any) -> dict[str, Any]:
    return {"action": "paste", "target": target, "update": update}


async def places(connection: Connection) -> list[tuple[int, str]]:
    return [(row["pid"], row["title"]) for row in await all_rows(connection, "tt_content")]


@pytest.mark.parametrize("command", ["copy", "move"])
async def test_what_the_database_refuses_is_undone_alone_and_told(
    connection: Connection, schema: Schema, uids: list[int], command: str
) -> None:
    await connection.execute("ALTER TABLE public.tt_content ADD CONSTRAINT refuses CHECK (title <> 'refused')")
    commands = {str(uids[0]): {"move": 1}, str(uids[1]): {command: paste(title="refused", colPos=3)}}
    result = await open_handler(connection, schema).process(None, {"tt_content": commands})
    assert [o.status for o in result.outcomes] == ["written", "written"]
    assert [(d.field, d.code) for d in result.outcomes[1].dropped] == [
        ("title", "database_refused"),
        ("colPos", "database_refused"),
    ]
    assert result.outcomes[1].message is not None
    assert result.errorLog
    rows = await all_rows(connection, "tt_content", uid=result.outcomes[1].uid)
    assert [(row["pid"], row["title"], row["colPos"]) for row in rows] == [
        (1, "t1" if command == "move" else rows[0]["title"], 0)
    ]
    assert (1, "t0") in await places(connection)


async def test_a_veto_after_the_write_is_undone_alone_and_told(
    connection: Connection, schema: Schema, uids: list[int]
) -> None:
    commands = {str(uids[0]): {"move": 1}, str(uids[1]): {"move": paste(title="refused")}}
    result = await open_handler(connection, schema, [ObjectsAfterwards()]).process(None, {"tt_content": commands})
    assert [(o.status, [d.field for d in o.dropped]) for o in result.outcomes] == [
        ("written", []),
        ("written", ["title"]),
    ]
    assert sorted(await places(connection)) == [(1, "t0"), (1, "t1"), (2, "t2")]
    control = await open_handler(connection, schema, [ObjectsAfterwards()]).process(
        None, {"tt_content": {str(uids[1]): {"move": paste(2, title="fine")}}}
    )
    assert (control.outcomes[0].dropped, control.outcomes[0].message) == ([], None)
    assert (2, "fine") in await places(connection)


async def test_fields_that_are_dropped_are_told(connection: Connection, schema: Schema, uids: list[int]) -> None:
    value = paste(title="fine", nofield=1, tstamp=5)
    result = await open_handler(connection, schema).process(None, {"tt_content": {str(uids[0]): {"move": value}}})
    assert {d.field: d.code for d in result.outcomes[0].dropped} == {
        "nofield": "unknown_field",
        "tstamp": "field_not_allowed",
    }
    assert (1, "fine") in await places(connection)


async def test_a_value_that_is_refused_is_told(connection: Connection, schema: Schema, uids: list[int]) -> None:
    value = paste(title="fine", related={"a": 1})
    result = await open_handler(connection, schema).process(None, {"tt_content": {str(uids[0]): {"move": value}}})
    outcome = result.outcomes[0]
    assert (outcome.status, [(d.field, d.code) for d in outcome.dropped]) == (
        "written",
        [("title", "invalid_value"), ("related", "invalid_value")],
    )
    assert (1, "t0") in await places(connection)


async def test_the_update_of_a_move_that_is_undone_is_not_applied(
    connection: Connection, schema: Schema, uids: list[int]
) -> None:
    handler = open_handler(connection, schema, [ObjectsToMoves()])
    result = await handler.process(None, {"tt_content": {str(uids[0]): {"move": paste(title="pasted")}}})
    assert [o.status for o in result.outcomes] == ["vetoed"]
    assert (2, "t0") in await places(connection)
    control = open_handler(connection, schema)
    await control.process(None, {"tt_content": {str(uids[0]): {"move": paste(title="pasted")}}})
    assert (1, "pasted") in await places(connection)


async def test_an_update_that_a_later_command_takes_the_place_of_is_told(
    connection: Connection, schema: Schema, uids: list[int]
) -> None:
    commands = {str(uids[0]): {"move": paste(title="first")}, str(uids[1]): {"move": paste(title="second")}}
    result = await open_handler(connection, schema).process(None, {"tt_content": commands})
    assert [[(d.field, d.code) for d in o.dropped] for o in result.outcomes] == [[("title", "paste_superseded")], []]
    assert sorted(await places(connection)) == [(1, "second"), (1, "t0"), (2, "t2")]
