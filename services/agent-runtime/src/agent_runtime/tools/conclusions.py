"""Judges the store's answer to a plan: success only where the rows read back match it (T-61)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from remit_contracts.calls import CallOutcome, CallResult
from remit_contracts.records import RecordReference
from remit_contracts.steps import WriteCompleteness

from agent_runtime.tools.plans import CopyCheck, Plan
from agent_runtime.tools.result import ToolResult

if TYPE_CHECKING:
    from agent_runtime.tools.contracts import ToolContext


async def conclude(plan: Plan, result: CallResult, context: ToolContext) -> ToolResult:
    """Success only where the rows read back match the plan; an error names what did not happen.

    Refused writes and rollbacks are the loop's business; this judges what the tool itself said it would write.
    """
    if result.outcome is not CallOutcome.COMMITTED:
        return ToolResult.error("Nothing was changed.")
    problems = [
        f"{error.table}:{error.record} {error.code}"
        for operation in result.operations
        # A deleted row cannot be read any more, which is what was wanted.
        if not (plan.deletes and operation.op == "read")
        for error in operation.errors
    ]
    mismatches = _mismatches(plan, result)
    target = target_of(plan, result)
    if plan.copy_check is not None and not problems:
        mismatches += await _copy_mismatches(plan.copy_check, result, context)
    if problems or mismatches or (plan.target is not None and target is None):
        return ToolResult.error(_not_as_planned(problems, mismatches))
    text = plan.success.replace("{uid}", str(target.uid) if target is not None else "")
    return ToolResult(content=text, write_target=target, completeness=WriteCompleteness.COMPLETE)


def target_of(plan: Plan, result: CallResult) -> RecordReference | None:
    """The record the call wrote: the named one, the created one, or the copy a command made."""
    if plan.copy_check is not None:
        uid = copied_uid(plan.copy_check, result)
        return RecordReference(table=plan.copy_check.table, uid=uid) if uid else None
    if plan.target is None:
        return None
    if isinstance(plan.target.uid, int):
        return RecordReference(table=plan.target.table, uid=plan.target.uid)
    for operation in result.operations:
        if plan.target.uid in operation.placeholders:
            return RecordReference(table=plan.target.table, uid=operation.placeholders[plan.target.uid])
    return None


def copied_uid(check: CopyCheck, result: CallResult) -> int | None:
    """The uid of the copy or translation a command made of a record."""
    if check.operation >= len(result.operations):
        return None
    return result.operations[check.operation].copies.get(check.table, {}).get(str(check.source))


def _mismatches(plan: Plan, result: CallResult) -> list[str]:
    found: list[str] = []
    placeholders: dict[str, int] = {}
    for operation in result.operations:
        placeholders.update(operation.placeholders)
    for check in plan.read_back:
        uid = placeholders.get(check.record, check.record)
        rows = result.operations[check.operation].rows if check.operation < len(result.operations) else ()
        row = next((row for row in rows if str(row.get("uid")) == str(uid)), None)
        if row is None:
            if not plan.deletes:
                found.append(f"{check.table}:{uid}")
            continue
        found += different_fields(check.expected, row)
    return found


async def _copy_mismatches(check: CopyCheck, result: CallResult, context: ToolContext) -> list[str]:
    uid = copied_uid(check, result)
    if uid is None:
        return [check.table]
    stored = await context.reader.record(check.table, uid)
    return [f"{check.table}:{uid}"] if stored is None else different_fields(check.expected, stored.record)


def different_fields(expected: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """Names of the fields whose stored value is not the expected one; numbers and their texts are the same."""
    return [name for name, value in expected.items() if _plain(row.get(name)) != _plain(value)]


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return str(value).replace("\r\n", "\n")


def _not_as_planned(problems: Sequence[str], mismatches: Sequence[str]) -> str:
    parts = []
    if problems:
        parts.append("The CMS did not carry out: " + "; ".join(problem[:200] for problem in problems[:5]) + ".")
    if mismatches:
        parts.append(
            "What is stored afterwards differs from what was asked in: "
            + ", ".join(sorted(set(mismatches))[:10])
            + ". A right on these fields may be missing."
        )
    return " ".join(parts) or "The CMS did not say which record it wrote."
