"""Open calls: a transaction that stays open between requests, for tools that read their own writes (CALLS 1, S-64)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from remit_contracts.calls import (
    CallOutcome,
    CallResult,
    OpenedCall,
    OpenRequest,
    Operation,
    OperationResult,
    OperationsAnswer,
)
from service_kit.clock import utc_now
from service_kit.database import shielded
from service_kit.logging import get_logger

from content_store.calls import outcome
from content_store.calls.committing import OpenTransaction, finish, rollback
from content_store.calls.connections import Pool, acquire, give_back
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import (
    CallBusy,
    CallExists,
    CallFenced,
    CallGone,
    CallNotFound,
    CallOutOfOrder,
    CallRolledBack,
    CallUncertain,
    CallUndone,
    NotInteractive,
    ServiceStopping,
    TooManyCalls,
    problem_of,
)
from content_store.calls.open_call import CallState, OpenCall
from content_store.calls.plan import CallPlan
from content_store.calls.service import CallService, stored_answer
from content_store.calls.session import CallSession, load_actor
from content_store.calls.tree_lock import TreeLock, TreeLockHook, needed_lock, take_tree_lock
from content_store.records.errors import CallMustEnd, TransactionLost
from content_store.records.gateway import RecordGateway
from content_store.records.lost import LOST

logger = get_logger(__name__)


class OpenCalls:
    """The open calls of this process.

    Args:
        env: what all calls share.
        pool: connections of open calls; the cap of the limits stays below its size.
        calls: says how a call ended whose commit nobody answered.
        address: base URL of this process.
        key: of the tokens; of this process alone.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        env: StoreEnvironment,
        pool: Pool,
        calls: CallService,
        *,
        address: str,
        key: bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._env = env
        self._pool = pool
        self._calls = calls
        self._address = address
        self._key = key
        self._clock = clock
        self._open: dict[UUID, OpenCall] = {}
        self._opening = 0
        self._stopping = False

    @property
    def count(self) -> int:
        """Calls open now."""
        return self._opening + sum(call.state is CallState.OPEN for call in self._open.values())

    # --- open ---------------------------------------------------------------------------------------------------

    async def open(self, call_id: UUID, request: OpenRequest) -> OpenedCall:
        """Begin a call and keep its transaction open.

        Raises:
            TooManyCalls: the cap of the process is reached.
            ServiceStopping: no new calls are taken.
            CallFenced, CallExists, CallResolved: as for ``apply``.
        """
        if self._stopping:
            raise ServiceStopping
        if call_id in self._open:
            raise CallExists
        if self.count >= self._env.limits.max_open:
            raise TooManyCalls(headers={"Retry-After": str(round(self._env.limits.idle_seconds))})
        self._opening += 1
        try:
            call = await self._begin(CallPlan.of(call_id, request))
        finally:
            self._opening -= 1
        self._open[call_id] = call
        return OpenedCall(
            call_id=call_id,
            address=self._address,
            token=self._token(call_id, call.sequence),
            sequence=call.sequence,
            idle_seconds=self._env.limits.idle_seconds,
            expires_at=utc_now() + timedelta(seconds=call.seconds_left(self._clock())),
        )

    async def _begin(self, plan: CallPlan) -> OpenCall:
        connection = await acquire(self._pool, self._env.limits.acquire_seconds)
        transaction = connection.transaction()
        gateway = RecordGateway(connection, self._env.schema, self._env.schema_name)
        opened = OpenTransaction(connection, transaction, gateway)
        try:
            await transaction.start()
            await self._env.one_connection.require(gateway)
            begun = await outcome.begin(gateway, plan.call_id, plan.run_id, plan.epoch, plan.request_hash)
            if not begun.opened:
                if not begun.passed:
                    raise CallFenced
                stored_answer(await outcome.read_outcome(gateway, plan.call_id), plan)
                raise CallExists
            loaded = await load_actor(gateway, plan.actor)

            async def take(lock: TreeLock) -> None:
                await take_tree_lock(gateway, lock)

            session = CallSession(self._env, gateway, plan, loaded, lock=TreeLockHook(TreeLock.NONE, take))
        except BaseException as error:
            await asyncio.shield(self._give_back(opened))
            if isinstance(error, CallMustEnd):
                raise problem_of(error) from error
            raise
        return OpenCall(plan, opened, session, self._env.limits, self._clock())

    async def _give_back(self, opened: OpenTransaction, *, ended: bool = False) -> None:
        try:
            if not ended:
                await rollback(opened.connection, opened.transaction)
        finally:
            await give_back(self._env, self._pool, opened.connection)

    def _token(self, call_id: UUID, sequence: int) -> str:
        content = f"{call_id}:{sequence}:{self._address}".encode()
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()

    # --- operations ---------------------------------------------------------------------------------------------

    async def operations(
        self, call_id: UUID, token: str, sequence: int, operations: Sequence[Operation]
    ) -> OperationsAnswer:
        """Carry out operations; the last request repeated gets its stored answer.

        Raises:
            CallNotFound: unknown here, or another token.
            CallGone: ended meanwhile, everything undone.
            CallBusy, CallOutOfOrder: this request changes nothing.
            NotInteractive: it moves or deletes pages; the call stays open.
            CallUndone, CallLocked, CallConflict: it ended the call.
        """
        call = self._find(call_id, token, sequence)
        digest = call.digest(operations)
        if sequence == call.sequence - 1 and call.last is not None:
            if call.last[0] != digest:
                raise CallOutOfOrder
            return call.last[1]
        if sequence != call.sequence:
            raise CallOutOfOrder
        if needed_lock(operations) is TreeLock.EXCLUSIVE:
            raise NotInteractive
        results = await self._run(call, operations)
        call.used(self._clock(), placed=call.session.witness.placed)
        if call.expired(self._clock()):
            await self._end(call)
            raise CallGone
        call.results += results
        call.sequence += 1
        answer = OperationsAnswer(
            operations=tuple(results),
            token=self._token(call_id, call.sequence),
            sequence=call.sequence,
            expires_at=utc_now() + timedelta(seconds=call.seconds_left(self._clock())),
        )
        call.last = (digest, answer)
        return answer

    async def _run(self, call: OpenCall, operations: Sequence[Operation]) -> list[OperationResult]:
        async with self._ended_by_errors(call):
            try:
                return await call.session.run(operations)
            except (CallRolledBack, TransactionLost, *LOST) as error:
                result = await self._undone(call, error)
                if result.outcome is not CallOutcome.ROLLED_BACK:
                    await self._end(call, result)
                    raise CallUncertain from error
                await self._end(call, ended=True)
                raise CallUndone(members={"reason": result.reason}) from error

    @asynccontextmanager
    async def _ended_by_errors(self, call: OpenCall) -> AsyncIterator[None]:
        """One request at work; whatever goes wrong in it, other than a refusal of it, ends the call."""
        with call.at_work():
            try:
                yield
            except CallMustEnd as error:
                await self._end(call)
                raise problem_of(error) from error
            except BaseException:
                await asyncio.shield(self._end(call))
                raise

    def _find(self, call_id: UUID, token: str, sequence: int) -> OpenCall:
        call = self._open.get(call_id)
        if call is None or not hmac.compare_digest(token.encode(), self._token(call_id, sequence).encode()):
            raise CallNotFound
        if call.state is CallState.OPEN and not call.busy and call.expired(self._clock()):
            # The sweeper has not come by yet; nothing may be done after the limit all the same.
            raise CallGone
        if call.state is CallState.UNDONE:
            raise CallGone
        if call.busy:
            raise CallBusy
        return call

    # --- the end ------------------------------------------------------------------------------------------------

    async def commit(self, call_id: UUID, token: str, sequence: int) -> CallResult:
        """Judge and commit; asked again it gives the same answer.

        Raises:
            As :meth:`operations`.
        """
        call = self._find(call_id, token, sequence)
        if call.result is not None:
            return call.result
        if sequence != call.sequence:
            raise CallOutOfOrder
        # From here on nothing ends it, no limit and no caller that goes away: it is told as the database has it.
        return await shielded(self._finish(call))

    async def _finish(self, call: OpenCall) -> CallResult:
        async with self._ended_by_errors(call):
            try:
                result = await finish(self._env, call.opened, call.session, call.results, self._calls.asked_again)
            except (CallRolledBack, TransactionLost, *LOST) as error:
                result = await self._undone(call, error)
        await self._end(call, result)
        return result

    async def _undone(self, call: OpenCall, error: BaseException) -> CallResult:
        return await self._calls.undone(call.plan, call.opened, call.session.guard, error)

    async def abandon(self, call_id: UUID, token: str, sequence: int) -> None:
        """Undo the call."""
        call = self._find(call_id, token, sequence)
        if call.state is CallState.OPEN:
            await self._end(call)

    async def _end(self, call: OpenCall, result: CallResult | None = None, *, ended: bool = False) -> None:
        """Give the connection back; whatever was not committed is undone with it.

        Args:
            call: it is over.
            result: how; none where it was undone.
            ended: its transaction is over already.
        """
        if call.state is not CallState.OPEN:
            return
        call.end(self._clock(), result)
        await asyncio.shield(self._give_back(call.opened, ended=ended or result is not None))

    async def sweep(self) -> None:
        """End calls over their limits, and forget those that ended long ago. Run it every half second or so."""
        now = self._clock()
        for call_id, call in list(self._open.items()):
            if call.state is CallState.OPEN and not call.busy and call.expired(now):
                logger.info("an open call was ended by its limit", call_id=str(call_id))
                await self._end(call)
            elif call.forgettable(now):
                del self._open[call_id]

    async def close(self) -> None:
        """Take no new calls and undo the open ones."""
        self._stopping = True
        for call in list(self._open.values()):
            await self._end(call)

    def holds(self, call_id: UUID) -> bool:
        """Is the call open here?"""
        call = self._open.get(call_id)
        return call is not None and call.state is CallState.OPEN
