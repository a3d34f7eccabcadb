"""What a run waits for that is no approval: a tool's question, or something that is not there yet. Pure (T-37, S-61)."""

from __future__ import annotations

from collections.abc import Sequence

from remit_contracts.runs import PendingQuestion

from agent_runtime.approvals.turns import TurnCall, TurnState
from agent_runtime.models.port import RequestedCall

WAITS_FOR = "The run waits for: {name}"
READY = "It is ready"
GO_ON = "Go on without it"
MAX_NAME = 120


def input_turn(
    calls: Sequence[RequestedCall], question: PendingQuestion, round_: int, done: str | None = None
) -> TurnState:
    """The turn of these open calls that waits for the answer to a question.

    Args:
        done: what the asking call has done already and says to the model, in front of the answer.
    """
    waiting = tuple(
        TurnCall(
            call_id=item.call_id,
            tool=item.name,
            arguments=item.arguments,
            on_card=False,
            asks=item.call_id == question.call_id,
            write=False,
        )
        for item in calls
    )
    turn = TurnState(kind="input", calls=waiting, round=round_, question=question, done=done)
    return turn.with_digest()


def dependency_name(name: str) -> str:
    """The name on one line, cut."""
    text = " ".join(name.split()) or "?"
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
