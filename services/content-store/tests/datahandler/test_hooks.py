"""Hook points in their order, nested instances included; vetoes; what hooks may do (SEMANTICS 20)."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.datahandler.handler import DataHandler
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto, Status, load_hooks
from content_store.datahandler.run import HandlerRun
from content_store.records.gateway import Row
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler


class Recorder(DataHandlerHook):
    """Writes down what is called; placeholders that the handler made up are shown as NEW."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def _note(self, run: HandlerRun, text: str, record_id: str = "") -> None:
        depth, at = 0, run
        while at.parent is not None:
            depth, at = depth + 1, at.parent
        shown = "NEW" if len(record_id) > 30 else record_id
        self.calls.append(f"{'.' * depth}{text}{' ' + shown if shown else ''}")

    async def before_start(self, run: HandlerRun) -> None:
        self._note(run, "start")

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        self._note(run, f"pre {table}", record_id)
        return row

    async def post_process_field_array(
        self, run: HandlerRun, status: Status, table: str, record_id: str, fields: Fields
    ) -> None:
        self._note(run, f"post {status} {table}", record_id)

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        self._note(run, f"after {status} {table}", record_id)

    async def after_all_operations(self, run: HandlerRun) -> None:
        self._note(run, "end")

    async def before_commands(self, run: HandlerRun) -> None:
        self._note(run, "commands")

    async def pre_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste_update: Fields | None
    ) -> Any:
        self._note(run, f"pre {command}")
        return value

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        self._note(run, f"post {command} {len(results)}")

    async def after_commands(self, run: HandlerRun) -> None:
        self._note(run, "commands end")

    async def delete_action(self, run: HandlerRun, table: str, uid: int, record: Row, handled: bool) -> bool:
        self._note(run, f"delete {table}")
        return handled


async def _parent_with_child(connection: Connection, schema: Schema) -> str:
    made = await open_handler(connection, schema).process(
        {
            "tt_content": {"NEW1": {"pid": 2, "title": "p", "children": "NEW2"}},
            "tx_child": {"NEW2": {"pid": 2, "title": "c"}},
        }
    )
    return str(made.substNEWwithIDs["NEW1"])


async def test_order_of_a_datamap_with_placeholders(connection: Connection, schema: Schema) -> None:
    hook = Recorder()
    await open_handler(connection, schema, [hook]).process(
        {"tt_content": {"NEW1": {"pid": 2, "children": "NEW2"}}, "tx_child": {"NEW2": {"pid": 2}}}
    )
    assert hook.calls == [
        "start",
        "pre tt_content NEW1",
        "post new tt_content NEW1",
        "pre tx_child NEW2",
        "post new tx_child NEW2",
        "after new tx_child NEW2",
        "after new tt_content NEW1",
        "end",
    ]


async def test_order_of_a_copy_and_the_inner_run_at_the_end(connection: Connection, schema: Schema) -> None:
    uid, hook = await _parent_with_child(connection, schema), Recorder()
    await open_handler(connection, schema, [hook]).process(None, {"tt_content": {uid: {"copy": 2}}})
    assert hook.calls == [
        "commands",
        "pre copy",
        ".start",
        ".pre tt_content NEW",
        ".post new tt_content NEW",
        ".after new tt_content NEW",
        ".end",
        "post copy 1",
        "commands end",
        ".start",
        ".end",
    ]


async def test_delete_calls_cascades_but_not_content_of_a_page(connection: Connection, schema: Schema) -> None:
    uid, hook = await _parent_with_child(connection, schema), Recorder()
    await open_handler(connection, schema, [hook]).process(None, {"tt_content": {uid: {"delete": 1}}})
    assert [c for c in hook.calls if c.startswith("delete")] == ["delete tt_content", "delete tx_child"]
    other, page = (
        Recorder(),
        await open_handler(connection, schema).process({"pages": {"NEW1": {"pid": 1, "title": "x"}}}),
    )
    await open_handler(connection, schema).process({"tx_values": {"NEW1": {"pid": page.substNEWwithIDs["NEW1"]}}})
    deleted = {"pages": {str(page.substNEWwithIDs["NEW1"]): {"delete": 1}}}
    await open_handler(connection, schema, [other]).process(None, deleted)
    assert [c for c in other.calls if c.startswith("delete")] == ["delete pages"]


async def test_unchanged_update_still_calls_hooks(connection: Connection, schema: Schema) -> None:
    uid, hook = await _parent_with_child(connection, schema), Recorder()
    await open_handler(connection, schema, [hook]).process({"tt_content": {uid: {"title": "p"}}})
    assert hook.calls == [
        "start",
        f"pre tt_content {uid}",
        f"post update tt_content {uid}",
        f"after update tt_content {uid}",
        "end",
    ]


class Veto(DataHandlerHook):
    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        return None if row.get("title") == "no" else row

    async def pre_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste_update: Fields | None
    ) -> Any:
        if command == "delete":
            raise HookVeto("Not {what}", "out_of_scope", {"what": "that"})
        return value


async def test_vetoes_skip_the_entry_and_are_logged(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema, [Veto()])
    result = await handler.process(
        {"tt_content": {"NEW1": {"pid": 2, "title": "no"}, "NEW2": {"pid": 2, "title": "yes"}}}
    )
    assert [o.status for o in result.outcomes] == ["vetoed", "written"]
    uid = str(result.substNEWwithIDs["NEW2"])
    denied = await handler.process(None, {"tt_content": {uid: {"delete": 1}}})
    assert [(o.status, o.code, o.message) for o in denied.outcomes] == [("vetoed", "out_of_scope", "Not that")]
    assert denied.errorLog == ["Not that"]
    assert (await all_rows(connection, "tt_content"))[0]["deleted"] == 0
    assert len(await all_rows(connection, "sys_log", error=1)) == 2


class LateVeto(DataHandlerHook):
    """Objects once the record and its relations are written."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if fields.get("title") == "no":
            raise HookVeto("Too late", "late")


async def test_a_late_veto_undoes_a_record_with_its_relations(connection: Connection, schema: Schema) -> None:
    child = (await open_handler(connection, schema).process({"tx_child": {"NEW1": {"pid": 2}}})).substNEWwithIDs["NEW1"]
    handler = open_handler(connection, schema, [LateVeto()])
    entries = {"NEW1": {"pid": 2, "title": "no", "children": str(child)}, "NEW2": {"pid": 2, "title": "yes"}}
    result = await handler.process({"tt_content": entries})
    assert [(o.status, o.code) for o in result.outcomes] == [("vetoed", "late"), ("written", None)]
    assert [row["title"] for row in await all_rows(connection, "tt_content")] == ["yes"]
    assert (await all_rows(connection, "tx_child"))[0]["parentid"] == 0


async def test_a_late_veto_on_a_record_that_waited_is_told(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema, [LateVeto()])
    entries = {
        "tt_content": {"NEW1": {"pid": 2, "title": "no", "children": "NEW2"}},
        "tx_child": {"NEW2": {"pid": 2, "title": "yes"}},
    }
    result = await handler.process(entries)
    assert [o.status for o in result.outcomes] == ["written", "written"]
    assert result.outcomes[0].message == "A hook objected after the record was written: Too late"
    assert result.errorLog == ["Too late"]
    assert len(await all_rows(connection, "tt_content", title="no")) == 1


class Writer(DataHandlerHook):
    """Writes a record of its own for each new content element."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if table == "tt_content" and status == "new":
            result = await DataHandler.within(run).process({"tx_child": {"NEWown": {"pid": 2, "title": f"for {uid}"}}})
            assert not result.failed
            run.ctx.defer(self.committed)
            run.ctx.request_cache_flush(group="pages", tags=["a", "b"])

    async def committed(self) -> None:
        """Stands for what happens after the commit."""


async def test_hook_writes_through_a_nested_handler(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema, [Writer()])
    result = await handler.process({"tt_content": {"NEW1": {"pid": 2}}})
    assert [o.table for o in result.outcomes] == ["tt_content"]
    assert len(await all_rows(connection, "tx_child")) == 1
    scopes = {row["correlation_id"].split(":")[0] for row in await all_rows(connection, "sys_history")}
    assert scopes == {f"0400${result.correlation_id}"}
    assert len(handler.ctx.after_commit) == 1
    assert [(r.kind, r.names) for r in handler.ctx.flush_requests] == [("group", ("pages",)), ("tags", ("a", "b"))]


async def test_rehearsal_drops_callbacks_and_flushes(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema, [Writer()], rehearsal=True)
    await handler.process({"tt_content": {"NEW1": {"pid": 2}}})
    assert handler.ctx.rehearsal
    assert not handler.ctx.after_commit
    assert not handler.ctx.flush_requests


class Endless(DataHandlerHook):
    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        await DataHandler.within(run).process({"tx_child": {"NEWmore": {"pid": 2}}})


async def test_a_hook_that_answers_itself_is_stopped(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema, [Endless()])
    result = await handler.process({"tx_child": {"NEW1": {"pid": 2}}, "tx_values": {"NEW2": {"pid": 0}}})
    assert result.outcomes[0].code == "run_too_deep"


class Decides(DataHandlerHook):
    def __init__(self, verdict: bool) -> None:
        self.verdict = verdict

    async def check_record_update_access(
        self, run: HandlerRun, table: str, uid: int, row: Fields, verdict: bool | None
    ) -> bool | None:
        return self.verdict


@pytest.mark.parametrize(("verdict", "status"), [(True, "written"), (False, "refused")])
async def test_hook_decides_about_updates(connection: Connection, schema: Schema, verdict: bool, status: str) -> None:
    uid = await _parent_with_child(connection, schema)
    handler = open_handler(connection, schema, [Decides(verdict)])
    assert [o.status for o in (await handler.process({"tt_content": {uid: {"title": "z"}}})).outcomes] == [status]


def test_installed_hooks_are_hooks() -> None:
    assert all(isinstance(hook, DataHandlerHook) for hook in load_hooks())
