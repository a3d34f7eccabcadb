"""The one card of a waiting run, for one viewer. Pure (T-30, P-01, P-03, R-125)."""

from __future__ import annotations

from dataclasses import dataclass, field

from remit_contracts.changes import ObservedChangeSet
from remit_contracts.runs import PendingCallView, PendingTurn
from remit_contracts.scope import AssignmentScope

from agent_runtime.approvals.turns import TurnCall, TurnState
from agent_runtime.configurations.models import Configuration

ALL_REFUSED = "allRefused"
SECOND_APPROVER = "secondApprover"
PREVIEW = "preview"
CONFIGURATION = "configuration"
WITHHELD = "What this call would do is not visible to you."


@dataclass(frozen=True)
class Viewer:
    """Who looks at the card.

    Attributes:
        withheld: the neutral line in place of a preview.
        workspace_title: none where the viewer may not work there.
        hidden_calls: ids of calls whose record the viewer may not see.
    """

    user_uid: int
    owner: bool
    withheld: str = WITHHELD
    workspace_title: str | None = None
    hidden_calls: frozenset[str] = field(default_factory=frozenset)


def blocked_reasons(turn: TurnState, configuration: Configuration | None, *, owner: bool) -> tuple[str, ...]:
    """Why the card as a whole cannot be approved, most important first (R-129)."""
    calls = turn.card_calls()
    reasons: list[str] = []
    if calls and all(call.refused_by_rule is not None for call in calls):
        reasons.append(ALL_REFUSED)
    if configuration is None:
        reasons.append(CONFIGURATION)
    elif configuration.four_eyes and owner:
        reasons.append(SECOND_APPROVER)
    if configuration is not None and not configuration.allow_unrehearsed and any(call.not_rehearsed for call in calls):
        reasons.append(PREVIEW)
    return tuple(reasons)


def pending_turn(
    turn: TurnState,
    viewer: Viewer,
    workspace_id: int,
    configuration: Configuration | None,
    registered: frozenset[str],
    scope: AssignmentScope | None,
) -> PendingTurn:
    """The card."""
    if turn.kind == "input":
        return PendingTurn(turn_digest=turn.digest, kind="input", question=turn.question)
    reasons = blocked_reasons(turn, configuration, owner=viewer.owner)
    return PendingTurn(
        turn_digest=turn.digest,
        kind="approval",
        calls=tuple(call_view(call, viewer, workspace_id, configuration, registered) for call in turn.card_calls()),
        approve_blocked=reasons[0] if reasons else "",
        approve_blocked_reasons=reasons,
        second_person=bool(configuration and configuration.four_eyes),
        scope_summary=scope.model_dump(mode="json") if scope is not None else None,
    )


def call_view(
    call: TurnCall,
    viewer: Viewer,
    workspace_id: int,
    configuration: Configuration | None,
    registered: frozenset[str],
) -> PendingCallView:
    """One call of the card; a viewer who may not see its record reads one neutral line and no argument."""
    hidden = call.call_id in viewer.hidden_calls
    rehearsal = call.rehearsal.model_copy(update={"operations": ()}) if call.rehearsal is not None else None
    if hidden:
        rehearsal = rehearsal.model_copy(update={"changes": ObservedChangeSet(), "shown": ()}) if rehearsal else None
    return PendingCallView(
        call_id=call.call_id,
        tool=call.tool,
        arguments=call.arguments if isinstance(call.arguments, dict) and not hidden else {},
        preview_lines=(viewer.withheld,) if hidden else call.lines,
        preview_failed=call.preview_failed,
        preview_stale=call.preview_stale,
        structured=() if hidden else call.structured,
        affected=None if hidden else call.affected,
        workspace_id=workspace_id,
        workspace_title=viewer.workspace_title,
        language=call.language,
        refused_by_rule=call.refused_by_rule,
        rehearsal=rehearsal,
        would_write_live=call.would_write_live,
        requires_draft_workspace=bool(configuration and configuration.require_draft_workspace),
        tool_still_registered=call.tool in registered,
        write=call.write,
    )
