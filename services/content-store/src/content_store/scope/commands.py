"""Layer two for commands, and the same rules for claims: what each command touches (S-20 to S-29, S-35 to S-41)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from remit_contracts.scope import ScopeReason

from content_store.scope import parsing
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.child_relations import RecordKey
from content_store.scope.parsing import Placeholder, Unreadable
from content_store.scope.places import PAGES, Places, RowPlace
from content_store.scope.topology import PageTopology

KNOWN_COMMANDS: Final = frozenset(
    {
        "move",
        "copy",
        "localize",
        "copyToLanguage",
        "inlineLocalizeSynchronize",
        "delete",
        "undelete",
        "discard",
        "version",
    }
)
_DISCARDING: Final = frozenset({"clearWSID", "flush"})


@dataclass(frozen=True, slots=True)
class CommandVerdict:
    """Why a command is refused, and the page the record lies on, or would, where that is known."""

    reason: ScopeReason
    pid: int | None = None


class CommandCheck:
    """Judges commands on existing records.

    Args:
        checker: the scope.
        topology: rows and pages, cached for the call.
        resolve: the uid behind a placeholder of the call.
        copies_subpages: does a copied page take its subpages along for this user (S-36)?
    """

    def __init__(
        self,
        checker: AssignmentScopeChecker,
        topology: PageTopology,
        resolve: Callable[[str], RecordKey | None],
        *,
        copies_subpages: bool = False,
    ) -> None:
        self._checker = checker
        self._topology = topology
        self._resolve = resolve
        self._copies_subpages = copies_subpages

    async def judge(self, command: str, table: str, uid: int, value: Any) -> CommandVerdict | None:
        """The reason a command is refused, None when it may run.

        An unknown command is refused, and so is a value that names no definite target (S-41, S-42).
        """
        if command not in KNOWN_COMMANDS:
            return CommandVerdict(ScopeReason.SCOPE_UNRESOLVABLE)
        places = await self._topology.load([(table, uid)])
        row = places.get(table, uid)
        if row is None:
            return CommandVerdict(ScopeReason.SCOPE_UNRESOLVABLE)
        reason = self._checker.membership(row, places)
        pid = row.pid
        if reason is None:
            try:
                reason, pid = await self._operation(command, row, value)
            except Unreadable:
                reason = ScopeReason.SCOPE_UNRESOLVABLE
        return CommandVerdict(reason, pid) if reason is not None else None

    async def _operation(self, command: str, row: RowPlace, value: Any) -> tuple[ScopeReason | None, int]:
        match command:
            case "move":
                return await self._move(row, parsing.paste(value).destination)
            case "copy":
                return await self._copy(row, parsing.paste(value).destination)
            case "localize" | "copyToLanguage":
                return self._checker.language(parsing.canonical_uid(value)), row.pid
            case "delete":
                return await self.delete(row), row.pid
            case "discard":
                return await self.translations(row), row.pid
            case "version":
                return await self._version(row, value), row.pid
            case _:
                return None, row.pid

    # --- move and copy ------------------------------------------------------------------------------------------

    async def _move(self, row: RowPlace, target: parsing.Destination) -> tuple[ScopeReason | None, int]:
        page, reason = await self._destination(row.table, target, anchor_moves=True)
        height = 0
        if reason is None and row.table == PAGES:
            height = await self._topology.height(row.live_uid)
        return (reason or self._placed(row, page, height, self._topology.places) or await self.translations(row)), page

    async def _copy(self, row: RowPlace, target: parsing.Destination) -> tuple[ScopeReason | None, int]:
        page, reason = await self._destination(row.table, target, anchor_moves=False)
        if reason is None:
            reason = self._placed(row, page, 0, self._topology.places)
        if reason is None and row.table == PAGES and self._copies_subpages:
            reason = await self.subtree(row)
        return reason, page

    def _placed(self, row: RowPlace, page: int, height: int, places: Places) -> ScopeReason | None:
        # Where it goes is asked for as for a row of its own: neither its owner nor its parent makes room elsewhere.
        alone = replace(row, pid=page, parent=0, owners=(), version_of=0, workspace=places.workspace, uid=0)
        return self._checker.placement(alone, places, height=height)

    async def _destination(
        self, table: str, target: parsing.Destination, *, anchor_moves: bool
    ) -> tuple[int, ScopeReason | None]:
        """The page behind a target; the anchor of a move is judged like a moved record (S-35)."""
        uid = target.target
        if isinstance(uid, Placeholder):
            found = self._resolve(uid.name)
            if found is None or found[0] != (table if target.after else PAGES):
                raise Unreadable(uid.name)
            uid = found[1]
        if not target.after:
            places = await self._topology.load(pages=[uid])
            return places.page_of(uid) if uid else 0, None
        places = await self._topology.load([(table, uid)])
        anchor = places.get(table, uid)
        if anchor is None:
            raise Unreadable(uid)
        page = places.position(anchor)
        await self._topology.load(pages=[page])
        reason = self._checker.membership(anchor, places)
        if reason is None and anchor_moves:
            if table == PAGES:
                height = await self._topology.height(anchor.live_uid)
                reason = self._placed(anchor, page, height, places)
            reason = reason or await self.translations(anchor)
        return page, reason

    # --- what goes along ----------------------------------------------------------------------------------------

    async def delete(self, row: RowPlace) -> ScopeReason | None:
        """What a delete takes along: of a page every page below it; translations when languages are listed (S-39)."""
        reason = await self.subtree(row) if row.table == PAGES and not row.is_translation else None
        return reason or await self.translations(row)

    async def subtree(self, row: RowPlace) -> ScopeReason | None:
        """Every page below a page."""
        page = row.live_uid
        below = (await self._topology.below([page]))[page]
        await self._topology.load((PAGES, uid) for uid in below)
        return self._checker.subtree(below, self._topology.places)

    async def placed_on(self, row: RowPlace, page: int) -> ScopeReason | None:
        """May the row, for a page with everything below it, be put on this page (S-29)?"""
        height = await self._topology.height(row.live_uid) if row.table == PAGES else 0
        places = await self._topology.load(pages=[page])
        return self._placed(row, places.page_of(page) if page else 0, height, places)

    async def translations(self, row: RowPlace) -> ScopeReason | None:
        """Are the languages of its translations admitted? Asked only when languages are listed (S-35)."""
        if not self._checker.restricts_languages:
            return None
        return self._checker.translations(await self._topology.translations(row.table, row.live_uid))

    async def _version(self, row: RowPlace, value: Any) -> ScopeReason | None:
        if not isinstance(value, Mapping) or not isinstance(value.get("action"), str):
            raise Unreadable(value)
        if "swapWith" in value:
            other = parsing.canonical_uid(value["swapWith"])
            places = await self._topology.load([(row.table, other)])
            version = places.get(row.table, other)
            if version is None:
                raise Unreadable(other)
            if (reason := self._checker.membership(version, places)) is not None:
                return reason
        return await self.translations(row) if value["action"] in _DISCARDING else None
