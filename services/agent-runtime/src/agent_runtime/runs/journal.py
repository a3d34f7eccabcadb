"""The one place a run is written: transition, steps, state, governance and outbox in one transaction (T-10, T-21, T-70)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic_core import PydanticSerializationError
from remit_contracts.runs import RunStatus
from remit_contracts.steps import Step, StepKind
from service_kit.clock import utc_now
from service_kit.database import Database, WriteSession
from service_kit.ids import uuid7
from service_kit.outbox import EventTooLargeError, Outbox, OutboxWaker
from sqlalchemy.exc import DBAPIError

from agent_runtime.events.publishing import step_events
from agent_runtime.governance.repository import GovernanceLog
from agent_runtime.runs.envelope import Envelope, StateCipher
from agent_runtime.runs.errors import LeaseLost, StepNotStored, TransitionRefused
from agent_runtime.runs.models import Entry, Held, NewState, RunChange, RunRow, StepDraft, Unheld
from agent_runtime.runs.repository import RunRepository
from agent_runtime.steps.privacy import filtered
from agent_runtime.steps.repository import StepRepository


class RunJournal:
    """Writes entries of runs.

    Args:
        waker: wakes the relay after the commit.
        wake_workers: called after a commit that left a run queued; a wake-up, never the truth.
    """

    def __init__(self, database: Database, cipher: StateCipher, waker: OutboxWaker, wake_workers: OutboxWaker) -> None:
        self.database = database
        self.cipher = cipher
        self.runs = RunRepository()
        self.steps = StepRepository()
        self.governance = GovernanceLog()
        self._outbox = Outbox()
        self._waker = waker
        self._wake_workers = wake_workers

    async def write(self, run_id: UUID, guard: Held | Unheld, entry: Entry) -> RunRow:
        """Write an entry in a transaction of its own.

        Raises:
            LeaseLost: the holder's guard does not hold.
            TransitionRefused: the guard of a transition nobody holds does not.
            StepNotStored: the database or the outbox refuses what is in a step.
        """
        try:
            async with self.database.unit_of_work() as session:
                return await self.write_in(session, run_id, guard, entry)
        except (EventTooLargeError, PydanticSerializationError, UnicodeError) as error:
            raise StepNotStored(type(error).__name__) from error
        except DBAPIError as error:
            if error.connection_invalidated or not _is_refused_data(error):
                raise
            raise StepNotStored(type(error.orig).__name__) from error

    async def write_in(self, session: WriteSession, run_id: UUID, guard: Held | Unheld, entry: Entry) -> RunRow:
        """The same inside a transaction of the caller."""
        run = await self.runs.change(session, run_id, guard, entry.change, len(entry.steps))
        if run is None:
            raise LeaseLost if isinstance(guard, Held) else TransitionRefused
        await self._add(session, run, entry)
        return run

    async def start_in(self, session: WriteSession, run: RunRow, states: tuple[NewState, ...]) -> RunRow:
        """State and first status step of a run that was just inserted in this transaction."""
        entry = Entry(steps=(status_step(RunStatus.QUEUED),), states=states)
        return await self.write_in(session, run.id, Unheld((RunStatus.QUEUED,)), entry)

    async def _add(self, session: WriteSession, run: RunRow, entry: Entry) -> None:
        first = run.last_sequence - len(entry.steps) + 1
        steps = [self._step(run, first + place, draft) for place, draft in enumerate(entry.steps)]
        await self.steps.insert(session, steps)
        sealed = [
            (row_id, state, self.cipher.seal(row_id, Envelope(state.kind, state.data)))
            for state in entry.states
            for row_id in (uuid7(),)
        ]
        await self.runs.write_states(session, run.id, sealed, entry.drop, entry.clear_state)
        await self.governance.add(session, run, entry.governance)
        if steps:
            # Last before the commit: the stream stays locked from here on.
            await self._outbox.append(session, step_events(run, steps))
            session.after_commit(self._waker.ring_later)
        if run.status is RunStatus.QUEUED:
            session.after_commit(self._wake_workers.ring_later)

    def _step(self, run: RunRow, sequence: int, draft: StepDraft) -> Step:
        status = draft.kind == StepKind.STATUS
        payload = {**draft.payload, "segment": run.segment} if status else draft.payload
        return Step(
            run_id=run.id,
            sequence=sequence,
            segment=run.segment,
            round=run.round if status else draft.round,
            kind=draft.kind,
            duration_ms=draft.duration_ms,
            call_id=draft.call_id,
            at=utc_now(),
            payload=filtered(draft.kind, payload, run.privacy_level),
        )


def status_step(status: RunStatus, change: RunChange | None = None) -> StepDraft:
    """The step that tells of a transition; a waiting or settled one closes the segment, which the journal fills in."""
    change = change or RunChange()
    payload: dict[str, Any] = {
        "status": status.value,
        "outcome": change.outcome,
        "terminationReason": str(change.termination_reason) if change.termination_reason else None,
        "truncated": bool(change.truncated),
        "errorCode": change.error_code,
    }
    return StepDraft(kind=StepKind.STATUS, payload=payload)


def _is_refused_data(error: DBAPIError) -> bool:
    """Class 22 (data) and 23 (constraint): trying again cannot help. Everything else may pass."""
    code = str(getattr(error.orig, "sqlstate", "") or getattr(error.orig, "pgcode", "") or "")
    return code[:2] in {"22", "23"}
