"""Sending a write call and finding out what became of it (T-23, S-58, CALLS 1). No write twice, none lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from remit_contracts.calls import CallOutcome, CallResult
from service_kit.client import RemoteProblem, RemoteUnavailable
from service_kit.logging import get_logger

from agent_runtime.clients.store import StoreAnswerUnreadable, StoreClient
from agent_runtime.loop.held import HeldRun
from agent_runtime.runs.errors import LeaseLost
from agent_runtime.runs.journal import RunJournal
from agent_runtime.runs.models import Entry, RunChange
from agent_runtime.runs.states import CallInFlight, call_state

logger = get_logger(__name__)
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
NOT_DONE = frozenset({"locked", "conflict"})


class EndKind(StrEnum):
    """How a call ended for the runtime."""

    RESULT = "result"
    REFUSED = "refused"
    ROLLED_BACK = "rolled_back"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class CallEnd:
    """What is known of a call.

    Attributes:
        result: the store's answer, with ``RESULT``.
        code: problem code, with ``REFUSED``: the store took nothing of it.
    """

    kind: EndKind
    call_id: UUID
    result: CallResult | None = None
    code: str = ""


class OutcomeOpen(Exception):
    """The outcome cannot be had for now: the run is given back and asks again later; the call stays remembered."""


class WriteCalls:
    """Sends stored requests and resolves by id, never by sending again.

    Args:
        lease_seconds: the lease is renewed by this when a call is stored.
        patience: seconds to ask for an outcome before the run is given back.
    """

    def __init__(self, journal: RunJournal, store: StoreClient, lease_seconds: float, patience: float) -> None:
        self._journal = journal
        self._store = store
        self._lease_seconds = lease_seconds
        self._patience = patience

    async def remember(self, held: HeldRun, flight: CallInFlight) -> None:
        """Store id and exact bytes before anything is sent; renews the lease, and fails where it is lost.

        Raises:
            LeaseLost: nothing was sent and nothing may be.
        """
        change = RunChange(renew=self._lease_seconds)
        held.run = await self._journal.write(
            held.run.id, held.guard, Entry(change=change, states=(call_state(flight),))
        )
        held.state.call = flight

    async def send(self, held: HeldRun, flight: CallInFlight) -> CallEnd:
        """Send the remembered call and wait for its end, also where the answer is lost.

        Raises:
            LeaseLost: another worker has the run.
            OutcomeOpen: the store cannot say yet.
        """
        try:
            result = await self._store.apply(flight.store_call_id, flight.body, held.run.actor.user_uid)
        except RemoteProblem as problem:
            return await self._after_problem(held, flight, problem)
        except (RemoteUnavailable, StoreAnswerUnreadable) as error:
            logger.warning("answer of a call lost", call_id=str(flight.store_call_id), reason=str(error))
            return await self.resolve(held, flight)
        return CallEnd(EndKind.RESULT, flight.store_call_id, result)

    async def resolve(self, held: HeldRun, flight: CallInFlight) -> CallEnd:
        """Ask for the outcome by id until it is known or patience ends.

        Raises:
            LeaseLost: another worker has the run.
            OutcomeOpen: still open, or the store does not answer.
        """
        deadline = asyncio.get_running_loop().time() + self._patience
        pause = FIRST_PAUSE
        while True:
            if held.lost.is_set():
                raise LeaseLost
            end = await self._ask(held, flight)
            if end is not None:
                return end
            if asyncio.get_running_loop().time() >= deadline:
                raise OutcomeOpen
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _ask(self, held: HeldRun, flight: CallInFlight) -> CallEnd | None:
        call_id = flight.store_call_id
        try:
            answer = await self._store.resolve(call_id, held.run.id, held.run.lease_epoch, held.run.actor.user_uid)
        except RemoteProblem as problem:
            if problem.code == "fenced":
                raise LeaseLost from problem
            logger.warning("a call cannot be resolved", call_id=str(call_id), code=problem.code)
            return None
        except (RemoteUnavailable, StoreAnswerUnreadable):
            return None
        if answer.outcome is CallOutcome.COMMITTED and answer.result is not None:
            return CallEnd(EndKind.RESULT, call_id, answer.result)
        if answer.outcome is CallOutcome.ROLLED_BACK:
            return CallEnd(EndKind.ROLLED_BACK, call_id)
        if answer.outcome is CallOutcome.OPEN:
            return None
        return CallEnd(EndKind.UNKNOWN, call_id)

    async def _after_problem(self, held: HeldRun, flight: CallInFlight, problem: RemoteProblem) -> CallEnd:
        if problem.code == "fenced":
            raise LeaseLost from problem
        if problem.code in NOT_DONE:
            return CallEnd(EndKind.REFUSED, flight.store_call_id, code=problem.code)
        if problem.status >= 500 or problem.code in {"call_resolved", "call_exists"}:
            # The store may have committed before it failed; an id it knows already is asked about, not sent again.
            return await self.resolve(held, flight)
        logger.warning("call refused", call_id=str(flight.store_call_id), code=problem.code, status=problem.status)
        return CallEnd(EndKind.REFUSED, flight.store_call_id, code=problem.code)
