"""Built-in rule ``assignment_scope``: layer one, the claim against the scope (S-20 to S-29)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from remit_contracts.actor import ActorContext
from remit_contracts.changes import RefusedWrite
from remit_contracts.claims import ClaimAnswer, ClaimRefusal
from remit_contracts.scope import EffectiveAssignmentScope, ScopeReason

from agent_runtime.loop.texts import scope_words
from agent_runtime.rules.contracts import RuleCall, RuleContext, RuleDenial
from agent_runtime.tools.contracts import ScopedWrite

MESSAGES: Mapping[str, str] = {
    ScopeReason.OUTSIDE_SCOPE: "{what} lies outside the scope of this run ({scope}). Nothing was changed.",
    ScopeReason.TABLE_NOT_ALLOWED: "The scope of this run ({scope}) does not allow the table of {what}. Nothing was changed.",
    ScopeReason.LANGUAGE_NOT_ALLOWED: (
        "The scope of this run ({scope}) does not allow the language of {what}. Nothing was changed."
    ),
    ScopeReason.SUBTREE_OUTSIDE_SCOPE: (
        "Subpages of {what} lie outside the scope of this run ({scope}). Nothing was changed."
    ),
    ScopeReason.SCOPE_REQUIRED: "Changes need a scope here, and this run has none. Nothing was changed.",
    ScopeReason.SCOPE_UNRESOLVABLE: (
        "What this call would change cannot be told from its arguments, so it cannot be checked against the scope of this "
        "run ({scope}). Nothing was changed."
    ),
    ScopeReason.SCOPE_REMOTE_WRITE: (
        "This call changes things outside this CMS, which the scope of this run ({scope}) cannot hold. Nothing was changed."
    ),
    ScopeReason.SCOPE_FILES_WRITE: (
        "This call changes files, which the scope of this run ({scope}) does not allow. Nothing was changed."
    ),
}


class ClaimJudge(Protocol):
    """The store's check of claims, all of a turn in one request (S-08: the rules live there)."""

    async def claims(
        self, actor: ActorContext, scope: EffectiveAssignmentScope, claims: Sequence[dict[str, Any]]
    ) -> Sequence[ClaimAnswer]:
        """One answer per claim."""


class AssignmentScopeRule:
    """Judges writes by what they claim; what needs no knowledge of rows is decided here, the rest by the store."""

    id = "assignment_scope"

    def __init__(self, judge: ClaimJudge) -> None:
        self._judge = judge

    async def judge(self, context: RuleContext) -> Mapping[str, RuleDenial]:
        """Denials by call id."""
        if context.scope is None:
            return {}
        scope = context.scope
        denials: dict[str, RuleDenial] = {}
        asked: list[RuleCall] = []
        for call in context.calls:
            if not call.write:
                continue
            reason = self._without_store(call, context)
            if reason is not None:
                denials[call.call_id] = self._denial(
                    reason, scope, (_refused(call, reason),), call.tool.name, context.actor.locale
                )
            elif call.claim is not None and not call.claim.touches_no_record:
                asked.append(call)
        if asked:
            denials.update(await self._with_store(asked, context.actor, scope))
        return denials

    def _without_store(self, call: RuleCall, context: RuleContext) -> str | None:
        if context.configuration.require_assignment_scope and context.actor.assignment_scope is None:
            return ScopeReason.SCOPE_REQUIRED
        if call.remote:
            return ScopeReason.SCOPE_REMOTE_WRITE
        if call.claim is None or call.claim.empty:
            return ScopeReason.SCOPE_UNRESOLVABLE
        return ScopeReason.SCOPE_FILES_WRITE if call.claim.writes_files else None

    async def _with_store(
        self, asked: list[RuleCall], actor: ActorContext, scope: EffectiveAssignmentScope
    ) -> dict[str, RuleDenial]:
        bodies = [claim_body(call.call_id, call.tool.name, call.claim) for call in asked if call.claim is not None]
        answers = {answer.key: answer for answer in await self._judge.claims(actor, scope, bodies)}
        denials: dict[str, RuleDenial] = {}
        for call in asked:
            answer = answers.get(call.call_id)
            if answer is None:
                # The store left a claim unanswered: not known to be inside, so refused.
                reason = ScopeReason.SCOPE_UNRESOLVABLE
                denials[call.call_id] = self._denial(
                    reason, scope, (_refused(call, reason),), call.tool.name, actor.locale
                )
            elif answer.refusals:
                first = answer.refusals[0]
                refused = tuple(_from_store(call, refusal) for refusal in answer.refusals)
                denials[call.call_id] = self._denial(first.reason, scope, refused, _what(first, call), actor.locale)
        return denials

    def _denial(
        self, reason: str, scope: EffectiveAssignmentScope, refused: tuple[RefusedWrite, ...], what: str, locale: str
    ) -> RuleDenial:
        message = MESSAGES.get(reason, MESSAGES[ScopeReason.OUTSIDE_SCOPE])
        return RuleDenial(self.id, str(reason), message, {"what": what, "scope": scope_words(scope, locale)}, refused)


def claim_body(key: str, tool: str, claim: ScopedWrite) -> dict[str, Any]:
    """A claim as the store reads it."""
    return {
        "key": key,
        "tool": tool,
        "operation": claim.operation.value,
        "records": [{"table": record.table, "uid": record.uid} for record in claim.records],
        "pages": [{"page": target.page, "table": target.table} for target in claim.pages],
        "subtree": claim.subtree,
        "language": claim.language,
        "sourceLanguage": claim.source_language,
        "tables": list(claim.tables),
        "writesFiles": claim.writes_files,
        "touchesNoRecord": claim.touches_no_record,
    }


def _what(refusal: ClaimRefusal, call: RuleCall) -> str:
    if refusal.table and refusal.uid:
        return f"{refusal.table}:{refusal.uid}"
    if refusal.pid:
        return f"page {refusal.pid}"
    return refusal.table or call.tool.name


def _from_store(call: RuleCall, refusal: ClaimRefusal) -> RefusedWrite:
    operation = call.claim.operation.value if call.claim else "update"
    return RefusedWrite(
        operation=operation, table=refusal.table or "", uid=refusal.uid, pid=refusal.pid, reason=refusal.reason
    )


def _refused(call: RuleCall, reason: str) -> RefusedWrite:
    claim = call.claim
    operation = claim.operation.value if claim else "update"
    record = claim.records[0] if claim and claim.records else None
    page = claim.pages[0] if claim and claim.pages else None
    return RefusedWrite(
        operation=operation,
        table=record.table if record else (page.table if page else ""),
        uid=record.uid if record else None,
        pid=page.page if page else None,
        reason=str(reason),
    )
