"""The list of a call against what it did, case by case (C-01 to C-21), and what an editor's rights cost."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from remit_contracts.calls import CallOutcome, CallResult, Datamap, RollbackReason
from remit_contracts.changes import Coverage
from remit_contracts.records import WriteTarget
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

TREE = EffectiveAssignmentScope(pages=(PageRoot(page=1, depth=9),))


async def call(store: TestStore, *operations: Any, **values: Any) -> CallResult:
    return await store.service.apply(uuid7(), apply_request(*operations, **values))


def listed(result: CallResult) -> dict[tuple[str, int], str]:
    return {(c.table, c.uid): c.action.value for c in result.changes.changes}


@pytest.mark.req("C-03", "C-05")
async def test_a_page_delete_lists_what_it_takes_along(store: TestStore) -> None:
    result = await call(store, command("pages", 10, "delete"))
    deleted = {key for key, action in listed(result).items() if action == "deleted"}
    assert deleted >= {("pages", uid) for uid in (10, 100, 1000, 30, 31)}
    assert deleted >= {("tt_content", uid) for uid in (5, 6, 8, 9)}
    assert ("sys_file_reference", 50) in deleted


@pytest.mark.req("C-05", "R-084")
async def test_several_actions_on_one_record_are_one_line(store: TestStore) -> None:
    result = await call(
        store,
        Datamap(datamap={"tt_content": {"NEW1": {"pid": 10, "header": "a", "CType": "text"}}}),
        Datamap(datamap={"tt_content": {"NEW1": {"header": "b"}}}),
        command("tt_content", 9, "move", 100),
        command("tt_content", 7, "delete"),
        command("tt_content", 7, "undelete"),
        command("tt_content", 6, "move", -9),
    )
    actions = listed(result)
    created = result.operations[0].placeholders["NEW1"]
    assert actions[("tt_content", created)] == "created"
    assert (actions[("tt_content", 9)], actions[("tt_content", 6)]) == ("moved", "moved")
    # Deleted and restored again it is what it was before: an update that changed no column.
    assert actions[("tt_content", 7)] == "updated"


@pytest.mark.req("C-16")
async def test_an_update_that_changes_no_column_is_listed(store: TestStore) -> None:
    # The first save of a record also writes its diff source.
    await call(store, update("tt_content", 9, header="Hours"))
    result = await call(store, update("tt_content", 9, header="Hours"))
    assert listed(result) == {("tt_content", 9): "updated"}
    assert result.judged_rows == 0


@pytest.mark.req("C-16", "C-21")
async def test_a_delete_of_what_never_was_is_not_listed(store: TestStore) -> None:
    result = await call(store, command("tt_content", 4711, "delete"))
    assert listed(result) == {}


@pytest.mark.req("C-05")
async def test_an_mm_row_lists_both_ends(store: TestStore) -> None:
    result = await call(store, update("tt_content", 9, categories="1"))
    assert {(c.table, c.uid, c.relation) for c in result.changes.changes} == {
        ("tt_content", 9, False),
        ("sys_category", 1, True),
    }


@pytest.mark.req("C-09", "C-10")
async def test_a_target_written_only_by_a_query_is_listed_but_not_claimed(store: TestStore) -> None:
    class Queries(DataHandlerHook):
        async def after_database_operations(
            self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
        ) -> None:
            await run.ctx.gateway.connection.execute("UPDATE tt_content SET header = 'x' WHERE uid = 7")

    target = WriteTarget(table="tt_content", uid=7)
    result = await call(store.with_hooks(Queries()), update("tt_content", 9, header="y"), write_target=target)
    assert result.changes.coverage is Coverage.NOT_CAPTURED
    assert listed(result) == {("tt_content", 9): "updated", ("tt_content", 7): "updated"}


@pytest.mark.req("C-17")
async def test_rows_are_read_back_with_one_query_per_table(store: TestStore) -> None:
    rows = {f"NEW{i}": {"pid": 10, "header": str(i), "CType": "text"} for i in range(20)}
    with store.counter.measure() as counter:
        await call(store, Datamap(datamap={"tt_content": rows}))
    assert len([s for s in counter.statements if "AS fact_0" in s]) == 1


@pytest.mark.req("C-04", "C-15")
async def test_the_history_is_never_read(store: TestStore) -> None:
    with store.counter.measure() as counter:
        await call(store, command("pages", 10, "delete"))
    assert not [s for s in counter.statements if "sys_history" in s and "INSERT" not in s]


@pytest.mark.req("S-50")
async def test_a_scope_costs_at_most_three_statements_of_the_verdict_and_one_of_layer_two(store: TestStore) -> None:
    counts = []
    for scope in (None, TREE):
        for header in ("warm", "measured"):
            with store.counter.measure() as counter:
                await call(store, update("tt_content", 9, header=f"{header}{scope is None}"), scope=scope)
        counts.append(counter.count)
    assert counts[1] - counts[0] <= 3


async def test_an_editors_update_stays_within_the_budget_too(store: TestStore) -> None:
    owner = await asyncpg.connect(store.owner_url)
    await owner.execute(
        "INSERT INTO be_groups (uid, pid, title, tables_modify, db_mountpoints, non_exclude_fields, explicit_allowdeny) "
        "VALUES (900, 0, 'Editors', 'pages,tt_content', '1', 'tt_content:header', 'tt_content:CType:text')"
    )
    await owner.execute(
        "INSERT INTO be_users (uid, pid, username, usergroup, options, workspace_perms) VALUES (900, 0, 'eva', '900', 3, 1)"
    )
    await owner.execute("SELECT count(*) FROM capture_take()")
    await owner.close()
    for header in ("warm", "measured"):
        with store.counter.measure() as counter:
            result = await call(store, update("tt_content", 9, header=header), scope=TREE, user=900)
    assert [error for operation in result.operations for error in operation.errors] == []
    assert listed(result) == {("tt_content", 9): "updated"}
    assert counter.count <= 16, "\n".join(s[:120] for s in counter.statements)
    foreign = await call(store, update("tt_content", 7, header="x"), user=900)
    assert listed(foreign) == {}
    assert foreign.operations[0].errors


@pytest.mark.req("S-56")
async def test_a_version_made_before_the_call_is_untouched_by_its_rollback(store: TestStore) -> None:
    owner = await asyncpg.connect(store.owner_url)
    await owner.execute(
        "INSERT INTO tt_content (uid, pid, header, t3ver_oid, t3ver_wsid) VALUES (800, 10, 'draft', 9, 1)"
    )
    await owner.execute("SELECT count(*) FROM capture_take()")
    await owner.close()
    both = (update("tt_content", 9, header="in"), update("tt_content", 7, header="out"))
    result = await call(store.with_env(scope_hook=False), *both, scope=TREE)
    assert result.reason is RollbackReason.VIOLATION
    assert await store.value("SELECT header FROM tt_content WHERE uid = 800") == "draft"


@pytest.mark.req("S-51", "S-56", "S-63")
async def test_a_rolled_back_call_leaves_neither_history_nor_log_nor_index(store: TestStore) -> None:
    before = await store.rows("SELECT * FROM sys_refindex ORDER BY hash")
    logged = await store.value("SELECT count(*) FROM sys_log")
    result = await call(store.with_env(scope_hook=False), command("tt_content", 7, "move", 10), scope=TREE)
    assert result.outcome is CallOutcome.ROLLED_BACK
    assert await store.rows("SELECT * FROM sys_refindex ORDER BY hash") == before
    assert await store.value("SELECT count(*) FROM sys_history") == 0
    assert await store.value("SELECT count(*) FROM sys_log") == logged
    # What the caller keeps of it comes with the answer: nothing of this database is needed for it.
    assert [(w.table, w.uid, w.undone) for w in result.changes.refused][:1] == [("tt_content", 7, True)]
