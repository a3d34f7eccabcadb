"""Puts notes into a copy of the transcript (R-022, R-023, R-035); the stored transcript never holds one (R-020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chat_gateway.notes.model import Note


@dataclass(frozen=True)
class TranscriptMessage:
    """A message of the transcript.

    Attributes:
        run_segment: run and segment an answer belongs to.
    """

    id: str | None
    role: Literal["user", "assistant"]
    content: str
    run_segment: tuple[str, int] | None = None


def place_notes(transcript: Sequence[TranscriptMessage], notes: Sequence[Note]) -> list[TranscriptMessage]:
    """A copy of the transcript with every note in the answer of the segment it describes.

    A note whose turn has no answer gets an assistant message of its own between the two user messages around it; one
    that would open or close the transcript goes into the user message next to it.
    """
    if not transcript:
        return []
    answers = {message.run_segment: index for index, message in enumerate(transcript) if message.run_segment}
    turns = {message.id: index for index, message in enumerate(transcript) if message.role == "user" and message.id}
    inside: dict[int, list[str]] = {}
    behind: dict[int, list[str]] = {}
    for note in notes:
        index = _home(transcript, note, answers, turns)
        if index is None:
            inside.setdefault(0, []).append(note.text)
        elif transcript[index].role == "assistant":
            inside.setdefault(index, []).append(note.text)
        else:
            behind.setdefault(index, []).append(note.text)
    return _assembled(transcript, inside, behind)


def _home(
    transcript: Sequence[TranscriptMessage],
    note: Note,
    answers: Mapping[tuple[str, int], int],
    turns: Mapping[str, int],
) -> int | None:
    """Index of the message a note belongs into; a user message's index means: behind it; none means: at the very start."""
    if note.run_segment is not None and note.run_segment in answers:
        return answers[note.run_segment]
    if note.anchor is None or note.anchor not in turns:
        return None
    turn = turns[note.anchor]
    replies = [index for index in range(turn + 1, len(transcript))]
    own: list[int] = []
    for index in replies:
        if transcript[index].role == "user":
            break
        own.append(index)
    if not own:
        return turn
    segment = note.run_segment[1] if note.run_segment is not None else None
    later = [index for index in own if segment is not None and _segment(transcript[index]) > segment]
    return later[0] if later else own[-1]


def _segment(message: TranscriptMessage) -> int:
    return message.run_segment[1] if message.run_segment is not None else 0


def _assembled(
    transcript: Sequence[TranscriptMessage], inside: Mapping[int, list[str]], behind: Mapping[int, list[str]]
) -> list[TranscriptMessage]:
    result: list[TranscriptMessage] = []
    last = len(transcript) - 1
    for index, message in enumerate(transcript):
        texts = list(inside.get(index, ()))
        following = behind.get(index, [])
        if following and index == last:
            texts, following = [*texts, *following], []
        if texts and message.role == "user" and index == 0 and index in inside:
            # Would open the transcript: stands before the words of the first user message, under its own label.
            opening = inside[index]
            rest = texts[len(opening) :]
            result.append(replace(message, content="\n\n".join([*opening, message.content, *rest])))
        elif texts:
            result.append(replace(message, content="\n\n".join([message.content, *texts])))
        else:
            result.append(message)
        if following:
            result.append(TranscriptMessage(None, "assistant", "\n\n".join(following)))
    return result
