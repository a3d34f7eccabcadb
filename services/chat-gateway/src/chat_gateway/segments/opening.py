"""How a segment begins: read from its approval or input step, else from the decision the chat itself passed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from remit_contracts.steps import Step, StepKind

from chat_gateway.segments.refused_calls import Opening, SegmentFacts

_APPROVE = frozenset({"approve", "approved"})
_DECLINE = frozenset({"decline", "declined", "denied"})
_REASONS = frozenset({"skip", "variant"})


@dataclass(frozen=True)
class GivenDecision:
    """What a person said to a card or question: the kind per call and in one word, never who and never a value (A-18).

    Attributes:
        kind: ``approved``, ``denied``, ``mixed`` or ``answered``.
    """

    kind: str
    approved: frozenset[str] = field(default_factory=frozenset)
    declined: frozenset[str] = field(default_factory=frozenset)
    reason: str | None = None

    @classmethod
    def of_calls(cls, decisions: Mapping[str, str], reason: str | None = None) -> Self:
        """From one word per call."""
        approved = frozenset(call for call, word in decisions.items() if word in _APPROVE)
        declined = frozenset(call for call, word in decisions.items() if word in _DECLINE)
        kind = "mixed" if approved and declined else ("approved" if approved else "denied")
        return cls(kind, approved, declined, reason if reason in _REASONS else None)

    @classmethod
    def answered(cls) -> Self:
        """A question was answered."""
        return cls("answered")

    def stored(self) -> dict[str, Any]:
        """The form kept beside a conversation until its segment closes."""
        return {
            "kind": self.kind,
            "approved": sorted(self.approved),
            "declined": sorted(self.declined),
            "reason": self.reason,
        }

    @classmethod
    def from_stored(cls, value: object) -> Self | None:
        """Read :meth:`stored`; none for anything else."""
        if not isinstance(value, Mapping) or value.get("kind") not in {"approved", "denied", "mixed", "answered"}:
            return None
        approved, declined, reason = value.get("approved"), value.get("declined"), value.get("reason")
        return cls(
            str(value["kind"]),
            frozenset(str(call) for call in approved) if isinstance(approved, list) else frozenset(),
            frozenset(str(call) for call in declined) if isinstance(declined, list) else frozenset(),
            reason if reason in _REASONS else None,
        )

    def for_record(self) -> dict[str, Any]:
        """The form of a run record entry (R-005)."""
        return {"kind": self.kind} if self.reason is None else {"kind": self.kind, "reason": self.reason}


def decision_of(steps: Sequence[Step]) -> GivenDecision | None:
    """The decision a segment opens with: its first ``approval`` or ``input`` step before the first model round."""
    for step in steps:
        if step.kind == StepKind.LLM:
            return None
        payload: Mapping[str, Any] = step.payload
        if step.kind == StepKind.INPUT:
            return GivenDecision.answered()
        if step.kind == StepKind.APPROVAL:
            return _from_approval(payload)
    return None


def _from_approval(payload: Mapping[str, Any]) -> GivenDecision | None:
    reason = payload.get("reason")
    word = payload.get("decision")
    per_call = payload.get("decisions")
    if isinstance(per_call, Mapping) and per_call:
        return GivenDecision.of_calls({str(call): str(said) for call, said in per_call.items()}, reason)
    if word in _APPROVE:
        return GivenDecision("approved")
    if word in _DECLINE:
        return GivenDecision("denied", reason=reason if reason in _REASONS else None)
    return None


def facts_of(
    steps: Sequence[Step], *, suspended: bool, given: GivenDecision | None = None, guided: bool = False
) -> tuple[SegmentFacts, GivenDecision | None]:
    """Facts of a segment and the decision it opens with.

    Args:
        steps: its steps in order.
        suspended: it ended waiting.
        given: what the chat passed on, used where the steps hold no decision.
        guided: it belongs to a guided process.
    """
    decision = decision_of(steps) or given
    if decision is None:
        return SegmentFacts(suspended=suspended, guided=guided), None
    opening = {"answered": Opening.ANSWERED, "denied": Opening.DECLINED}.get(decision.kind, Opening.APPROVED)
    facts = SegmentFacts(
        opening=opening,
        suspended=suspended,
        guided=guided,
        declined=decision.declined,
        approved=decision.approved,
        answer=decision.reason or "denied",
    )
    return facts, decision
