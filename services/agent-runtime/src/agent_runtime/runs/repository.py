"""SQL of runs: every transition is one guarded conditional update (T-21). Leases use the database's clock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from remit_contracts.runs import RunStart, RunStatus
from service_kit.ids import uuid7
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from agent_runtime.runs.models import Held, NewState, RunChange, RunRow, Unheld

WAITING = (RunStatus.WAITING_FOR_APPROVAL, RunStatus.WAITING_FOR_INPUT)

_INSERT = text(f"""
INSERT INTO run (id, status, configuration, conversation_id, owner_uid, starter, actor, tools, privacy_level)
VALUES (:id, 'queued', :configuration, :conversation_id, :owner_uid, :starter, CAST(:actor AS json),
        CAST(:tools AS json), :privacy_level)
RETURNING {RunRow.COLUMNS}
""")
_GET = text(f"SELECT {RunRow.COLUMNS} FROM run WHERE id = :id")
_MANY = text(f"SELECT {RunRow.COLUMNS} FROM run WHERE id = ANY(:ids)")
_NEXT = text("""
SELECT id FROM run WHERE status = 'queued' AND available_at <= clock_timestamp()
ORDER BY available_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
""")
_EXPIRED = text("""
SELECT id, lease_epoch FROM run WHERE status = 'running' AND lease_until < clock_timestamp()
ORDER BY lease_until LIMIT :limit FOR UPDATE SKIP LOCKED
""")
_HEARTBEAT = text("""
UPDATE run SET lease_until = clock_timestamp() + make_interval(secs => :seconds)
WHERE id = :id AND status = 'running' AND lease_epoch = :epoch
RETURNING cancel_requested
""")
_REQUEST_CANCEL = text("""
UPDATE run SET cancel_requested = true WHERE id = :id AND status = 'running' RETURNING id
""")
_MARK_CANCEL = text("""
UPDATE run SET cancel_requested = true WHERE id = :id AND status IN ('queued', 'running')
""")
_WAITING = text(f"""
SELECT {RunRow.COLUMNS} FROM run
WHERE status IN ('waiting_for_approval', 'waiting_for_input') AND id > :after
  AND (owner_uid = :user_uid OR configuration = ANY(:approving) OR :everything)
ORDER BY id LIMIT :limit
""")
_STATES = text("SELECT id, kind, sealed FROM run_state WHERE run_id = :id ORDER BY position")
_ADD_STATE = text("INSERT INTO run_state (id, run_id, kind, sealed) VALUES (:id, :run_id, :kind, :sealed)")
_DROP_STATES = text("DELETE FROM run_state WHERE run_id = :id AND kind = ANY(:kinds)")
_CLEAR_STATES = text("DELETE FROM run_state WHERE run_id = :id")
SINGLE = frozenset({"turn", "call"})


class RunRepository:
    """Runs and their state rows. Methods work in the session they are given and never commit."""

    async def insert(
        self, session: AsyncSession, start: RunStart, owner_uid: int, starter: str, privacy_level: str
    ) -> RunRow:
        """A new queued run; the actor is stored as it came, without a key where it has no scope (S-09)."""
        result = await session.execute(
            _INSERT,
            {
                "id": uuid7(),
                "configuration": start.configuration,
                "conversation_id": start.conversation_id,
                "owner_uid": owner_uid,
                "starter": starter,
                "actor": start.actor.model_dump_json(by_alias=True),
                "tools": json.dumps(start.tools) if start.tools is not None else None,
                "privacy_level": privacy_level,
            },
        )
        return RunRow.of(result.mappings().one())

    async def get(self, session: AsyncSession, run_id: UUID) -> RunRow | None:
        """The run, none where there is none."""
        row = (await session.execute(_GET, {"id": run_id})).mappings().one_or_none()
        return RunRow.of(row) if row is not None else None

    async def many(self, session: AsyncSession, ids: Sequence[UUID]) -> list[RunRow]:
        """The runs that exist, in no order."""
        return [RunRow.of(row) for row in (await session.execute(_MANY, {"ids": list(ids)})).mappings()]

    async def lock_next(self, session: AsyncSession) -> UUID | None:
        """The next queued run nobody else is claiming, locked to the end of the transaction."""
        found = (await session.execute(_NEXT)).scalar_one_or_none()
        return UUID(str(found)) if found is not None else None

    async def lock_expired(self, session: AsyncSession, limit: int) -> list[tuple[UUID, int]]:
        """Running runs whose lease has run out, with their epoch, locked."""
        rows = await session.execute(_EXPIRED, {"limit": limit})
        return [(UUID(str(row.id)), int(row.lease_epoch)) for row in rows]

    async def heartbeat(self, session: AsyncSession, run_id: UUID, epoch: int, seconds: float) -> bool | None:
        """Renew a lease; whether a cancel was asked for, none where the lease is lost."""
        values = {"id": run_id, "epoch": epoch, "seconds": seconds}
        found = (await session.execute(_HEARTBEAT, values)).scalar_one_or_none()
        return None if found is None else bool(found)

    async def request_cancel(self, session: AsyncSession, run_id: UUID) -> bool:
        """Ask a running run to stop at its next boundary (T-28)."""
        return (await session.execute(_REQUEST_CANCEL, {"id": run_id})).first() is not None

    async def mark_cancel(self, session: AsyncSession, run_id: UUID) -> None:
        """Ask a queued or running run to stop once it knows what its write did."""
        await session.execute(_MARK_CANCEL, {"id": run_id})

    async def waiting(
        self, session: AsyncSession, user_uid: int, approving: Sequence[str], everything: bool, after: UUID, limit: int
    ) -> list[RunRow]:
        """Waiting runs a user may decide, oldest first (T-40)."""
        values = {
            "user_uid": user_uid,
            "approving": list(approving),
            "everything": everything,
            "after": after,
            "limit": limit,
        }
        return [RunRow.of(row) for row in (await session.execute(_WAITING, values)).mappings()]

    async def change(
        self, session: AsyncSession, run_id: UUID, guard: Held | Unheld, change: RunChange, steps: int
    ) -> RunRow | None:
        """Make a transition and reserve sequences for its steps; none where the guard does not hold."""
        assignments, values = _assignments(change)
        assignments.append("last_sequence = last_sequence + :steps")
        condition, guard_values = _condition(guard)
        statement = text(
            f"UPDATE run SET {', '.join(assignments)} WHERE id = :id AND {condition} RETURNING {RunRow.COLUMNS}"
        )
        result = await session.execute(statement, {**values, **guard_values, "id": run_id, "steps": steps})
        row = result.mappings().one_or_none()
        return RunRow.of(row) if row is not None else None

    async def states(self, session: AsyncSession, run_id: UUID) -> list[tuple[UUID, str, bytes]]:
        """The sealed state rows of a run in their order."""
        rows = await session.execute(_STATES, {"id": run_id})
        return [(UUID(str(row.id)), str(row.kind), bytes(row.sealed)) for row in rows]

    async def write_states(
        self,
        session: AsyncSession,
        run_id: UUID,
        rows: Sequence[tuple[UUID, NewState, bytes]],
        drop: Sequence[str],
        clear: bool,
    ) -> None:
        """Remove and add state rows; a new ``turn`` or ``call`` replaces the one before."""
        if clear:
            await session.execute(_CLEAR_STATES, {"id": run_id})
            return
        kinds = sorted({*drop, *(state.kind for _, state, _ in rows if state.kind in SINGLE)})
        if kinds:
            await session.execute(_DROP_STATES, {"id": run_id, "kinds": kinds})
        for row_id, state, sealed in rows:
            values = {"id": row_id, "run_id": run_id, "kind": state.kind, "sealed": sealed}
            await session.execute(_ADD_STATE, values)


def _condition(guard: Held | Unheld) -> tuple[str, dict[str, Any]]:
    if isinstance(guard, Held):
        return "status = 'running' AND lease_epoch = :guard_epoch", {"guard_epoch": guard.epoch}
    return "status = ANY(:guard_statuses)", {"guard_statuses": [status.value for status in guard.statuses]}


_PLAIN = (
    "round",
    "input_tokens",
    "output_tokens",
    "requeues",
    "outcome",
    "termination_reason",
    "truncated",
    "retryable",
    "error_code",
    "cancel_requested",
)


def _assignments(change: RunChange) -> tuple[list[str], dict[str, Any]]:
    assignments: list[str] = []
    values: dict[str, Any] = {}
    for name in _PLAIN:
        value = getattr(change, name)
        if value is not None:
            assignments.append(f"{name} = :{name}")
            values[name] = str(value) if name == "termination_reason" else value
    if change.status is not None:
        assignments.append("status = :status")
        values["status"] = change.status.value
        if change.status in WAITING:
            assignments.append("waiting_since = clock_timestamp()")
        if change.status.terminal:
            assignments.append("settled_at = clock_timestamp()")
    if change.next_segment:
        assignments.append("segment = segment + 1")
    if change.final is not None:
        assignments += ["final_id = :final_id", "final_sealed = :final_sealed"]
        values["final_id"], values["final_sealed"] = change.final
    if change.available_in is not None:
        assignments.append("available_at = clock_timestamp() + make_interval(secs => :available_in)")
        values["available_in"] = change.available_in
    _lease_assignments(change, assignments, values)
    return assignments, values


def _lease_assignments(change: RunChange, assignments: list[str], values: dict[str, Any]) -> None:
    if change.lease is not None:
        assignments += [
            "lease_owner = :lease_owner",
            "lease_epoch = lease_epoch + 1",
            "lease_until = clock_timestamp() + make_interval(secs => :lease_seconds)",
        ]
        values["lease_owner"], values["lease_seconds"] = change.lease.owner[:64], change.lease.seconds
    elif change.release:
        assignments += ["lease_owner = NULL", "lease_until = NULL"]
    elif change.renew is not None:
        assignments.append("lease_until = clock_timestamp() + make_interval(secs => :renew)")
        values["renew"] = change.renew
