"""SQL of steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from remit_contracts.steps import Step
from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncSession

_INSERT = text("""
INSERT INTO run_step (run_id, sequence, segment, round, kind, duration_ms, call_id, at, payload)
VALUES (:run_id, :sequence, :segment, :round, :kind, :duration_ms, :call_id, :at, CAST(:payload AS json))
""")
_AFTER = text("""
SELECT run_id, sequence, segment, round, kind, duration_ms, call_id, at, payload FROM run_step
WHERE run_id = :run_id AND sequence > :after AND (CAST(:kinds AS text[]) IS NULL OR kind = ANY(CAST(:kinds AS text[])))
ORDER BY sequence LIMIT :limit
""")


class StepRepository:
    """Steps of runs, in sequence."""

    async def insert(self, session: AsyncSession, steps: Sequence[Step]) -> None:
        """Add steps that have their sequence."""
        if not steps:
            return
        await session.execute(_INSERT, [_values(step) for step in steps])

    async def after(
        self, session: AsyncSession, run_id: UUID, after: int, kinds: Sequence[str] | None, limit: int
    ) -> list[Step]:
        """Steps after a sequence, of some kinds or all."""
        values = {"run_id": run_id, "after": after, "kinds": list(kinds) if kinds is not None else None, "limit": limit}
        return [_step(row) for row in (await session.execute(_AFTER, values)).mappings()]


def _values(step: Step) -> dict[str, Any]:
    return {
        "run_id": step.run_id,
        "sequence": step.sequence,
        "segment": step.segment,
        "round": step.round,
        "kind": step.kind,
        "duration_ms": step.duration_ms,
        "call_id": step.call_id,
        "at": step.at,
        "payload": json.dumps(step.payload),
    }


def _step(row: RowMapping) -> Step:
    payload = row["payload"]
    values = {str(name): value for name, value in row.items()}
    return Step(**{**values, "payload": json.loads(payload) if isinstance(payload, str) else payload})
