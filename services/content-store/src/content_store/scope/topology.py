"""Reads what the scope is decided on: rows, the pages above and below them, translations (S-08, S-47)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from content_store.records.gateway import RecordGateway
from content_store.schema.model import Schema
from content_store.scope.child_relations import ChildRelations, RecordKey
from content_store.scope.parsing import Unreadable
from content_store.scope.places import PAGES, Places, RowPlace
from content_store.scope.statements import ScopeStatements

# A child of a child of a translation: deeper nests than this are not read, so they are outside.
_MAX_ROUNDS: Final = 8


class PageTopology:
    """Rows and pages of one call, each read once; what was written since has to be forgotten.

    Args:
        gateway: of the call's transaction.
        workspace: of the run.
    """

    def __init__(self, gateway: RecordGateway, workspace: int = 0) -> None:
        self._gateway = gateway
        self.workspace = workspace
        self.schema: Schema = gateway.schema
        self.relations = ChildRelations.of(gateway.schema)
        self._statements = ScopeStatements(gateway.schema, self.relations, gateway.schema_name)
        self.places = Places(workspace)
        self._below: dict[int, dict[int, int]] = {}

    def forget(self, table: str | None = None, uid: int | None = None) -> None:
        """A row was written (or, without one, anything): what was read of it is not true any more.

        The pages below a page change with any page, so they are forgotten with each.
        """
        if table is None or uid is None:
            self.places.forget()
        else:
            self.places.forget((table, uid))
        if table in (None, PAGES):
            self._below.clear()

    async def load(self, keys: Iterable[RecordKey] = (), pages: Iterable[int] = ()) -> Places:
        """Make these rows known, the rows a judgement of them asks for, and every page above.

        One statement where the rows belong to nobody and translate nothing, else one more per link of the chain.
        """
        wanted = {key for key in keys if key[0] in self.schema and key[1] > 0}
        further = {page for page in pages if page > 0 and self.places.unknown(((PAGES, page),))}
        for _ in range(_MAX_ROUNDS):
            unknown = self.places.unknown(wanted)
            if not unknown and not further:
                break
            await self._read(unknown, further)
            further = set()
            known = [row for key in wanted if (row := self.places.get(*key)) is not None]
            wanted |= {key for row in known for key in row.related if key[0] in self.schema}
        return self.places

    async def load_around(self, rows: Iterable[RowPlace]) -> Places:
        """Make known what a judgement of these rows, which themselves need not be stored so, asks for."""
        listed = list(rows)
        pages = {row.pid for row in listed} | {row.uid for row in listed if row.table == PAGES and row.uid > 0}
        return await self.load((key for row in listed for key in row.related), pages)

    async def _read(self, keys: set[RecordKey], pages: set[int]) -> None:
        by_table: dict[str, list[int]] = defaultdict(list)
        for table, uid in sorted(keys):
            by_table[table].append(uid)
        tables = list(by_table)
        args: list[Any] = [*by_table.values(), sorted(pages)]
        if self.workspace:
            args.append(self.workspace)
        rows = await self._gateway.fetch(self._statements.load(tables, workspace=bool(self.workspace)), *args)
        self.places.add(self._place(row) for row in rows)
        self.places.mark_missing(keys | {(PAGES, page) for page in pages})

    def _place(self, row: Any) -> RowPlace:
        stored = row["pointers"]
        # A connection without a JSON codec hands the text over.
        pointers = json.loads(stored) if isinstance(stored, str) else stored
        return RowPlace(
            table=row["tab"],
            uid=row["uid"],
            pid=row["pid"],
            language=row["language"],
            parent=row["parent"],
            version_of=row["version_of"],
            workspace=row["workspace"],
            state=row["state"],
            deleted=row["deleted"],
            owners=stored_owners(self.relations, row["tab"], pointers or {}),
            pointers=tuple((pointers or {}).items()),
        )

    async def below(self, pages: Iterable[int]) -> dict[int, dict[int, int]]:
        """Pages below each page with their level, 1 for a direct subpage; one statement for those not known yet."""
        wanted = set(pages)
        unknown = sorted(wanted - self._below.keys())
        if unknown:
            found: dict[int, dict[int, int]] = {page: {} for page in unknown}
            for row in await self._gateway.fetch(self._statements.below(), unknown):
                found[row["root"]][row["uid"]] = row["level"]
            self._below.update(found)
        return {page: self._below[page] for page in wanted}

    async def height(self, page: int) -> int:
        """Levels of pages below a page, 0 for none."""
        return max((await self.below((page,)))[page].values(), default=0)

    async def translations(self, table: str, uid: int) -> list[RowPlace]:
        """Translations of a record in all workspaces, those of its versions included (S-47)."""
        described = self.schema[table]
        if not described.localizable:
            return []
        uids = [uid]
        if described.has_version_columns:
            uids += [row["uid"] for row in await self._gateway.fetch(self._statements.versions(table), [uid])]
        rows = [self._place(row) for row in await self._gateway.fetch(self._statements.translations(table), uids)]
        self.places.add(rows)
        return rows


def stored_owners(relations: ChildRelations, table: str, pointers: Mapping[str, Any]) -> tuple[RecordKey, ...]:
    """Owners of a stored child row; a pointer that cannot be read belongs to a record that is nowhere (S-42)."""
    try:
        return relations.owners(table, pointers)
    except Unreadable:
        return (("", 0),)
