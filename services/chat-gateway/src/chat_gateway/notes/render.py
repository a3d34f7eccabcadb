"""RunRecordNotes: run record entries and card outcomes in the words of the prompt (R-020, R-028 to R-030).

Only named fields of an entry are read; the run's id is not one of them (R-012). Identifiers are reduced again (R-010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remit_contracts.conversations import RunRecordEntry

from chat_gateway.identifiers import reduce_identifier
from chat_gateway.notes.model import Listing, Note
from chat_gateway.segments.run_record import FAILED_OUTCOMES, WAITING_OUTCOMES

NOTHING_SAVED = "A change this answer describes as done in this step was not saved. What earlier steps saved is in the chat records."
_UNDECIDED = {
    "card": "The editor left the card of this step undecided; nothing from it was saved in the chat.",
    "question": "The editor left the question of this step unanswered; nothing from it was saved in the chat.",
}
_DECIDED_ELSEWHERE = "The run may still be decided elsewhere; a later decision is not recorded here."
_OUTCOMES = {
    "completed": "This step was completed.",
    "failed": "This step failed.",
    "cancelled": "This step was cancelled.",
    "blocked": "This step was blocked by a rule.",
    "guardrail_blocked": "This step was blocked by a rule.",
    "unknown": "It is not known how this step ended.",
}
_WAITING = "This step waits for the editor."
_DECISIONS = {
    "approved": "The editor approved the card before this step.",
    "denied": "The editor declined the card before this step; its calls were not carried out.",
    "mixed": "The editor approved some calls of the card before this step and declined the others.",
    "answered": "The editor answered the question before this step.",
}
_REASONS = {"skip": "The editor chose to skip it.", "variant": "The editor asked for another variant."}


@dataclass(frozen=True)
class CardOutcome:
    """What became of a card of a guided process: names of its fields, no values (R-028).

    Attributes:
        after: message id of the turn's user message.
        result: ``applied``, ``check``, ``not_applied``, ``skipped`` or ``variant``.
    """

    after: str | None
    result: str
    fields: tuple[str, ...] = ()


_RESULTS = {
    "applied": "A card of this conversation was carried out.",
    "check": "A card of this conversation was carried out, but it is not confirmed what was saved.",
    "not_applied": "A card of this conversation was not carried out.",
    "skipped": "The editor skipped a card of this conversation.",
    "variant": "The editor asked for another variant of a card of this conversation.",
}


def notes_of(
    entries: Sequence[RunRecordEntry], outcomes: Sequence[CardOutcome] = (), *, guided: bool = False
) -> list[Note]:
    """All notes in the order things happened: an entry comes after the outcomes that existed before it (R-024).

    Args:
        entries: run record, oldest first.
        outcomes: card outcomes, oldest first; an entry of before the run record has none of its own (R-011).
        guided: a left card of a guided process cannot be decided elsewhere.
    """
    notes: list[Note] = []
    told = 0
    for entry in entries:
        while told < min(max(entry.outcomes_before, 0), len(outcomes)):
            notes.append(outcome_note(outcomes[told]))
            told += 1
        if not (entry.model_extra or {}).get("elsewhere"):
            notes.append(entry_note(entry, guided=guided))
    notes.extend(outcome_note(outcome) for outcome in outcomes[told:])
    return notes


def entry_note(entry: RunRecordEntry, *, guided: bool = False) -> Note:
    """The note of one segment."""
    sentences = [*_decision(entry), _outcome(entry.outcome)]
    if entry.undecided is not None:
        sentences.append(_UNDECIDED.get(entry.undecided, _UNDECIDED["card"]))
        if not guided:
            sentences.append(_DECIDED_ELSEWHERE)
    listings = []
    if entry.tools:
        listings.append(
            Listing("Tools that ran:", tuple(_tool(item.name, item.calls, item.failed) for item in entry.tools))
        )
    if entry.writes:
        written = (f"{reduce_identifier(w.record)} ({reduce_identifier(w.completeness)})" for w in entry.writes)
        listings.append(Listing("Records written:", tuple(written)))
    if entry.waiting and entry.undecided is None:
        listings.append(Listing("Waiting for a decision:", tuple(reduce_identifier(name) for name in entry.waiting)))
    return Note(
        anchor=entry.after,
        sentences=tuple(sentences),
        listings=tuple(listings),
        empty=_empty(entry),
        run_segment=(str(entry.run), entry.segment) if entry.run is not None and entry.segment is not None else None,
    )


def outcome_note(outcome: CardOutcome) -> Note:
    """The note of a card outcome: its result and the names of its fields."""
    fields = tuple(reduce_identifier(name) for name in outcome.fields)
    sentence = _RESULTS.get(outcome.result, "A card of this conversation was decided.")
    return Note(outcome.after, (sentence,), (Listing("Fields of the card:", fields),) if fields else ())


def nothing_saved_note(anchor: str | None, run_segment: tuple[str, int] | None) -> Note:
    """The note beside an answer that claims a change its step did not save (R-030)."""
    return Note(anchor, (NOTHING_SAVED,), run_segment=run_segment)


def _empty(entry: RunRecordEntry) -> bool:
    something = entry.tools or entry.writes or entry.decision or entry.waiting or entry.undecided
    return not something and entry.outcome not in FAILED_OUTCOMES and entry.outcome not in WAITING_OUTCOMES


def _decision(entry: RunRecordEntry) -> list[str]:
    if not entry.decision:
        return []
    kind = entry.decision.get("kind")
    said = [_DECISIONS.get(str(kind), "The editor decided on the card before this step.")]
    reason = entry.decision.get("reason")
    return [*said, _REASONS[reason]] if isinstance(reason, str) and reason in _REASONS else said


def _outcome(outcome: str) -> str:
    if outcome in WAITING_OUTCOMES:
        return _WAITING
    return _OUTCOMES.get(outcome, f"This step ended as {reduce_identifier(outcome)}.")


def _tool(name: str, calls: int, failed: int) -> str:
    counted = f"{calls} call" if calls == 1 else f"{calls} calls"
    return (
        f"{reduce_identifier(name)} ({counted}, {failed} failed)"
        if failed
        else f"{reduce_identifier(name)} ({counted})"
    )
