"""Layer one, the store's part: what a call says it will touch, judged before anybody is asked (S-20 to S-29)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field
from remit_contracts.base import Contract, RequestContract
from remit_contracts.records import PageUid, TableName, Uid
from remit_contracts.scope import EffectiveAssignmentScope, Language, ScopeReason

from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.commands import CommandCheck
from content_store.scope.places import PAGES, RowPlace
from content_store.scope.topology import PageTopology

MAX_CLAIMS: Final = 100
MAX_TARGETS: Final = 200


class ClaimOperation(StrEnum):
    """What a tool does with the records of its claim."""

    UPDATE = "update"
    CREATE = "create"
    MOVE = "move"
    COPY = "copy"
    LOCALIZE = "localize"
    DELETE = "delete"
    PUBLISH = "publish"
    CLEAR_CACHE = "clear_cache"


class ClaimedRecord(RequestContract):
    """An existing row the tool acts on, an anchor included (S-22)."""

    table: TableName
    uid: Uid


class ClaimedPage(RequestContract):
    """A page that gets rows of a table."""

    page: PageUid
    table: TableName


class ScopedClaim(RequestContract):
    """The claim of one call (S-21).

    Attributes:
        key: names it in the answer.
        subtree: it reaches the subpages of a page.
        language: it writes; none where it takes none.
        source_language: it reads from.
        tables: it writes beside those of its records and pages.
        writes_files: refused under every scope (S-27).
        touches_no_record: passes under every scope (S-28).
    """

    key: Annotated[str, Field(max_length=100)]
    tool: Annotated[str, Field(max_length=100)] = ""
    operation: Annotated[ClaimOperation, Field(strict=False)]
    records: Annotated[list[ClaimedRecord], Field(max_length=MAX_TARGETS)] = []
    pages: Annotated[list[ClaimedPage], Field(max_length=MAX_TARGETS)] = []
    subtree: bool = False
    language: Language | None = None
    source_language: Language | None = None
    tables: Annotated[list[TableName], Field(max_length=MAX_TARGETS)] = []
    writes_files: bool = False
    touches_no_record: bool = False


class ClaimsRequest(RequestContract):
    """All claims of a turn."""

    scope: Annotated[EffectiveAssignmentScope, Field(strict=False)]
    workspace_id: Annotated[int, Field(ge=0)] = 0
    claims: Annotated[list[ScopedClaim], Field(max_length=MAX_CLAIMS)]


class ClaimRefusal(Contract):
    """One thing of a claim that lies outside; identities only, a title might not be the reader's to see."""

    reason: ScopeReason
    table: str | None = None
    uid: int | None = None
    pid: int | None = None


class ClaimAnswer(Contract):
    """What is outside; no refusal means everything is inside."""

    key: str
    refusals: tuple[ClaimRefusal, ...] = ()


class ClaimsAnswer(Contract):
    """One answer per claim, in order."""

    answers: tuple[ClaimAnswer, ...]


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
