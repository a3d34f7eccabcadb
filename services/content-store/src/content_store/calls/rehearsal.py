"""Rehearses the calls of a turn in one transaction that is always rolled back (CALLS 4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from remit_contracts.calls import (
    CallOutcome,
    OperationResult,
    RehearsalRequest,
    RehearsalResult,
    RehearsedCall,
    RehearsedCallRequest,
    RollbackReason,
)
from service_kit.logging import get_logger
from service_kit.outages import DatabaseUnavailableError

from content_store.calls import outcome
from content_store.calls.committing import rollback
from content_store.calls.connections import Pool, acquire, give_back
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import CallRolledBack, TreeLockNeeded, reason_of
from content_store.calls.plan import CallPlan, armed_scope
from content_store.calls.session import CallSession, load_actor
from content_store.calls.tree_lock import TreeLock, TreeLockHook, needed_lock, take_tree_lock
from content_store.calls.verdict import Verdict
from content_store.records.errors import CallMustEnd, StatementRefused, TransactionLost
from content_store.records.gateway import RecordGateway
from content_store.records.lost import LOST

logger = get_logger(__name__)
_CANCELLED_STATEMENT: Final = "57014"
# All that can be deferred but those of the capture: one of them keeps a rehearsal from being committed.
_CONSTRAINTS: Final = """
SELECT DISTINCT format('%I.%I', n.nspname, c.conname) AS name
  FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
 WHERE c.condeferrable AND c.conrelid <> 'public.call_outcome'::regclass
   AND n.nspname <> 'capture'
"""


class RehearsalService:
    """Says what each call of a turn would do.

    Args:
        env: what all calls share.
        pool: connections for rehearsals, with their lock timeout.
    """

    def __init__(self, env: StoreEnvironment, pool: Pool) -> None:
        self._env = env
        self._pool = pool

    async def rehearse(self, rehearsal_id: UUID, request: RehearsalRequest) -> RehearsalResult:
        """Every call in order, each on what the ones before it would leave.

        A call that would be undone is undone here too before the next one. A call that cannot be rehearsed says why
        and has no lines; it is never an error of the request.
        """
        lock = max((needed_lock(call.operations) for call in request.calls), default=TreeLock.NONE)
        connection = await acquire(self._pool, self._env.limits.acquire_seconds)
        try:
            while True:
                try:
                    calls = await self._turn(connection, rehearsal_id, request, lock)
                except TreeLockNeeded as error:
                    lock = TreeLock.EXCLUSIVE if error.exclusive else TreeLock.SHARED
                    continue
                return RehearsalResult(rehearsal_id=rehearsal_id, calls=tuple(calls))
        finally:
            await give_back(self._env, self._pool, connection)

    async def _turn(
        self, connection: Any, rehearsal_id: UUID, request: RehearsalRequest, lock: TreeLock
    ) -> list[RehearsedCall]:
        transaction = connection.transaction()
        gateway = RecordGateway(connection, self._env.schema, self._env.schema_name)
        calls: list[RehearsedCall] = []
        try:
            await transaction.start()
            milliseconds = round(self._env.limits.rehearsal_lock_timeout * 1000)
            await gateway.fetch("SELECT set_config('lock_timeout', $1, true)", f"{milliseconds}ms")
            await self._env.one_connection.require(gateway)
            await outcome.never_commit(gateway, request.run_id, request.lease_epoch)
            constraints = [row["name"] for row in await gateway.fetch(_CONSTRAINTS)]
            await take_tree_lock(gateway, lock)
            for number, call in enumerate(request.calls):
                calls.append(await self._call(gateway, rehearsal_id, request, call, number, lock, constraints))
        except TreeLockNeeded:
            raise
        except CallMustEnd as error:
            # The transaction is over; what was not rehearsed by then is not known.
            calls += [_unknown(call, _problem(error)) for call in request.calls[len(calls) :]]
        except LOST as error:
            logger.warning("the connection of a rehearsal was lost", exc_info=error)
            calls += [_unknown(call, DatabaseUnavailableError.code) for call in request.calls[len(calls) :]]
        finally:
            await asyncio.shield(rollback(connection, transaction))
        return calls

    async def _call(
        self,
        gateway: RecordGateway,
        rehearsal_id: UUID,
        request: RehearsalRequest,
        call: RehearsedCallRequest,
        number: int,
        lock: TreeLock,
        constraints: Sequence[str],
    ) -> RehearsedCall:
        savepoint = f"call_{number}"
        await _savepoint(gateway, "SAVEPOINT", savepoint)
        plan = _plan(rehearsal_id, request, call)
        loaded = await load_actor(gateway, plan.actor)
        session = CallSession(self._env, gateway, plan, loaded, lock=TreeLockHook(lock), rehearsal=True)
        results: list[OperationResult] = []
        try:
            results = await session.run(plan.operations)
            verdict = await session.verdict()
            # What waits for the commit of a call has to be heard of now.
            for when in ("IMMEDIATE", "DEFERRED") if constraints else ():
                await gateway.fetch(f"SET CONSTRAINTS {', '.join(constraints)} {when}")
        except CallRolledBack as error:
            if error.reason is RollbackReason.COMMIT_REFUSED:
                # The transaction is gone: neither this call nor a later one can be rehearsed.
                raise CallMustEnd("", error.code) from error
            await _savepoint(gateway, "ROLLBACK TO SAVEPOINT", savepoint)
            return RehearsedCall(key=call.key, outcome=CallOutcome.ROLLED_BACK, reason=error.reason)
        except TransactionLost as error:
            # A hook ended it last of all, so nothing of the call noticed.
            raise CallMustEnd("", error.code) from error
        except StatementRefused:
            await _savepoint(gateway, "ROLLBACK TO SAVEPOINT", savepoint)
            return _unknown(call, "database_refused")
        undone = verdict.reason is not None
        # Also where nothing is undone: only with its savepoint there was all of this in one transaction.
        await _savepoint(gateway, "ROLLBACK TO SAVEPOINT" if undone else "RELEASE SAVEPOINT", savepoint)
        if session.effects.hook_failed or any(e.code == "hook_failed" for r in results for e in r.errors):
            return _with_problem(_rehearsed(call, verdict, results), "hook_failed")
        return _rehearsed(call, verdict, results)


def _plan(rehearsal_id: UUID, request: RehearsalRequest, call: RehearsedCallRequest) -> CallPlan:
    return CallPlan(
        call_id=rehearsal_id,
        run_id=request.run_id,
        epoch=request.lease_epoch,
        actor=request.actor,
        scope=armed_scope(request.scope, required=request.scope_required),
        tool=call.tool,
        effect=call.effect,
        write_target=call.write_target,
        operations=call.operations,
        shown=None,
        request_hash="",
    )


def _rehearsed(call: RehearsedCallRequest, verdict: Verdict, results: list[OperationResult]) -> RehearsedCall:
    undone = verdict.reason is not None
    return RehearsedCall(
        key=call.key,
        outcome=CallOutcome.ROLLED_BACK if undone else CallOutcome.COMMITTED,
        reason=verdict.reason,
        shown=() if undone else tuple(verdict.lines),
        changes=verdict.reported,
        errors=tuple(error for result in results for error in result.errors),
        operations=() if undone else tuple(results),
    )


def _with_problem(call: RehearsedCall, problem: str) -> RehearsedCall:
    """The same call, of which is said that it could not be rehearsed as it would run."""
    return call.model_copy(update={"outcome": CallOutcome.UNKNOWN, "problem": problem, "shown": ()})


async def _savepoint(gateway: RecordGateway, action: str, name: str) -> None:
    """Raises CallMustEnd: a hook ended the transaction, so no call of the turn can be rehearsed."""
    try:
        await gateway.savepoint(action, name)
    except (TransactionLost, StatementRefused) as error:
        raise CallMustEnd("", "transaction_lost") from error


def _unknown(call: RehearsedCallRequest, problem: str) -> RehearsedCall:
    return RehearsedCall(key=call.key, outcome=CallOutcome.UNKNOWN, problem=problem)


def _problem(error: CallMustEnd) -> str:
    if error.sqlstate == _CANCELLED_STATEMENT:
        return "timeout"
    return reason_of(error).value if error.sqlstate else "hook_failed"
