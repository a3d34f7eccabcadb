"""What of the notes fits into one prompt (R-025 to R-027, R-033, R-034, R-036): a pure function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chat_gateway.notes.model import OLDER_NOTICE, Note

MAX_NOTES = 40
MAX_CHARACTERS = 6_000
_NOTICE_RESERVE = len(OLDER_NOTICE) + 12


def within_budget(
    notes: Sequence[Note], max_notes: int = MAX_NOTES, max_characters: int = MAX_CHARACTERS
) -> list[Note]:
    """The notes to send, in their order.

    Over either limit, empty notes go first, oldest first, then the oldest. Where any was left out, the first kept note
    says so; the room of that sentence is reserved, so both limits hold with it. Characters, labels included.
    """
    if len(notes) <= max_notes and _length(notes) <= max_characters:
        return list(notes)
    kept = list(notes)
    length = _length(kept)
    dropped = sum(note.notice for note in kept)
    kept = [replace(note, notice=0) if note.notice else note for note in kept]
    length = _length(kept)
    for victim in [*(note for note in kept if note.empty), *(note for note in kept if not note.empty)]:
        reserve = _NOTICE_RESERVE if dropped else 0
        if len(kept) <= max_notes and length + reserve <= max_characters:
            break
        if len(kept) == 1:
            break
        kept = [note for note in kept if note is not victim]
        length -= len(victim.text)
        dropped += 1
    if kept:
        kept[0] = kept[0].with_notice(dropped) if dropped else kept[0]
        others = sum(len(note.text) for note in kept[1:])
        kept[0] = kept[0].fitting(max_characters - others)
    return kept


def _length(notes: Sequence[Note]) -> int:
    return sum(len(note.text) for note in notes)
