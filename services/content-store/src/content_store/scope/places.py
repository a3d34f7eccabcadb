"""Where a row lies: the facts the scope rules are decided on, apart from how they were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from content_store.scope.child_relations import RecordKey

PAGES: Final = "pages"
MOVED: Final = 4


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Identity of one stored row.

    Attributes:
        pid: page uid, 0 for the root.
        language: of its language field; None for a table without one.
        parent: the default-language record of a translation, else 0. May be the uid of a version.
        version_of: the live row this is a version of, else 0.
        workspace: the row is stored in.
        state: ``t3ver_state``.
        owners: the records its parent pointers name (S-34).
        pointers: the columns of a child that name them, as stored.
    """

    table: str
    uid: int
    pid: int
    language: int | None = None
    parent: int = 0
    version_of: int = 0
    workspace: int = 0
    state: int = 0
    deleted: bool = False
    owners: tuple[RecordKey, ...] = ()
    pointers: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> RecordKey:
        """Table and uid of the stored row."""
        return self.table, self.uid

    @property
    def live_uid(self) -> int:
        """The uid people know the record by."""
        return self.version_of or self.uid

    @property
    def is_translation(self) -> bool:
        """Has a default-language record it translates."""
        return self.parent > 0 and (self.language or 0) > 0

    @property
    def related(self) -> tuple[RecordKey, ...]:
        """Rows a judgement of this one may ask for: owners, the translated record, the live row."""
        parent = ((self.table, self.parent),) if self.is_translation else ()
        live = ((self.table, self.version_of),) if self.version_of else ()
        return (*self.owners, *parent, *live)


class Places:
    """Rows known so far, with the page tree above them, as one workspace sees it.

    A key that was looked for and not found is known as missing; one never looked for is unknown. Both are in no scope.
    """

    def __init__(self, workspace: int = 0, rows: Iterable[RowPlace] = ()) -> None:
        self.workspace = workspace
        self._rows: dict[RecordKey, RowPlace | None] = {}
        self._moved: dict[int, RowPlace] = {}
        self.add(rows)

    def add(self, rows: Iterable[RowPlace]) -> None:
        """Take in rows that were read."""
        for row in rows:
            self._rows[row.key] = row
            if row.table == PAGES and row.version_of and row.state == MOVED and row.workspace == self.workspace:
                self._moved[row.version_of] = row

    def mark_missing(self, keys: Iterable[RecordKey]) -> None:
        """Take in that these rows do not exist."""
        for key in keys:
            self._rows.setdefault(key, None)

    def forget(self, key: RecordKey | None = None) -> None:
        """Drop one row, or all: they were written meanwhile."""
        if key is None:
            self._rows.clear()
            self._moved.clear()
        else:
            self._rows.pop(key, None)

    def unknown(self, keys: Iterable[RecordKey]) -> set[RecordKey]:
        """Those of the keys that were never looked for."""
        return {key for key in keys if key not in self._rows}

    def get(self, table: str, uid: int) -> RowPlace | None:
        """The row as stored, or None."""
        return self._rows.get((table, uid))

    def before(self, changed: Mapping[RecordKey, RowPlace | None]) -> Places:
        """The same places as they were: each changed row as given, or not there at all."""
        view = Places(self.workspace)
        view.add(row for key, row in self._rows.items() if row is not None and key not in changed)
        view.add(row for row in changed.values() if row is not None)
        return view

    def live_uid(self, table: str, uid: int) -> int:
        """The live uid behind a uid that may be the one of a version."""
        row = self.get(table, uid)
        return row.live_uid if row is not None else uid

    def page_of(self, uid: int) -> int:
        """The default-language live page behind the uid of a page, its translation or a version of either.

        0 for a translation of a translation: there is no page it could stand for.
        """
        page = self.live_uid(PAGES, uid)
        row = self.get(PAGES, page)
        if row is None or not row.is_translation:
            return page
        page = self.live_uid(PAGES, row.parent)
        row = self.get(PAGES, page)
        return 0 if row is not None and row.is_translation else page

    def chain(self, page: int) -> list[int]:
        """The page and its ancestors upwards; empty for the root or a page that is not there. A cycle ends it."""
        line: list[int] = []
        page = self.page_of(page) if page > 0 else 0
        while page > 0 and page not in line:
            row = self.get(PAGES, page)
            if row is None:
                break
            line.append(page)
            page = self._moved.get(page, row).pid
        return line

    def position(self, row: RowPlace) -> int:
        """The page a row lies on as the workspace sees it; for a page the page above it.

        A version of another workspace is taken at its live position (S-47).
        """
        if row.version_of and row.workspace != self.workspace:
            live = self.get(row.table, row.version_of)
            return live.pid if live is not None else row.pid
        if row.table == PAGES and row.uid in self._moved:
            return self._moved[row.uid].pid
        return row.pid

    def home(self, row: RowPlace) -> int:
        """The page whose membership decides for a row that stands for itself: its own page, or itself for a page."""
        return self.page_of(row.uid) if row.table == PAGES else self.position(row)

    def at(self, row: RowPlace, pid: int) -> RowPlace:
        """The row as it would lie on another page."""
        return replace(row, pid=pid)
