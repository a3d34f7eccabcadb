"""The rules of the assignment scope, in one class that every layer asks (S-03 to S-08, S-17). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from remit_contracts.scope import EffectiveAssignmentScope, ScopeReason

from content_store.scope.child_relations import RecordKey
from content_store.scope.places import PAGES, Places, RowPlace


class AssignmentScopeChecker:
    """Decides membership and placement of rows under one scope.

    Rows are those of :class:`Places`; what is not known there is outside. Every answer is None when admitted, else the
    reason. The user is never asked for: an administrator's run is limited the same (S-17).

    Args:
        scope: the effective scope of the call.
    """

    def __init__(self, scope: EffectiveAssignmentScope) -> None:
        self.scope = scope
        self._records: frozenset[RecordKey] = frozenset((r.table, r.uid) for r in scope.records)
        self._roots: dict[int, int] = {}
        for root in scope.pages:
            self._roots[root.page] = max(root.depth, self._roots.get(root.page, 0))
        self._tables = None if scope.tables is None else frozenset(scope.tables)
        self._languages = None if scope.languages is None else frozenset(scope.languages)

    @property
    def restricts_languages(self) -> bool:
        """The scope lists languages, so translations count too (S-35, S-39)."""
        return self._languages is not None

    # --- what narrows -------------------------------------------------------------------------------------------

    def table(self, table: str) -> ScopeReason | None:
        """May rows of this table be written at all (S-06, S-46)?"""
        return None if self._tables is None or table in self._tables else ScopeReason.TABLE_NOT_ALLOWED

    def language(self, language: int | None) -> ScopeReason | None:
        """May rows of this language be written? None = the table has no language (S-06)."""
        if language is None or self._languages is None or language in self._languages:
            return None
        return ScopeReason.LANGUAGE_NOT_ALLOWED

    # --- pages --------------------------------------------------------------------------------------------------

    def page(self, page: int, places: Places, *, deeper: int = 0) -> bool:
        """Does the page lie within the depth of a scoped page (S-04)?

        Args:
            page: uid; 0 is outside the page tree and never in scope (S-05).
            places: the tree.
            deeper: so many levels below this page are asked for (S-07).
        """
        for level, ancestor in enumerate(places.chain(page)):
            depth = self._roots.get(ancestor)
            if depth is not None and level + deeper <= depth:
                return True
        return False

    def page_below(self, page: int, places: Places, *, height: int = 0) -> bool:
        """May a page be put under this one, with so many levels below it (S-07)?"""
        return self.page(page, places, deeper=1 + height)

    # --- membership ---------------------------------------------------------------------------------------------

    def membership(self, row: RowPlace, places: Places) -> ScopeReason | None:
        """May this row be written where it lies?"""
        return (
            self.table(row.table)
            or (None if self.contains(row, places) else ScopeReason.OUTSIDE_SCOPE)
            or self.language(row.language)
        )

    def contains(self, row: RowPlace, places: Places, _seen: frozenset[RecordKey] = frozenset()) -> bool:
        """Is the row in scope by what it is or where it lies; table and language lists left aside (S-03, S-34, S-65)."""
        if self.is_scoped_record(row, places):
            return True
        if row.owners:
            here = places.position(row)
            return self._owners_contained(row, places, _seen) and (
                self.page(here, places) or any(here == self._place_with(key, places) for key in row.owners)
            )
        return self.page(places.home(row), places)

    def is_scoped_record(self, row: RowPlace, places: Places) -> bool:
        """Is it named by the scope, or a translation of a named record?"""
        if (row.table, row.live_uid) in self._records:
            return True
        return row.is_translation and (row.table, places.live_uid(row.table, row.parent)) in self._records

    def _owners_contained(self, row: RowPlace, places: Places, seen: frozenset[RecordKey]) -> bool:
        if row.key in seen:
            return False
        found = [places.get(*key) for key in row.owners]
        return all(owner is not None and self.contains(owner, places, seen | {row.key}) for owner in found)

    def _place_with(self, key: RecordKey, places: Places) -> int | None:
        """The page a row lies on that belongs to, or translates, this record; None when it is not there."""
        row = places.get(*key)
        if row is None:
            return None
        return places.page_of(row.uid) if row.table == PAGES else places.position(row)

    # --- placement ----------------------------------------------------------------------------------------------

    def placement(
        self, row: RowPlace, places: Places, *, height: int = 0, with_owner: bool = False
    ) -> ScopeReason | None:
        """May a row be put where ``row`` says: a new row, or one that changed place (S-05, S-07, S-31, S-32)?

        Args:
            row: as it would lie.
            places: knows its destination, the record it translates and its owners.
            height: levels of pages below it, for a page.
            with_owner: it has to lie exactly where the translated record or the owner lies.
        """
        return self.table(row.table) or self._place(row, places, height, with_owner) or self.language(row.language)

    def _place(self, row: RowPlace, places: Places, height: int, with_owner: bool) -> ScopeReason | None:
        if row.table == PAGES and (places.page_of(row.pid) != row.pid or row.live_uid in places.chain(row.pid)):
            # Below a translation, or below itself, it hangs on no tree: what lies there would be in no place at all.
            return ScopeReason.OUTSIDE_SCOPE
        companions = row.owners
        if row.is_translation:
            companions = (*companions, (row.table, row.parent))
        if companions:
            return self._placed_with(row, companions, places, with_owner)
        if row.table != PAGES:
            inside = self.page(places.position(row), places)
            return None if inside else ScopeReason.OUTSIDE_SCOPE
        if self.page_below(row.pid, places, height=height):
            return None
        fits_alone = height > 0 and self.page_below(row.pid, places)
        return ScopeReason.SUBTREE_OUTSIDE_SCOPE if fits_alone else ScopeReason.OUTSIDE_SCOPE

    def _placed_with(
        self, row: RowPlace, companions: tuple[RecordKey, ...], places: Places, with_owner: bool
    ) -> ScopeReason | None:
        for key in companions:
            companion = places.get(*key)
            if companion is None or not self.contains(companion, places):
                return ScopeReason.OUTSIDE_SCOPE
        here = places.position(row)
        beside = any(here == self._beside(row, key, places) for key in companions)
        if beside or (not with_owner and row.table != PAGES and self.page(here, places)):
            return None
        return ScopeReason.OUTSIDE_SCOPE

    def _beside(self, row: RowPlace, key: RecordKey, places: Places) -> int | None:
        if row.table == PAGES and key[0] == PAGES:
            # A page translation lies beside its page, under the same parent.
            page = places.get(PAGES, places.page_of(key[1]))
            return places.position(page) if page is not None else None
        return self._place_with(key, places)

    # --- along with a named record ------------------------------------------------------------------------------

    def subtree(self, pages: Iterable[int], places: Places) -> ScopeReason | None:
        """Are all these pages, which go along with one above them, in scope (S-36, S-39)?"""
        inside = all(self.page(page, places) for page in pages)
        return None if inside else ScopeReason.SUBTREE_OUTSIDE_SCOPE

    def translations(self, rows: Iterable[RowPlace]) -> ScopeReason | None:
        """Are the languages of rows that go along admitted (S-35, S-39)? Asked for only when languages are listed."""
        return next((reason for row in rows if (reason := self.language(row.language)) is not None), None)

    def describe(self) -> Mapping[str, object]:
        """The scope as data, for messages."""
        return self.scope.model_dump(mode="json")
