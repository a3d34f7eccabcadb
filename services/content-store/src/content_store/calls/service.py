"""``apply`` and ``resolve``: a call is one transaction, judged before its commit (CALLS 1 to 3)."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import UUID

import asyncpg
from remit_contracts.calls import ApplyRequest, CallOutcome, CallResolution, CallResult, RollbackReason
from service_kit.logging import get_logger
from service_kit.problems import ProblemError

from content_store.calls import outcome
from content_store.calls.committing import OpenTransaction, finish, rollback
from content_store.calls.connections import Pool, acquire, give_back
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import (
    CallExists,
    CallFenced,
    CallResolved,
    CallRolledBack,
    SavepointNeeded,
    TreeLockNeeded,
    problem_of,
)
from content_store.calls.plan import CallPlan
from content_store.calls.results import rolled_back_result
from content_store.calls.session import CallSession, load_actor
from content_store.calls.tree_lock import TreeLock, TreeLockHook, needed_lock, take_tree_lock
from content_store.records.errors import CallMustEnd, TransactionLost
from content_store.records.gateway import RecordGateway
from content_store.records.lost import LOST
from content_store.scope.guard import AssignmentScopeGuard

logger = get_logger(__name__)


class CallService:
    """Carries out calls in one request, and says how a call ended.

    Args:
        env: what all calls share.
        applies: connections of calls, with the lock timeout of calls; used for nothing else.
        reads: connections of ``GET``.
    """

    def __init__(self, env: StoreEnvironment, applies: Pool, reads: Pool) -> None:
        self._env = env
        self._applies = applies
        self._reads = reads

    # --- apply --------------------------------------------------------------------------------------------------

    async def apply(self, call_id: UUID, request: ApplyRequest) -> CallResult:
        """Carry out a call, or answer what it answered before.

        An error of the database that ends the call is repeated twice; a call in which something nested needs more of
        the page tree is repeated with that lock.

        Raises:
            CallFenced: a newer lease holds the run.
            CallExists: the id was used for something else.
            CallResolved: the id was resolved as not done.
            CallLocked, CallConflict: the database ended the call every time.
        """
        plan = CallPlan.of(call_id, request)
        lock = needed_lock(plan.operations)
        for attempt in range(self._env.limits.retries + 1):
            try:
                return await self._with_lock(plan, lock)
            except CallMustEnd as error:
                if attempt == self._env.limits.retries:
                    raise problem_of(error) from error
                # Two calls that met once shall not meet again at the same moment.
                await asyncio.sleep(random.uniform(0.0, 0.05) * (attempt + 1))  # noqa: S311 - no secret
        raise AssertionError("not reached")

    async def _with_lock(self, plan: CallPlan, lock: TreeLock) -> CallResult:
        savepoints = len(plan.operations) > 1
        while True:
            try:
                return await self._attempt(plan, lock, savepoints)
            except SavepointNeeded:
                savepoints = True
            except TreeLockNeeded as error:
                stronger = TreeLock.EXCLUSIVE if error.exclusive else TreeLock.SHARED
                if stronger <= lock:
                    raise
                lock = stronger

    async def _attempt(self, plan: CallPlan, lock: TreeLock, savepoints: bool) -> CallResult:
        connection = await acquire(self._applies, self._env.limits.acquire_seconds)
        try:
            return await self._transaction(connection, plan, lock, savepoints)
        finally:
            # A connection with an open transaction is rolled back by the pool before anybody else gets it.
            await give_back(self._env, self._applies, connection)

    async def _transaction(self, connection: Any, plan: CallPlan, lock: TreeLock, savepoints: bool) -> CallResult:
        gateway = RecordGateway(connection, self._env.schema, self._env.schema_name)
        transaction = connection.transaction()
        opened = OpenTransaction(connection, transaction, gateway)
        session: CallSession | None = None
        try:
            await transaction.start()
            await self._env.one_connection.require(gateway)
            if (known := await self._begin(gateway, plan)) is not None:
                await transaction.rollback()
                return known
            await take_tree_lock(gateway, lock)
            loaded = await load_actor(gateway, plan.actor)
            session = CallSession(self._env, gateway, plan, loaded, lock=TreeLockHook(lock), savepoints=savepoints)
            results = await session.run(plan.operations)
            return await finish(self._env, opened, session, results, self.asked_again)
        except (CallRolledBack, TransactionLost, *LOST) as error:
            return await self.undone(plan, opened, session.guard if session is not None else None, error)
        except BaseException:
            await asyncio.shield(rollback(connection, transaction))
            raise

    async def _begin(self, gateway: RecordGateway, plan: CallPlan) -> CallResult | None:
        """Pass the fence and open the outcome row; the stored answer where the id is known."""
        begun = await outcome.begin(gateway, plan.call_id, plan.run_id, plan.epoch, plan.request_hash)
        if begun.opened:
            return None
        if not begun.passed:
            raise CallFenced
        return stored_answer(await outcome.read_outcome(gateway, plan.call_id), plan)

    async def asked_again(self, plan: CallPlan, result: CallResult) -> CallResult:
        """What became of a call whose commit nobody answered: taken from its outcome row (S-58)."""
        try:
            known = await self.resolve(plan.call_id, plan.run_id, plan.epoch)
        except (*LOST, asyncpg.PostgresError, ProblemError) as error:
            logger.warning("the outcome of a call is not known", exc_info=error)
            return rolled_back_result(plan, None, outcome=CallOutcome.UNKNOWN)
        if known.outcome is CallOutcome.COMMITTED:
            return known.result or result
        if known.outcome is CallOutcome.ROLLED_BACK:
            return rolled_back_result(plan, RollbackReason.COMMIT_REFUSED)
        return rolled_back_result(plan, None, outcome=CallOutcome.UNKNOWN)

    async def undone(
        self, plan: CallPlan, opened: OpenTransaction, guard: AssignmentScopeGuard | None, error: BaseException
    ) -> CallResult:
        """Undo a call whose commit was not sent, and say so.

        Args:
            plan: the call.
            opened: its transaction.
            guard: what was refused so far.
            error: what undid it: ``CallRolledBack``, ``TransactionLost``, or one of ``LOST``, where the server undoes
                what there was.
        """
        reason = _reason(error)
        if reason is RollbackReason.CANCELLED:
            logger.warning("the connection of a call was lost", exc_info=error)
        await rollback(opened.connection, opened.transaction)
        if reason is RollbackReason.COMMIT_REFUSED and not await self._stays_undone(opened.connection, plan.call_id):
            return rolled_back_result(plan, None, outcome=CallOutcome.UNKNOWN)
        return rolled_back_result(plan, reason, guard=guard)

    async def _stays_undone(self, connection: Any, call_id: UUID) -> bool:
        """False where a hook that ended the transaction had it committed: nobody knows what was (S-67)."""
        try:
            stored = await outcome.read_outcome(connection, call_id)
        except (*LOST, asyncpg.PostgresError) as error:
            logger.warning("whether a call was undone is not known", exc_info=error)
            return False
        if stored is not None and stored.committed:
            logger.error("a hook committed what nobody judged", call_id=str(call_id))
            return False
        return True

    # --- how a call ended ---------------------------------------------------------------------------------------

    async def resolve(self, call_id: UUID, run_id: UUID, epoch: int) -> CallResolution:
        """Fence the call, then say how it ended; one that is not done can never be done afterwards.

        Waits for a call in flight; ``open`` when that takes longer than a call waits for a lock.

        Raises:
            CallFenced: a newer lease holds the run.
            CallExists: the id belongs to another run.
        """
        connection = await acquire(self._applies, self._env.limits.acquire_seconds)
        try:
            async with connection.transaction():
                if not await outcome.take_fence(connection, run_id, epoch):
                    raise CallFenced
                # A statement of its own: it has to see what the call in flight committed meanwhile.
                stored = await outcome.read_outcome(connection, call_id)
                if stored is None and not await outcome.mark_not_done(connection, call_id, run_id, epoch):
                    # Another run's call of this id was in flight, and was committed while we waited for it.
                    stored = await outcome.read_outcome(connection, call_id)
                if stored is not None and stored.run_id != run_id:
                    raise CallExists
        except (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError):
            return CallResolution(call_id=call_id, outcome=CallOutcome.OPEN)
        finally:
            await asyncio.shield(self._applies.release(connection))
        if stored is None:
            return CallResolution(call_id=call_id, outcome=CallOutcome.ROLLED_BACK)
        return stored.resolution(call_id)

    async def known(self, call_id: UUID) -> CallResolution:
        """What is known without a fence: absence proves nothing, so it is ``unknown``."""
        connection = await acquire(self._reads, self._env.limits.acquire_seconds)
        try:
            stored = await outcome.read_outcome(connection, call_id)
        finally:
            await asyncio.shield(self._reads.release(connection))
        if stored is None:
            return CallResolution(call_id=call_id, outcome=CallOutcome.UNKNOWN)
        return stored.resolution(call_id)


def stored_answer(stored: outcome.StoredOutcome | None, plan: CallPlan) -> CallResult:
    """The answer to a request whose id is known.

    Raises:
        CallResolved: it was resolved as not done.
        CallExists: it was used by another run or for something else.
    """
    if stored is None or stored.run_id != plan.run_id:
        raise CallExists
    if stored.resolved:
        raise CallResolved
    if stored.request_hash != plan.request_hash or stored.result is None:
        raise CallExists
    return stored.result


def _reason(error: BaseException) -> RollbackReason:
    if isinstance(error, CallRolledBack):
        return error.reason
    return RollbackReason.COMMIT_REFUSED if isinstance(error, TransactionLost) else RollbackReason.CANCELLED
