"""The effect check: judges what the database saw of a call, never what was asked (S-51 to S-55, CALLS 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from remit_contracts.changes import RefusedWrite
from remit_contracts.scope import ScopeReason

from content_store.capture.model import Identity, Relation, RowDelta
from content_store.capture.relations import RelationEnds
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.child_relations import ChildRelations, RecordKey
from content_store.scope.deletions import Deletions
from content_store.scope.places import PAGES, Places, RowPlace
from content_store.scope.topology import PageTopology, stored_owners

MAX_JUDGED_ROWS: Final = 5000
EFFECT: Final = "effect"


class NotJudgeable(Exception):
    """The check is impossible, so the call is undone (S-55).

    Attributes:
        reason: ``too_many_rows`` or ``too_many_history_rows``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AssignmentScopeEffect:
    """Judges every row a call wrote, on its place before and after.

    Args:
        checker: the scope.
        topology: fresh, so that nothing a hook did behind its back is missed.
        ends: which tables each MM table connects.
        max_rows: from this number on a call is not judgeable.
        max_history: the same for its history rows.
    """

    def __init__(
        self,
        checker: AssignmentScopeChecker,
        topology: PageTopology,
        ends: Mapping[str, RelationEnds],
        max_rows: int = MAX_JUDGED_ROWS,
        max_history: int = MAX_JUDGED_ROWS,
    ) -> None:
        self._checker = checker
        self._topology = topology
        self._ends = ends
        self._max_rows = max_rows
        self._max_history = max_history

    async def violations(
        self, deltas: Sequence[RowDelta], named: Collection[RecordKey] = (), history_rows: int = 0
    ) -> list[RefusedWrite]:
        """Everything outside the scope, each with the checker's reason and marked as undone (S-75).

        Args:
            deltas: what the database recorded, grouped.
            named: rows a DataHandler operation named: judged even when only renumbered, and, deleted, by more than
                their position (S-54, S-65).
            history_rows: how many the call wrote.

        Raises:
            NotJudgeable: there are too many rows to judge.
        """
        if history_rows >= self._max_history:
            raise NotJudgeable("too_many_history_rows")
        judged = judged_deltas(deltas, named)
        if len(judged) >= self._max_rows:
            raise NotJudgeable("too_many_rows")
        changes = [Change.of(delta, self._topology.relations) for delta in judged if not delta.is_relation]
        relations = [delta for delta in judged if delta.relation is not None]
        after = await self._load(changes, relations)
        before = after.before({change.key: change.before for change in changes})
        heights = await self._heights(changes, before)
        gone = (change.before for change in changes if change.deleted and change.before is not None)
        judge = _Judge(self._checker, before, after, Deletions(self._checker, before, frozenset(named), gone), heights)
        found = [
            RefusedWrite(
                operation=EFFECT, table=change.table, uid=change.uid, pid=change.pid, reason=reason, undone=True
            )
            for change in changes
            if (reason := judge.change(change)) is not None
        ]
        return found + [
            RefusedWrite(operation=EFFECT, table=table, uid=uid or None, reason=reason, undone=True)
            for delta in relations
            if (reason := judge.relation(ends := self._ends_of(delta), came=delta.relation_change > 0)) is not None
            for table, uid in (ends or [(delta.table, 0)])[:1]
        ]

    async def _load(self, changes: Sequence[Change], relations: Iterable[RowDelta]) -> Places:
        rows = [row for change in changes for row in (change.before, change.after) if row is not None]
        keys = {end for delta in relations for end in self._ends_of(delta)}
        keys |= {key for row in rows for key in (*row.related, (row.table, row.parent))}
        pages = {row.pid for row in rows} | {row.uid for row in rows if row.table == PAGES}
        return await self._topology.load(keys, pages)

    def _ends_of(self, delta: RowDelta) -> list[RecordKey]:
        relation: Relation | None = delta.relation
        ends = self._ends.get(delta.table)
        return ends.of(relation) if ends is not None and relation is not None else []

    async def _heights(self, changes: Iterable[Change], before: Places) -> Mapping[int, int]:
        moved = [
            change.after.live_uid
            for change in changes
            if change.after is not None
            and change.table == PAGES
            and not change.after.is_translation
            and change.origin(before) is not None
            and change.changed_place(before)
        ]
        if not moved:
            return {}
        return {page: max(below.values(), default=0) for page, below in (await self._topology.below(moved)).items()}


class Change:
    """A row before and after, as places."""

    def __init__(self, table: str, uid: int, before: RowPlace | None, after: RowPlace | None) -> None:
        self.table = table
        self.uid = uid
        self.before = before
        self.after = after

    @classmethod
    def of(cls, delta: RowDelta, relations: ChildRelations) -> Change:
        """From what the database recorded."""
        before, after = (
            place_of(delta.table, delta.uid, identity, relations) if identity is not None else None
            for identity in (delta.before, delta.after)
        )
        return cls(delta.table, delta.uid, before, after)

    @property
    def key(self) -> RecordKey:
        """Table and uid of the stored row."""
        return self.table, self.uid

    @property
    def pid(self) -> int | None:
        """Where it lies, or lay."""
        row = self.after or self.before
        return row.pid if row is not None else None

    @property
    def deleted(self) -> bool:
        """It was there and is not any more, softly or hard."""
        return self.before is not None and (self.after is None or (self.after.deleted and not self.before.deleted))

    def new_parent(self, before: Places) -> RecordKey | None:
        """The record that a row which was there has come to translate; None where that did not change."""
        origin, after = self.origin(before), self.after
        if origin is None or after is None or after.parent == 0:
            return None
        became = after.is_translation and not origin.is_translation
        return (self.table, after.parent) if became or after.parent != origin.parent else None

    def origin(self, before: Places) -> RowPlace | None:
        """What it was: the row itself, or for a new version the live row it is one of; None for a new record."""
        if self.before is None and self.after is not None and self.after.version_of:
            return before.get(self.table, self.after.version_of)
        return self.before

    def changed_place(self, before: Places) -> bool:
        """It is new, or lies on another page than before."""
        origin = self.origin(before)
        return self.after is not None and (origin is None or origin.pid != self.after.pid)


class _Judge:
    """The rules of CALLS 3 over one set of changes."""

    def __init__(
        self,
        checker: AssignmentScopeChecker,
        before: Places,
        after: Places,
        deletions: Deletions,
        heights: Mapping[int, int],
    ) -> None:
        self._checker = checker
        self._before = before
        self._after = after
        self._deletions = deletions
        self._heights = heights

    def change(self, change: Change) -> ScopeReason | None:
        """The reason a row is outside, before or after; None when it is inside both times."""
        origin = change.origin(self._before)
        if change.deleted and origin is not None:
            reason = self._deletions.reason(origin)
        else:
            reason = self._checker.membership(origin, self._before) if origin is not None else None
        if reason is not None or change.after is None:
            return reason
        return self._translates(change) or self._placed(change, change.after)

    def _translates(self, change: Change) -> ScopeReason | None:
        """A record that a row is made a translation of lies inside (S-30, S-51)."""
        key = change.new_parent(self._before)
        if key is None:
            return None
        parent = self._after.get(*key)
        inside = parent is not None and self._checker.contains(parent, self._after)
        return None if inside else ScopeReason.OUTSIDE_SCOPE

    def _placed(self, change: Change, after: RowPlace) -> ScopeReason | None:
        if change.changed_place(self._before):
            height = self._heights.get(after.live_uid, 0) if change.table == PAGES else 0
            return self._checker.placement(after, self._after, height=height)
        return None if change.deleted else self._checker.membership(after, self._after)

    def relation(self, ends: Sequence[RecordKey], *, came: bool) -> ScopeReason | None:
        """An MM row is inside when one of its ends is; by position alone only when it went along with that end."""
        for key in ends:
            along = not came and self._deletions.admitted(key)
            for places in (self._after, self._before):
                row = places.get(*key)
                if row is not None and (along or self._checker.membership(row, places) is None):
                    return None
        return ScopeReason.OUTSIDE_SCOPE


def place_of(table: str, uid: int, identity: Identity, relations: ChildRelations) -> RowPlace:
    """The place of a row the database recorded."""
    return RowPlace(
        table=table,
        uid=uid,
        pid=identity.pid,
        language=identity.language,
        parent=identity.parent,
        version_of=identity.live_uid,
        workspace=identity.workspace,
        state=identity.version_state,
        deleted=identity.deleted,
        owners=stored_owners(relations, table, identity.pointers),
    )


def judged_deltas(deltas: Iterable[RowDelta], named: Collection[RecordKey]) -> list[RowDelta]:
    """Those that are a change of a record: not rows made and removed, nor neighbours that were only renumbered (S-54)."""
    return [
        delta
        for delta in deltas
        if not delta.is_passing and (not delta.is_renumbering or (delta.table, delta.uid) in named)
    ]
