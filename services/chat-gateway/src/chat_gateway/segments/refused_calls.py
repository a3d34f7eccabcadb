"""RefusedCalls: reads what became of every tool call of one segment, for activity list and run record alike (R-040 to R-047).

Structure only: the typed refusal of a step, else where the step stands, whether its duration is exactly 0.0 ms and
whether its tool asks the editor. Result texts are never read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from remit_contracts.steps import RefusalKind, Step, StepKind

from chat_gateway.segments.payloads import ToolFacts, tool_facts

QUESTION_TOOLS: frozenset[str] = frozenset({"ask_choice"})


class Opening(StrEnum):
    """How a segment begins."""

    START = "start"
    APPROVED = "approved"
    DECLINED = "declined"
    ANSWERED = "answered"


class Reading(StrEnum):
    """What became of a call."""

    RAN = "ran"
    FAILED = "failed"
    NOT_PERMITTED = "not_permitted"
    HELD = "held"
    DECISION = "decision"

    @property
    def failure(self) -> bool:
        """Counted as failed (rows 2, 4 and 7, and a call that ran into an error)."""
        return self in {Reading.FAILED, Reading.NOT_PERMITTED}


@dataclass(frozen=True)
class SegmentFacts:
    """What is known of a segment beside its steps.

    Attributes:
        opening: what it continues after.
        suspended: it ended waiting for a person.
        guided: it belongs to a guided process.
        declined: calls the person declined, of a decision given per call.
        approved: calls the person approved, of a decision given per call.
        answer: what the person said in a word: ``denied``, ``skip`` or ``variant``.
    """

    opening: Opening = Opening.START
    suspended: bool = False
    guided: bool = False
    declined: frozenset[str] = field(default_factory=frozenset)
    approved: frozenset[str] = field(default_factory=frozenset)
    answer: str = "denied"


@dataclass(frozen=True)
class CallReading:
    """The reading of one tool step.

    Attributes:
        refused: the call was refused before it ran (typed, or by structure), as against one that ran into an error.
    """

    step: Step
    tool: str
    call_id: str | None
    reading: Reading
    question: bool
    refused: bool


def read_refused_calls(
    steps: Sequence[Step],
    facts: SegmentFacts,
    question_tools: Collection[str] = QUESTION_TOOLS,
    *,
    typed: bool = True,
) -> list[CallReading]:
    """One reading per tool step of a segment, in order.

    Args:
        steps: the steps of one segment in order of sequence.
        facts: how it began and ended.
        question_tools: tools that ask the editor (R-045).
        typed: prefer the refusal the runtime typed; false reads structure alone.
    """
    rounds = [index for index, step in enumerate(steps) if step.kind == StepKind.LLM]
    first_round = rounds[0] if rounds else len(steps)
    last_round = rounds[-1] if rounds else len(steps)
    readings: list[CallReading] = []
    for index, step in enumerate(steps):
        tool = tool_facts(step)
        if tool is None:
            continue
        question = tool.name in question_tools
        place = _Place(
            opening=facts.opening is not Opening.START and index < first_round,
            suspending=facts.suspended and index > last_round,
        )
        reading = (
            _typed(tool) if typed and tool.refusal is not None else _structural(step, tool, place, facts, question)
        )
        refused = tool.refusal is not None or reading in {Reading.NOT_PERMITTED, Reading.HELD, Reading.DECISION}
        readings.append(CallReading(step, tool.name, tool.call_id, reading, question, refused))
    return readings


@dataclass(frozen=True)
class _Place:
    opening: bool
    suspending: bool


_TYPED = {
    RefusalKind.DECLINED: Reading.DECISION,
    RefusalKind.HELD: Reading.HELD,
    RefusalKind.NOT_PERMITTED: Reading.NOT_PERMITTED,
    RefusalKind.POLICY: Reading.FAILED,
}


def _typed(tool: ToolFacts) -> Reading:
    return _TYPED[tool.refusal] if tool.refusal is not None else Reading.FAILED


def _structural(step: Step, tool: ToolFacts, place: _Place, facts: SegmentFacts, question: bool) -> Reading:
    if place.opening and _declined(tool, facts):
        return Reading.DECISION
    if not tool.is_error:
        return Reading.RAN
    if step.duration_ms != 0.0:
        return Reading.FAILED
    if place.opening:
        return _refused_at_opening(facts, question)
    return Reading.HELD if place.suspending else Reading.FAILED


def _declined(tool: ToolFacts, facts: SegmentFacts) -> bool:
    if tool.call_id is not None and tool.call_id in facts.declined:
        return True
    return facts.opening is Opening.DECLINED and tool.call_id not in facts.approved


def _refused_at_opening(facts: SegmentFacts, question: bool) -> Reading:
    if facts.opening is Opening.ANSWERED:
        return Reading.NOT_PERMITTED if question else Reading.HELD
    if question:
        # A question inside a guided process is not in the table: an ordinary step that failed.
        return Reading.FAILED if facts.guided else Reading.HELD
    return Reading.NOT_PERMITTED
