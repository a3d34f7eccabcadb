"""Removes what is older than its retention, per category, and reports it (T-55)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from remit_contracts.runs import RunStatus, TerminationReason
from service_kit.database import WriteSession
from service_kit.idempotency import Idempotency
from sqlalchemy import text

from agent_runtime.runs.errors import TransitionRefused
from agent_runtime.runs.journal import RunJournal, status_step
from agent_runtime.runs.models import Entry, RunChange, Unheld
from agent_runtime.runs.repository import WAITING
from agent_runtime.settings import RuntimeSettings

SECONDS_A_DAY = 86_400.0
_UNDECIDED = text("""
SELECT id FROM run WHERE status IN ('waiting_for_approval', 'waiting_for_input')
  AND waiting_since < clock_timestamp() - make_interval(secs => :seconds)
""")
_RUNS = text("""
DELETE FROM run WHERE status IN ('completed', 'failed', 'cancelled')
  AND settled_at < clock_timestamp() - make_interval(secs => :seconds)
""")
_GOVERNANCE = text("DELETE FROM governance_log WHERE at < clock_timestamp() - make_interval(secs => :seconds)")


@dataclass(frozen=True)
class Purged:
    """How much was removed; ``cancelled`` runs waited too long for anybody and stay for the time of a settled run."""

    cancelled: int
    runs: int
    governance: int
    keys: int


async def purge_old(journal: RunJournal, settings: RuntimeSettings) -> Purged:
    """Cancel what nobody decided, then remove what is old."""
    async with journal.database.read() as session:
        found = await session.execute(_UNDECIDED, {"seconds": settings.waiting_retention_days * SECONDS_A_DAY})
        undecided = [UUID(str(row.id)) for row in found]
    cancelled = sum([await _cancelled(journal, run_id) for run_id in undecided])
    async with journal.database.unit_of_work() as session:
        return Purged(
            cancelled=cancelled,
            runs=await _removed(session, _RUNS, settings.run_retention_days),
            governance=await _removed(session, _GOVERNANCE, settings.governance_retention_days),
            keys=await Idempotency().purge(session, settings.idempotency_retention),
        )


async def _cancelled(journal: RunJournal, run_id: UUID) -> bool:
    change = RunChange(
        status=RunStatus.CANCELLED,
        outcome="cancelled",
        termination_reason=TerminationReason.CANCELLED,
        error_code="undecided",
        release=True,
    )
    entry = Entry(change=change, steps=(status_step(RunStatus.CANCELLED, change),), clear_state=True)
    try:
        await journal.write(run_id, Unheld(WAITING), entry)
    except TransitionRefused:
        return False
    return True


async def _removed(session: WriteSession, statement: Any, days: float) -> int:
    result = await session.execute(statement, {"seconds": days * SECONDS_A_DAY})
    return int(getattr(result, "rowcount", 0))
