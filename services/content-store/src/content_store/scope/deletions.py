"""Which of the rows a call deleted went along with a record that may be deleted (S-39, S-65). Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator

from remit_contracts.scope import ScopeReason

from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.child_relations import RecordKey
from content_store.scope.places import PAGES, Places, RowPlace


class Deletions:
    """The rows a call deleted, judged together.

    A row goes along with its owner, with the page it lies on, with the translation of that page into its language, or
    with the record it translates, when that one was deleted by the same call and may be: then its position is all that
    counts. Whatever nothing above it explains is judged like any other write.

    Args:
        checker: the scope.
        before: places as they were.
        named: rows a DataHandler operation named: they never only go along.
        rows: what was deleted, as it was.
    """

    def __init__(
        self, checker: AssignmentScopeChecker, before: Places, named: Collection[RecordKey], rows: Iterable[RowPlace]
    ) -> None:
        self._checker = checker
        self._before = before
        self._named = named
        self._rows = {row.key: row for row in rows}
        self._translated_pages: dict[tuple[int, int | None], list[RecordKey]] = defaultdict(list)
        for row in self._rows.values():
            if row.table == PAGES and row.is_translation:
                self._translated_pages[before.page_of(row.uid), row.language].append(row.key)
        self._along: set[RecordKey] = set()
        self._admitted = {row.key for row in self._rows.values() if checker.membership(row, before) is None}
        self._spread()

    def reason(self, row: RowPlace) -> ScopeReason | None:
        """Why a deleted row may not go; None when it may."""
        if self._is_named(row):
            return self._checker.membership(row, self._before)
        if not self._checker.contains(row, self._before):
            return ScopeReason.OUTSIDE_SCOPE
        if row.key not in self._along:
            return self._checker.membership(row, self._before)
        # The translations of a record somebody asked to delete count by their language (S-39).
        asked_for = row.is_translation and not self._named_keys(row.table, row.parent).isdisjoint(self._named)
        return self._checker.language(row.language) if asked_for else None

    def admitted(self, key: RecordKey) -> bool:
        """Was this row deleted, and may it be?"""
        return key in self._admitted

    def _spread(self) -> None:
        followers: dict[RecordKey, list[tuple[RowPlace, bool]]] = defaultdict(list)
        for row in self._rows.values():
            for key in self._hosts(row):
                followers[key].append((row, True))
            if row.is_translation:
                for key in self._named_keys(row.table, row.parent):
                    followers[key].append((row, False))
        waiting = deque(self._admitted)
        while waiting:
            key = waiting.popleft()
            for row, hosted in followers[key]:
                if row.key not in self._along and self._goes_along(row, key, hosted=hosted):
                    self._along.add(row.key)
                    self._admitted.add(row.key)
                    waiting.append(row.key)

    def _goes_along(self, row: RowPlace, key: RecordKey, *, hosted: bool) -> bool:
        if self._is_named(row) or not self._checker.contains(row, self._before):
            return False
        # A translation of what itself went along counts by position, one of what was deleted by its language, too.
        return hosted or key in self._along or self._checker.language(row.language) is None

    def _hosts(self, row: RowPlace) -> Iterator[RecordKey]:
        for table, uid in row.owners:
            yield from self._named_keys(table, uid)
        page = self._before.page_of(self._before.position(row))
        yield PAGES, page
        if row.table != PAGES:
            yield from self._translated_pages.get((page, row.language), ())

    def _named_keys(self, table: str, uid: int) -> set[RecordKey]:
        """A record by the uid it is pointed at with, which may be the one of a version."""
        return {(table, uid), (table, self._before.live_uid(table, uid))}

    def _is_named(self, row: RowPlace) -> bool:
        return row.key in self._named or (row.table, row.live_uid) in self._named
