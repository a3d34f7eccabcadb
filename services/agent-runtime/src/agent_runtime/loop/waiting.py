"""What a call of a waiting turn reads that is not carried out (T-08, T-14, R-042 rows 1 to 5). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from remit_contracts.runs import Decision
from remit_contracts.steps import RefusalKind

from agent_runtime.approvals.preparation import Readied
from agent_runtime.approvals.turns import TurnState
from agent_runtime.loop import texts
from agent_runtime.loop.executed import Executed, invocation_denied, refused, refused_changes, timed
from agent_runtime.models.port import RequestedCall
from agent_runtime.rules.contracts import RuleDenial
from agent_runtime.tools.result import ToolResult


def of_waiting_turn(
    call: RequestedCall,
    readied: Readied | str,
    turn: TurnState | None,
    denials: Mapping[str, RuleDenial],
) -> Executed | None:
    """The result of such a call, none where it is to be carried out."""
    if turn is None:
        return None
    if turn.done is not None and turn.answer is not None and _asks(call, turn):
        # Carried out before the run began to wait; all that is left is to tell the model.
        return Executed(call, ToolResult(texts.dependency_answered(turn.done, turn.answer)), 0.0, recorded=True)
    if (turn.decisions or {}).get(call.call_id) is Decision.DECLINE:
        return _declined(call, turn, denials.get(call.call_id))
    asks = _asks(call, turn)
    if isinstance(readied, str):
        return _gone(call, turn, asks)
    if asks and turn.answer is not None:
        return timed(call, ToolResult(texts.answered(turn.answer)))
    if readied.tool.requires_input:
        return refused(call, RefusalKind.HELD, texts.HELD, decision="input_blocked")
    if turn.kind == "input" and readied.tool.needs_approval():
        return refused(call, RefusalKind.HELD, texts.HELD, decision="write_unapproved")
    return None


def _asks(call: RequestedCall, turn: TurnState) -> bool:
    return turn.question is not None and turn.question.call_id == call.call_id


def _declined(call: RequestedCall, turn: TurnState, denial: RuleDenial | None) -> Executed:
    decided_by = {"self": "run_owner", "secondPerson": "other_user"}.get(turn.decided_by_relation, "unknown")
    executed = refused(call, RefusalKind.DECLINED, texts.declined(decided_by, turn.reason))
    if denial is not None:
        # The rule's refusal is recorded once, when the turn is resolved, whatever the person said (S-76).
        executed.changes = refused_changes(denial)
        executed.governance.append(invocation_denied(call, denial))
    return executed


def _gone(call: RequestedCall, turn: TurnState, asks: bool) -> Executed | None:
    """The tool may not be used any more; what never could be is an ordinary policy refusal."""
    if turn.kind == "input" and not asks:
        return refused(call, RefusalKind.HELD, texts.HELD)
    waited = turn.call(call.call_id)
    if asks or (waited is not None and waited.on_card):
        return refused(call, RefusalKind.NOT_PERMITTED, texts.NOT_PERMITTED, decision="tool_denied")
    return None
