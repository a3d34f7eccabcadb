"""Layer two, input by input (S-30 to S-49). Each refused one is refused without writing, and said so."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.datahandler.handler import DataHandler
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from remit_contracts.calls import CallOutcome, CallResult, Cmdmap, Datamap, Operation
from remit_contracts.records import RecordReference
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update


def scope(*roots: tuple[int, int], **values: Any) -> EffectiveAssignmentScope:
    return EffectiveAssignmentScope.model_validate({"pages": [PageRoot(page=u, depth=d) for u, d in roots], **values})


def named(table: str, uid: int, **values: Any) -> EffectiveAssignmentScope:
    return scope(records=(RecordReference(table=table, uid=uid),), **values)


HALL, ENGLISH = scope((10, 0)), scope((10, 1), languages=[0])


def new(table: str, **row: Any) -> Datamap:
    return Datamap(datamap={table: {"NEW1": row}})


def reference(owner: Any, pid: Any = 10, **row: Any) -> dict[str, Any]:
    return {"pid": pid, "uid_local": 3, "uid_foreign": owner, "tablenames": "tt_content", "fieldname": "image", **row}


async def call(store: TestStore, operation: Operation, limits: EffectiveAssignmentScope) -> CallResult:
    return await store.service.apply(uuid7(), apply_request(operation, scope=limits))


async def rows(store: TestStore) -> list[Any]:
    tables = ("pages", "tt_content", "sys_file_reference", "sys_file_metadata", "sys_redirect")
    return [[dict(r) for r in await store.rows(f"SELECT * FROM {table} ORDER BY uid")] for table in tables]


REFUSED: list[Any] = [
    pytest.param(update("tt_content", 7, header="x"), HALL, "outside_scope", id="update outside", marks=pytest.mark.req("S-30")),
    pytest.param(update("tt_content", 8, header="x"), ENGLISH, "language_not_allowed", id="update of a language", marks=pytest.mark.req("S-30")),
    pytest.param(update("tt_content", 9, sys_language_uid=1), ENGLISH, "language_not_allowed", id="into a language", marks=pytest.mark.req("S-30")),
    pytest.param(update("tt_content", 9, sys_language_uid=-1), ENGLISH, "language_not_allowed", id="into all languages", marks=pytest.mark.req("S-06", "S-30")),
    pytest.param(update("tt_content", 8, l18n_parent=7), HALL, "outside_scope", id="translation of another", marks=pytest.mark.req("S-30")),
    pytest.param(update("tt_content", 8, l18n_parent="+5"), HALL, "scope_unresolvable", id="unreadable parent", marks=pytest.mark.req("S-42")),
    pytest.param(update("tt_content", 8, l18n_parent=[5]), HALL, "scope_unresolvable", id="list as parent", marks=pytest.mark.req("S-42")),
    pytest.param(update("tt_content", 9, sys_language_uid="01"), HALL, "scope_unresolvable", id="unreadable language", marks=pytest.mark.req("S-42")),
    pytest.param(update("sys_file_reference", 50, uid_foreign=7), HALL, "outside_scope", id="reference to another host", marks=pytest.mark.req("S-30")),
    pytest.param(update("sys_file_reference", 70, title="x"), scope((20, 0), records=[]).model_copy(update={"pages": (PageRoot(page=10),)}), "outside_scope", id="child of an owner outside", marks=pytest.mark.req("S-34")),
    pytest.param(update("tt_content", 9, image="70"), HALL, "outside_scope", id="takes a foreign child over", marks=pytest.mark.req("S-33")),
    pytest.param(update("tt_content", 9, image="sys_file_reference_70"), HALL, "outside_scope", id="takes over by table and uid", marks=pytest.mark.req("S-33", "S-42")),
    pytest.param(update("tt_content", 9, image=["50", "70"]), HALL, "outside_scope", id="takes over in a list", marks=pytest.mark.req("S-33")),
    pytest.param(update("tt_content", 9, image="sys_file_reference_"), HALL, "scope_unresolvable", id="table without uid", marks=pytest.mark.req("S-42")),
    pytest.param(update("tt_content", 9, image="070"), HALL, "scope_unresolvable", id="leading zero", marks=pytest.mark.req("S-42")),
    pytest.param(update("tt_content", 9, image="70 "), HALL, "scope_unresolvable", id="blank behind", marks=pytest.mark.req("S-42")),
    pytest.param(update("tt_content", 9, image="nowhere_70"), HALL, "scope_unresolvable", id="unknown table", marks=pytest.mark.req("S-42")),
    pytest.param(update("tt_content", 9, image=str(2**63)), HALL, "scope_unresolvable", id="no uid that big", marks=pytest.mark.req("S-42")),
    pytest.param(update("tt_content", 4711, header="x"), HALL, "scope_unresolvable", id="not there", marks=pytest.mark.req("S-42")),
    pytest.param(new("tt_content", pid=20, header="x"), HALL, "outside_scope", id="new outside", marks=pytest.mark.req("S-31")),
    pytest.param(new("tt_content", pid=-7, header="x"), HALL, "outside_scope", id="new behind a foreign record", marks=pytest.mark.req("S-31")),
    pytest.param(new("tt_content", pid="NEWx", header="x"), HALL, "scope_unresolvable", id="placeholder never defined", marks=pytest.mark.req("S-31", "S-42")),
    pytest.param(new("tt_content", header="x"), HALL, "scope_unresolvable", id="new without a page", marks=pytest.mark.req("S-31")),
    pytest.param(new("tt_content", pid=10, sys_language_uid=1), ENGLISH, "language_not_allowed", id="new in a language", marks=pytest.mark.req("S-31")),
    pytest.param(new("tt_content", pid=10, header="x"), scope((10, 0), tables=["pages"]), "table_not_allowed", id="new of a table", marks=pytest.mark.req("S-31", "S-46")),
    pytest.param(new("pages", pid=100, title="x"), scope((10, 1)), "outside_scope", id="page below the last level", marks=pytest.mark.req("S-07")),
    pytest.param(new("tt_content", pid=10, sys_language_uid=1, l18n_parent=7), HALL, "outside_scope", id="translation of a foreign record", marks=pytest.mark.req("S-32")),
    pytest.param(new("tt_content", pid=11, sys_language_uid=1, l18n_parent=9), scope((10, 0), (11, 0)), "outside_scope", id="translation elsewhere", marks=pytest.mark.req("S-32")),
    pytest.param(new("sys_file_reference", **reference(7)), HALL, "outside_scope", id="reference on a foreign record", marks=pytest.mark.req("S-32", "S-34")),
    pytest.param(new("sys_file_reference", **reference(9, pid=11)), scope((10, 0), (11, 0)), "outside_scope", id="reference elsewhere", marks=pytest.mark.req("S-32")),
    pytest.param(new("sys_file_reference", **reference("+9")), HALL, "scope_unresolvable", id="unreadable owner", marks=pytest.mark.req("S-42")),
    pytest.param(new("sys_redirect", pid=0, source_host="*", source_path="/x", target="/y"), scope((1, 99)), "outside_scope", id="redirect", marks=pytest.mark.req("S-05")),
    pytest.param(new("sys_file_metadata", pid=0, file=4, sys_language_uid=1), named("sys_file", 3), "outside_scope", id="metadata of another file", marks=pytest.mark.req("S-05")),
    pytest.param(command("tt_content", 9, "move", 20), HALL, "outside_scope", id="move out", marks=pytest.mark.req("S-35")),
    pytest.param(command("tt_content", 7, "move", 10), HALL, "outside_scope", id="move in", marks=pytest.mark.req("S-35")),
    pytest.param(command("tt_content", 9, "move", -7), HALL, "outside_scope", id="move behind a foreign anchor", marks=pytest.mark.req("S-35")),
    pytest.param(command("tt_content", 9, "move", {"action": "paste", "target": 20}), HALL, "outside_scope", id="paste out", marks=pytest.mark.req("S-35")),
    pytest.param(command("tt_content", 9, "move", {"action": "paste"}), HALL, "scope_unresolvable", id="paste nowhere", marks=pytest.mark.req("S-35", "S-42")),
    pytest.param(command("tt_content", 9, "move", "10 "), HALL, "scope_unresolvable", id="unreadable target", marks=pytest.mark.req("S-42")),
    pytest.param(command("tt_content", 5, "move", 10), ENGLISH, "language_not_allowed", id="translations move along", marks=pytest.mark.req("S-35")),
    pytest.param(command("tt_content", 9, "move", -5), ENGLISH, "language_not_allowed", id="translations of the anchor", marks=pytest.mark.req("S-35")),
    pytest.param(command("pages", 100, "move", 11), scope((10, 2), (11, 1)), "subtree_outside_scope", id="subtree too high", marks=pytest.mark.req("S-35", "S-07")),
    pytest.param(command("tt_content", 9, "copy", 20), HALL, "outside_scope", id="copy out", marks=pytest.mark.req("S-36")),
    pytest.param(command("tt_content", 7, "copy", 10), HALL, "outside_scope", id="copy of a foreign record", marks=pytest.mark.req("S-36")),
    pytest.param(command("tt_content", 9, "localize", 1), ENGLISH, "language_not_allowed", id="localize", marks=pytest.mark.req("S-37")),
    pytest.param(command("tt_content", 9, "copyToLanguage", 1), ENGLISH, "language_not_allowed", id="copy to language", marks=pytest.mark.req("S-37")),
    pytest.param(command("tt_content", 9, "localize", "1 "), HALL, "scope_unresolvable", id="unreadable language of localize", marks=pytest.mark.req("S-42")),
    pytest.param(command("tt_content", 7, "localize", 1), HALL, "outside_scope", id="localize a foreign record", marks=pytest.mark.req("S-37")),
    pytest.param(command("tt_content", 7, "inlineLocalizeSynchronize", {"field": "image", "language": 1, "action": "localize"}), HALL, "outside_scope", id="synchronize a foreign record", marks=pytest.mark.req("S-38")),
    pytest.param(command("tt_content", 7, "delete"), HALL, "outside_scope", id="delete outside", marks=pytest.mark.req("S-39")),
    pytest.param(command("tt_content", 5, "delete"), ENGLISH, "language_not_allowed", id="translations deleted along", marks=pytest.mark.req("S-39")),
    pytest.param(command("pages", 10, "delete"), scope((10, 1)), "subtree_outside_scope", id="subtree deleted along", marks=pytest.mark.req("S-39")),
    pytest.param(command("tt_content", 9, "delete"), scope((10, 0), tables=["pages"]), "table_not_allowed", id="delete of a table", marks=pytest.mark.req("S-46")),
    pytest.param(command("tt_content", 7, "undelete"), HALL, "outside_scope", id="undelete", marks=pytest.mark.req("S-40")),
    pytest.param(command("tt_content", 7, "discard"), HALL, "outside_scope", id="discard", marks=pytest.mark.req("S-40")),
    pytest.param(command("tt_content", 7, "version", {"action": "swap", "swapWith": 7}), HALL, "outside_scope", id="publish", marks=pytest.mark.req("S-40")),
    pytest.param(command("tt_content", 9, "version", {"action": "swap", "swapWith": 7}), HALL, "outside_scope", id="swap with a foreign row", marks=pytest.mark.req("S-40")),
    pytest.param(command("tt_content", 9, "version", "swap"), HALL, "scope_unresolvable", id="unreadable version", marks=pytest.mark.req("S-40", "S-42")),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "limits", "reason"), REFUSED)
@pytest.mark.req("S-43", "S-45", "S-71")
async def test_refused_and_nothing_written(
    shared_store: TestStore, operation: Operation, limits: EffectiveAssignmentScope, reason: str
) -> None:
    before = await rows(shared_store)
    result = await call(shared_store, operation, limits)
    assert result.outcome is CallOutcome.COMMITTED
    assert [w.reason for w in result.changes.refused] == [reason]
    assert result.changes.changes == ()
    assert [error.code for error in result.operations[0].errors] == [reason]
    assert await rows(shared_store) == before


ADMITTED: list[Any] = [
    pytest.param(update("tt_content", 9, image="sys_file_reference_50"), HALL, id="child of the same page"),
    pytest.param(new("tt_content", pid=-9, header="x", CType="text"), HALL, id="new behind"),
    pytest.param(new("tt_content", pid=30, header="x", CType="text"), HALL, id="new on the page's translation"),
    pytest.param(new("pages", pid=100, title="x"), scope((10, 2)), id="page on the last level"),
    pytest.param(new("pages", pid=1, title="x", sys_language_uid=1, l10n_parent=11), scope((11, 0)), id="page translation"),
    pytest.param(new("sys_file_reference", **reference(9)), named("tt_content", 9), id="reference on a scoped record"),
    pytest.param(new("sys_file_metadata", pid=0, file=4, sys_language_uid=1, title="x"), named("sys_file", 4), id="metadata of a scoped file"),
    pytest.param(update("sys_file_metadata", 4, title="x"), named("sys_file", 4), id="stored metadata of a scoped file"),
    pytest.param(command("tt_content", 9, "localize", 1), named("tt_content", 9), id="localize a scoped record"),
    pytest.param(command("tt_content", 9, "copy", -9), HALL, id="copy behind itself"),
    pytest.param(command("pages", 1000, "move", 11), scope((1, 3)), id="move a page"),
    pytest.param(command("tt_content", 5, "delete"), HALL, id="delete with its translation and reference"),
    pytest.param(command("tt_content", 9, "move", 10), HALL, id="move within the page"),
    pytest.param(command("pages", 100, "copy", 11), scope((1, 3)), id="copy a page"),
    pytest.param(command("tt_content", 5, "copy", 10), HALL, id="copy with children and translation"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "limits"), ADMITTED)
@pytest.mark.req("S-30", "S-31", "S-32", "S-35", "S-36", "S-37", "S-39")
async def test_admitted_and_written(store: TestStore, operation: Operation, limits: EffectiveAssignmentScope) -> None:
    result = await call(store, operation, limits)
    assert (result.outcome, result.reason, result.changes.refused) == (CallOutcome.COMMITTED, None, ())
    assert [error for o in result.operations for error in o.errors] == []
    assert result.changes.changes


@pytest.mark.req("S-41")
async def test_an_unknown_command_is_an_error_and_writes_nothing(shared_store: TestStore) -> None:
    before = await rows(shared_store)
    result = await call(shared_store, command("tt_content", 9, "explode"), HALL)
    assert result.operations[0].errors
    assert await rows(shared_store) == before


@pytest.mark.req("S-44")
async def test_pid_and_version_columns_of_an_update_are_never_written(store: TestStore) -> None:
    row = {"pid": 20, "t3ver_oid": 7, "t3ver_wsid": 3, "t3ver_state": 2, "header": "in"}
    result = await call(store, Datamap(datamap={"tt_content": {"9": row}}), HALL)
    assert (result.outcome, result.changes.refused) == (CallOutcome.COMMITTED, ())
    stored = dict(
        (await store.rows("SELECT pid, t3ver_oid, t3ver_wsid, t3ver_state, header FROM tt_content WHERE uid = 9"))[0]
    )
    assert stored == {"pid": 10, "t3ver_oid": 0, "t3ver_wsid": 0, "t3ver_state": 0, "header": "in"}


@pytest.mark.req("S-48")
async def test_what_group_and_mm_values_name_is_not_checked(store: TestStore) -> None:
    result = await call(store, update("tt_content", 9, categories="1", records="tt_content_7", pages="20"), HALL)
    assert (result.outcome, result.changes.refused) == (CallOutcome.COMMITTED, ())
    listed = {(c.table, c.uid): c.relation for c in result.changes.changes}
    assert listed == {("tt_content", 9): False, ("sys_category", 1): True}


@pytest.mark.req("S-43")
async def test_a_refused_command_does_not_stop_the_others(store: TestStore) -> None:
    both = Cmdmap(cmdmap={"tt_content": {"7": {"delete": 1}, "9": {"delete": 1}}})
    result = await call(store, both, HALL)
    assert [(w.operation, w.uid) for w in result.changes.refused] == [("delete", 7)]
    deleted = {r["uid"] for r in await store.rows("SELECT uid FROM tt_content WHERE deleted = 1")}
    assert deleted == {9}


@pytest.mark.req("S-31", "S-33")
async def test_an_inline_child_takes_its_owner_from_the_list_it_stands_in(store: TestStore) -> None:
    both = Datamap(
        datamap={
            "tt_content": {"9": {"image": "NEW1"}},
            "sys_file_reference": {"NEW1": {"pid": 10, "uid_local": 3}},
        }
    )
    result = await call(store, both, named("tt_content", 9))
    assert (result.outcome, result.changes.refused) == (CallOutcome.COMMITTED, ())
    assert await store.value("SELECT count(*) FROM sys_file_reference WHERE uid_foreign = 9") == 1


@pytest.mark.req("S-42")
@pytest.mark.parametrize("key", ["+9", "09", "9 ", "-9", str(2**63), "9\x00", "", "nine"])
async def test_a_key_that_is_no_uid_writes_nothing(shared_store: TestStore, key: str) -> None:
    before = await rows(shared_store)
    for operation in (
        Datamap(datamap={"tt_content": {key: {"header": "x"}}}),
        Cmdmap(cmdmap={"tt_content": {key: {"delete": 1}}}),
    ):
        result = await call(shared_store, operation, scope((1, 99), (2, 99)))
        assert result.operations[0].errors or result.changes.refused
    assert await rows(shared_store) == before


@pytest.mark.req("S-38")
async def test_synchronizing_children_is_judged_row_by_row(store: TestStore) -> None:
    operation = command(
        "tt_content", 5, "inlineLocalizeSynchronize", {"field": "image", "language": 1, "action": "localize"}
    )
    translated = "SELECT count(*) FROM sys_file_reference WHERE sys_language_uid = 1 AND uid_foreign = 8"
    only_content = scope((10, 0), tables=["tt_content"])
    refused = await store.service.apply(uuid7(), apply_request(operation, scope=only_content))
    assert refused.outcome is CallOutcome.COMMITTED
    assert {(w.table, w.reason) for w in refused.changes.refused} == {("sys_file_reference", "table_not_allowed")}
    assert await store.value(translated) == 0
    # Control: with the table of the children admitted each is made.
    done = await store.service.apply(uuid7(), apply_request(operation, scope=scope((10, 0))))
    assert (done.changes.refused, done.operations[0].errors) == ((), ())
    assert await store.value(translated) == 1


class MakesAnother(DataHandlerHook):
    """Makes an element on page 20 under a name the call has used, whenever content 9 is written."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if (table, uid) == ("tt_content", 9):
            await DataHandler.within(run).process({"tt_content": {"NEW1": {"pid": 20, "header": "by hook"}}}, {})


@pytest.mark.req("S-31", "S-43", "S-45")
async def test_a_placeholder_the_call_has_used_is_a_new_record_for_a_handler_of_a_hook(store: TestStore) -> None:
    both = Datamap(datamap={"tt_content": {"NEW1": {"pid": 10, "header": "in"}, "9": {"header": "in"}}})
    result = await call(store.with_hooks(MakesAnother()), both, HALL)
    assert (result.outcome, result.reason) == (CallOutcome.COMMITTED, None)
    assert [(w.operation, w.uid, w.pid, w.reason) for w in result.changes.refused] == [
        ("create", None, 20, "outside_scope")
    ]
    assert await store.value("SELECT count(*) FROM tt_content WHERE pid = 20") == 1


@pytest.mark.req("S-31", "S-43")
async def test_a_placeholder_of_two_tables_is_two_new_records(store: TestStore) -> None:
    # The file reference is made first and has a uid by then; an element may have the same.
    numbers = "unnest(ARRAY['tt_content', 'sys_file_reference']) AS name"
    await store.rows(f"SELECT setval(pg_get_serial_sequence(name, 'uid'), 7000) FROM {numbers}")
    await store.rows("INSERT INTO tt_content (pid, header) VALUES (10, 'in')")
    both = Datamap(
        datamap={
            "sys_file_reference": {"NEW1": reference(9)},
            "tt_content": {"NEW1": {"pid": 20, "header": "out", "CType": "text"}},
        }
    )
    result = await call(store, both, HALL)
    assert (result.outcome, result.reason) == (CallOutcome.COMMITTED, None)
    assert [(w.operation, w.table, w.pid) for w in result.changes.refused] == [("create", "tt_content", 20)]
    assert [c.table for c in result.changes.changes if c.action == "created"] == ["sys_file_reference"]
