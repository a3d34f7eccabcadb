"""Rehearsal of a turn, and what its execution may not exceed (CALLS 4)."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from remit_contracts.actor import ActorContext
from remit_contracts.calls import (
    CallOutcome,
    Datamap,
    Operation,
    RehearsalRequest,
    RehearsedCall,
    RehearsedCallRequest,
    RollbackReason,
)
from remit_contracts.records import WriteTarget
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=1),))
HEADER = "SELECT header FROM tt_content WHERE uid = $1"
SNAPSHOT = "SELECT (SELECT count(*) FROM {}) AS n, (SELECT coalesce(sum(hashtext(t::text)), 0) FROM {} t) AS h"
TABLES = (
    "pages",
    "tt_content",
    "sys_file_reference",
    "sys_history",
    "sys_refindex",
    "outbox",
    "call_outcome",
    "sys_log",
)


class Extra(DataHandlerHook):
    """Writes content 6 along when content 9 is written, once it is switched on."""

    def __init__(self) -> None:
        self.on = False
        self.rehearsals: list[bool] = []

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        self.rehearsals.append(run.ctx.rehearsal)
        if self.on and (table, uid) == ("tt_content", 9):
            await run.ctx.gateway.connection.execute("UPDATE tt_content SET header = 'along' WHERE uid = 6")


async def snapshot(store: TestStore) -> list[Any]:
    return [dict((await store.rows(SNAPSHOT.format(table, table)))[0]) for table in TABLES]


async def rehearse(store: TestStore, *calls: list[Operation], **values: Any) -> list[RehearsedCall]:
    request = RehearsalRequest(
        run_id=uuid7(),
        lease_epoch=1,
        actor=ActorContext(user_uid=1),
        scope=values.pop("scope", None),
        calls=[
            RehearsedCallRequest(key=str(i), tool="t", operations=operations, **values)
            for i, operations in enumerate(calls)
        ],
    )
    return list((await store.rehearsals.rehearse(uuid7(), request)).calls)


async def test_a_turn_is_shown_call_by_call_and_leaves_nothing(store: TestStore) -> None:
    before = await snapshot(store)
    calls = await rehearse(
        store,
        [update("tt_content", 9, header="one")],
        [update("tt_content", 9, header="two"), update("tt_content", 7, header="out")],
        [command("pages", 100, "delete")],
        scope=HALL,
        write_target=WriteTarget(table="tt_content", uid=9),
    )
    assert [call.outcome for call in calls] == [CallOutcome.COMMITTED] * 3
    assert [[(s.table, s.action, s.record) for s in call.shown] for call in calls[:2]] == [
        [("tt_content", "updated", "9")],
        [("tt_content", "updated", "9")],
    ]
    assert [(w.uid, w.reason) for w in calls[1].changes.refused] == [(7, "outside_scope")]
    assert [(w.uid, w.reason) for w in calls[2].changes.refused] == [(100, "subtree_outside_scope")]
    assert await snapshot(store) == before


async def test_what_comes_along_is_shown(store: TestStore) -> None:
    (call,) = await rehearse(store, [command("pages", 100, "delete")])
    deleted = {(s.table, s.record) for s in call.shown if s.action == "deleted"}
    assert deleted >= {("pages", "100"), ("pages", "1000"), ("tt_content", "6")}
    assert await store.value("SELECT deleted FROM pages WHERE uid = 100") == 0


async def test_new_records_are_compared_by_placeholder_path(store: TestStore) -> None:
    operations: list[Operation] = [
        Datamap(datamap={"pages": {"NEWp": {"pid": 10, "title": "Fresh"}}}),
        Datamap(datamap={"tt_content": {"NEWc": {"pid": "NEWp", "header": "On it", "CType": "text"}}}),
        command("tt_content", 9, "copy", 11),
    ]
    (call,) = await rehearse(store, operations)
    lines = {(s.table, s.action, s.record, s.pid) for s in call.shown}
    assert {("pages", "created", "NEWp", "10"), ("tt_content", "created", "NEWc", "NEWp")} <= lines
    assert ("tt_content", "created", "copy:9", "11") in lines
    # Sequences went on meanwhile; the paths are the same all the same.
    result = await store.service.apply(uuid7(), apply_request(*operations, shown=list(call.shown)))
    assert (result.outcome, result.exceeded) == (CallOutcome.COMMITTED, ())


async def test_more_than_shown_is_undone_and_listed_and_less_is_fine(store: TestStore) -> None:
    hook = Extra()
    hooked = store.with_hooks(hook)
    (call,) = await rehearse(hooked, [update("tt_content", 9, header="in"), update("tt_content", 5, header="in")])
    assert hook.rehearsals
    assert all(hook.rehearsals)
    hook.on = True
    request = apply_request(update("tt_content", 9, header="in"), shown=list(call.shown))
    result = await hooked.service.apply(uuid7(), request)
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.MORE_THAN_SHOWN)
    assert [(s.table, s.record, s.action) for s in result.exceeded] == [("tt_content", "6", "updated")]
    assert result.changes.changes == ()
    assert await store.value(HEADER, 9) == "Hours"
    hook.on = False
    fewer = await hooked.service.apply(uuid7(), request)
    assert fewer.outcome is CallOutcome.COMMITTED


async def test_a_call_that_would_be_undone_does_not_reach_the_next_one(store: TestStore) -> None:
    calls = await rehearse(
        store.with_env(scope_hook=False),
        [update("tt_content", 9, header="one"), update("tt_content", 7, header="out")],
        [update("tt_content", 5, header="two")],
        scope=HALL,
    )
    assert [(call.outcome, call.reason) for call in calls] == [
        (CallOutcome.ROLLED_BACK, RollbackReason.VIOLATION),
        (CallOutcome.COMMITTED, None),
    ]
    assert (calls[0].shown, calls[0].changes.changes) == ((), ())
    assert ("tt_content", "5") in {(s.table, s.record) for s in calls[1].shown}
    assert ("tt_content", "9") not in {(s.table, s.record) for s in calls[1].shown}


async def test_what_cannot_be_rehearsed_says_why(store: TestStore) -> None:
    async with store.applies.acquire() as other, other.transaction():
        await other.execute("SELECT 1 FROM tt_content WHERE uid = 9 FOR UPDATE")
        calls = await rehearse(
            store,
            [update("tt_content", 5, header="x")],
            [update("tt_content", 9, header="x")],
            [update("tt_content", 7, header="x")],
        )
    assert [(call.outcome, call.problem) for call in calls] == [
        (CallOutcome.COMMITTED, None),
        (CallOutcome.UNKNOWN, "locked"),
        (CallOutcome.UNKNOWN, "locked"),
    ]


@pytest.mark.req("S-67")
@pytest.mark.parametrize("header", ["x", "Hours"], ids=["writes", "writes nothing"])
@pytest.mark.parametrize("sql", [("COMMIT",), ("ROLLBACK",), ("COMMIT", "BEGIN"), ("ROLLBACK", "BEGIN")], ids=" ".join)
async def test_a_hook_that_ends_the_transaction_of_a_rehearsal_leaves_nothing(
    store: TestStore, sql: tuple[str, ...], header: str
) -> None:
    class Ends(DataHandlerHook):
        async def after_all_operations(self, run: HandlerRun) -> None:
            if run.outermost:
                for statement in sql:
                    await run.ctx.gateway.connection.execute(statement)

    before = await snapshot(store)
    calls = await rehearse(
        store.with_hooks(Ends()), [update("tt_content", 9, header=header)], [update("tt_content", 5, header="x")]
    )
    assert {(call.outcome, call.problem) for call in calls} == {(CallOutcome.UNKNOWN, "hook_failed")}
    assert await snapshot(store) == before


async def test_a_failing_hook_is_said_on_the_call(store: TestStore) -> None:
    class Fails(DataHandlerHook):
        async def after_database_operations(
            self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
        ) -> None:
            raise RuntimeError("x")

    (call,) = await rehearse(store.with_hooks(Fails()), [update("tt_content", 9, header="x")])
    assert (call.outcome, call.problem, call.shown) == (CallOutcome.UNKNOWN, "hook_failed", ())
