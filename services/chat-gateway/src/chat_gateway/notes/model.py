"""A note: what the chat tells a later turn about one step (R-020 to R-036)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

LABEL = "[Chat record — written by the chat from the run, not by the assistant: {text}]"
OLDER_NOTICE = "Older or other chat records exist and cannot be read in this turn ({count} left out)."
_MORE = "and {count} more"


@dataclass(frozen=True)
class Listing:
    """Items of a note that can be cut at an item's end, e.g. the records written."""

    lead: str
    items: tuple[str, ...]
    left_out: int = 0

    def text(self) -> str:
        """The listing as one sentence."""
        shown = list(self.items)
        if self.left_out:
            shown.append(_MORE.format(count=self.left_out))
        return f"{self.lead} {', '.join(shown)}."


@dataclass(frozen=True)
class Note:
    """One note.

    Attributes:
        anchor: message id of the user message its turn belongs to, none for a record before any message.
        run_segment: run and segment it describes, so that it finds the answer of that segment.
        sentences: short fixed sentences.
        listings: sentences with items.
        empty: nothing ran, was written or decided (R-036).
        notice: how many notes were left out before this one, 0 = none.
    """

    anchor: str | None
    sentences: tuple[str, ...]
    listings: tuple[Listing, ...] = ()
    empty: bool = False
    notice: int = 0
    run_segment: tuple[str, int] | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The labelled text as the model reads it (R-021)."""
        parts = [OLDER_NOTICE.format(count=self.notice)] if self.notice else []
        parts.extend(self.sentences)
        parts.extend(listing.text() for listing in self.listings)
        return LABEL.format(text=" ".join(parts))

    def with_notice(self, count: int) -> Self:
        """The same note, saying first that others were left out (R-027)."""
        return replace(self, notice=count)

    def fitting(self, limit: int) -> Self:
        """The note cut at item ends until its text has at most ``limit`` characters; what was cut is counted (R-034)."""
        if len(self.text) <= limit:
            return self
        listings = [Listing(item.lead, (), item.left_out + len(item.items)) for item in self.listings]
        room = limit - len(replace(self, listings=tuple(listings)).text)
        for position, full in enumerate(self.listings):
            kept: list[str] = []
            for item in full.items:
                room -= len(item) + 2
                if room < 0:
                    break
                kept.append(item)
            listings[position] = Listing(full.lead, tuple(kept), full.left_out + len(full.items) - len(kept))
            if room < 0:
                break
        return replace(self, listings=tuple(listings))
