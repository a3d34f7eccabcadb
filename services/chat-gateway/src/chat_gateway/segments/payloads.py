"""Step payloads, read leniently: whatever a step holds, reading it never raises (R-071)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remit_contracts.changes import ObservedChangeSet
from remit_contracts.steps import RefusalKind, Step, StepKind, WriteCompleteness

MAX_SEGMENT = 2**31 - 1


@dataclass(frozen=True)
class ToolFacts:
    """What is kept of a ``tool`` step; arguments and results are not looked at (R-009)."""

    name: str
    call_id: str | None
    is_error: bool
    refusal: RefusalKind | None


@dataclass(frozen=True)
class WriteFacts:
    """What is kept of a ``tool_write`` step."""

    tool: str
    call_id: str | None
    table: str
    uid: int
    completeness: str
    hook_failed: bool


@dataclass(frozen=True)
class StatusFacts:
    """What a ``status`` step says."""

    status: str
    outcome: str | None
    segment: int


def tool_facts(step: Step) -> ToolFacts | None:
    """The facts of a ``tool`` step, none for another kind or one without a name."""
    payload = _payload(step, StepKind.TOOL)
    name = payload.get("toolName") if payload is not None else None
    if payload is None or not isinstance(name, str) or not name:
        return None
    return ToolFacts(name, _call_id(step, payload), payload.get("isError") is True, _refusal(payload.get("refusal")))


def write_facts(step: Step) -> WriteFacts | None:
    """The facts of a ``tool_write`` step, none where it names no record."""
    payload = _payload(step, StepKind.TOOL_WRITE)
    if payload is None:
        return None
    table, uid = payload.get("table"), payload.get("uid")
    if not isinstance(table, str) or not table or not isinstance(uid, int) or isinstance(uid, bool) or uid < 1:
        return None
    known = {item.value for item in WriteCompleteness}
    completeness = payload.get("completeness")
    return WriteFacts(
        tool=str(payload.get("toolName") or ""),
        call_id=_call_id(step, payload),
        table=table,
        uid=uid,
        completeness=completeness if completeness in known else WriteCompleteness.UNCONFIRMED.value,
        hook_failed=payload.get("hookFailedAfterWrite") is True,
    )


def change_facts(step: Step) -> ObservedChangeSet | None:
    """The change list of a ``tool_changes`` step, none where it cannot be read at all."""
    payload = _payload(step, StepKind.TOOL_CHANGES)
    return None if payload is None else ObservedChangeSet.try_from_event_payload(payload)


def status_facts(step: Step) -> StatusFacts | None:
    """What a ``status`` step says, none for another kind."""
    payload = _payload(step, StepKind.STATUS)
    status = payload.get("status") if payload is not None else None
    if payload is None or not isinstance(status, str):
        return None
    outcome = payload.get("outcome")
    segment = payload.get("segment")
    number = segment if isinstance(segment, int) and not isinstance(segment, bool) else step.segment
    return StatusFacts(
        status=status,
        outcome=outcome if isinstance(outcome, str) and outcome else None,
        segment=min(max(number, 0), MAX_SEGMENT),
    )


def step_call_id(step: Step) -> str | None:
    """The call a step belongs to, where it says so."""
    return _call_id(step, step.payload)


def _payload(step: Step, kind: StepKind) -> Mapping[str, Any] | None:
    return step.payload if step.kind == kind else None


def _call_id(step: Step, payload: Mapping[str, Any]) -> str | None:
    given = step.call_id or payload.get("callId")
    return given if isinstance(given, str) and given else None


def _refusal(value: object) -> RefusalKind | None:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    return RefusalKind(kind) if kind in {item.value for item in RefusalKind} else None
