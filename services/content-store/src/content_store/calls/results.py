"""The answers of a call (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from remit_contracts.calls import CallOutcome, CallResult, OperationResult, RollbackReason
from remit_contracts.changes import Coverage, ObservedChangeSet
from remit_contracts.records import WriteTarget

from content_store.calls.plan import CallPlan
from content_store.calls.verdict import Verdict, resolved_target
from content_store.scope.guard import AssignmentScopeGuard

if TYPE_CHECKING:
    from content_store.calls.session import CallSession


def committed_result(
    plan: CallPlan, verdict: Verdict, operations: Sequence[OperationResult], session: CallSession
) -> CallResult:
    """What is stored with the outcome and answered once the commit is through."""
    target = resolved_target(plan.write_target, session.placeholders, session.copies)
    return CallResult(
        call_id=plan.call_id,
        outcome=CallOutcome.COMMITTED,
        operations=tuple(operations),
        changes=verdict.changes,
        write_target=WriteTarget(table=target[0], uid=target[1]) if target is not None else None,
        hook_failed_after_write=session.effects.hook_failed,
        judged_rows=verdict.judged,
    )


def rolled_back_result(
    plan: CallPlan,
    reason: RollbackReason | None,
    *,
    verdict: Verdict | None = None,
    guard: AssignmentScopeGuard | None = None,
    operations: Sequence[OperationResult] = (),
    outcome: CallOutcome = CallOutcome.ROLLED_BACK,
) -> CallResult:
    """What is answered for a call that was undone: no identity is named as changed (S-74, S-75).

    Args:
        plan: the call.
        reason: what undid it; None where that is not known.
        verdict: where it came so far.
        guard: what was refused, where there is no verdict.
        operations: their errors are told, what they made is gone.
        outcome: ``unknown`` where the commit was not answered.
    """
    if verdict is not None:
        changes = verdict.reported if verdict.reason is not None else _nothing(verdict.changes)
    else:
        refused = guard.refused if guard is not None else ()
        coverage = Coverage.NOT_CAPTURED if outcome is CallOutcome.UNKNOWN else Coverage.DATAHANDLER
        changes = ObservedChangeSet(refused=refused, coverage=coverage)
    return CallResult(
        call_id=plan.call_id,
        outcome=outcome,
        reason=reason,
        operations=tuple(OperationResult(op=result.op, errors=result.errors) for result in operations),
        changes=changes,
        exceeded=verdict.exceeded if verdict is not None else (),
        judged_rows=verdict.judged if verdict is not None else 0,
    )


def _nothing(changes: ObservedChangeSet) -> ObservedChangeSet:
    return changes.model_copy(update={"changes": (), "changes_omitted": 0})
