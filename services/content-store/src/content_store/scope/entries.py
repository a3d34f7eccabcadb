"""Layer two for datamap entries: what a new row or an update names, judged before a field is processed (S-30 to S-34)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remit_contracts.scope import ScopeReason

from content_store.scope import parsing
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.child_relations import RecordKey
from content_store.scope.parsing import Placeholder, RelationItem, Unreadable
from content_store.scope.places import PAGES, Places, RowPlace
from content_store.scope.topology import PageTopology

# The uid behind a placeholder of the call, None while the record does not exist.
ResolvePlaceholder = Callable[[str], RecordKey | None]


@dataclass(frozen=True, slots=True)
class EntryVerdict:
    """Why an entry is refused, and the page it lies or would lie on where that is known."""

    reason: ScopeReason
    pid: int | None = None


class EntryCheck:
    """Judges the entries of one instance.

    Args:
        checker: the scope.
        topology: rows and pages, cached for the call.
        resolve: placeholders of the call.
        lists_placeholder: which record's inline field names a placeholder, for a child without a pointer of its own.
    """

    def __init__(
        self,
        checker: AssignmentScopeChecker,
        topology: PageTopology,
        resolve: ResolvePlaceholder,
        lists_placeholder: Callable[[str, str], tuple[str, str] | None],
    ) -> None:
        self._checker = checker
        self._topology = topology
        self._resolve = resolve
        self._lists_placeholder = lists_placeholder

    async def update(self, table: str, uid: int, row: Mapping[str, Any]) -> EntryVerdict | None:
        """An entry for an existing record (S-30)."""
        children = self._children(table, row)
        if isinstance(children, ScopeReason):
            return EntryVerdict(children)
        places = await self._topology.load({(table, uid), *children})
        stored = places.get(table, uid)
        if stored is None:
            return EntryVerdict(ScopeReason.SCOPE_UNRESOLVABLE)
        try:
            pointed = self._pointed(stored, row)
            language = self._language(table, row)
        except Unreadable:
            return EntryVerdict(ScopeReason.SCOPE_UNRESOLVABLE, stored.pid)
        await self._topology.load(pointed)
        reason = (
            self._checker.membership(stored, places)
            or (self._checker.language(language) if language is not None else None)
            or self._contained(pointed, places)
            or self._listed(children, places)
        )
        return EntryVerdict(reason, stored.pid) if reason is not None else None

    async def new(self, table: str, placeholder: str, row: Mapping[str, Any]) -> EntryVerdict | None:
        """An entry for a record to be created (S-31, S-32)."""
        children = self._children(table, row)
        if isinstance(children, ScopeReason):
            return EntryVerdict(children)
        try:
            place = await self._place(table, placeholder, row)
        except Unreadable:
            return EntryVerdict(ScopeReason.SCOPE_UNRESOLVABLE)
        await self._topology.load_around([place])
        places = await self._topology.load(children)
        reason = self._checker.placement(place, places, with_owner=True) or self._listed(children, places)
        return EntryVerdict(reason, place.pid) if reason is not None else None

    # --- what an entry names ------------------------------------------------------------------------------------

    async def _place(self, table: str, placeholder: str, row: Mapping[str, Any]) -> RowPlace:
        schema = self._topology.schema[table]
        parent = parsing.pointer(row.get(schema.parent_field)) if schema.parent_field else 0
        language = parsing.language(row.get(schema.language_field)) if schema.language_field else None
        return RowPlace(
            table=table,
            uid=0,
            pid=await self._page(table, parsing.destination(row.get("pid"))),
            language=language,
            parent=self._existing(table, parent),
            owners=self._owners(table, placeholder, row),
        )

    async def _page(self, table: str, target: parsing.Destination) -> int:
        """The page a new row goes to."""
        if isinstance(target.target, Placeholder):
            found = self._resolve(target.target.name)
            if found is None or found[0] != (table if target.after else PAGES):
                raise Unreadable(target.target.name)
            uid = found[1]
        else:
            uid = target.target
        if not target.after:
            places = await self._topology.load(pages=[uid])
            return places.page_of(uid) if uid else 0
        places = await self._topology.load([(table, uid)])
        anchor = places.get(table, uid)
        if anchor is None:
            raise Unreadable(uid)
        return places.position(anchor)

    def _existing(self, table: str, value: int | Placeholder) -> int:
        # A record that is still to be created is judged by its own entry; until then the row stands for itself.
        if isinstance(value, int):
            return value
        found = self._resolve(value.name)
        if found is None:
            return 0
        if found[0] != table:
            # Its uid would be written all the same, and name whatever record of this table has it.
            raise Unreadable(value.name)
        return found[1]

    def _owners(self, table: str, placeholder: str, row: Mapping[str, Any]) -> tuple[RecordKey, ...]:
        submitted = self._topology.relations.submitted_owners(table, {}, row)
        if not submitted and (lister := self._lists_placeholder(table, placeholder)) is not None:
            uid = parsing.pointer(lister[1])
            submitted = ((lister[0], uid),) if uid else ()
        owners = []
        for name, uid in submitted:
            resolved = self._existing(name, uid)
            if resolved:
                owners.append((name, resolved))
        return tuple(owners)

    def _pointed(self, stored: RowPlace, row: Mapping[str, Any]) -> set[RecordKey]:
        """Records an update makes its row a translation or a child of; the stored value stands in for a missing key."""
        schema = self._topology.schema[stored.table]
        found: set[tuple[str, int | Placeholder]] = set()
        if schema.parent_field and schema.parent_field in row:
            found.add((stored.table, parsing.pointer(row[schema.parent_field])))
        columns = self._topology.relations.pointer_columns(stored.table)
        submitted = {name: row[name] for name in columns if name in row}
        if submitted:
            found.update(self._topology.relations.submitted_owners(stored.table, dict(stored.pointers), submitted))
        return {(name, resolved) for name, uid in found if (resolved := self._existing(name, uid))}

    def _language(self, table: str, row: Mapping[str, Any]) -> int | None:
        field = self._topology.schema[table].language_field
        return parsing.language(row[field]) if field and field in row else None

    def _children(self, table: str, row: Mapping[str, Any]) -> set[RecordKey] | ScopeReason:
        """Existing records an inline or file field lists; they would be re-parented (S-33)."""
        found: set[RecordKey] = set()
        for field in self._topology.relations.inline_fields(table):
            if field.name not in row:
                continue
            try:
                items = parsing.relation_items(row[field.name], self._topology.schema.tables)
            except Unreadable:
                return ScopeReason.SCOPE_UNRESOLVABLE
            found.update(
                (item.table or field.child_table, item.uid) for item in items if isinstance(item, RelationItem)
            )
        return found

    # --- judging what it names ----------------------------------------------------------------------------------

    def _contained(self, keys: set[RecordKey], places: Places) -> ScopeReason | None:
        for key in sorted(keys):
            row = places.get(*key)
            if row is None:
                return ScopeReason.SCOPE_UNRESOLVABLE
            if not self._checker.contains(row, places):
                return ScopeReason.OUTSIDE_SCOPE
        return None

    def _listed(self, keys: set[RecordKey], places: Places) -> ScopeReason | None:
        for key in sorted(keys):
            row = places.get(*key)
            if row is None:
                return ScopeReason.SCOPE_UNRESOLVABLE
            if (reason := self._checker.membership(row, places)) is not None:
                return reason
        return None
