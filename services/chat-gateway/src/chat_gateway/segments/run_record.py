"""Builds the run record entry of one segment (R-001 to R-015): counts and identifiers, never an argument, result or text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from remit_contracts.conversations import RunRecordEntry, RunRecordTool, RunRecordWrite
from remit_contracts.runs import RunStatus
from remit_contracts.steps import Step, WriteCompleteness

from chat_gateway.identifiers import reduce_identifier
from chat_gateway.segments.opening import GivenDecision
from chat_gateway.segments.payloads import change_facts, write_facts
from chat_gateway.segments.refused_calls import QUESTION_TOOLS, CallReading, Reading

DISPLAY_TOOLS: frozenset[str] = frozenset({"progress", "highlight"})
UNKNOWN = "unknown"
WAITING_OUTCOMES: frozenset[str] = frozenset(
    {
        RunStatus.WAITING_FOR_APPROVAL.value,
        RunStatus.WAITING_FOR_INPUT.value,
        "awaiting_approval",
        "awaiting_input",
        "guardrail_approval_required",
    }
)
FAILED_OUTCOMES: frozenset[str] = frozenset({RunStatus.FAILED.value, UNKNOWN, "suspend_failed", "lease_lost"})


@dataclass(frozen=True)
class EntryFrame:
    """What an entry says beside its steps.

    Attributes:
        after: message id of the user message whose turn it belongs to (A-01).
        outcomes_before: card outcomes that existed before it.
        outcome: how the segment ended, as the runtime says it; ``unknown`` is the chat's own word.
        waiting: names of the tools whose calls wait.
        elsewhere: decided outside of this chat after the editor had left the card undecided.
    """

    after: UUID | None
    outcome: str
    run: UUID | None
    segment: int | None
    outcomes_before: int = 0
    waiting: Sequence[str] = ()
    decision: GivenDecision | None = None
    elsewhere: bool = False


def build_entry(
    steps: Sequence[Step],
    readings: Sequence[CallReading],
    frame: EntryFrame,
    question_tools: Collection[str] = QUESTION_TOOLS,
) -> RunRecordEntry:
    """The entry of one segment.

    Args:
        steps: its steps in order.
        readings: of :func:`read_refused_calls` over the same steps (R-040).
        frame: what is known beside them.
        question_tools: left out of ``tools``, like the tools that only drive the display (R-003).
    """
    refused, changed = _observed(steps)
    data: dict[str, Any] = {
        "after": str(frame.after) if frame.after is not None else None,
        "outcomes_before": frame.outcomes_before,
        "outcome": reduce_identifier(frame.outcome),
        "run": frame.run,
        "segment": frame.segment,
        "tools": _tools(readings, question_tools),
        "writes": _writes(steps),
        "waiting": tuple(reduce_identifier(name) for name in frame.waiting),
        "decision": frame.decision.for_record() if frame.decision is not None else None,
        "changed": changed,
        "refused": refused,
    }
    if frame.elsewhere:
        data["elsewhere"] = True
    return RunRecordEntry.model_validate(data)


def _tools(readings: Iterable[CallReading], question_tools: Collection[str]) -> tuple[RunRecordTool, ...]:
    calls: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for reading in readings:
        if reading.tool in DISPLAY_TOOLS or reading.tool in question_tools:
            continue
        if reading.reading in {Reading.DECISION, Reading.HELD}:
            continue
        name = reduce_identifier(reading.tool)
        calls[name] += 1
        if reading.reading.failure:
            failed[name] += 1
            refused[name] += 1 if reading.refused else 0
    return tuple(
        RunRecordTool.model_validate(
            {"name": name, "calls": calls[name], "failed": failed[name]}
            | ({"refused": refused[name]} if refused[name] else {})
        )
        for name in calls
    )


def _writes(steps: Iterable[Step]) -> tuple[RunRecordWrite, ...]:
    """Records a tool named, once each; of several writes to one record the least good news stays."""
    found: dict[str, str] = {}
    for step in steps:
        write = write_facts(step)
        if write is None:
            continue
        record = reduce_identifier(f"{write.table}:{write.uid}")
        said = WriteCompleteness.PARTIAL.value if write.hook_failed else write.completeness
        if record not in found or _rank(said) > _rank(found[record]):
            found[record] = said
    return tuple(RunRecordWrite(record=record, completeness=said) for record, said in found.items())


def _rank(completeness: str) -> int:
    return {"complete": 0, "unconfirmed": 1, "partial": 2}.get(completeness, 1)


def _observed(steps: Iterable[Step]) -> tuple[int, int]:
    """Steps that list refused writes, and rows the store observed (A-19): numbers only."""
    refused = changed = 0
    for step in steps:
        changes = change_facts(step)
        if changes is not None:
            refused += 1 if changes.refused else 0
            changed += len(changes.changes) + changes.changes_omitted
    return refused, changed


def changes_available(entries: Iterable[RunRecordEntry]) -> bool:
    """Whether the chat offers the change list: from the run record alone, no event is read (R-110, A-10, A-19)."""
    return any(_may_have_changed(entry) for entry in entries)


def _may_have_changed(entry: RunRecordEntry) -> bool:
    if entry.writes or entry.changed > 0 or entry.refused > 0:
        return True
    return any(tool.failed > _refused_calls(tool) for tool in entry.tools)


def _refused_calls(tool: RunRecordTool) -> int:
    value = (tool.model_extra or {}).get("refused", 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def run_uuids(entries: Iterable[RunRecordEntry]) -> list[UUID]:
    """Distinct runs of a conversation, oldest first; entries without a run are skipped (R-008)."""
    return list(dict.fromkeys(entry.run for entry in entries if entry.run is not None))


def mark_undecided(entry: RunRecordEntry, what: str) -> RunRecordEntry:
    """The entry of a waiting segment whose card or question the editor left (R-006).

    Args:
        entry: of the waiting segment.
        what: ``card`` or ``question``.
    """
    return entry.model_copy(update={"undecided": what})
