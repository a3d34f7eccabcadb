"""The activity list: one line per call of a run, in codes the chat words itself (R-042)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from remit_contracts.conversations import ActivityEntry

from chat_gateway.identifiers import reduce_identifier
from chat_gateway.segments.refused_calls import CallReading, Reading, SegmentFacts
from chat_gateway.segments.run_record import DISPLAY_TOOLS

DONE = "done"
FAILED = "failed"
NOT_PERMITTED = "not_permitted"
HELD = "held"
_DECLINED_CODES = {"denied": "declined", "skip": "skipped", "variant": "variant"}
_CODES = {
    Reading.RAN: DONE,
    Reading.FAILED: FAILED,
    Reading.NOT_PERMITTED: NOT_PERMITTED,
    Reading.HELD: HELD,
}


def activity_of(run: UUID, readings: Iterable[CallReading], facts: SegmentFacts) -> list[ActivityEntry]:
    """The lines of one segment. A declined card is one line that names the answer given, without a tool (row 1)."""
    lines: list[ActivityEntry] = []
    declined = False
    for reading in readings:
        if reading.tool in DISPLAY_TOOLS:
            continue
        if reading.reading is Reading.DECISION:
            if facts.declined and facts.approved:
                # A decision per call: each declined call is named, since others of the same card ran (T-14).
                lines.append(_line(run, reading, _DECLINED_CODES[facts.answer], reading.call_id))
            elif not declined:
                lines.append(_line(run, reading, _DECLINED_CODES[facts.answer], None))
            declined = True
            continue
        line = _line(run, reading, _CODES[reading.reading], reading.call_id)
        lines.append(line.model_copy(update={"tool": reduce_identifier(reading.tool)}))
    return lines


def _line(run: UUID, reading: CallReading, code: str, call_id: str | None) -> ActivityEntry:
    return ActivityEntry(sequence=reading.step.sequence, run=run, call_id=call_id, code=code, at=reading.step.at)
