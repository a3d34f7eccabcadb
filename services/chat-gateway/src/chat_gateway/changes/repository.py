"""Reads what a change list is made of, in a fixed number of statements."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from remit_contracts.conversations import RunRecordEntry
from remit_contracts.steps import Step, StepKind
from sqlalchemy import select
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
    """Runs of the conversation, oldest first, with the steps a list reads; three statements."""
    runs = (
        await session.execute(
            select(RunRow.id, RunRow.position, RunRow.readable)
            .where(RunRow.conversation_id == conversation_id)
            .order_by(RunRow.position)
        )
    ).all()
    rows = await session.scalars(
        select(RunStepRow)
        .join(RunRow, RunRow.id == RunStepRow.run_id)
        .where(RunRow.conversation_id == conversation_id, RunRow.readable, RunStepRow.kind.in_(_KINDS))
        .order_by(RunRow.position, RunStepRow.sequence)
    )
    steps: dict[UUID, list[Step]] = {}
    for row in rows:
        steps.setdefault(row.run_id, []).append(step_of(row))
    return ListSource(
        runs=tuple(RunSteps(run.id, run.position, tuple(steps.get(run.id, ()))) for run in runs if run.readable),
        unreadable=sum(1 for run in runs if not run.readable),
        entries=tuple(await entries(session, conversation_id)),
    )
