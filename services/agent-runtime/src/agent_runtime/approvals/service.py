"""Decisions on a waiting run, in the order of T-32; a refusal after the claim puts the run back into its pause."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from remit_contracts.calls import CallOutcome
from remit_contracts.runs import AnswerRequest, Decision, DecisionRequest, RunStatus, RunView
from remit_contracts.steps import StepKind
from service_kit.auth import Actor
from service_kit.database import shielded
from service_kit.logging import get_logger

from agent_runtime.approvals.card import ALL_REFUSED, CONFIGURATION, blocked_reasons
from agent_runtime.approvals.cards import CardReader
from agent_runtime.approvals.decisions import DecisionIncomplete, approved_calls, read_decisions
from agent_runtime.approvals.preparation import TurnPreparer
from agent_runtime.approvals.turns import TurnState, mark_stale, stale_calls
from agent_runtime.configurations.models import Configuration
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.runs.access import RunAccess, Sight
from agent_runtime.runs.errors import (
    AnswerInvalidError,
    ApprovalBlockedError,
    ApproverNotPermittedError,
    ConfigurationGoneError,
    DecisionIncompleteError,
    LeaseLost,
    RunNotFoundError,
    RunNotWaitingError,
    SecondPersonRequiredError,
    TransitionRefused,
    TurnStaleError,
)
from agent_runtime.runs.journal import RunJournal, status_step
from agent_runtime.runs.models import Entry, Held, LeaseFrom, RunChange, RunRow, StepDraft, Unheld
from agent_runtime.runs.states import turn_state
from agent_runtime.runs.views import run_view

logger = get_logger(__name__)


class _CardChanged(Exception):
    """The card reads differently now; carries the fresh turn."""

    def __init__(self, turn: TurnState) -> None:
        super().__init__("the card changed")
        self.turn = turn


class ApprovalService:
    """Takes decisions and answers.

    Args:
        identity: name of this process in the lease.
        lease_seconds: of the claim while a decision is checked.
    """

    def __init__(
        self,
        journal: RunJournal,
        configurations: ConfigurationRegistry,
        access: RunAccess,
        cards: CardReader,
        preparer: TurnPreparer,
        identity: str,
        lease_seconds: float,
    ) -> None:
        self._journal = journal
        self._configurations = configurations
        self._access = access
        self._cards = cards
        self._preparer = preparer
        self._identity = identity
        self._lease_seconds = lease_seconds

    async def decide(self, run_id: UUID, caller: Actor, request: DecisionRequest) -> RunView:
        """Store a decision, so that a worker carries it out.

        Raises:
            RunNotFoundError, RunNotWaitingError, ConfigurationGoneError, SecondPersonRequiredError, TurnStaleError,
            DecisionIncompleteError, ApprovalBlockedError, ApproverNotPermittedError, StateUnreadableError: in this
            order; none of them changes the run, but for the fresh card of a stale one.
        """
        run = await self._waiting(run_id, caller, RunStatus.WAITING_FOR_APPROVAL)
        configuration = self._configuration(run)
        turn = await self._turn(run)
        await self._check_digest(run, caller, turn, request.turn_digest)
        approved = approved_calls(self._decisions(request, turn))
        if approved and configuration.four_eyes and caller.user_uid == run.owner_uid:
            raise SecondPersonRequiredError
        async with self._claimed(run, caller) as held:
            turn = await self._turn(held)
            await self._check_digest(held, caller, turn, request.turn_digest)
            decisions = self._decisions(request, turn)
            if approved:
                turn = await self._still_the_same(held, turn, configuration)
                self._check_blocked(turn, configuration, approved)
                await self._check_approver(held, caller, turn, configuration, approved)
            decided = self._decided(held, caller, turn, decisions, request.reason)
            return await self._store(held, decided, approval_step(decided, held))

    async def answer(self, run_id: UUID, caller: Actor, request: AnswerRequest) -> RunView:
        """Store an answer; a wrong one is refused before and after the claim and can be given again (T-37).

        Raises:
            RunNotFoundError, RunNotWaitingError, ConfigurationGoneError, TurnStaleError, AnswerInvalidError.
        """
        run = await self._waiting(run_id, caller, RunStatus.WAITING_FOR_INPUT)
        self._configuration(run)
        turn = await self._turn(run)
        await self._check_digest(run, caller, turn, request.turn_digest)
        _check_answer(turn, request.answer)
        async with self._claimed(run, caller) as held:
            turn = await self._turn(held)
            await self._check_digest(held, caller, turn, request.turn_digest)
            _check_answer(turn, request.answer)
            relation = _relation(held, caller)
            answered = turn.model_copy(
                update={"answer": request.answer, "decided_by": caller.user_uid, "decided_by_relation": relation}
            )
            step = StepDraft(StepKind.INPUT, {"submittedBy": relation}, turn.round)
            return await self._store(held, answered, step)

    async def _waiting(self, run_id: UUID, caller: Actor, status: RunStatus) -> RunRow:
        async with self._journal.database.read() as session:
            run = await self._journal.runs.get(session, run_id)
        if run is None or await self._access.sight(run, caller) is Sight.NOTHING:
            raise RunNotFoundError
        if run.status is not status:
            raise self._not_waiting(run)
        return run

    def _not_waiting(self, run: RunRow) -> RunNotWaitingError:
        view = run_view(run, self._journal.cipher)
        return RunNotWaitingError(members={"run": view.model_dump(mode="json", by_alias=True)})

    def _configuration(self, run: RunRow) -> Configuration:
        configuration = self._configurations.get(run.configuration)
        if configuration is None:
            raise ConfigurationGoneError
        return configuration

    async def _turn(self, run: RunRow) -> TurnState:
        turn = (await self._cards.state(run)).turn
        if turn is None:
            raise self._not_waiting(run)
        return turn

    async def _check_digest(self, run: RunRow, caller: Actor, turn: TurnState, digest: str) -> None:
        if digest != turn.digest:
            raise await self._stale(run, caller, turn)

    async def _stale(self, run: RunRow, caller: Actor, turn: TurnState) -> TurnStaleError:
        pending = await self._cards.pending(run, await self._cards.viewer(run, caller.user_uid, turn), turn)
        member: Any = pending.model_dump(mode="json", by_alias=True) if pending is not None else None
        return TurnStaleError(members={"pending": member})

    def _decisions(self, request: DecisionRequest, turn: TurnState) -> dict[str, Decision]:
        try:
            return read_decisions(request, turn)
        except DecisionIncomplete as error:
            members = {"missing": error.missing, "unknown": error.unknown}
            raise DecisionIncompleteError(members=members) from error

    @asynccontextmanager
    async def _claimed(self, run: RunRow, caller: Actor) -> AsyncIterator[RunRow]:
        """Claim the run with a lease; on every way out without a stored decision it waits again, state intact."""
        change = RunChange(status=RunStatus.RUNNING, lease=LeaseFrom(self._identity, self._lease_seconds))
        try:
            held = await self._journal.write(run.id, Unheld((run.status,)), Entry(change=change))
        except TransitionRefused:
            async with self._journal.database.read() as session:
                now = await self._journal.runs.get(session, run.id)
            raise self._not_waiting(now or run) from None
        try:
            yield held
        except LeaseLost as error:
            raise self._not_waiting(replace(held)) from error
        except _CardChanged as changed:
            await shielded(self._put_back(held, run.status, changed.turn))
            raise await self._stale(held, caller, changed.turn) from changed
        except BaseException:
            await shielded(self._put_back(held, run.status))
            raise

    async def _put_back(self, held: RunRow, status: RunStatus, fresh: TurnState | None = None) -> None:
        """The run waits again. With a fresh card a status step tells whoever shows the card; the card is not in it."""
        change = RunChange(status=status, release=True, outcome=held.outcome)
        entry = Entry(change=change)
        if fresh is not None:
            entry = Entry(change=change, steps=(status_step(status, change),), states=(turn_state(fresh),))
        try:
            await self._journal.write(held.id, Held(held.lease_epoch), entry)
        except LeaseLost:
            logger.info("the run went on while its decision was refused", run_id=str(held.id))

    async def _still_the_same(self, held: RunRow, turn: TurnState, configuration: Configuration) -> TurnState:
        """Previews, rules and rehearsals once more (T-34).

        Raises:
            _CardChanged: one differs; the fresh card has to be stored and shown.
        """
        calls = [call.requested() for call in turn.calls]
        fresh = await self._preparer.prepare(calls, replace(held, round=turn.round), configuration, held.lease_epoch)
        if fresh.digest == turn.digest:
            return fresh
        raise _CardChanged(mark_stale(fresh, stale_calls(turn, fresh)))

    def _check_blocked(self, turn: TurnState, configuration: Configuration, approved: frozenset[str]) -> None:
        reasons = blocked_reasons(turn, configuration, owner=False)
        whole = [reason for reason in reasons if reason in {ALL_REFUSED, CONFIGURATION}]
        unrehearsed = [
            call.call_id
            for call in turn.card_calls()
            if call.call_id in approved and call.not_rehearsed and not configuration.allow_unrehearsed
        ]
        if whole or unrehearsed:
            raise ApprovalBlockedError(members={"reasons": list(reasons), "calls": unrehearsed})

    async def _check_approver(
        self, held: RunRow, caller: Actor, turn: TurnState, configuration: Configuration, approved: frozenset[str]
    ) -> None:
        """A second person must be able to make each approved change in person: rehearsed with their live rights."""
        if caller.user_uid == held.owner_uid:
            return
        calls = [call for call in turn.card_calls() if call.call_id in approved]
        actor = held.actor.model_copy(update={"user_uid": caller.user_uid})
        found = await self._preparer.rehearse(calls, held, configuration, held.lease_epoch, actor)
        for call in calls:
            mine = found.get(call.call_id)
            if not call.rehearsable or call.rehearsal is None or call.rehearsal.outcome is not CallOutcome.COMMITTED:
                continue
            if (
                mine is None
                or mine.outcome is not CallOutcome.COMMITTED
                or len(mine.errors) > len(call.rehearsal.errors)
            ):
                raise ApproverNotPermittedError(members={"calls": [call.call_id]})

    def _decided(
        self, held: RunRow, caller: Actor, turn: TurnState, decisions: dict[str, Decision], reason: str | None
    ) -> TurnState:
        return turn.model_copy(
            update={
                "decisions": decisions,
                "decided_by": caller.user_uid,
                "decided_by_relation": _relation(held, caller),
                "reason": reason,
            }
        )

    async def _store(self, held: RunRow, turn: TurnState, step: StepDraft) -> RunView:
        """The decision is stored, with its step, in the transaction that queues the run (T-36)."""
        change = RunChange(status=RunStatus.QUEUED, release=True, next_segment=True, requeues=0, available_in=0.0)
        entry = Entry(change=change, steps=(step, status_step(RunStatus.QUEUED, change)), states=(turn_state(turn),))
        run = await self._journal.write(held.id, Held(held.lease_epoch), entry)
        return run_view(run, self._journal.cipher)


def approval_step(turn: TurnState, run: RunRow) -> StepDraft:
    """Who decided what, as a relation and never by name (T-35)."""
    decisions = {call_id: decision.value for call_id, decision in (turn.decisions or {}).items()}
    payload = {
        "approved": Decision.APPROVE in (turn.decisions or {}).values(),
        "decisions": decisions,
        "decidedBy": turn.decided_by_relation,
        "reason": turn.reason,
        "turnDigest": turn.digest,
    }
    return StepDraft(StepKind.APPROVAL, payload, turn.round)


def _relation(run: RunRow, caller: Actor) -> str:
    return "self" if caller.user_uid == run.owner_uid else "secondPerson"


def _check_answer(turn: TurnState, answer: str) -> None:
    if turn.question is None or answer not in turn.question.options:
        raise AnswerInvalidError
