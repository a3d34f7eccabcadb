"""Whether an answer describes a change as done although its step saved nothing (R-037)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from remit_contracts.steps import Step

from chat_gateway.segments.payloads import change_facts, step_call_id, write_facts
from chat_gateway.segments.refused_calls import CallReading, Reading

_DONE_EN = (
    r"saved|updated|changed|created|deleted|removed|moved|translated|added|renamed|published|set|replaced|copied|"
    r"adjusted|corrected|edited|rewritten|hidden|applied"
)
_DONE_DE = (
    r"gespeichert|aktualisiert|geändert|angepasst|erstellt|angelegt|gelöscht|entfernt|verschoben|übersetzt|"
    r"hinzugefügt|umbenannt|veröffentlicht|gesetzt|ersetzt|kopiert|korrigiert|bearbeitet|umgeschrieben|ausgeblendet"
)
_CLAIMS = re.compile(
    rf"\b(?:i(?:'ve| have)?|we(?:'ve| have)?|has been|have been|was|were|is now|are now|successfully)\s+"
    rf"(?:\w+\s+){{0,2}}?(?:{_DONE_EN})\b"
    rf"|\b(?:habe|haben|wurde|wurden|ist|sind|hat)\b[^.!?\n]*\b(?:{_DONE_DE})\b"
    rf"|^\W*(?:done|all set|erledigt|fertig)\b",
    re.IGNORECASE,
)
_DENIALS = re.compile(
    r"\b(?:not|nothing|no|never|none|cannot|can't|couldn't|wasn't|weren't|hasn't|haven't|didn't|would|could|should|will|if|"
    r"nicht|nichts|kein|keine|keinen|nie|würde|könnte|sollte|wird|werde|wenn|falls)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")


def describes_change_as_done(text: str) -> bool:
    """Whether a sentence of the answer reads as a finished change, in English or German.

    A reading of words: a sentence with a negation or a condition is not taken for a claim.
    """
    return any(_CLAIMS.search(part) and not _DENIALS.search(part) for part in _SENTENCE.split(text))


def saved_something(steps: Sequence[Step], readings: Iterable[CallReading]) -> bool:
    """Whether a call of the segment wrote and did not fail."""
    failed = {item.call_id for item in readings if item.reading is not Reading.RAN}
    for step in steps:
        if step_call_id(step) in failed:
            continue
        write = write_facts(step)
        if write is not None and not write.hook_failed:
            return True
        changes = change_facts(step)
        if changes is not None and (changes.changes or changes.changes_omitted):
            return True
    return False


def nothing_saved(answer: str, steps: Sequence[Step], readings: Sequence[CallReading]) -> bool:
    """The flag of an answer (R-037)."""
    return describes_change_as_done(answer) and not saved_something(steps, readings)
