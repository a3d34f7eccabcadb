"""Reading a decision against the turn it is about. Pure (T-33)."""

from __future__ import annotations

from remit_contracts.runs import Decision, DecisionRequest

from agent_runtime.approvals.turns import TurnState


class DecisionIncomplete(Exception):
    """Not every pending call is decided once, or one is that is not pending."""

    def __init__(self, missing: list[str], unknown: list[str]) -> None:
        super().__init__("decision_incomplete")
        self.missing = missing
        self.unknown = unknown


def read_decisions(request: DecisionRequest, turn: TurnState) -> dict[str, Decision]:
    """One decision per pending call; the short form counts for all.

    Raises:
        DecisionIncomplete: a call is missing or unknown, or both forms or none are given.
    """
    pending = [call.call_id for call in turn.card_calls()]
    if request.decisions is not None and request.decision is None:
        missing = [call_id for call_id in pending if call_id not in request.decisions]
        unknown = [call_id for call_id in request.decisions if call_id not in pending]
        if missing or unknown:
            raise DecisionIncomplete(missing, unknown)
        return dict(request.decisions)
    if request.decision is not None and request.decisions is None:
        return dict.fromkeys(pending, request.decision)
    raise DecisionIncomplete(pending, [])


def approved_calls(decisions: dict[str, Decision]) -> frozenset[str]:
    """Ids of the approved calls."""
    return frozenset(call_id for call_id, decision in decisions.items() if decision is Decision.APPROVE)
