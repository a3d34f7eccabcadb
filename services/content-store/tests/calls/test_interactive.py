"""Open calls: token, sequence, limits, and an end on every way out (CALLS 1, S-64)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest
from content_store.calls.errors import (
    CallBusy,
    CallExists,
    CallFenced,
    CallGone,
    CallLocked,
    CallNotFound,
    CallOutOfOrder,
    CallUndone,
    NotInteractive,
    ServiceStopping,
    TooManyCalls,
)
from content_store.calls.interactive import OpenCalls
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from remit_contracts.actor import ActorContext
from remit_contracts.calls import CallOutcome, Datamap, Expect, OpenedCall, OpenRequest, Read, RollbackReason
from remit_contracts.records import WriteTarget
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=1),))
HEADER = "SELECT header FROM tt_content WHERE uid = $1"
READ = Read(table="tt_content", uids=[9], fields=["header"])


def request(run_id: UUID | None = None, epoch: int = 1, **values: object) -> OpenRequest:
    return OpenRequest.model_validate(
        {"run_id": run_id or uuid7(), "lease_epoch": epoch, "actor": ActorContext(user_uid=1), "tool": "t", **values}
    )


@pytest.fixture
async def open_calls(store: TestStore) -> AsyncIterator[OpenCalls]:
    calls = store.open_calls()
    yield calls
    await calls.close()


async def opened(calls: OpenCalls, **values: object) -> tuple[UUID, OpenedCall]:
    call_id = uuid7()
    return call_id, await calls.open(call_id, request(**values))  # type: ignore[arg-type]


async def test_a_tool_reads_its_own_writes_and_nobody_else_does_before_the_commit(
    store: TestStore, open_calls: OpenCalls
) -> None:
    call_id, first = await opened(open_calls, scope=HALL, write_target=WriteTarget(table="tt_content", uid=9))
    assert (first.address, first.sequence) == ("http://store", 1)
    second = await open_calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="in"), READ])
    assert second.operations[1].rows[0]["header"] == "in"
    assert second.token != first.token
    assert await store.value(HEADER, 9) == "Hours"
    result = await open_calls.commit(call_id, second.token, 2)
    assert (result.outcome, [c.uid for c in result.changes.changes]) == (CallOutcome.COMMITTED, [9])
    assert await store.value(HEADER, 9) == "in"
    # Asked again, the same answer; the outcome row has it too.
    assert await open_calls.commit(call_id, second.token, 2) == result
    assert (await store.service.known(call_id)).result == result


async def test_the_last_request_repeated_gets_its_stored_answer_and_writes_once(
    store: TestStore, open_calls: OpenCalls
) -> None:
    call_id, first = await opened(open_calls)
    create = Datamap(datamap={"tt_content": {"NEW1": {"pid": 10, "header": "x", "CType": "text"}}})
    answer = await open_calls.operations(call_id, first.token, 1, [create])
    assert await open_calls.operations(call_id, first.token, 1, [create]) == answer
    with pytest.raises(CallOutOfOrder):
        await open_calls.operations(call_id, first.token, 1, [READ])
    await open_calls.commit(call_id, answer.token, 2)
    assert await store.value("SELECT count(*) FROM tt_content WHERE header = 'x'") == 1


async def test_only_the_token_of_the_last_answer_opens_the_call(open_calls: OpenCalls) -> None:
    call_id, first = await opened(open_calls)
    second = await open_calls.operations(call_id, first.token, 1, [READ])
    third = await open_calls.operations(call_id, second.token, 2, [READ])
    with pytest.raises(CallNotFound):
        await open_calls.operations(call_id, first.token, 3, [READ])
    with pytest.raises(CallNotFound):
        await open_calls.operations(call_id, "x" * 64, 3, [READ])
    with pytest.raises(CallNotFound):
        await open_calls.operations(uuid7(), third.token, 3, [READ])
    with pytest.raises(CallOutOfOrder):
        await open_calls.operations(call_id, first.token, 1, [READ])
    with pytest.raises(CallOutOfOrder):
        await open_calls.commit(call_id, second.token, 2)


@pytest.mark.req("S-64", "S-62")
@pytest.mark.parametrize(
    ("steps", "placing"),
    [([10.1], False), ([6, 6, 6, 6, 6, 6, 6, 6, 6, 6.1], False), ([4, 6.1], True)],
    ids=["idle", "hard limit", "after placing"],
)
async def test_a_limit_ends_the_call_and_nothing_of_it_stays(
    store: TestStore, open_calls: OpenCalls, steps: list[float], placing: bool
) -> None:
    call_id, answer = await opened(open_calls)
    token, sequence = answer.token, 1
    write = (
        Datamap(datamap={"tt_content": {"NEW1": {"pid": 10, "header": "x", "CType": "text"}}})
        if placing
        else update("tt_content", 9, header="x")
    )
    for step in [0, *steps[:-1]]:
        store.now[0] += step
        await open_calls.sweep()
        done = await open_calls.operations(call_id, token, sequence, [write if sequence == 1 else READ])
        token, sequence = done.token, done.sequence
    store.now[0] += steps[-1]
    # Refused by the limit itself, whether the sweeper has come by or not.
    with pytest.raises(CallGone):
        await open_calls.operations(call_id, token, sequence, [READ])
    await open_calls.sweep()
    assert open_calls.count == 0
    for refused in (
        open_calls.operations(call_id, token, sequence, [READ]),
        open_calls.commit(call_id, token, sequence),
    ):
        with pytest.raises(CallGone):
            await refused
    assert await store.value("SELECT count(*) FROM tt_content WHERE header = 'x'") == 0
    store.now[0] += 301
    await open_calls.sweep()
    with pytest.raises(CallNotFound):
        await open_calls.operations(call_id, token, sequence, [READ])


async def test_as_many_calls_as_the_cap_and_no_more(store: TestStore, open_calls: OpenCalls) -> None:
    calls = [await opened(open_calls) for _ in range(4)]
    with pytest.raises(TooManyCalls):
        await opened(open_calls)
    await open_calls.abandon(calls[0][0], calls[0][1].token, 1)
    await opened(open_calls)
    # Calls in one request have connections of their own.
    assert (await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="n")))).judged_rows == 1


async def test_pages_are_not_moved_or_deleted_in_an_open_call(store: TestStore, open_calls: OpenCalls) -> None:
    call_id, first = await opened(open_calls)
    for operation in (command("pages", 1000, "move", 10), command("pages", 1000, "delete")):
        with pytest.raises(NotInteractive):
            await open_calls.operations(call_id, first.token, 1, [operation])
    # The call goes on.
    done = await open_calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="in")])
    assert (await open_calls.commit(call_id, done.token, 2)).outcome is CallOutcome.COMMITTED


async def test_one_request_at_a_time(open_calls: OpenCalls) -> None:
    call_id, first = await opened(open_calls)
    with open_calls._open[call_id].at_work(), pytest.raises(CallBusy):
        await open_calls.operations(call_id, first.token, 1, [READ])
    await open_calls.operations(call_id, first.token, 1, [READ])


async def test_the_fence_holds_for_open_calls(store: TestStore, open_calls: OpenCalls) -> None:
    run_id, call_id = uuid7(), uuid7()
    await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="n"), run_id=run_id, epoch=3))
    with pytest.raises(CallFenced):
        await open_calls.open(call_id, request(run_id, 2))
    await open_calls.open(call_id, request(run_id, 3))
    with pytest.raises(CallExists):
        await open_calls.open(call_id, request(run_id, 3))
    # Another call of the run waits, and gives up, while one is open.
    with pytest.raises(CallLocked):
        await store.service.apply(uuid7(), apply_request(update("tt_content", 5, header="n"), run_id=run_id, epoch=3))


@pytest.mark.req("S-50", "S-66")
async def test_an_open_call_is_judged_as_any_other(store: TestStore) -> None:
    calls = store.with_env(scope_hook=False).open_calls()
    call_id, first = await opened(calls, scope=HALL)
    done = await calls.operations(call_id, first.token, 1, [update("tt_content", 7, header="out")])
    result = await calls.commit(call_id, done.token, 2)
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.VIOLATION)
    assert await store.value(HEADER, 7) == "Foreign"
    assert calls.count == 0


async def test_an_unmet_expectation_ends_the_call(store: TestStore, open_calls: OpenCalls) -> None:
    call_id, first = await opened(open_calls)
    done = await open_calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="x")])
    with pytest.raises(CallUndone) as raised:
        await open_calls.operations(call_id, done.token, 2, [Expect(table="tt_content", uid=5, hash="0" * 64)])
    assert raised.value.document()["reason"] == "expect"
    with pytest.raises(CallGone):
        await open_calls.commit(call_id, done.token, 2)
    assert await store.value(HEADER, 9) == "Hours"


async def test_a_locked_row_ends_the_call(store: TestStore, open_calls: OpenCalls) -> None:
    call_id, first = await opened(open_calls)
    async with store.applies.acquire() as other, other.transaction():
        await other.execute("SELECT 1 FROM tt_content WHERE uid = 9 FOR UPDATE")
        with pytest.raises(CallLocked):
            await open_calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="x")])
    assert open_calls.count == 0


@pytest.mark.req("S-62")
async def test_stopping_undoes_open_calls_and_takes_no_new_ones(store: TestStore, open_calls: OpenCalls) -> None:
    call_id, first = await opened(open_calls)
    done = await open_calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="x")])
    await open_calls.close()
    with pytest.raises(ServiceStopping):
        await opened(open_calls)
    with pytest.raises(CallGone):
        await open_calls.commit(call_id, done.token, 2)
    assert await store.value(HEADER, 9) == "Hours"


async def test_abandoned_means_undone(store: TestStore, open_calls: OpenCalls) -> None:
    run_id, call_id = uuid7(), uuid7()
    first = await open_calls.open(call_id, request(run_id))
    done = await open_calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="x")])
    await open_calls.abandon(call_id, done.token, 2)
    assert await store.value(HEADER, 9) == "Hours"
    assert (await store.service.resolve(call_id, run_id, 1)).outcome is CallOutcome.ROLLED_BACK


class CutsTheConnection(DataHandlerHook):
    """Ends the session of its call, as an administrator of the database would."""

    def __init__(self, admin_url: str) -> None:
        self._admin_url = admin_url

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        pid = await run.ctx.gateway.connection.fetchval("SELECT pg_backend_pid()")
        admin = await asyncpg.connect(self._admin_url)
        assert await admin.fetchval("SELECT pg_terminate_backend($1)", pid)
        await admin.close()


@pytest.mark.req("S-58", "S-66")
async def test_a_connection_lost_during_an_operation_ends_the_call_as_undone(store: TestStore, postgres: str) -> None:
    calls = store.with_hooks(CutsTheConnection(postgres)).open_calls()
    call_id, first = await opened(calls)
    with pytest.raises(CallUndone) as undone:
        await calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="in")])
    assert undone.value.members["reason"] == "cancelled"
    assert (await store.value(HEADER, 9), calls.count) == ("Hours", 0)


@pytest.mark.req("S-58", "S-66")
async def test_a_connection_lost_between_operation_and_commit_is_told_as_undone(
    store: TestStore, open_calls: OpenCalls, postgres: str
) -> None:
    call_id, first = await opened(open_calls)
    answer = await open_calls.operations(call_id, first.token, 1, [update("tt_content", 9, header="in")])
    admin = await asyncpg.connect(postgres)
    ended = await admin.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND state = 'idle in transaction'",
        store.owner_url.rpartition("/")[2],
    )
    await admin.close()
    assert len(ended) == 1
    result = await open_calls.commit(call_id, answer.token, 2)
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.CANCELLED)
    assert await store.value(HEADER, 9) == "Hours"
