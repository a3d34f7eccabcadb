"""Ends of a segment: settled, suspended, given back. Each one guarded write (T-21, T-22, T-24)."""

from __future__ import annotations

from remit_contracts.runs import RunStatus, TerminationReason
from service_kit.ids import uuid7

from agent_runtime.approvals.turns import TurnState
from agent_runtime.loop.held import HeldRun
from agent_runtime.runs.envelope import Envelope
from agent_runtime.runs.journal import RunJournal, status_step
from agent_runtime.runs.models import Entry, GovernanceEntry, RunChange, StepDraft
from agent_runtime.runs.states import turn_state

FINAL = "final"


class Settling:
    """Writes the ends of segments.

    Args:
        requeue_limit: how often a run is taken up again.
        backoff_base: seconds, doubled per attempt.
        backoff_limit: seconds.
    """

    def __init__(self, journal: RunJournal, requeue_limit: int, backoff_base: float, backoff_limit: float) -> None:
        self._journal = journal
        self.requeue_limit = requeue_limit
        self._backoff_base = backoff_base
        self._backoff_limit = backoff_limit

    async def complete(
        self,
        held: HeldRun,
        content: str,
        reason: TerminationReason = TerminationReason.COMPLETED,
        *,
        truncated: bool = False,
        steps: tuple[StepDraft, ...] = (),
        change: RunChange | None = None,
    ) -> None:
        """The run is done; its transcript goes, its last text stays."""
        counted = change or RunChange()
        final_id = uuid7()
        sealed = self._journal.cipher.seal(final_id, Envelope(FINAL, content))
        settled = RunChange(
            status=RunStatus.COMPLETED,
            outcome="completed",
            termination_reason=reason,
            truncated=truncated,
            final=(final_id, sealed),
            release=True,
            round=counted.round,
            input_tokens=counted.input_tokens,
            output_tokens=counted.output_tokens,
        )
        await self._end(held, settled, steps)

    async def fail(
        self, held: HeldRun, reason: TerminationReason, error_code: str, *, retryable: bool = False, keep: bool = False
    ) -> None:
        """The run failed for good.

        Args:
            keep: leave the state rows: they could not be read, perhaps somebody can.
        """
        change = RunChange(
            status=RunStatus.FAILED,
            outcome="failed",
            termination_reason=reason,
            error_code=error_code,
            retryable=retryable,
            release=True,
        )
        await self._end(held, change, (), keep=keep)

    async def cancel(self, held: HeldRun) -> None:
        """The run ends because somebody cancelled it."""
        change = RunChange(
            status=RunStatus.CANCELLED,
            outcome="cancelled",
            termination_reason=TerminationReason.CANCELLED,
            release=True,
        )
        await self._end(held, change, ())

    async def suspend(
        self,
        held: HeldRun,
        turn: TurnState,
        steps: tuple[StepDraft, ...] = (),
        governance: tuple[GovernanceEntry, ...] = (),
    ) -> None:
        """The run waits for a person with this turn.

        Args:
            steps: of a call that was carried out and waits for a dependency; of any other turn nothing has run (T-02).
        """
        approval = turn.kind == "approval"
        status = RunStatus.WAITING_FOR_APPROVAL if approval else RunStatus.WAITING_FOR_INPUT
        change = RunChange(status=status, release=True, outcome="awaiting_approval" if approval else "awaiting_input")
        asked = tuple(
            GovernanceEntry("approval_required", call.tool, call.call_id) for call in turn.card_calls() if approval
        )
        entry = Entry(
            change=change,
            steps=(*steps, status_step(status, change)),
            states=(turn_state(turn),),
            drop=("call",),
            governance=(*governance, *asked),
        )
        held.run = await self._journal.write(held.run.id, held.guard, entry)

    async def give_back(self, held: HeldRun, error_code: str) -> None:
        """Back into the queue for later, or failed when that happened too often (T-24). The state stays."""
        if held.run.requeues >= self.requeue_limit and held.state.call is None:
            await self.fail(held, TerminationReason.RETRIES_EXHAUSTED, error_code, retryable=True)
            return
        wait = min(self._backoff_base * 2**held.run.requeues, self._backoff_limit)
        change = RunChange(
            status=RunStatus.QUEUED,
            release=True,
            requeues=held.run.requeues + 1,
            available_in=wait,
            error_code=error_code,
        )
        entry = Entry(change=change, steps=(status_step(RunStatus.QUEUED, change),))
        held.run = await self._journal.write(held.run.id, held.guard, entry)

    async def _end(self, held: HeldRun, change: RunChange, steps: tuple[StepDraft, ...], *, keep: bool = False) -> None:
        entry = Entry(
            change=change, steps=(*steps, status_step(change.status or RunStatus.FAILED, change)), clear_state=not keep
        )
        held.run = await self._journal.write(held.run.id, held.guard, entry)
