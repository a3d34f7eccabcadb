"""Reads what a change list is made of, in a fixed number of statements."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from remit_contracts.conversations import RunRecordEntry
from remit_contracts.steps import Step, StepKind
from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncSession

from chat_gateway.changes.observations import UNREADABLE_STEP
from chat_gateway.segments.models import RunRow, RunStepRow
from chat_gateway.segments.repository import entries, step_of

_KINDS = (StepKind.TOOL.value, StepKind.TOOL_WRITE.value, StepKind.TOOL_CHANGES.value, UNREADABLE_STEP)


@dataclass(frozen=True)
class RunSteps:
    """A readable run with the steps that say what it changed."""

    run: UUID
    position: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class ListSource:
    """Everything stored that a list is made of."""

    runs: tuple[RunSteps, ...]
    unreadable: int
    entries: tuple[RunRecordEntry, ...]


async def list_source(session: AsyncSession, conversation_id: UUID) -> ListSource:
    """Runs of the conversation, oldest first, with the steps a list reads; two statements."""
    rows = await session.execute(
        select(RunRow.id, RunRow.position, RunRow.readable, RunStepRow)
        .outerjoin(RunStepRow, and_(RunStepRow.run_id == RunRow.id, RunRow.readable, RunStepRow.kind.in_(_KINDS)))
        .where(RunRow.conversation_id == conversation_id)
        .order_by(RunRow.position, RunStepRow.sequence)
    )
    runs: dict[UUID, tuple[int, list[Step]]] = {}
    unreadable = 0
    for run_id, position, readable, step in rows:
        if not readable:
            unreadable += 1
            continue
        _, steps = runs.setdefault(run_id, (position, []))
        if step is not None:
            steps.append(step_of(step))
    return ListSource(
        runs=tuple(RunSteps(run_id, position, tuple(steps)) for run_id, (position, steps) in runs.items()),
        unreadable=unreadable,
        entries=tuple(await entries(session, conversation_id)),
    )
