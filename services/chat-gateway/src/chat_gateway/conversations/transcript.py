"""The transcript of one model call: a copy with the chat's notes in it (R-020, R-035). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from remit_contracts.conversations import RunRecordEntry
from remit_contracts.runs import ChatMessage

from chat_gateway.conversations.models import MessageRow
from chat_gateway.notes.budget import within_budget
from chat_gateway.notes.model import Note
from chat_gateway.notes.placement import TranscriptMessage, place_notes
from chat_gateway.notes.render import CardOutcome, notes_of, nothing_saved_note

MAX_MESSAGES = 400


def build_transcript(
    messages: Sequence[MessageRow],
    entries: Sequence[RunRecordEntry],
    outcomes: Sequence[CardOutcome] = (),
    *,
    context: str | None = None,
) -> list[ChatMessage]:
    """The messages a run starts from: the newest of the conversation, with notes, the editor's view first.

    Args:
        messages: in order; the last one is the user's.
        entries: run record, oldest first.
        outcomes: card outcomes, oldest first.
        context: what the editor looks at, as a system message.
    """
    kept = list(messages[-MAX_MESSAGES:])
    while kept and kept[0].role != "user":
        kept.pop(0)
    transcript = [_message(row) for row in kept]
    notes = within_budget(_in_order(messages, notes_of(entries, outcomes)))
    placed = place_notes(transcript, notes)
    head = [ChatMessage(role="system", content=context)] if context else []
    return [*head, *(ChatMessage(role=item.role, content=item.content) for item in placed)]


def _message(row: MessageRow) -> TranscriptMessage:
    role: Literal["user", "assistant"] = "assistant" if row.role == "assistant" else "user"
    segment = (
        (str(row.run_id), row.segment) if row.role == "assistant" and row.run_id and row.segment is not None else None
    )
    return TranscriptMessage(str(row.id), role, row.content, segment)


def _in_order(messages: Sequence[MessageRow], notes: Sequence[Note]) -> list[Note]:
    """The notes with the one beside each flagged answer put behind the note of that answer's segment (R-030)."""
    flagged = {(str(row.run_id), row.segment): row for row in messages if row.nothing_saved and row.segment is not None}
    ordered: list[Note] = []
    told: set[tuple[str, int]] = set()
    for note in notes:
        ordered.append(note)
        key = note.run_segment
        if key is not None and key in flagged and key not in told:
            told.add(key)
            ordered.append(nothing_saved_note(note.anchor, key))
    return ordered
