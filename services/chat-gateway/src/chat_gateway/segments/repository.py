"""Rows of runs, steps, run record and activity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from remit_contracts.conversations import MAX_RUN_RECORD_ENTRIES, ActivityEntry, RunRecordEntry
from remit_contracts.steps import Step
from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from chat_gateway.conversations.models import ConversationRow
from chat_gateway.segments.kept import kept_payload, storable
from chat_gateway.segments.models import ActivityRow, RunRecordRow, RunRow, RunStepRow
from chat_gateway.segments.run_record import changes_available


def step_of(row: RunStepRow) -> Step:
    """The stored step as a contract."""
    return Step(
        run_id=row.run_id,
        sequence=row.sequence,
        segment=row.segment,
        round=row.round,
        kind=row.kind,
        duration_ms=row.duration_ms,
        call_id=row.call_id,
        at=row.at,
        payload=row.payload,
    )


def read_entry(value: Any) -> RunRecordEntry | None:
    """A stored entry; none where it cannot be read at all (missing keys are tolerated, R-002)."""
    try:
        return RunRecordEntry.model_validate(value)
    except ValidationError:
        return None


async def insert_steps(session: AsyncSession, steps: Iterable[Step], kind: str | None = None) -> None:
    """Store steps; one that is there already stays as it is.

    Args:
        session: of the transaction.
        steps: at least one.
        kind: instead of their own; then their contents are not kept.
    """
    values = [
        {
            "run_id": step.run_id,
            "sequence": step.sequence,
            "segment": step.segment,
            "round": step.round,
            "kind": str(storable(kind or step.kind)),
            "call_id": storable(step.call_id),
            "duration_ms": step.duration_ms,
            "at": step.at,
            "payload": kept_payload(step) if kind is None else {},
        }
        for step in steps
    ]
    await session.execute(insert(RunStepRow).values(values).on_conflict_do_nothing())


async def steps_after(session: AsyncSession, run_id: UUID, sequence: int, until: int) -> list[Step]:
    """Steps of a run after one sequence up to and with another."""
    found = await session.scalars(
        select(RunStepRow)
        .where(RunStepRow.run_id == run_id, RunStepRow.sequence > sequence, RunStepRow.sequence <= until)
        .order_by(RunStepRow.sequence)
    )
    return [step_of(row) for row in found]


async def replace_activity(
    session: AsyncSession, run: RunRow, after: int, until: int, lines: Iterable[ActivityEntry]
) -> None:
    """Put the lines of one segment in place of the ones it had; lines of closed segments keep their form (R-046)."""
    await session.execute(
        delete(ActivityRow).where(
            ActivityRow.run_id == run.id, ActivityRow.sequence > after, ActivityRow.sequence <= until
        )
    )
    values = [
        {
            "run_id": run.id,
            "sequence": line.sequence,
            "conversation_id": run.conversation_id,
            "entry": line.model_dump(mode="json"),
        }
        for line in lines
    ]
    if values:
        await session.execute(insert(ActivityRow).values(values).on_conflict_do_nothing())


async def activity(session: AsyncSession, conversation_id: UUID, runs: Sequence[UUID]) -> list[ActivityEntry]:
    """Lines of these runs in the order things happened."""
    if not runs:
        return []
    found = await session.execute(
        select(ActivityRow.entry)
        .join(RunRow, RunRow.id == ActivityRow.run_id)
        .where(ActivityRow.conversation_id == conversation_id, ActivityRow.run_id.in_(runs))
        .order_by(RunRow.position, ActivityRow.sequence)
    )
    return [ActivityEntry.model_validate(entry) for (entry,) in found]


async def entries(session: AsyncSession, conversation_id: UUID) -> list[RunRecordEntry]:
    """The run record, oldest first; entries that cannot be read are skipped."""
    found = await session.execute(
        select(RunRecordRow.entry)
        .where(RunRecordRow.conversation_id == conversation_id)
        .order_by(RunRecordRow.position)
    )
    return [entry for (value,) in found if (entry := read_entry(value)) is not None]


async def append_entry(session: AsyncSession, conversation: ConversationRow, entry: RunRecordEntry) -> bool:
    """Append an entry and keep the newest 200 (R-007), in the caller's transaction (R-014).

    Returns:
        False where the segment has its entry already (R-001).
    """
    statement = (
        insert(RunRecordRow)
        .values(
            conversation_id=conversation.id,
            position=conversation.last_entry + 1,
            run_id=entry.run,
            segment=entry.segment,
            entry=entry.model_dump(mode="json"),
        )
        .on_conflict_do_nothing()
        .returning(RunRecordRow.position)
    )
    if (await session.execute(statement)).scalar_one_or_none() is None:
        return False
    conversation.last_entry += 1
    await session.execute(
        delete(RunRecordRow).where(
            RunRecordRow.conversation_id == conversation.id,
            RunRecordRow.position <= conversation.last_entry - MAX_RUN_RECORD_ENTRIES,
        )
    )
    conversation.changes_available = changes_available(await entries(session, conversation.id))
    return True


async def amend_last_entry(
    session: AsyncSession, conversation: ConversationRow, run_id: UUID, change: dict[str, Any]
) -> bool:
    """Change keys of the newest entry of a run; keys this program does not know stay. False without an entry."""
    row = (
        await session.scalars(
            select(RunRecordRow)
            .where(RunRecordRow.conversation_id == conversation.id, RunRecordRow.run_id == run_id)
            .order_by(RunRecordRow.position.desc())
            .limit(1)
        )
    ).one_or_none()
    if row is None:
        return False
    row.entry = {**row.entry, **change}
    return True


async def add_run(
    session: AsyncSession, conversation: ConversationRow, run_id: UUID, message_id: UUID | None, status: str
) -> RunRow:
    """A run of the conversation; one that is there already (its first event came before the start's answer) is kept."""
    known = await session.get(RunRow, run_id)
    if known is not None:
        return known
    conversation.last_run += 1
    run = RunRow(
        id=run_id,
        conversation_id=conversation.id,
        position=conversation.last_run,
        message_id=message_id,
        user_uid=conversation.owner_uid,
        status=status,
        last_sequence=0,
        closed_sequence=0,
        readable=True,
        abandoned=False,
    )
    session.add(run)
    await session.flush()
    return run
