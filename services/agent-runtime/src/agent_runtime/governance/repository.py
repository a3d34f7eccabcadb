"""The governance log: one row per decision, with facts of policy and never content (T-52)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from service_kit.ids import uuid7
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from agent_runtime.runs.models import GovernanceEntry, RunRow

_INSERT = text("""
INSERT INTO governance_log (id, run_id, decision, user_uid, configuration, tool, call_id, rule, reason)
VALUES (:id, :run_id, :decision, :user_uid, :configuration, :tool, :call_id, :rule, :reason)
""")


class GovernanceLog:
    """Adds rows; rows are never changed."""

    async def add(self, session: AsyncSession, run: RunRow, entries: Sequence[GovernanceEntry]) -> None:
        """Log decisions of a run in the session's transaction."""
        if not entries:
            return
        rows: list[dict[str, Any]] = [
            {
                "id": uuid7(),
                "run_id": run.id,
                "decision": entry.decision,
                "user_uid": run.owner_uid,
                "configuration": run.configuration,
                "tool": entry.tool,
                "call_id": entry.call_id,
                "rule": entry.rule,
                "reason": entry.reason,
            }
            for entry in entries
        ]
        await session.execute(_INSERT, rows)
