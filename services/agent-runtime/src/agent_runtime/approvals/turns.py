"""The pending turn as it is stored, its digest, and what changed between two looks at it. Pure (T-30, T-31, T-34)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal
from uuid import UUID

from remit_contracts.base import StoredContract
from remit_contracts.calls import CallOutcome, RehearsedCall, ShownChange
from remit_contracts.records import RecordReference
from remit_contracts.runs import AffectedRecord, Decision, FieldPreview, PendingQuestion, RefusedByRule

from agent_runtime.models.port import RequestedCall
from agent_runtime.tools.contracts import Plan

MAX_PREVIEW_LINES = 20
MAX_PREVIEW_CHARACTERS = 500
MORE_LINES = "… and {count} more lines"


class TurnCall(StoredContract):
    """One call of a pending turn.

    Attributes:
        plan: none where it could not be made; then ``refusal`` says why.
        on_card: a person decides it: it needs approval. Other calls of the turn only wait along.
        rehearsal: what the call would change; none for a call that was not rehearsed.
        shown: what the card showed, handed back at execution; none = not compared.
    """

    call_id: str
    tool: str
    arguments: Any = None
    on_card: bool = True
    write: bool = True
    asks: bool = False
    plan: Plan | None = None
    refusal: str | None = None
    lines: tuple[str, ...] = ()
    preview_failed: bool = False
    preview_stale: bool = False
    structured: tuple[FieldPreview, ...] = ()
    affected: AffectedRecord | None = None
    language: int | None = None
    refused_by_rule: RefusedByRule | None = None
    rehearsal: RehearsedCall | None = None
    would_write_live: bool = False

    def requested(self) -> RequestedCall:
        """The call as the model asked for it."""
        return RequestedCall(call_id=self.call_id, name=self.tool, arguments=self.arguments)

    @property
    def rehearsable(self) -> bool:
        """It has a plan no rule refuses."""
        return self.plan is not None and self.refused_by_rule is None

    @property
    def not_rehearsed(self) -> bool:
        """It should have been rehearsed and could not."""
        return self.rehearsable and (
            self.rehearsal is None
            or self.rehearsal.problem is not None
            or self.rehearsal.outcome is CallOutcome.UNKNOWN
        )

    @property
    def shown(self) -> tuple[ShownChange, ...] | None:
        """What the card listed for this call."""
        return None if self.rehearsal is None or self.not_rehearsed else self.rehearsal.shown


class TurnState(StoredContract):
    """The turn a run waits with, and what was decided about it.

    Attributes:
        kind: ``approval`` or ``input``.
        round: the round that suspended.
        decisions: per call id, once decided.
        decided_by: uid of the person.
        decided_by_relation: to the run's owner: ``self``, ``secondPerson``, ``initiatorUnknown`` (T-35).
        done: result text of a call that was carried out and now waits for a dependency (S-61).
    """

    kind: Literal["approval", "input"]
    calls: tuple[TurnCall, ...]
    round: int = 0
    digest: str = ""
    rehearsal_id: UUID | None = None
    question: PendingQuestion | None = None
    decisions: dict[str, Decision] | None = None
    decided_by: int | None = None
    decided_by_relation: str = ""
    reason: str | None = None
    answer: str | None = None
    done: str | None = None

    def card_calls(self) -> tuple[TurnCall, ...]:
        """The calls a person decides."""
        return tuple(call for call in self.calls if call.on_card)

    def call(self, call_id: str) -> TurnCall | None:
        """The call of this id."""
        return next((call for call in self.calls if call.call_id == call_id), None)

    def approves(self, call_id: str) -> bool:
        """The stored decision approves this call."""
        return (self.decisions or {}).get(call_id) is Decision.APPROVE

    def with_digest(self) -> TurnState:
        """The same turn, bound to what it shows."""
        return self.model_copy(update={"digest": turn_digest(self)})


def bounded_lines(lines: Iterable[str], more: str = MORE_LINES) -> tuple[str, ...]:
    """Preview lines on one line each, within their limits; the last one says that there was more (T-05)."""
    clean = [" ".join(str(line).split()) for line in lines]
    cut = [line if len(line) <= MAX_PREVIEW_CHARACTERS else line[: MAX_PREVIEW_CHARACTERS - 1] + "…" for line in clean]
    if len(cut) > MAX_PREVIEW_LINES:
        left_out = more.replace("{count}", str(len(cut) - MAX_PREVIEW_LINES + 1))
        return (*cut[: MAX_PREVIEW_LINES - 1], left_out)
    return tuple(cut)


def call_identity(call: TurnCall) -> dict[str, Any]:
    """Everything of a call a decision is bound to. Uids of rows a rehearsal made are left out: they differ each time."""
    return {
        "callId": call.call_id,
        "tool": call.tool,
        "arguments": call.arguments,
        "onCard": call.on_card,
        "lines": list(call.lines),
        "failed": call.preview_failed,
        "structured": [preview.model_dump(mode="json") for preview in call.structured],
        "affected": call.affected.model_dump(mode="json") if call.affected else None,
        "language": call.language,
        "refusedByRule": call.refused_by_rule.model_dump(mode="json") if call.refused_by_rule else None,
        "rehearsal": rehearsal_identity(call.rehearsal),
    }


def rehearsal_identity(rehearsal: RehearsedCall | None) -> dict[str, Any] | None:
    """What of a rehearsal stays the same when nothing changed in the store."""
    if rehearsal is None:
        return None
    shown = sorted(json.dumps(change.model_dump(mode="json"), sort_keys=True) for change in rehearsal.shown)
    refused = sorted(
        json.dumps([item.operation, item.table, item.reason, item.undone]) for item in rehearsal.changes.refused
    )
    return {
        "outcome": rehearsal.outcome.value,
        "reason": rehearsal.reason.value if rehearsal.reason else None,
        "problem": rehearsal.problem,
        "shown": shown,
        "refused": refused,
        "omitted": rehearsal.changes.changes_omitted,
        "coverage": rehearsal.changes.coverage.value,
        "errors": sorted(f"{error.table}:{error.code}" for error in rehearsal.errors),
    }


def canonical_json(value: Any) -> bytes:
    """One text for equal values: sorted keys, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def turn_digest(turn: TurnState) -> str:
    """sha-256 over calls, previews and rehearsals (T-31)."""
    body = {
        "kind": turn.kind,
        "calls": [call_identity(call) for call in turn.calls],
        "question": turn.question.model_dump(mode="json") if turn.question else None,
    }
    return hashlib.sha256(canonical_json(body)).hexdigest()


def stale_calls(before: TurnState, now: TurnState) -> frozenset[str]:
    """Calls that read differently now than they did."""
    earlier = {call.call_id: canonical_json(call_identity(call)) for call in before.calls}
    return frozenset(
        call.call_id for call in now.calls if earlier.get(call.call_id) != canonical_json(call_identity(call))
    )


def mark_stale(turn: TurnState, stale: frozenset[str]) -> TurnState:
    """The turn with these calls marked; the mark is not part of the digest."""
    calls = tuple(
        call.model_copy(update={"preview_stale": True}) if call.call_id in stale else call for call in turn.calls
    )
    return turn.model_copy(update={"calls": calls})


def more_than_shown(shown: Iterable[ShownChange], now: Iterable[ShownChange]) -> bool:
    """Whether ``now`` holds a change ``shown`` does not, counted as multisets (CALLS 4)."""
    left: dict[str, int] = {}
    for change in shown:
        key = change.model_dump_json()
        left[key] = left.get(key, 0) + 1
    for change in now:
        key = change.model_dump_json()
        if left.get(key, 0) == 0:
            return True
        left[key] -= 1
    return False


def without_stale_expectations(calls: Iterable[TurnCall]) -> tuple[TurnCall, ...]:
    """The calls, where a later one no longer expects a row an earlier one changes to be as it was before both.

    Indexes of the read-backs follow the operations that stay.
    """
    touched: set[RecordReference] = set()
    result: list[TurnCall] = []
    for call in calls:
        if call.plan is not None:
            call = call.model_copy(update={"plan": drop_expectations(call.plan, touched)})
            if call.plan is not None:
                touched.update(call.plan.touches)
        if call.rehearsal is not None:
            touched.update(
                RecordReference(table=change.table, uid=change.uid) for change in call.rehearsal.changes.changes
            )
        result.append(call)
    return tuple(result)


def drop_expectations(plan: Plan, touched: set[RecordReference]) -> Plan:
    """The plan without expectations of these records."""
    kept: list[int] = [
        index
        for index, operation in enumerate(plan.operations)
        if not (operation.op == "expect" and RecordReference(table=operation.table, uid=operation.uid) in touched)
    ]
    if len(kept) == len(plan.operations):
        return plan
    place = {old: new for new, old in enumerate(kept)}
    return plan.model_copy(
        update={
            "operations": tuple(plan.operations[index] for index in kept),
            "read_back": tuple(
                check.model_copy(update={"operation": place[check.operation]}) for check in plan.read_back
            ),
            "copy_check": plan.copy_check.model_copy(update={"operation": place[plan.copy_check.operation]})
            if plan.copy_check
            else None,
        }
    )
