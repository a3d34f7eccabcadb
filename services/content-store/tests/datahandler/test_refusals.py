"""What is refused, vetoed or fails leaves every table as it was, also where it is the only entry (SEMANTICS 2, 20, 21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from content_store.access.policy import BackendUser, Denial, Row
from content_store.datahandler.errors import UndoNeeded
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto, Status
from content_store.datahandler.policy import AdministratorPolicy
from content_store.datahandler.run import HandlerRun
from content_store.records.gateway import RecordGateway
from content_store.records.overlay import OverlayReader
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler

_TABLES = (
    "pages",
    "tt_content",
    "tx_child",
    "sys_category",
    "sys_category_record_mm",
    "sys_history",
    "sys_refindex",
)
EDITOR = BackendUser(2, "ed", tables_modify=frozenset({"pages", "tt_content", "tx_child"}))


class Limited(AdministratorPolicy):
    """Says no to what is named, by method or ``table:field``."""

    def __init__(self, schema: Schema, gateway: RecordGateway, *denied: str) -> None:
        super().__init__(EDITOR, schema, OverlayReader(gateway))
        self._denied = denied

    async def insert(self, table: str, pid: int, row: Row, *, with_pages: bool = False) -> Denial | None:
        return Denial("page_permission", "No") if "insert" in self._denied else None

    async def update(self, table: str, row: Row, *, with_pages: bool = False) -> Denial | None:
        return Denial("page_permission", "No") if f"update {table}" in self._denied else None

    async def modify_table(self, table: str) -> Denial | None:
        return Denial("table_modify", "No") if f"modify {table}" in self._denied else None

    def may_write_field(self, table: str, field: str) -> bool:
        return f"{table}:{field}" not in self._denied


async def state(connection: Connection) -> list[list[Mapping[str, Any]]]:
    return [
        sorted(await all_rows(connection, table), key=lambda row: str(sorted((k, str(v)) for k, v in row.items())))
        for table in _TABLES
    ]


def limited(connection: Connection, schema: Schema, *denied: str) -> dict[str, Any]:
    return {"user": EDITOR, "policy": Limited(schema, RecordGateway(connection, schema), *denied)}


@pytest.fixture
async def tight(connection: Connection, schema: Schema) -> Connection:
    """Two neighbours without a number between them, each with a child and a category; the first is at the very top."""
    entries: dict[str, Any] = {
        "tt_content": {
            "NEW2": {"pid": 2, "title": "two", "children": "NEWc2", "categories": "NEWk"},
            "NEW1": {"pid": 2, "title": "one", "children": "NEWc1", "categories": "NEWk"},
        },
        "tx_child": {"NEWc1": {"pid": 2, "title": "c"}, "NEWc2": {"pid": 2, "title": "c"}},
        "sys_category": {"NEWk": {"pid": 0, "title": "k"}},
    }
    made = await open_handler(connection, schema).process(entries)
    assert not made.failed
    uids = made.substNEWwithIDs
    await connection.execute(
        "UPDATE public.tt_content SET sorting = CASE uid WHEN $1::bigint THEN 0 ELSE 1 END", uids["NEW1"]
    )
    return connection


async def uids_of(connection: Connection, table: str = "tt_content") -> list[int]:
    return [row["uid"] for row in await all_rows(connection, table)]


@pytest.mark.parametrize("pid", ["top", "after"])
@pytest.mark.parametrize("why", ["right", "hook", "value", "nothing"])
async def test_a_refused_insert_moves_no_neighbour(tight: Connection, schema: Schema, pid: str, why: str) -> None:
    first = (await uids_of(tight))[-1]
    row: dict[str, Any] = {"pid": 2 if pid == "top" else -first, "title": "new"}
    if why == "value":
        row["title"] = "n\x00ul"
    before = await state(tight)
    hooks = [Vetoes("post_process_field_array")] if why == "hook" else []
    rights = limited(tight, schema, *(["insert"] if why == "right" else []))
    result = await open_handler(tight, schema, hooks, **rights).process({"tt_content": {"NEW1": row}})
    expected = {"right": "refused", "hook": "vetoed", "value": "error", "nothing": "written"}[why]
    assert result.outcomes[0].status == expected
    assert (await state(tight) == before) is (why != "nothing")
    if why == "nothing":
        numbers = [r["sorting"] for r in await all_rows(tight, "tt_content")]
        assert len(set(numbers)) == 3
        assert numbers[:2] != [1, 0]


class Vetoes(DataHandlerHook):
    """Objects at one point, whatever the record."""

    def __init__(self, point: str) -> None:
        self._point = point

    def _object(self, point: str) -> None:
        if point == self._point:
            raise HookVeto(f"not at {point}")

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        self._object("pre_process_field_array")
        return row

    async def post_process_field_array(
        self, run: HandlerRun, status: Status, table: str, record_id: str, fields: Fields
    ) -> None:
        self._object("post_process_field_array")

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        self._object("after_database_operations")

    async def pre_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste_update: Fields | None
    ) -> Any:
        self._object("pre_process_command")
        return value

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        self._object("post_process_command")

    async def delete_action(self, run: HandlerRun, table: str, uid: int, record: Row, handled: bool) -> bool:
        if table == "tx_child":
            self._object("delete_action")
        return handled

    async def moved_first_on_page(self, run: HandlerRun, table: str, uid: int, page: int, fields: Fields) -> None:
        self._object("moved_first_on_page")


_COMMANDS: dict[str, Any] = {"copy": 2, "move": 2, "localize": 1, "copyToLanguage": 1, "delete": 1}
_POINTS = {
    "pre_process_command": set(_COMMANDS),
    "post_process_command": set(_COMMANDS),
    "post_process_field_array": {"copy", "localize", "copyToLanguage"},
    "delete_action": {"delete"},
    "moved_first_on_page": {"move"},
}


@pytest.mark.parametrize(("point", "command"), [(p, c) for p, found in _POINTS.items() for c in sorted(found)])
async def test_a_vetoed_command_leaves_everything(tight: Connection, schema: Schema, point: str, command: str) -> None:
    uid = (await uids_of(tight))[0]
    before = await state(tight)
    request = {"tt_content": {str(uid): {command: _COMMANDS[command]}}}
    result = await open_handler(tight, schema, [Vetoes(point)]).process(None, request)
    assert result.outcomes[0].status == "vetoed"
    assert await state(tight) == before
    again = await open_handler(tight, schema).process(None, request)
    assert again.outcomes[0].status == "written"
    assert await state(tight) != before


@pytest.mark.parametrize("command", sorted(_COMMANDS))
async def test_a_refused_command_leaves_everything(tight: Connection, schema: Schema, command: str) -> None:
    uid = (await uids_of(tight))[0]
    before = await state(tight)
    request = {"tt_content": {str(uid): {command: _COMMANDS[command]}}}
    rights = limited(tight, schema, "modify tt_content")
    result = await open_handler(tight, schema, **rights).process(None, request)
    assert result.outcomes[0].status == "refused"
    assert await state(tight) == before


async def test_a_veto_after_a_write_asks_for_the_rollback_where_there_is_no_savepoint(
    tight: Connection, schema: Schema
) -> None:
    uid = (await uids_of(tight))[0]
    hooks = [Vetoes("after_database_operations")]
    with pytest.raises(UndoNeeded) as raised:
        await open_handler(tight, schema, hooks).process({"tt_content": {str(uid): {"title": "changed"}}})
    assert raised.value.code == "vetoed"


async def test_a_veto_after_a_write_undoes_the_entry_alone_where_there_is_one(
    tight: Connection, schema: Schema
) -> None:
    first, second = await uids_of(tight)
    before = await state(tight)
    hooks = [Vetoes("after_database_operations")]
    entries = {"tt_content": {str(first): {"title": "a"}, str(second): {"title": "b"}}}
    result = await open_handler(tight, schema, hooks).process(entries)
    assert [o.status for o in result.outcomes] == ["vetoed", "vetoed"]
    assert await state(tight) == before


class VetoesOne(DataHandlerHook):
    """Lets no copied child record with this title stand."""

    def __init__(self) -> None:
        self.called = 0

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if table == "sys_category" and fields.get("title") == "bad":
            self.called += 1
            raise HookVeto("not this one")


async def test_what_comes_along_and_is_vetoed_after_its_write_is_undone_and_the_rest_copied(
    connection: Connection, schema: Schema
) -> None:
    entries = {"sys_category": {"NEW1": {"pid": 2, "title": "good"}, "NEW2": {"pid": 2, "title": "bad"}}}
    assert not (await open_handler(connection, schema).process(entries)).failed
    hook = VetoesOne()
    result = await open_handler(connection, schema, [hook]).process(None, {"pages": {"2": {"copy": 1}}})
    assert result.outcomes[0].status == "written"
    copied = await all_rows(connection, "sys_category", pid=result.outcomes[0].uid)
    assert [row["title"] for row in copied] == ["good"]
    assert result.errorLog == ["not this one"]
    # Once to find out, once more carefully.
    assert hook.called == 2


# --- children and fields of others -------------------------------------------------------------------------------


async def test_a_child_of_somebody_else_is_not_taken_away(tight: Connection, schema: Schema) -> None:
    first, _ = await uids_of(tight)
    own, other = (row["uid"] for row in sorted(await all_rows(tight, "tx_child"), key=lambda r: r["parentid"] != first))
    request = {"tt_content": {str(first): {"children": f"{own},{other}"}}}
    before = await state(tight)
    denied = limited(tight, schema, "update tx_child")
    result = await open_handler(tight, schema, **denied).process(request)
    assert (result.outcomes[0].status, result.outcomes[0].code) == ("refused", "page_permission")
    assert await state(tight) == before
    # Its own child may be listed without that right, and with it the other one comes.
    alone = {"tt_content": {str(first): {"children": str(own)}}}
    assert not (await open_handler(tight, schema, **denied).process(alone)).failed
    assert not (await open_handler(tight, schema, **limited(tight, schema)).process(request)).failed
    assert {row["parentid"] for row in await all_rows(tight, "tx_child")} == {first}


async def test_nothing_is_deleted_where_what_goes_along_may_not_be(tight: Connection, schema: Schema) -> None:
    uid = (await uids_of(tight))[0]
    before = await state(tight)
    rights = limited(tight, schema, "modify tx_child")
    result = await open_handler(tight, schema, **rights).process(None, {"tt_content": {str(uid): {"delete": 1}}})
    assert (result.outcomes[0].status, result.outcomes[0].code) == ("refused", "table_modify")
    assert await state(tight) == before


@pytest.mark.req("T-13")
async def test_a_field_that_may_not_be_written_is_named(tight: Connection, schema: Schema) -> None:
    uid = str((await uids_of(tight))[0])
    rights = limited(tight, schema, "tt_content:title")

    async def write(**fields: Any) -> tuple[str, str | None, list[tuple[str, str]]]:
        result = await open_handler(tight, schema, **rights).process({"tt_content": {uid: fields}})
        outcome = result.outcomes[0]
        return outcome.status, outcome.code, [(d.field, d.code) for d in outcome.dropped]

    denied = ("title", "field_not_allowed")
    assert await write(title="x") == ("refused", "field_not_allowed", [denied])
    assert await write(title="x", hidden=1) == ("written", None, [denied])
    assert await write(title="x", hidden=1) == ("unchanged", None, [denied])
    assert await write(hidden=0, nonsense=1) == ("written", None, [("nonsense", "unknown_field")])
    assert await write(nonsense=1) == ("error", "unknown_field", [("nonsense", "unknown_field")])
    assert await write(hidden=1) == ("written", None, [])
    new = {"tt_content": {"NEW1": {"pid": 2, "title": "x", "hidden": 0}}}
    result = await open_handler(tight, schema, **rights).process(new)
    assert [(d.field, d.code) for d in result.outcomes[0].dropped] == [denied]
    assert (await all_rows(tight, "tt_content", uid=result.outcomes[0].uid))[0]["title"] == ""


async def test_an_order_of_children_that_changes_is_no_unchanged_entry(connection: Connection, schema: Schema) -> None:
    entries = {
        "tt_content": {"NEW1": {"pid": 2, "children": "NEWa,NEWb"}},
        "tx_child": {"NEWa": {"pid": 2}, "NEWb": {"pid": 2}},
    }
    uids = (await open_handler(connection, schema).process(entries)).substNEWwithIDs
    turned = {"tt_content": {str(uids["NEW1"]): {"children": f"{uids['NEWb']},{uids['NEWa']}"}}}
    statuses = [(await open_handler(connection, schema).process(turned)).outcomes[0].status for _ in range(2)]
    assert statuses == ["written", "unchanged"]


@pytest.mark.parametrize("command", ["copy", "localize", "copyToLanguage"])
async def test_a_copy_takes_no_value_along_that_the_user_may_not_write(
    tight: Connection, schema: Schema, command: str
) -> None:
    uid = str((await uids_of(tight))[0])
    await tight.execute(
        'UPDATE public.tt_content SET "colPos" = 3, hidden = 1; UPDATE public.tx_child SET title = $$c$$'
    )
    request = {"tt_content": {uid: {command: 2 if command == "copy" else 1}}}
    denied = ("tt_content:title", "tt_content:colPos", "tt_content:hidden", "tx_child:title", "tt_content:categories")
    made = await open_handler(tight, schema, **limited(tight, schema, *denied)).process(None, request)
    row = (await all_rows(tight, "tt_content", uid=made.outcomes[0].uid))[0]
    # What hides it comes along: a copy must not be public where the original is not.
    assert (row["title"], row["hidden"], row["categories"]) == ("", 1, 0)
    if command == "copy":
        assert row["colPos"] == 0
    (child,) = await all_rows(tight, "tx_child", parentid=row["uid"])
    assert child["title"] == ""
    free = await open_handler(tight, schema, **limited(tight, schema)).process(None, {"tt_content": {uid: {"copy": 2}}})
    control = (await all_rows(tight, "tt_content", uid=free.outcomes[0].uid))[0]
    assert (control["title"].startswith("two"), control["colPos"], control["categories"]) == (True, 3, 1)
    (child,) = await all_rows(tight, "tx_child", parentid=control["uid"])
    assert child["title"] == "c"


async def test_a_child_of_a_table_the_user_may_not_write_is_left_out_of_a_copy(
    tight: Connection, schema: Schema
) -> None:
    uid = str((await uids_of(tight))[0])
    before = await all_rows(tight, "tx_child")
    rights = limited(tight, schema, "modify tx_child")
    made = await open_handler(tight, schema, **rights).process(None, {"tt_content": {uid: {"copy": 2}}})
    assert made.outcomes[0].status == "written"
    assert await all_rows(tight, "tx_child") == before
    assert len(made.errorLog) == 1


# --- workspaces ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["copy", "localize", "copyToLanguage", "inlineLocalizeSynchronize", "move", "delete"]
)
async def test_what_is_not_there_in_a_workspace_is_refused(tight: Connection, schema: Schema, command: str) -> None:
    uid = str((await uids_of(tight))[0])
    value = _COMMANDS.get(command, {"field": "children", "language": 1, "action": "localize"})
    before = await state(tight)
    result = await open_handler(tight, schema, workspace=1).process(None, {"tt_content": {uid: {command: value}}})
    assert result.outcomes[0].code == "workspaces_unavailable"
    assert await state(tight) == before


async def test_a_table_without_versions_is_not_changed_live_from_a_workspace(
    connection: Connection, schema: Schema
) -> None:
    made = await open_handler(connection, schema).process({"tx_values": {"NEW1": {"pid": 0, "trimmed": "a"}}})
    uid = str(made.substNEWwithIDs["NEW1"])
    before = await all_rows(connection, "tx_values")
    changed = await open_handler(connection, schema, workspace=1).process({"tx_values": {uid: {"trimmed": "b"}}})
    gone = await open_handler(connection, schema, workspace=1).process(None, {"tx_values": {uid: {"delete": 1}}})
    assert [o.code for o in (*changed.outcomes, *gone.outcomes)] == ["workspace_table", "workspace_table"]
    assert await all_rows(connection, "tx_values") == before


async def test_a_list_that_is_none_refuses_its_entry_alone(tight: Connection, schema: Schema) -> None:
    first, second = await uids_of(tight)
    synchronized = schema.with_change(["tt_content", "columns", "children", "l10n_mode"], "exclude")
    made = await open_handler(tight, synchronized).process(None, {"tt_content": {str(first): {"localize": 1}}})
    assert not made.failed
    entries = {"tt_content": {str(first): {"children": {"a": {"b": 1}}}, str(second): {"title": "stands"}}}
    result = await open_handler(tight, synchronized).process(entries)
    statuses = {o.id: o.status for o in result.outcomes}
    assert (statuses[str(first)], statuses[str(second)]) == ("error", "written")


@pytest.mark.parametrize("denied", [True, False])
async def test_children_of_translations_stay_where_the_entry_is_refused(
    tight: Connection, schema: Schema, denied: bool
) -> None:
    first, second = await uids_of(tight)
    synchronized = schema.with_change(["tt_content", "columns", "children", "l10n_mode"], "exclude")
    made = await open_handler(tight, synchronized).process(None, {"tt_content": {str(first): {"localize": 1}}})
    assert not made.failed
    before = await state(tight)
    entries = {"tt_content": {str(first): {"children": ""}, str(second): {"title": "stands"}}}
    hooks = [VetoesChildless()] if denied else []
    result = await open_handler(tight, synchronized, hooks).process(entries)
    statuses = {o.id: o.status for o in result.outcomes}
    assert (statuses[str(first)], statuses[str(second)]) == ("vetoed" if denied else "written", "written")
    children = _TABLES.index("tx_child")
    assert ((await state(tight))[children] == before[children]) is denied
    assert len(result.errorLog) == (1 if denied else 0)


class VetoesChildless(DataHandlerHook):
    """Lets no content element of the default language lose its children."""

    async def post_process_field_array(
        self, run: HandlerRun, status: Status, table: str, record_id: str, fields: Fields
    ) -> None:
        if table == "tt_content" and fields.get("children") == 0:
            raise HookVeto("childless")
