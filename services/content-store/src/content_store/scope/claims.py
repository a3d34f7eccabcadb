"""Layer one, the store's part: what a call says it will touch, judged before anybody is asked (S-20 to S-29)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from remit_contracts.claims import ClaimAnswer, ClaimedPage, ClaimOperation, ClaimRefusal, ScopedClaim
from remit_contracts.scope import EffectiveAssignmentScope, ScopeReason

from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.commands import CommandCheck
from content_store.scope.places import PAGES, RowPlace
from content_store.scope.topology import PageTopology

Refusals = list[ClaimRefusal]


class ClaimCheck:
    """Judges claims under one scope; one read serves all of them.

    Args:
        scope: effective scope of the calls.
        topology: of a reading transaction.
    """

    def __init__(self, scope: EffectiveAssignmentScope, topology: PageTopology) -> None:
        self._checker = AssignmentScopeChecker(scope)
        self._topology = topology
        self._commands = CommandCheck(self._checker, topology, lambda _name: None)
        self._rules: Mapping[ClaimOperation, Callable[[ScopedClaim, RowPlace], Coroutine[Any, Any, Refusals]]] = {
            ClaimOperation.MOVE: self._moved,
            ClaimOperation.DELETE: self._deleted,
            ClaimOperation.COPY: self._reached,
        }

    async def answers(self, claims: Sequence[ScopedClaim]) -> list[ClaimAnswer]:
        """One answer per claim."""
        keys = {(record.table, record.uid) for claim in claims for record in claim.records}
        pages = {target.page for claim in claims for target in claim.pages}
        await self._topology.load(keys, pages)
        return [ClaimAnswer(key=claim.key, refusals=tuple(await self._refusals(claim))) for claim in claims]

    async def _refusals(self, claim: ScopedClaim) -> Refusals:
        if claim.writes_files:
            return [ClaimRefusal(reason=ScopeReason.SCOPE_FILES_WRITE)]
        if claim.touches_no_record:
            return []
        if not claim.records and not claim.pages:
            return [ClaimRefusal(reason=ScopeReason.SCOPE_UNRESOLVABLE)]
        found = self._languages_and_tables(claim)
        rows = []
        for record in claim.records:
            row = self._topology.places.get(record.table, record.uid)
            if row is None:
                found.append(ClaimRefusal(reason=ScopeReason.SCOPE_UNRESOLVABLE, table=record.table, uid=record.uid))
                continue
            rows.append(row)
            found += self._record(row, self._checker.membership(row, self._topology.places))
        for target in claim.pages:
            found += self._placed(claim, target, rows)
        rule = self._rules.get(claim.operation, self._reached)
        for row in rows:
            found += await rule(claim, row)
        return list(dict.fromkeys(found))

    def _languages_and_tables(self, claim: ScopedClaim) -> Refusals:
        reasons = [self._checker.language(claim.language), self._checker.language(claim.source_language)]
        found = [ClaimRefusal(reason=reason) for reason in reasons if reason is not None]
        for table in claim.tables:
            if table not in self._topology.schema:
                found.append(ClaimRefusal(reason=ScopeReason.SCOPE_UNRESOLVABLE, table=table))
            elif (reason := self._checker.table(table)) is not None:
                found.append(ClaimRefusal(reason=reason, table=table))
        return found

    def _placed(self, claim: ScopedClaim, target: ClaimedPage, rows: Iterable[RowPlace]) -> Refusals:
        """A page gets a row: of a table of its own, or of a child that lies where its claimed owner lies (S-32)."""
        places = self._topology.places
        if target.table not in self._topology.schema:
            return [ClaimRefusal(reason=ScopeReason.SCOPE_UNRESOLVABLE, table=target.table, pid=target.page)]
        place = RowPlace(table=target.table, uid=0, pid=places.page_of(target.page) if target.page else 0)
        if claim.operation in (ClaimOperation.CREATE, ClaimOperation.UPDATE):
            owners = tuple(row.key for row in rows if self._owns(row, target.table))
            place = RowPlace(table=target.table, uid=0, pid=place.pid, owners=owners)
        reason = self._checker.placement(place, places, with_owner=True)
        return [ClaimRefusal(reason=reason, table=target.table, pid=target.page)] if reason is not None else []

    def _owns(self, row: RowPlace, child_table: str) -> bool:
        pointers = self._topology.relations.pointers(child_table)
        return any(pointer.table_field or pointer.parent_table == row.table for pointer in pointers)

    async def _moved(self, claim: ScopedClaim, row: RowPlace) -> Refusals:
        """Height of a page's subtree at each destination, and translations that come along; an anchor likewise."""
        found: Refusals = []
        for target in claim.pages:
            if target.table == row.table:
                found += self._record(row, await self._commands.placed_on(row, target.page))
        return found + self._record(row, await self._commands.translations(row)) + await self._reached(claim, row)

    async def _deleted(self, claim: ScopedClaim, row: RowPlace) -> Refusals:
        return self._record(row, await self._commands.delete(row))

    async def _reached(self, claim: ScopedClaim, row: RowPlace) -> Refusals:
        if not claim.subtree or row.table != PAGES:
            return []
        return self._record(row, await self._commands.subtree(row))

    @staticmethod
    def _record(row: RowPlace, reason: ScopeReason | None) -> Refusals:
        if reason is None:
            return []
        return [ClaimRefusal(reason=reason, table=row.table, uid=row.uid, pid=row.pid)]
