"""From the store's answer and the tool's result to what the model reads and the run keeps. Pure (S-66, S-70 to S-75, C-11)."""

from __future__ import annotations

from collections.abc import Mapping

from remit_contracts.calls import CallOutcome, CallResult, RollbackReason
from remit_contracts.changes import ObservedChangeSet
from remit_contracts.scope import EffectiveAssignmentScope

from agent_runtime.loop import texts
from agent_runtime.tools.result import ToolResult

ROLLBACK_TEXTS: Mapping[RollbackReason, str] = {
    RollbackReason.EXPECT: texts.CHANGED_MEANWHILE,
    RollbackReason.LOCKED: texts.LOCKED,
    RollbackReason.CONFLICT: texts.LOCKED,
    RollbackReason.NOT_JUDGEABLE: texts.ROLLED_BACK + " It changed more than can be checked.",
}


def judged(result: ToolResult, answer: CallResult, scope: EffectiveAssignmentScope | None) -> ToolResult:
    """The tool's result in the light of what the store did.

    A rollback names no identity as changed (S-74); a refused write makes the call an error (S-43, S-70); an error
    after a commit names what stands (C-11).
    """
    refused = answer.changes.refused
    if answer.outcome is not CallOutcome.COMMITTED:
        text = ROLLBACK_TEXTS.get(answer.reason, texts.ROLLED_BACK) if answer.reason else texts.ROLLED_BACK
        return ToolResult.error(f"{text} {texts.refused_writes(refused, scope)}" if refused else text)
    stands = texts.changed_before_failure(answer.changes.changes, answer.changes.changes_omitted)
    if refused:
        return result.as_error(f"{texts.refused_writes(refused, scope)} {stands}")
    if result.is_error:
        return result.with_sentence(stands)
    if answer.hook_failed_after_write:
        return result.with_hook_failure(True).with_sentence(texts.HOOK_FAILED)
    if "flush_failed" in answer.warnings:
        return result.with_sentence("The caches could not be flushed.")
    return result


def recorded_changes(answer: CallResult) -> ObservedChangeSet | None:
    """The change list a step keeps, none where there is nothing to tell (C-01, C-20, S-75)."""
    changes = answer.changes
    if answer.outcome is not CallOutcome.COMMITTED:
        changes = changes.model_copy(update={"changes": (), "changes_omitted": 0})
    return changes if changes.worth_a_step else None
