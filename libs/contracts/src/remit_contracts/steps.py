"""Steps: what a run did, one after the other (T-08, T-09)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from remit_contracts.base import StoredContract


class StepKind(StrEnum):
    """Kinds of steps and of their events."""

    REQUEST = "request"
    LLM = "llm"
    TOOL = "tool"
    CONTEXT = "context"
    DROPPED = "dropped"
    TOOL_WRITE = "tool_write"
    TOOL_CHANGES = "tool_changes"
    PROGRESS = "progress"
    HIGHLIGHT = "highlight"
    APPROVAL = "approval"
    INPUT = "input"
    STATUS = "status"


class RefusalKind(StrEnum):
    """Why a call was not carried out; ``failed`` and ``cancelled`` are outcomes, not refusals (T-08)."""

    DECLINED = "declined"
    HELD = "held"
    NOT_PERMITTED = "not_permitted"
    POLICY = "policy"


class Refusal(StoredContract):
    """A typed refusal. ``code`` of a policy refusal: ``not_permitted``, ``unknown_tool`` or the id of the rule."""

    kind: RefusalKind
    code: str | None = None


class WriteCompleteness(StrEnum):
    """What a writer says about its write (W-08)."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNCONFIRMED = "unconfirmed"


class ToolPayload(StoredContract):
    """Payload of a ``tool`` step. Arguments and result are stripped by the run's privacy level (T-53)."""

    tool_name: str
    call_id: str
    is_error: bool = False
    refusal: Refusal | None = None
    outcome: str = "ok"
    arguments: dict[str, Any] | None = None
    result: str | None = None
    artifacts: list[Any] | None = None
    store_call_id: UUID | None = None


class ToolWritePayload(StoredContract):
    """Payload of a ``tool_write`` step: the record a writer named (W-01, W-03, W-08)."""

    tool_name: str
    call_id: str
    table: str
    uid: int
    completeness: WriteCompleteness = WriteCompleteness.UNCONFIRMED
    hook_failed_after_write: bool = False


class Step(StoredContract):
    """A stored step.

    Attributes:
        sequence: gapless per run, from 1.
        segment: counts uninterrupted executions of the run, from 1.
        round: model round, 0 before the first.
        duration_ms: exactly 0.0 for declined, held and not-permitted calls of a waiting turn.
        call_id: the model's call id, where the step belongs to a call.
    """

    run_id: UUID
    sequence: int
    segment: int
    round: int
    kind: str
    duration_ms: float = 0.0
    call_id: str | None = None
    at: datetime
    payload: dict[str, Any] = {}
