"""A run as it is stored, and what can be changed about it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from pydantic import ValidationError
from remit_contracts.actor import ActorContext
from remit_contracts.runs import RunStatus, TerminationReason
from remit_contracts.scope import AssignmentScope
from sqlalchemy import RowMapping


@dataclass(frozen=True)
class RunRow:
    """One row of ``run``.

    Attributes:
        actor: whose rights hold, with the scope in its three states (S-09, S-10).
        tools: allow-list of the start request, none = everything.
        segment: counts uninterrupted executions.
        lease_epoch: of the holder; older ones are fenced.
    """

    id: UUID
    status: RunStatus
    configuration: str
    conversation_id: UUID | None
    owner_uid: int
    starter: str
    actor: ActorContext
    tools: tuple[str, ...] | None
    privacy_level: str
    segment: int
    round: int
    last_sequence: int
    input_tokens: int
    output_tokens: int
    outcome: str | None
    termination_reason: str | None
    truncated: bool
    retryable: bool
    error_code: str | None
    final_id: UUID | None
    final_sealed: bytes | None
    lease_owner: str | None
    lease_epoch: int
    requeues: int
    cancel_requested: bool
    created_at: datetime
    waiting_since: datetime | None
    settled_at: datetime | None

    COLUMNS: ClassVar[str] = (
        "id, status, configuration, conversation_id, owner_uid, starter, actor::text AS actor, tools::text AS tools, "
        "privacy_level, segment, round, last_sequence, input_tokens, output_tokens, outcome, termination_reason, "
        "truncated, retryable, error_code, final_id, final_sealed, lease_owner, lease_epoch, requeues, "
        "cancel_requested, created_at, waiting_since, settled_at"
    )

    @classmethod
    def of(cls, row: RowMapping) -> RunRow:
        """From a result row."""
        values: dict[str, Any] = {str(name): value for name, value in row.items()}
        tools = values["tools"]
        return cls(
            **{
                **values,
                "status": RunStatus(values["status"]),
                "actor": stored_actor(values["actor"], values["owner_uid"]),
                "tools": tuple(json.loads(tools)) if tools is not None else None,
            }
        )

    @property
    def event_key(self) -> str:
        """Key of the run's messages: the conversation, else the run (T-70)."""
        return str(self.conversation_id or self.id)


def stored_actor(text: str, owner_uid: int) -> ActorContext:
    """The actor of a row. The column ``owner_uid`` decides who it is, whatever the text says."""
    try:
        return ActorContext.model_validate({**json.loads(text), "userUid": owner_uid})
    except (ValidationError, TypeError, ValueError):
        # Nothing of it can be read, so nothing of it may widen the run (S-10).
        return ActorContext(user_uid=owner_uid, assignment_scope=AssignmentScope.none())


@dataclass(frozen=True)
class Held:
    """The guard of a holder: still running, still ours (T-21, T-22)."""

    epoch: int


@dataclass(frozen=True)
class Unheld:
    """The guard of a transition nobody holds: the run is still in one of these states."""

    statuses: tuple[RunStatus, ...]


@dataclass(frozen=True)
class LeaseFrom:
    """Take the lease with the change: who, and for how long (seconds)."""

    owner: str
    seconds: float


@dataclass(frozen=True)
class RunChange:
    """What a transition changes; none = stays.

    Attributes:
        lease: taken anew, epoch + 1.
        renew: seconds the holder's lease is renewed by.
        release: give the lease up.
        available_in: seconds until a queued run may be claimed.
        next_segment: the segment counter goes up.
        final: id and sealed text of the final content.
    """

    status: RunStatus | None = None
    lease: LeaseFrom | None = None
    renew: float | None = None
    release: bool = False
    available_in: float | None = None
    next_segment: bool = False
    round: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    requeues: int | None = None
    outcome: str | None = None
    termination_reason: TerminationReason | None = None
    truncated: bool | None = None
    retryable: bool | None = None
    error_code: str | None = None
    final: tuple[UUID, bytes] | None = None
    cancel_requested: bool | None = None


@dataclass(frozen=True)
class NewState:
    """A state row to add; a ``turn`` or ``call`` replaces the one before."""

    kind: str
    data: Any


@dataclass(frozen=True)
class StepDraft:
    """A step before it has its sequence."""

    kind: str
    payload: dict[str, Any] = field(default_factory=dict)
    round: int = 0
    duration_ms: float = 0.0
    call_id: str | None = None


@dataclass(frozen=True)
class GovernanceEntry:
    """A decision for the governance log: policy facts only, never content (T-52)."""

    decision: str
    tool: str | None = None
    call_id: str | None = None
    rule: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Entry:
    """Everything one transaction of a run writes.

    Attributes:
        drop: kinds of state rows that go (``turn``, ``call``).
        clear_state: all state rows go: the run has ended.
    """

    change: RunChange = RunChange()
    steps: tuple[StepDraft, ...] = ()
    states: tuple[NewState, ...] = ()
    drop: tuple[str, ...] = ()
    clear_state: bool = False
    governance: tuple[GovernanceEntry, ...] = ()
