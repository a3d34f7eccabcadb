"""A call that has its result, and how the kinds of results are made (T-08)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from uuid import UUID

from remit_contracts.changes import ObservedChangeSet
from remit_contracts.steps import Refusal, RefusalKind

from agent_runtime.models.port import RequestedCall
from agent_runtime.rules.contracts import RuleDenial
from agent_runtime.runs.models import GovernanceEntry
from agent_runtime.tools.result import ToolResult


@dataclass
class Executed:
    """A call that has its result.

    Attributes:
        duration_ms: exactly 0.0 for declined, held and not-permitted calls of a waiting turn, never for others (T-08).
        changes: the change list of the call.
        dependency: what the run has to wait for now, although the call was carried out (S-61).
        recorded: its steps are stored already, only the model has not read it yet.
    """

    call: RequestedCall
    result: ToolResult
    duration_ms: float
    changes: ObservedChangeSet | None = None
    store_call_id: UUID | None = None
    governance: list[GovernanceEntry] = field(default_factory=list)
    reached_store: bool = False
    dependency: str | None = None
    recorded: bool = False


def measured(started: float) -> float:
    """Milliseconds since, never exactly 0.0: that value means a refusal of a waiting turn's call."""
    return max(round((time.perf_counter() - started) * 1000, 2), 0.01)


def timed(call: RequestedCall, result: ToolResult) -> Executed:
    """A result whose duration is measured; -1 until then."""
    return Executed(call, result, -1.0)


def refused(call: RequestedCall, kind: RefusalKind, text: str, decision: str | None = None) -> Executed:
    """A call of a waiting turn that is not carried out: exactly 0.0 ms."""
    executed = Executed(call, ToolResult.error(text, Refusal(kind=kind)), 0.0)
    if decision is not None:
        executed.governance.append(GovernanceEntry(decision, call.name, call.call_id, reason=kind.value))
    return executed


def refused_changes(denial: RuleDenial) -> ObservedChangeSet | None:
    """The list of a call a rule refused: only what was refused (S-71)."""
    return ObservedChangeSet(refused=denial.refused) if denial.refused else None


def invocation_denied(call: RequestedCall, denial: RuleDenial) -> GovernanceEntry:
    """The governance row of a denial (S-73)."""
    return GovernanceEntry("invocation_denied", call.name, call.call_id, denial.rule, denial.code)
