"""Hooks that break out of the transaction, and databases that refuse: the status is never a lie (S-57 to S-69)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from content_store.caches.flush import CacheFlushFailed
from content_store.calls.errors import CallConflict, CallLocked
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from remit_contracts.calls import (
    CallOutcome,
    CallResult,
    Datamap,
    Expect,
    FlushCache,
    Operation,
    Read,
    RollbackReason,
)
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10),))
HEADER = "SELECT header FROM tt_content WHERE uid = $1"


class Does(DataHandlerHook):
    """Does something whenever content 9 was written."""

    def __init__(self, work: Callable[[HandlerRun], Awaitable[object]], *, swallow: bool = False) -> None:
        self._work = work
        self._swallow = swallow

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        if (table, uid) != ("tt_content", 9):
            return
        try:
            await self._work(run)
        except asyncpg.PostgresError:
            if not self._swallow:
                raise


def sends(*sql: str, swallow: bool = False) -> Does:
    async def work(run: HandlerRun) -> None:
        for statement in sql:
            await run.ctx.gateway.connection.execute(statement)

    return Does(work, swallow=swallow)


async def call(store: TestStore, hook: DataHandlerHook, **values: Any) -> CallResult:
    request = apply_request(update("tt_content", 9, header="in"), **{"scope": HALL, **values})
    return await store.with_hooks(hook).service.apply(uuid7(), request)


@pytest.mark.req("S-67", "S-58")
@pytest.mark.parametrize("swallow", [True, False])
@pytest.mark.parametrize(
    "sql",
    [
        ("COMMIT",),
        ("ROLLBACK",),
        ("COMMIT", "BEGIN"),
        ("ROLLBACK", "BEGIN"),
        ("UPDATE tt_content SET header = 'x' WHERE uid = 7", "COMMIT"),
    ],
)
async def test_a_hook_that_ends_the_transaction_makes_the_call_fail(
    store: TestStore, sql: tuple[str, ...], swallow: bool
) -> None:
    result = await call(store, sends(*sql, swallow=swallow))
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.COMMIT_REFUSED)
    assert (result.changes.changes, result.hook_failed_after_write) == ((), False)
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]
    assert await store.value("SELECT count(*) FROM call_outcome WHERE call_id = $1", result.call_id) == 0
    # The connection is as good as before for the next call.
    assert (await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="n")))).judged_rows == 1


REWRITTEN = ("ROLLBACK", "BEGIN", "UPDATE tt_content SET header = 'x' WHERE uid = 7", "COMMIT")


@pytest.mark.req("S-67", "S-53")
async def test_a_hook_that_commits_a_transaction_of_its_own_commits_nothing(store: TestStore) -> None:
    result = await call(store, sends(*REWRITTEN, swallow=True))
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.COMMIT_REFUSED)
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]
    # Control: without the rule for transactions that belong to no call the foreign record would stay written.
    switch = "ALTER TABLE capture.transaction_without_call {} TRIGGER require_taken"
    await store.value(switch.format("DISABLE"))
    try:
        result = await call(store, sends(*REWRITTEN, swallow=True))
        assert (result.outcome, await store.value(HEADER, 7)) == (CallOutcome.ROLLED_BACK, "x")
    finally:
        await store.value(switch.format("ENABLE ALWAYS"))


class AtTheEnd(DataHandlerHook):
    """Sends its statements when all of an operation is done, and hides what the database says of them."""

    def __init__(self, *sql: str) -> None:
        self._sql = sql

    async def after_all_operations(self, run: HandlerRun) -> None:
        with contextlib.suppress(asyncpg.PostgresError):
            for statement in self._sql:
                await run.ctx.gateway.connection.execute(statement)


THEN = (
    (),
    (update("tt_content", 9, header="again"),),
    (Read(table="tt_content", uids=[9]),),
    (Expect(table="tt_content", uid=9, hash="0" * 64),),
    (FlushCache(tags=["a"]),),
)


@pytest.mark.req("S-67", "S-57", "S-66")
@pytest.mark.parametrize("sql", [("ROLLBACK",), ("COMMIT",), ("ROLLBACK", "BEGIN"), REWRITTEN])
@pytest.mark.parametrize("then", THEN, ids=lambda operations: operations[0].op if operations else "nothing")
async def test_a_transaction_that_was_ended_silently_ends_the_call_whatever_comes_next(
    store: TestStore, sql: tuple[str, ...], then: tuple[Operation, ...]
) -> None:
    operations = (update("tt_content", 9, header="in"), *then)
    result = await store.with_hooks(AtTheEnd(*sql)).service.apply(uuid7(), apply_request(*operations))
    assert (result.outcome, result.changes.changes) == (CallOutcome.ROLLED_BACK, ())
    # In a transaction begun anew the row is as it was before the call.
    assert result.reason in {RollbackReason.COMMIT_REFUSED, RollbackReason.EXPECT}
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]


@pytest.mark.req("S-57", "S-66")
@pytest.mark.parametrize("then", THEN, ids=lambda operations: operations[0].op if operations else "nothing")
async def test_a_transaction_that_failed_silently_undoes_the_operation_and_says_so(
    store: TestStore, then: tuple[Operation, ...]
) -> None:
    operations = (update("tt_content", 9, header="in"), *then)
    result = await store.with_hooks(AtTheEnd("SELECT 1 / 0")).service.apply(uuid7(), apply_request(*operations))
    assert result.changes.changes == ()
    assert result.outcome is CallOutcome.ROLLED_BACK or result.operations[0].errors
    assert await store.value(HEADER, 9) == "Hours"


@pytest.mark.req("S-53", "S-67")
async def test_a_hook_that_takes_the_captured_rows_hides_nothing(store: TestStore) -> None:
    hook = sends("UPDATE tt_content SET header = 'x' WHERE uid = 7", "SELECT count(*) FROM capture_take()")
    result = await call(store, hook)
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.COMMIT_REFUSED)
    assert await store.value(HEADER, 7) == "Foreign"


@pytest.mark.req("S-67")
async def test_a_hook_that_writes_the_verdict_itself_gains_nothing(store: TestStore) -> None:
    hook = sends("UPDATE call_outcome SET verdict = 'committed', judged = 1 WHERE verdict IS NULL", swallow=True)
    result = await call(store, hook)
    assert result.outcome is CallOutcome.ROLLED_BACK
    assert await store.value(HEADER, 9) == "Hours"


@pytest.mark.req("S-53")
async def test_a_temporary_table_of_the_same_name_shadows_nothing(store: TestStore) -> None:
    result = await call(store, sends("CREATE TEMP TABLE tt_content (uid bigint, header text)", swallow=True))
    # The role may not make one at all; what the hook's failed statement undid is undone, and said so.
    assert result.changes.changes == ()
    assert await store.value(HEADER, 9) == "Hours"


@pytest.mark.req("S-53", "S-67")
async def test_a_write_after_the_verdict_cannot_be_committed(store: TestStore) -> None:
    class Outbox:
        async def append_raw(self, connection: Any, events: Any) -> list[Any]:
            await connection.execute("UPDATE tt_content SET header = 'late' WHERE uid = 7")
            return []

    result = await store.with_env(outbox=Outbox()).service.apply(
        uuid7(), apply_request(update("tt_content", 9, header="in"), scope=HALL)
    )
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.COMMIT_REFUSED)
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]


@pytest.mark.req("S-66", "C-11", "W-08")
async def test_a_hook_that_raises_leaves_what_was_written_and_the_result_says_so(store: TestStore) -> None:
    async def fail(_run: HandlerRun) -> None:
        raise RuntimeError("mail server down")

    result = await call(store, Does(fail))
    assert (result.outcome, result.hook_failed_after_write) == (CallOutcome.COMMITTED, True)
    assert [e.code for e in result.operations[0].errors] == ["hook_failed"]
    assert [(c.table, c.uid) for c in result.changes.changes] == [("tt_content", 9)]
    assert await store.value(HEADER, 9) == "in"
    assert await store.value("SELECT count(*) FROM sys_history WHERE recuid = 9") == 1


@pytest.mark.req("S-66", "S-74")
async def test_a_hook_that_raises_after_writing_outside_is_rolled_back_without_a_hook_mark(store: TestStore) -> None:
    async def write_and_fail(run: HandlerRun) -> None:
        await run.ctx.gateway.connection.execute("UPDATE tt_content SET header = 'x' WHERE uid = 7")
        raise RuntimeError("late")

    result = await call(store, Does(write_and_fail))
    assert (result.outcome, result.hook_failed_after_write) == (CallOutcome.ROLLED_BACK, False)
    assert await store.value(HEADER, 7) == "Foreign"


@pytest.mark.req("S-57", "S-66")
async def test_what_the_database_refused_with_a_hooks_statement_is_undone_alone_and_never_named(
    store: TestStore,
) -> None:
    request = apply_request(update("tt_content", 6, header="stays"), update("tt_content", 9, header="goes"))
    failing = store.with_hooks(sends("INSERT INTO no_such_table VALUES (1)"))
    result = await failing.service.apply(uuid7(), request)
    assert result.outcome is CallOutcome.COMMITTED
    assert [(c.table, c.uid) for c in result.changes.changes] == [("tt_content", 6)]
    assert [len(operation.errors) for operation in result.operations] == [0, 1]
    assert [await store.value(HEADER, uid) for uid in (6, 9)] == ["stays", "Hours"]
    # The only operation of a call is repeated with a savepoint, so the answer is the same kind.
    single = await failing.service.apply(uuid7(), apply_request(update("tt_content", 9, header="goes")))
    assert (single.outcome, single.changes.changes) == (CallOutcome.COMMITTED, ())
    assert [e.code for e in single.operations[0].errors] == ["database_refused"]


@pytest.mark.req("S-66")
async def test_a_deadlock_ends_the_whole_call_and_is_repeated(store: TestStore) -> None:
    first = apply_request(update("tt_content", 5, header="a"), update("tt_content", 7, header="a"))
    second = apply_request(update("tt_content", 7, header="b"), update("tt_content", 5, header="b"))
    results = await asyncio.gather(
        *(store.service.apply(uuid7(), request) for request in (first, second)), return_exceptions=True
    )
    # Each either did everything, or says that it did nothing.
    assert all(isinstance(r, CallResult | CallLocked | CallConflict) for r in results)
    headers = [await store.value(HEADER, uid) for uid in (5, 7)]
    if any(isinstance(r, CallResult) for r in results):
        assert headers in (["a", "a"], ["b", "b"])
    else:
        assert headers == ["Welcome", "Foreign"]


@pytest.mark.req("S-66")
async def test_an_error_that_ends_the_call_is_repeated_twice_then_told(store: TestStore) -> None:
    attempts = []

    async def deadlock(run: HandlerRun) -> None:
        attempts.append(1)
        await run.ctx.gateway.connection.execute("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$")

    with pytest.raises(CallConflict):
        await call(store, Does(deadlock))
    assert len(attempts) == 3
    assert await store.value(HEADER, 9) == "Hours"


@pytest.mark.req("S-59", "S-68")
async def test_callbacks_and_flushes_wait_for_the_commit_and_are_dropped_with_a_rollback(store: TestStore) -> None:
    seen: list[str] = []

    class Caches:
        async def flush_tags(self, connection: Any, tags: Any) -> None:
            seen.append(f"tags {','.join(tags)} in {connection.connection.is_in_transaction()}")

        async def flush_group(self, group: str) -> None:
            seen.append(f"group {group} after {await store.value(HEADER, 9)}")

    async def register(run: HandlerRun) -> None:
        async def callback() -> None:
            seen.append(f"callback after {await store.value(HEADER, 9)}")

        run.ctx.defer(callback)

    cached = store.with_env(caches=Caches()).with_hooks(Does(register))
    operations = (update("tt_content", 9, header="in"), FlushCache(group="pages", tags=["page_10"]))
    result = await cached.service.apply(uuid7(), apply_request(*operations, scope=HALL))
    assert (result.outcome, result.warnings) == (CallOutcome.COMMITTED, ())
    assert seen == ["tags page_10 in True", "group pages after in", "callback after in"]
    seen.clear()
    outside = (*operations, update("tt_content", 7, header="x"))
    undone = await cached.with_env(scope_hook=False).service.apply(uuid7(), apply_request(*outside, scope=HALL))
    assert undone.outcome is CallOutcome.ROLLED_BACK
    assert seen == ["tags page_10 in True"]


@pytest.mark.req("S-59")
async def test_what_fails_after_the_commit_is_a_warning(store: TestStore) -> None:
    class Caches:
        async def flush_tags(self, connection: Any, tags: Any) -> None:
            raise AssertionError

        async def flush_group(self, group: str) -> None:
            raise CacheFlushFailed("gone")

    async def register(run: HandlerRun) -> None:
        async def callback() -> None:
            raise RuntimeError("queue down")

        run.ctx.defer(callback)

    cached = store.with_env(caches=Caches()).with_hooks(Does(register))
    request = apply_request(update("tt_content", 9, header="in"), FlushCache(group="all"))
    result = await cached.service.apply(uuid7(), request)
    assert (result.outcome, result.warnings) == (CallOutcome.COMMITTED, ("flush_failed", "after_commit_failed"))
    assert await store.value(HEADER, 9) == "in"


@pytest.mark.req("S-58")
@pytest.mark.parametrize("confused", [False, True])
async def test_a_connection_cut_in_the_middle_leaves_nothing(store: TestStore, postgres: str, confused: bool) -> None:
    async def cut(run: HandlerRun) -> None:
        pid = await run.ctx.gateway.connection.fetchval("SELECT pg_backend_pid()")
        admin = await asyncpg.connect(postgres)
        assert await admin.fetchval("SELECT pg_terminate_backend($1)", pid)
        await admin.close()
        if confused:
            # As the driver says it when the end comes between two of its steps.
            raise asyncpg.InternalClientError("cannot switch to state 11; another operation (2) is in progress")

    result = await call(store, Does(cut))
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.CANCELLED)
    assert await store.value(HEADER, 9) == "Hours"
    assert (await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="n")))).judged_rows == 1


@pytest.mark.req("S-58")
async def test_an_answer_lost_at_the_commit_is_asked_for_again(
    store: TestStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from content_store.calls import committing

    real = committing.commit

    async def committed_but_lost(transaction: Any) -> None:
        await real(transaction)
        raise ConnectionResetError

    async def lost_before(transaction: Any) -> None:
        await transaction.rollback()
        raise ConnectionResetError

    monkeypatch.setattr(committing, "commit", committed_but_lost)
    result = await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="in")))
    assert (result.outcome, result.judged_rows) == (CallOutcome.COMMITTED, 1)
    monkeypatch.setattr(committing, "commit", lost_before)
    lost = await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="out")))
    assert lost.outcome is CallOutcome.ROLLED_BACK
    assert await store.value(HEADER, 9) == "in"


@pytest.mark.req("S-62")
async def test_a_cancelled_call_leaves_nothing_armed_and_nothing_written(store: TestStore) -> None:
    reached = asyncio.Event()

    async def hang(_run: HandlerRun) -> None:
        reached.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(call(store, Does(hang)))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.value(HEADER, 9) == "Hours"
    free = await store.service.apply(uuid7(), apply_request(update("tt_content", 7, header="free")))
    assert (free.outcome, free.changes.refused) == (CallOutcome.COMMITTED, ())


async def test_a_page_moved_by_a_hook_repeats_the_call_with_the_lock_of_the_tree(store: TestStore) -> None:
    from content_store.datahandler.handler import DataHandler

    attempts = []

    async def move(run: HandlerRun) -> None:
        attempts.append(1)
        await DataHandler.within(run).process({}, {"pages": {"1000": {"move": 10}}})

    result = await call(store, Does(move), scope=None)
    assert result.outcome is CallOutcome.COMMITTED
    assert len(attempts) == 2
    assert await store.value("SELECT pid FROM pages WHERE uid = 1000") == 10


async def test_two_page_moves_at_once_never_make_a_circle(store: TestStore) -> None:
    moves = [command("pages", 10, "move", 11), command("pages", 11, "move", 10)]
    await asyncio.gather(*(store.service.apply(uuid7(), apply_request(m)) for m in moves), return_exceptions=True)
    pids = {r["uid"]: r["pid"] for r in await store.rows("SELECT uid, pid FROM pages WHERE uid IN (10, 11)")}
    assert pids in ({10: 11, 11: 1}, {10: 1, 11: 10})


@pytest.mark.req("S-55")
async def test_a_call_of_too_many_rows_is_not_judgeable(store: TestStore) -> None:
    few = store.with_env(limits=store.env.limits.__class__(max_rows=3))
    rows = {f"NEW{i}": {"pid": 10, "header": str(i), "CType": "text"} for i in range(3)}
    result = await few.service.apply(uuid7(), apply_request(Datamap(datamap={"tt_content": rows}), scope=HALL))
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.NOT_JUDGEABLE)
    assert await store.value("SELECT count(*) FROM tt_content") == 5
