"""Applies steps of a run to what the chat shows: activity, run record, messages, change list (R-014: one transaction)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from remit_contracts.runs import PendingTurn, RunStatus, RunView
from remit_contracts.steps import Step, StepKind
from service_kit.clock import utc_now
from service_kit.ids import uuid7
from service_kit.logging import get_logger
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from chat_gateway.changes.observations import UNREADABLE_STEP
from chat_gateway.conversations.models import RUNNING, ConversationRow, MessageRow
from chat_gateway.projection.transient import is_transient
from chat_gateway.segments import repository
from chat_gateway.segments.activity import activity_of
from chat_gateway.segments.kept import storable
from chat_gateway.segments.models import RunRow
from chat_gateway.segments.nothing_saved import nothing_saved
from chat_gateway.segments.opening import GivenDecision, facts_of
from chat_gateway.segments.payloads import StatusFacts, status_facts, tool_facts
from chat_gateway.segments.refused_calls import QUESTION_TOOLS, CallReading, read_refused_calls
from chat_gateway.segments.run_record import UNKNOWN, EntryFrame, build_entry
from chat_gateway.stream.repository import ACTIVITY, CARD, CHANGES, MESSAGE, STATUS, append_event

logger = get_logger(__name__)
_WAITING = frozenset(status.value for status in RunStatus if status.waiting)
TERMINAL = frozenset(status.value for status in RunStatus if status.terminal)


class MissingStepsError(Exception):
    """Steps before these are not there yet; they have to be fetched first."""


def closes_segment(step: Step) -> bool:
    """Whether the step ends a segment: the run waits for a person, or is over."""
    facts = status_facts(step)
    return facts is not None and facts.status in _WAITING | TERMINAL


@dataclass
class _Dirty:
    activity: bool = False
    changes: bool = False


class Projector:
    """Applies steps in order; every method works inside the caller's transaction, with the conversation's row locked.

    Args:
        question_tools: tools that ask the editor (R-045).
    """

    def __init__(self, question_tools: Collection[str] = QUESTION_TOOLS) -> None:
        self._question_tools = frozenset(question_tools)

    async def apply(
        self,
        session: AsyncSession,
        conversation: ConversationRow,
        run: RunRow,
        steps: Sequence[Step],
        view: RunView | None,
        *,
        tolerant: bool = False,
    ) -> int:
        """Apply the steps the projection lacks; older ones are dropped.

        Args:
            session: of the transaction.
            conversation: locked.
            run: of the conversation.
            steps: in any order.
            view: the run as it is now; needed where a step closes a segment, none where the run is gone.
            tolerant: a step the database refuses is stored as unreadable instead of failing all of them.

        Returns:
            Number of steps applied.

        Raises:
            MissingStepsError: there is a gap before one of them.
        """
        fresh = _in_order(steps, run.last_sequence)
        if not fresh:
            return 0
        dirty = _Dirty()
        if not tolerant:
            await repository.insert_steps(session, fresh)
        for step in fresh:
            if tolerant:
                await self._store_alone(session, step, dirty)
            _note(step, dirty)
            run.last_sequence = step.sequence
            if (facts := status_facts(step)) is not None:
                await self._status(session, conversation, run, step, facts, view, dirty)
        await self._tell(session, conversation, run, dirty)
        return len(fresh)

    async def _store_alone(self, session: AsyncSession, step: Step, dirty: _Dirty) -> None:
        try:
            async with session.begin_nested():
                await repository.insert_steps(session, [step])
        except DBAPIError as error:
            if is_transient(error):
                raise
            logger.error("step cannot be stored", run_id=str(step.run_id), sequence=step.sequence, exc_info=error)
            bare = {"call_id": None, "segment": 0, "round": 0, "duration_ms": 0.0, "at": utc_now()}
            await repository.insert_steps(session, [step.model_copy(update=bare)], UNREADABLE_STEP)
            dirty.changes = True

    async def _tell(self, session: AsyncSession, conversation: ConversationRow, run: RunRow, dirty: _Dirty) -> None:
        if dirty.activity and run.last_sequence > run.closed_sequence:
            steps = await repository.steps_after(session, run.id, run.closed_sequence, run.last_sequence)
            facts, _ = facts_of(steps, suspended=False, given=GivenDecision.from_stored(run.given))
            readings = read_refused_calls(steps, facts, self._question_tools)
            lines = activity_of(run.id, readings, facts)
            await repository.replace_activity(session, run, run.closed_sequence, run.last_sequence, lines)
        _announce(session, conversation, run, dirty)

    async def _status(
        self,
        session: AsyncSession,
        conversation: ConversationRow,
        run: RunRow,
        step: Step,
        facts: StatusFacts,
        view: RunView | None,
        dirty: _Dirty,
    ) -> None:
        run.status = str(storable(facts.status))
        current = conversation.current_run == run.id and not run.abandoned
        if facts.status in _WAITING | TERMINAL:
            run.settled_at = step.at if facts.status in TERMINAL else None
            dirty.activity = True
            _announce(session, conversation, run, dirty)
            await self._close(session, conversation, run, step, facts, view)
        elif current and conversation.status != RUNNING:
            conversation.status = RUNNING
            conversation.pending = None
            conversation.updated_at = step.at
            append_event(session, conversation, STATUS, {"status": RUNNING})

    async def _close(
        self,
        session: AsyncSession,
        conversation: ConversationRow,
        run: RunRow,
        step: Step,
        status: StatusFacts,
        view: RunView | None,
    ) -> None:
        """Close a segment: entry, answer, card and status together."""
        steps = await repository.steps_after(session, run.id, run.closed_sequence, step.sequence)
        suspended = status.status in _WAITING
        facts, decision = facts_of(steps, suspended=suspended, given=GivenDecision.from_stored(run.given))
        readings = read_refused_calls(steps, facts, self._question_tools)
        lines = activity_of(run.id, readings, facts)
        await repository.replace_activity(session, run, run.closed_sequence, step.sequence, lines)
        current = conversation.current_run == run.id and not run.abandoned
        pending = view.pending if view is not None and suspended and view.status.value == status.status else None
        frame = EntryFrame(
            after=run.message_id,
            outcome=status.outcome or status.status,
            run=run.id,
            segment=status.segment,
            waiting=_waiting(pending),
            decision=decision,
            elsewhere=not current,
        )
        entry = build_entry(steps, readings, frame, self._question_tools)
        new = await repository.append_entry(session, conversation, entry)
        run.closed_sequence = step.sequence
        run.given = None
        if not current:
            return
        if not new:
            # The same segment waits again: its card was stale and a fresh one took its place (T-34).
            if pending is not None:
                _show_card(session, conversation, pending, step.at)
            return
        content = view.final_content if view is not None and view.status.value == status.status else None
        if content:
            _add_answer(session, conversation, run, status.segment, content, steps, readings, step.at)
        conversation.status = status.status
        conversation.pending = None
        conversation.error_code = _error_code(view) if status.status == RunStatus.FAILED.value else None
        conversation.updated_at = step.at
        append_event(session, conversation, STATUS, {"status": status.status})
        if pending is not None:
            _show_card(session, conversation, pending, step.at)

    async def give_up(self, session: AsyncSession, conversation: ConversationRow, run: RunRow, now: datetime) -> None:
        """A run its owner cannot read any more: counted as unreadable, and its turn ends with an unknown outcome."""
        run.readable = False
        run.settled_at = now
        conversation.changes_revision += 1
        append_event(session, conversation, CHANGES, {"changesRevision": conversation.changes_revision})
        if conversation.current_run != run.id or run.abandoned or run.status in TERMINAL:
            return
        frame = EntryFrame(after=run.message_id, outcome=UNKNOWN, run=run.id, segment=None)
        await repository.append_entry(session, conversation, build_entry((), (), frame))
        conversation.status = RunStatus.FAILED.value
        conversation.pending = None
        conversation.error_code = "run_unreadable"
        conversation.updated_at = now
        append_event(session, conversation, STATUS, {"status": conversation.status})


def _in_order(steps: Sequence[Step], last: int) -> list[Step]:
    """The steps behind the last one, each once.

    Raises:
        MissingStepsError: there is a gap before one of them.
    """
    fresh: dict[int, Step] = {}
    for step in steps:
        if step.sequence > last:
            fresh.setdefault(step.sequence, step)
    if fresh and max(fresh) != last + len(fresh):
        raise MissingStepsError
    return [fresh[sequence] for sequence in sorted(fresh)]


def _note(step: Step, dirty: _Dirty) -> None:
    """What a step makes new for readers."""
    if step.kind == StepKind.TOOL:
        dirty.activity = True
        tool = tool_facts(step)
        dirty.changes = dirty.changes or (tool is not None and tool.is_error)
    elif step.kind in {StepKind.TOOL_CHANGES, StepKind.TOOL_WRITE}:
        dirty.changes = True


def _announce(session: AsyncSession, conversation: ConversationRow, run: RunRow, dirty: _Dirty) -> None:
    """Tell what is new since it was last told; a status that closes a segment comes after what happened in it."""
    if dirty.activity:
        append_event(session, conversation, ACTIVITY, {"run": str(run.id)})
    if dirty.changes:
        conversation.changes_revision += 1
        append_event(session, conversation, CHANGES, {"changesRevision": conversation.changes_revision})
    dirty.activity = dirty.changes = False


def _show_card(session: AsyncSession, conversation: ConversationRow, pending: PendingTurn, at: datetime) -> None:
    conversation.pending = storable(pending.model_dump(mode="json"))
    conversation.updated_at = at
    append_event(session, conversation, CARD, {"turnDigest": pending.turn_digest})


def _waiting(pending: Any) -> tuple[str, ...]:
    if pending is None:
        return ()
    return tuple(call.tool for call in pending.calls)


def _error_code(view: RunView | None) -> str | None:
    if view is None:
        return "run_unreadable"
    return view.error_code or (view.termination_reason.value if view.termination_reason is not None else None)


def _add_answer(
    session: AsyncSession,
    conversation: ConversationRow,
    run: RunRow,
    segment: int,
    content: str,
    steps: Sequence[Step],
    readings: Sequence[CallReading],
    at: datetime,
) -> None:
    conversation.last_message += 1
    message = MessageRow(
        id=uuid7(),
        conversation_id=conversation.id,
        sequence=conversation.last_message,
        role="assistant",
        content=str(storable(content)),
        run_id=run.id,
        segment=segment,
        nothing_saved=nothing_saved(content, steps, readings),
        created_at=at,
    )
    session.add(message)
    append_event(session, conversation, MESSAGE, {"id": str(message.id), "sequence": message.sequence})
