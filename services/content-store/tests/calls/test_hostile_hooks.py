"""Hooks that go further than any mistake would: what is answered stays true, and the next call does not notice."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import UUID

import asyncpg
import pytest
from content_store.calls import committing
from content_store.calls.errors import CallExists, CallLocked, CallUncertain
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from content_store.writing.errors import WriteRefusedError
from content_store.writing.service import RecordWriter, Writer
from remit_contracts.actor import ActorContext
from remit_contracts.calls import CallOutcome, OpenRequest, Operation, RehearsalRequest, RehearsedCallRequest
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10),))
HEADER = "SELECT header FROM tt_content WHERE uid = $1"
FOREIGN = "UPDATE tt_content SET header = 'x' WHERE uid = 7"
FORGED = (
    FOREIGN,
    "SELECT count(*) FROM capture_take()",
    "UPDATE call_outcome SET verdict = 'committed', judged = taken WHERE verdict IS NULL",
    "COMMIT",
)


class Sends(DataHandlerHook):
    """Sends statements when content 9 was written, once."""

    def __init__(self, *sql: str) -> None:
        self._sql = list(sql)

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        while self._sql:
            await run.ctx.gateway.connection.execute(self._sql.pop(0))


@pytest.mark.req("S-67", "S-53")
async def test_immediate_constraints_do_not_get_a_transaction_around_the_rule(store: TestStore) -> None:
    hook = Sends("ROLLBACK", "BEGIN", "SET CONSTRAINTS ALL IMMEDIATE", FOREIGN, "COMMIT")
    result = await store.with_hooks(hook).service.apply(
        uuid7(), apply_request(update("tt_content", 9, header="in"), scope=HALL)
    )
    assert result.outcome is CallOutcome.ROLLED_BACK
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]


@pytest.mark.req("S-67", "S-58", "V-01")
@pytest.mark.parametrize("way", ["apply", "open"])
async def test_what_a_hook_committed_under_a_verdict_of_its_own_is_never_told_as_rolled_back(
    store: TestStore, way: str
) -> None:
    hooked = store.with_hooks(Sends(*FORGED))
    call, run_id, operation = uuid7(), uuid7(), update("tt_content", 9, header="in")
    if way == "apply":
        outcome = (await hooked.service.apply(call, apply_request(operation, run_id=run_id))).outcome
        assert outcome is CallOutcome.UNKNOWN
    else:
        calls = hooked.open_calls()
        opened = await calls.open(call, request(run_id))
        with pytest.raises(CallUncertain):
            await calls.operations(call, opened.token, 1, [operation])
        await calls.close()
    assert await store.value(HEADER, 7) == "x"
    # Nobody knows what it did: asked later, that is what is said.
    assert (await store.service.resolve(call, run_id, 1)).outcome is CallOutcome.UNKNOWN


def request(run_id: UUID | None = None) -> OpenRequest:
    return OpenRequest(run_id=run_id or uuid7(), lease_epoch=1, actor=ActorContext(user_uid=1), tool="t")


def rehearsal(*operations: Operation) -> RehearsalRequest:
    asked = list(operations) or [update("tt_content", 9, header="in")]
    return RehearsalRequest(
        run_id=uuid7(),
        lease_epoch=1,
        actor=ActorContext(user_uid=1),
        scope=None,
        calls=[RehearsedCallRequest(key="1", tool="t", operations=asked)],
    )


@pytest.mark.req("S-58")
async def test_an_answer_of_an_older_call_cannot_be_taken_away(store: TestStore) -> None:
    call, run_id = uuid7(), uuid7()
    await store.service.apply(call, apply_request(update("tt_content", 9, header="first"), run_id=run_id))
    hooked = store.with_hooks(Sends("UPDATE call_outcome SET result = NULL WHERE verdict = 'committed'"))
    await hooked.service.apply(uuid7(), apply_request(update("tt_content", 9, header="second")))
    known = await store.service.resolve(call, run_id, 1)
    assert known.outcome is CallOutcome.COMMITTED
    assert known.result is not None


LEFT_BEHIND = {
    "a setting": "SET default_transaction_read_only = on",
    "an encoding": "SET client_encoding = 'LATIN1'",
    "the lock of the tree": "SELECT pg_advisory_lock(classid::int, objid::int) FROM pg_locks WHERE locktype = 'advisory' "
    "AND pid = pg_backend_pid() AND objsubid = 2 LIMIT 1",
    "no prepared statements": "DEALLOCATE ALL",
}


@pytest.mark.req("S-62", "S-67")
@pytest.mark.parametrize("sql", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_what_a_hook_leaves_on_the_connection_does_not_meet_the_next_call(store: TestStore, sql: str) -> None:
    hooked = store.with_hooks(Sends(sql))
    try:
        await hooked.service.apply(uuid7(), apply_request(update("tt_content", 9, header="in")))
    except CallLocked:
        pytest.fail("the call itself is not in anybody's way")
    for number in range(6):
        result = await hooked.service.apply(uuid7(), apply_request(update("tt_content", 9, header=f"€ {number}")))
        assert (result.outcome, result.judged_rows) == (CallOutcome.COMMITTED, 1)
    assert await store.value(HEADER, 9) == "€ 5"


@pytest.mark.req("S-64", "S-58")
async def test_a_caller_that_goes_away_at_the_commit_hears_later_that_it_was_committed(
    store: TestStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, real, reached = store.open_calls(), committing.commit, asyncio.Event()

    async def slow(transaction: object) -> None:
        reached.set()
        await asyncio.sleep(0.2)
        await real(transaction)

    monkeypatch.setattr(committing, "commit", slow)
    call = uuid7()
    opened = await calls.open(call, request())
    answer = await calls.operations(call, opened.token, 1, [update("tt_content", 9, header="in")])
    asking = asyncio.create_task(calls.commit(call, answer.token, 2))
    await reached.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await calls.commit(call, answer.token, 2)).outcome is CallOutcome.COMMITTED
    assert await store.value(HEADER, 9) == "in"
    await calls.close()


class HidesAFailure(DataHandlerHook):
    """Lets the transaction fail when the commands are done, and hides it."""

    async def after_commands(self, run: HandlerRun) -> None:
        with contextlib.suppress(asyncpg.PostgresError):
            await run.ctx.gateway.connection.execute("SELECT 1 / 0")


@pytest.mark.req("S-57", "S-67")
async def test_a_failure_a_hook_hides_in_a_rehearsal_is_said_and_is_no_error_of_the_request(store: TestStore) -> None:
    result = await store.with_hooks(HidesAFailure()).rehearsals.rehearse(
        uuid7(), rehearsal(command("tt_content", 9, "delete", 1))
    )
    assert [error.code for error in result.calls[0].errors] == ["database_refused"]
    assert result.calls[0].shown == ()
    assert await store.value(HEADER, 9) == "Hours"


class CancelsAfterCommit(DataHandlerHook):
    """Defers a callback that raises a cancellation of its own."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        async def cancelled() -> None:
            raise asyncio.CancelledError

        run.ctx.defer(cancelled)


@pytest.mark.req("S-59")
async def test_a_callback_that_raises_a_cancellation_is_a_warning_like_any_other(store: TestStore) -> None:
    hooked = store.with_hooks(CancelsAfterCommit())
    result = await hooked.service.apply(uuid7(), apply_request(update("tt_content", 9, header="in")))
    assert (result.outcome, result.warnings) == (CallOutcome.COMMITTED, ("after_commit_failed",))


@pytest.mark.req("S-58", "T-23")
async def test_resolving_another_runs_call_in_flight_never_says_it_was_undone(store: TestStore) -> None:
    calls, call = store.open_calls(), uuid7()
    opened = await calls.open(call, request())
    answer = await calls.operations(call, opened.token, 1, [update("tt_content", 9, header="in")])
    asking = asyncio.create_task(store.service.resolve(call, uuid7(), 1))
    await asyncio.sleep(0.2)
    assert (await calls.commit(call, answer.token, 2)).outcome is CallOutcome.COMMITTED
    with pytest.raises(CallExists):
        await asking
    await calls.close()


@pytest.mark.req("S-67")
async def test_a_rehearsal_stays_nothing_of_whatever_a_hook_begins(store: TestStore) -> None:
    hook = Sends("ROLLBACK", "BEGIN", "SET CONSTRAINTS ALL IMMEDIATE", FOREIGN, "COMMIT")
    result = await store.with_hooks(hook).rehearsals.rehearse(uuid7(), rehearsal())
    assert result.calls[0].outcome is CallOutcome.UNKNOWN
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]


class AtTheEnd(DataHandlerHook):
    """Sends statements when everything is done."""

    def __init__(self, *sql: str) -> None:
        self._sql = sql

    async def after_all_operations(self, run: HandlerRun) -> None:
        for statement in self._sql:
            await run.ctx.gateway.connection.execute(statement)


@pytest.mark.req("S-67")
@pytest.mark.parametrize(
    "sql",
    [("ROLLBACK", "BEGIN"), ("ROLLBACK",), ("COMMIT",), ("ROLLBACK", "BEGIN", FOREIGN, "COMMIT", "BEGIN")],
    ids=["begun anew", "undone", "committed", "wrote on its own"],
)
async def test_a_write_of_a_person_is_never_told_as_written_when_a_hook_ended_it(
    store: TestStore, sql: tuple[str, ...]
) -> None:
    writer = RecordWriter(store.with_hooks(AtTheEnd(*sql)).env, store.applies)
    with pytest.raises((WriteRefusedError, asyncpg.PostgresError)):
        await writer.write(Writer(1, 0), {"tt_content": {"9": {"header": "in"}}}, {})
    assert [await store.value(HEADER, uid) for uid in (9, 7)] == ["Hours", "Foreign"]
    again = await RecordWriter(store.env, store.applies).write(Writer(1, 0), {"tt_content": {"9": {"header": "n"}}}, {})
    assert [outcome.status for outcome in again.result.outcomes] == ["written"]
