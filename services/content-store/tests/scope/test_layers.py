"""The named cases through the real store: each layer with its control (S-80 to S-83, S-85)."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from remit_contracts.calls import CallOutcome, CallResult, Datamap, RollbackReason
from remit_contracts.records import RecordReference
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10),))
NAMED = EffectiveAssignmentScope(records=(RecordReference(table="tt_content", uid=9),))
HEADER = "SELECT header FROM tt_content WHERE uid = $1"


class WritesAnother(DataHandlerHook):
    """Writes content 7 through a DataHandler of its own whenever content 9 is written."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if (table, uid) == ("tt_content", 9):
            await DataHandler.within(run).process({"tt_content": {"7": {"header": "by hook"}}}, {})


class QueriesAnother(DataHandlerHook):
    """Writes content 7 by plain SQL whenever content 9 is written."""

    def __init__(self, sql: str = "UPDATE tt_content SET header = 'by hook' WHERE uid = 7") -> None:
        self._sql = sql

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if (table, uid) == ("tt_content", 9):
            await run.ctx.gateway.connection.execute(self._sql)


async def call(store: TestStore, *operations: Any, scope: EffectiveAssignmentScope | None = HALL) -> CallResult:
    return await store.service.apply(uuid7(), apply_request(*operations, scope=scope))


def refusals(result: CallResult) -> list[tuple[str, str, int | None, str, bool]]:
    return [(w.operation, w.table, w.uid, w.reason, w.undone) for w in result.changes.refused]


LOGGED = "SELECT count(*) FROM sys_log WHERE code = 'assignment_scope.outside_scope'"
EFFECT = ("effect", "tt_content", 7, "outside_scope", True)


@pytest.mark.req("S-80", "S-43", "S-45", "S-71", "S-75")
async def test_a_tool_that_writes_another_record_is_refused_by_the_hook(store: TestStore) -> None:
    both = Datamap(datamap={"tt_content": {"9": {"header": "in"}, "7": {"header": "out"}}})
    logged = await store.value(LOGGED)
    result = await call(store, both)
    assert result.outcome is CallOutcome.COMMITTED
    assert refusals(result) == [("update", "tt_content", 7, "outside_scope", False)]
    assert [(e.record, e.code) for e in result.operations[0].errors] == [("7", "outside_scope")]
    assert [(c.table, c.uid) for c in result.changes.changes] == [("tt_content", 9)]
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["in", "Foreign"]
    assert await store.value(LOGGED) == logged + 1


@pytest.mark.req("S-80", "S-85", "S-52", "S-74", "S-75")
async def test_without_the_hook_the_effect_check_takes_everything_back(store: TestStore) -> None:
    both = Datamap(datamap={"tt_content": {"9": {"header": "in"}, "7": {"header": "out"}}})
    result = await call(store.with_env(scope_hook=False), both)
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.VIOLATION)
    assert refusals(result) == [EFFECT]
    assert result.changes.changes == ()
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]
    assert await store.value("SELECT count(*) FROM sys_history") == 0
    assert await store.value("SELECT count(*) FROM outbox") == 0


@pytest.mark.req("S-80", "S-85")
async def test_control_without_both_the_foreign_row_is_changed(store: TestStore) -> None:
    both = Datamap(datamap={"tt_content": {"9": {"header": "in"}, "7": {"header": "out"}}})
    result = await call(store.with_env(scope_hook=False, effect_check=False), both)
    assert result.outcome is CallOutcome.COMMITTED
    assert await store.value(HEADER, 7) == "out"


@pytest.mark.req("S-81", "S-45")
async def test_a_hook_that_writes_through_a_handler_of_its_own_is_held(store: TestStore) -> None:
    result = await call(store.with_hooks(WritesAnother()), update("tt_content", 9, header="in"))
    assert result.outcome is CallOutcome.COMMITTED
    assert refusals(result) == [("update", "tt_content", 7, "outside_scope", False)]
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["in", "Foreign"]


@pytest.mark.req("S-81", "S-85")
async def test_a_hook_that_writes_is_found_afterwards_without_layer_two(store: TestStore) -> None:
    hooked = store.with_hooks(WritesAnother())
    result = await call(hooked.with_env(scope_hook=False), update("tt_content", 9, header="in"))
    assert (result.outcome, refusals(result)) == (CallOutcome.ROLLED_BACK, [EFFECT])
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]
    control = await call(hooked.with_env(scope_hook=False, effect_check=False), update("tt_content", 9, header="in"))
    assert control.outcome is CallOutcome.COMMITTED
    assert await store.value(HEADER, 7) == "by hook"


@pytest.mark.req("S-82", "S-39")
async def test_a_page_delete_may_not_take_pages_below_the_depth_along(store: TestStore) -> None:
    shallow = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=1),))
    result = await call(store, command("pages", 10, "delete"), scope=shallow)
    assert refusals(result) == [("delete", "pages", 10, "subtree_outside_scope", False)]
    assert await store.value("SELECT count(*) FROM pages WHERE deleted = 1") == 0
    deep = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=2),))
    allowed = await call(store, command("pages", 10, "delete"), scope=deep)
    assert (allowed.outcome, allowed.changes.refused) == (CallOutcome.COMMITTED, ())
    deleted = {(c.table, c.uid) for c in allowed.changes.changes if c.action == "deleted"}
    assert deleted >= {("pages", 10), ("pages", 100), ("pages", 1000), ("tt_content", 5), ("tt_content", 6)}


@pytest.mark.req("S-82", "S-85")
async def test_a_page_delete_is_found_afterwards_without_layer_two(store: TestStore) -> None:
    shallow = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=1),))
    result = await call(store.with_env(scope_hook=False), command("pages", 10, "delete"), scope=shallow)
    assert result.reason is RollbackReason.VIOLATION
    assert ("effect", "pages", 1000, "outside_scope", True) in refusals(result)
    assert await store.value("SELECT count(*) FROM pages WHERE deleted = 1") == 0
    control = store.with_env(scope_hook=False, effect_check=False)
    await call(control, command("pages", 10, "delete"), scope=shallow)
    assert await store.value("SELECT deleted FROM pages WHERE uid = 1000") == 1


@pytest.mark.req("S-83", "S-53", "S-85")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE tt_content SET header = 'by hook' WHERE uid = 7",
        "UPDATE tt_content SET pid = 10 WHERE uid = 7",
        "DELETE FROM tt_content WHERE uid = 7",
        "INSERT INTO tt_content (pid, header) VALUES (20, 'by hook')",
        "UPDATE sys_file_reference SET uid_foreign = 9, pid = 10 WHERE uid = 70",
        "WITH x AS (UPDATE tt_content SET header = 'x' WHERE uid = 7 RETURNING 1) SELECT * FROM x",
        "MERGE INTO tt_content t USING (SELECT 7 AS uid) s ON t.uid = s.uid WHEN MATCHED THEN UPDATE SET header = 'x'",
    ],
)
async def test_only_the_database_sees_a_hooks_query_and_the_call_is_undone(store: TestStore, sql: str) -> None:
    result = await call(store.with_hooks(QueriesAnother(sql)), update("tt_content", 9, header="in"))
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.VIOLATION)
    assert await store.value(HEADER, 9) == "Hours"
    assert dict((await store.rows("SELECT header, pid FROM tt_content WHERE uid = 7"))[0]) == {
        "header": "Foreign",
        "pid": 20,
    }


@pytest.mark.req("S-83", "S-85")
async def test_control_without_the_triggers_a_hooks_query_lands(new_store: Any) -> None:
    async def without_triggers(owner_url: str) -> None:
        connection = await asyncpg.connect(owner_url)
        await connection.execute("ALTER TABLE tt_content DISABLE TRIGGER ALL")
        await connection.close()

    store = await new_store(prepare=without_triggers)
    result = await call(store.with_hooks(QueriesAnother()), update("tt_content", 9, header="in"))
    assert result.outcome is CallOutcome.COMMITTED
    assert await store.value(HEADER, 7) == "by hook"


@pytest.mark.req("S-85", "S-34", "S-32")
async def test_an_inline_child_under_a_parent_outside_is_refused(store: TestStore) -> None:
    child = {"pid": 10, "uid_local": 3, "uid_foreign": 7, "tablenames": "tt_content", "fieldname": "image"}
    result = await call(store, Datamap(datamap={"sys_file_reference": {"NEW1": child}}))
    assert refusals(result) == [("create", "sys_file_reference", None, "outside_scope", False)]
    undone = await call(store.with_env(scope_hook=False), Datamap(datamap={"sys_file_reference": {"NEW1": child}}))
    assert undone.reason is RollbackReason.VIOLATION
    assert await store.value("SELECT count(*) FROM sys_file_reference") == 2


@pytest.mark.req("S-12", "S-50")
async def test_where_a_scope_is_required_a_call_without_one_writes_nothing_whatever_it_declares(
    store: TestStore,
) -> None:
    for effect in ("read", "write", "undeclared"):
        request = apply_request(update("tt_content", 9, header="x"), scope_required=True, effect=effect)
        result = await store.service.apply(uuid7(), request)
        assert refusals(result) == [("update", "tt_content", 9, "outside_scope", False)]
    undeclared = apply_request(update("tt_content", 7, header="x"), scope=HALL, effect="undeclared")
    assert refusals(await store.service.apply(uuid7(), undeclared))
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]


@pytest.mark.req("S-49", "S-37")
async def test_a_header_change_of_a_translated_element_succeeds_under_the_default_language(store: TestStore) -> None:
    english = EffectiveAssignmentScope(pages=(PageRoot(page=10),), languages=(0,))
    result = await call(store, update("tt_content", 5, header="in"), scope=english)
    assert (result.outcome, result.changes.refused) == (CallOutcome.COMMITTED, ())
    assert [(c.table, c.uid) for c in result.changes.changes] == [("tt_content", 5)]
    # A value translations take over reaches one outside: that is refused, the rest stays.
    passed_on = await call(store, update("tt_content", 5, colPos=3), scope=english)
    assert refusals(passed_on) == [("update", "tt_content", 8, "language_not_allowed", False)]
    assert await store.value('SELECT "colPos" FROM tt_content WHERE uid = 5') == 3


@pytest.mark.req("S-17")
async def test_without_a_scope_the_same_administrator_writes_anywhere(store: TestStore) -> None:
    result = await call(store, update("tt_content", 7, header="x"), scope=None)
    assert (result.outcome, result.changes.refused) == (CallOutcome.COMMITTED, ())
    assert refusals(await call(store, update("tt_content", 7, header="y"), scope=NAMED))
    assert await store.value(HEADER, 7) == "x"


PAGES_ONLY = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=9),), tables=("pages",))
ENGLISH = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=9),), languages=(0,))
BRANCH = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=99),))


class DoesAnother(DataHandlerHook):
    """Does something through a handler that knows of no scope, or by plain SQL, whenever page 10 is written."""

    def __init__(self, what: str | dict[str, Any]) -> None:
        self._what = what

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if (table, uid) != ("pages", 10):
            return
        if isinstance(self._what, str):
            await run.ctx.gateway.connection.execute(self._what)
        else:
            own = DataHandler(run.ctx.gateway, HandlerActor(run.ctx.policy.user), sites=run.ctx.sites)
            await own.process({}, self._what)


async def done_by_a_hook(store: TestStore, what: str | dict[str, Any], scope: EffectiveAssignmentScope) -> CallResult:
    return await call(store.with_hooks(DoesAnother(what)), update("pages", 10, nav_title="x"), scope=scope)


@pytest.mark.req("S-65", "S-46", "S-51", "S-53")
@pytest.mark.parametrize(
    ("scope", "uid", "what"),
    [
        (PAGES_ONLY, 9, "UPDATE tt_content SET deleted = 1 WHERE uid = 9"),
        (PAGES_ONLY, 9, "DELETE FROM tt_content WHERE uid = 9"),
        (PAGES_ONLY, 9, {"tt_content": {"9": {"delete": 1}}}),
        (ENGLISH, 8, "UPDATE tt_content SET deleted = 1 WHERE uid = 8"),
        (ENGLISH, 8, {"tt_content": {"8": {"delete": 1}}}),
        (ENGLISH, 8, {"tt_content": {"5": {"delete": 1}}}),
    ],
)
async def test_a_deletion_that_goes_along_with_nothing_is_held_to_table_and_language_lists(
    store: TestStore, scope: EffectiveAssignmentScope, uid: int, what: str | dict[str, Any]
) -> None:
    there = "SELECT count(*) FROM tt_content WHERE uid = $1 AND deleted = 0"
    result = await done_by_a_hook(store, what, scope)
    reason = "table_not_allowed" if scope is PAGES_ONLY else "language_not_allowed"
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.VIOLATION)
    assert refusals(result) == [("effect", "tt_content", uid, reason, True)]
    assert await store.value(there, uid) == 1
    control = await done_by_a_hook(store.with_env(effect_check=False), what, scope)
    assert (control.outcome, await store.value(there, uid)) == (CallOutcome.COMMITTED, 0)


@pytest.mark.req("S-65", "S-46")
@pytest.mark.parametrize(
    ("scope", "what", "gone"),
    [
        (PAGES_ONLY, {"pages": {"100": {"delete": 1}}}, [("pages", 31), ("pages", 1000), ("tt_content", 6)]),
        (ENGLISH, {"pages": {"100": {"delete": 1}}}, [("tt_content", 6)]),
        (
            EffectiveAssignmentScope(pages=(PageRoot(page=10),), tables=("tt_content", "pages")),
            {"tt_content": {"5": {"delete": 1}}},
            [("tt_content", 8), ("sys_file_reference", 50)],
        ),
    ],
)
async def test_what_an_unguarded_handler_deletes_along_goes_by_position(
    store: TestStore, scope: EffectiveAssignmentScope, what: dict[str, Any], gone: list[tuple[str, int]]
) -> None:
    if scope is ENGLISH:
        # The German page is a translation of what is deleted, so its language counts (S-39); without it, position does.
        result = await done_by_a_hook(store, what, scope)
        assert refusals(result) == [("effect", "pages", 31, "language_not_allowed", True)]
        await store.rows("DELETE FROM pages WHERE uid = 31")
    result = await done_by_a_hook(store, what, scope)
    assert (result.outcome, refusals(result)) == (CallOutcome.COMMITTED, [])
    for table, uid in gone:
        assert await store.value(f"SELECT deleted FROM {table} WHERE uid = $1", uid) == 1


@pytest.mark.req("S-30", "S-51", "S-52")
async def test_a_translation_of_a_record_outside_is_found_without_layer_two(store: TestStore) -> None:
    adopted = update("tt_content", 8, l18n_parent=7)
    parent = "SELECT l18n_parent FROM tt_content WHERE uid = 8"
    bare = store.with_env(scope_hook=False)
    result = await call(bare, adopted)
    assert (result.outcome, refusals(result)) == (
        CallOutcome.ROLLED_BACK,
        [("effect", "tt_content", 8, "outside_scope", True)],
    )
    assert await store.value(parent) == 5
    assert (await call(bare, update("tt_content", 8, l18n_parent=9))).outcome is CallOutcome.COMMITTED
    assert await store.value(parent) == 9
    await call(bare.with_env(effect_check=False), adopted)
    assert await store.value(parent) == 7


@pytest.mark.req("S-08", "S-53")
async def test_a_page_a_hook_puts_below_itself_is_taken_back(store: TestStore) -> None:
    circle, above = "UPDATE pages SET pid = 100 WHERE uid = 10", "SELECT pid FROM pages WHERE uid = 10"
    result = await done_by_a_hook(store, circle, BRANCH)
    assert (result.outcome, refusals(result)) == (
        CallOutcome.ROLLED_BACK,
        [("effect", "pages", 10, "outside_scope", True)],
    )
    assert await store.value(above) == 1
    await done_by_a_hook(store.with_env(effect_check=False), circle, BRANCH)
    assert await store.value(above) == 100
