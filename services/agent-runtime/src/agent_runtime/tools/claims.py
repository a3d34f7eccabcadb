"""What a call says it will touch: the claim the scope is asked about (S-21, S-29)."""

from __future__ import annotations

from dataclasses import dataclass

from remit_contracts.claims import ClaimOperation
from remit_contracts.records import RecordReference


@dataclass(frozen=True)
class PageTarget:
    """A page that gets a new or moved row, and the table of that row."""

    page: int
    table: str


@dataclass(frozen=True)
class ScopedWrite:
    """The claim of a call: everything its arguments say it will touch (S-21, S-22).

    Attributes:
        records: existing rows it acts on, an "insert after" anchor included.
        pages: pages that get rows of a table.
        subtree: it reaches the subpages of a page.
        language: the language it writes; none where it takes none.
        tables: tables it writes beside those of its records and pages.
        touches_no_record: it changes no record at all (S-28).
    """

    operation: ClaimOperation
    records: tuple[RecordReference, ...] = ()
    pages: tuple[PageTarget, ...] = ()
    subtree: bool = False
    language: int | None = None
    source_language: int | None = None
    tables: tuple[str, ...] = ()
    writes_files: bool = False
    touches_no_record: bool = False

    @property
    def empty(self) -> bool:
        """It names nothing to act on."""
        return not (self.records or self.pages or self.touches_no_record or self.writes_files)
