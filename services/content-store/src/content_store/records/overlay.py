"""All reads of the DataHandler: rows as the acting workspace sees them, each read once per run (SEMANTICS 14).

Rows are kept as stored, by uid; lookups by one column ("records on page 5", "translations of 7") keep the uids they
found. Writers report what they changed, so a lookup made once stays true for the run. Rows handed out are snapshots:
nobody may change them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from content_store.records.gateway import RecordGateway, Row
from content_store.schema.model import TableSchema

_IndexKey = tuple[str, str, bool]


class VersionState(IntEnum):
    """Values of ``t3ver_state``."""

    CHANGED = 0
    NEW = 1
    DELETED = 2
    MOVED = 4


class OverlayReader:
    """Reads records for one run.

    Args:
        gateway: for the statements.
        workspace: acting workspace, 0 for live; in live no statement is spent on versions.
    """

    def __init__(self, gateway: RecordGateway, workspace: int = 0) -> None:
        self.gateway = gateway
        self.workspace = workspace
        self._rows: dict[str, dict[int, Row | None]] = defaultdict(dict)
        self._index: dict[_IndexKey, dict[Any, dict[int, None]]] = defaultdict(dict)

    def forget(self) -> None:
        """Drops everything read, e.g. after a rollback to a savepoint."""
        self._rows.clear()
        self._index.clear()

    def _schema(self, table: str) -> TableSchema:
        return self.gateway.schema.tables[table]

    # --- rows as stored -----------------------------------------------------------------------------------------

    async def stored_many(self, table: str, uids: Iterable[int]) -> dict[int, Row]:
        """Rows by uid as stored, whatever their workspace or deleted flag; missing ones are missing."""
        rows = self._rows[table]
        wanted = {uid for uid in uids if uid > 0}
        unread = [uid for uid in wanted if uid not in rows]
        if unread:
            found = await self.gateway.select_by_uids(table, unread)
            for uid in unread:
                rows[uid] = found.get(uid)
        return {uid: row for uid in wanted if (row := rows[uid]) is not None}

    async def stored(self, table: str, uid: int) -> Row | None:
        """The row as stored, or ``None``."""
        return (await self.stored_many(table, (uid,))).get(uid)

    # --- rows as the workspace sees them ------------------------------------------------------------------------

    def is_deleted(self, table: str, row: Mapping[str, Any]) -> bool:
        """Is the row deleted softly?"""
        field = self._schema(table).delete_field
        return bool(field and row.get(field))

    def in_workspace(self, table: str, row: Mapping[str, Any]) -> bool:
        """Does the row take part as a record of its own: live, or new in the acting workspace?"""
        if not self._schema(table).has_version_columns:
            return True
        if row["t3ver_oid"]:
            return False
        return row["t3ver_wsid"] in (0, self.workspace)

    async def record(self, table: str, uid: int) -> Row | None:
        """The record the workspace sees under this live uid (or the uid of a version), not deleted."""
        row = await self.stored(table, uid)
        if row is None or self.is_deleted(table, row):
            return None
        if self.workspace == 0:
            return row if self.in_workspace(table, row) else None
        return (await self.overlay(table, [row])).get(uid)

    async def overlay(self, table: str, rows: Sequence[Row]) -> dict[int, Row]:
        """Rows with the values of their version in the acting workspace, by uid; rows marked deleted are left out.

        The uid stays the one of the row given. Live costs nothing.
        """
        if self.workspace == 0 or not self._schema(table).versionable:
            return {row["uid"]: row for row in rows}
        found = await self.lookup_stored(table, "t3ver_oid", [r["uid"] for r in rows if not r["t3ver_oid"]])
        result: dict[int, Row] = {}
        for row in rows:
            version = next((v for v in found.get(row["uid"], []) if v["t3ver_wsid"] == self.workspace), None)
            seen = row if version is None else {**version, "uid": row["uid"], "_version_uid": version["uid"]}
            if seen["t3ver_state"] != VersionState.DELETED:
                result[row["uid"]] = seen
        return result

    # --- lookups by one column ----------------------------------------------------------------------------------

    async def lookup_stored(
        self, table: str, column: str, values: Iterable[Any], *, deleted: bool = False
    ) -> dict[Any, list[Row]]:
        """Rows as stored whose column has one of the values, in the order of uid.

        Args:
            table: to search.
            column: an indexed column.
            values: wanted; 0 and the empty text are never looked up but for ``pid``.
            deleted: with the rows deleted softly.
        """
        index = self._index[table, column, deleted]
        wanted = [v for v in dict.fromkeys(values) if v or column == "pid"]
        unread = [v for v in wanted if v not in index]
        if unread:
            where: dict[str, Any] = {column: unread}
            field = self._schema(table).delete_field
            if field and not deleted:
                where[field] = 0
            for value in unread:
                index[value] = {}
            for found in await self.gateway.select(table, where):
                self._add_to_index(table, column, index, deleted, found)
        rows = self._rows[table]
        return {v: [row for uid in sorted(index[v]) if (row := rows[uid]) is not None] for v in wanted}

    def _add_to_index(
        self, table: str, column: str, index: dict[Any, dict[int, None]], deleted: bool, found: Row
    ) -> None:
        # A row read before may hold changes that are written later in the run (deletions go per table).
        row = self._rows[table].setdefault(found["uid"], found)
        if row is not None and row[column] in index and (deleted or not self.is_deleted(table, row)):
            index[row[column]][row["uid"]] = None

    async def lookup(
        self, table: str, column: str, values: Iterable[Any], *, deleted: bool = False
    ) -> dict[Any, list[Row]]:
        """Like :meth:`lookup_stored`, but only records the workspace sees, with its values."""
        found = await self.lookup_stored(table, column, values, deleted=deleted)
        seen = {v: [r for r in rows if self.in_workspace(table, r)] for v, rows in found.items()}
        if self.workspace == 0 or not self._schema(table).versionable:
            return seen
        overlaid = await self.overlay(table, [r for rows in seen.values() for r in rows])
        return {v: [overlaid[r["uid"]] for r in rows if r["uid"] in overlaid] for v, rows in seen.items()}

    async def translations_of_many(self, table: str, uids: Iterable[int]) -> dict[int, list[Row]]:
        """Records whose parent pointer names one of the uids and that have a language of their own."""
        schema = self._schema(table)
        if not schema.parent_field or not schema.language_field:
            return {}
        found = await self.lookup(table, schema.parent_field, uids)
        return {uid: [r for r in rows if r[schema.language_field] > 0] for uid, rows in found.items()}

    async def translations(self, table: str, uid: int) -> list[Row]:
        """Translations of one default-language record, in the order of uid."""
        return (await self.translations_of_many(table, (uid,))).get(uid, [])

    async def rootline(self, page: int) -> list[Row]:
        """The page and its ancestors up to the root, in one statement; a circle ends where it closes."""
        await self.read_rootlines([page])
        line: list[Row] = []
        seen: set[int] = set()
        while page > 0 and page not in seen:
            seen.add(page)
            row = await self.stored("pages", page)
            if row is None:
                break
            line.append(row)
            page = row["pid"]
        return line

    async def read_rootlines(self, pages: Iterable[int]) -> None:
        """Reads pages and their ancestors that will be asked for, in one statement for the tree and one for the rows."""
        unread = [page for page in dict.fromkeys(pages) if page not in self._rows["pages"]]
        if not unread:
            return
        name = self.gateway.table("pages")
        found = await self.gateway.fetch(
            f"WITH RECURSIVE line(uid, pid) AS (SELECT uid, pid FROM {name} WHERE uid = ANY($1::bigint[]) "
            f"UNION SELECT p.uid, p.pid FROM {name} p JOIN line ON p.uid = line.pid) SELECT uid FROM line",
            unread,
        )
        await self.stored_many("pages", [*unread, *(r["uid"] for r in found)])

    async def tables_on_page(self, tables: Sequence[str], page: int) -> set[str]:
        """Those of the tables that have rows on the page, seen or not, in one statement."""
        if not tables:
            return set()
        parts = [
            f"SELECT {number} AS number WHERE EXISTS (SELECT 1 FROM {self.gateway.table(table)} WHERE pid = $1)"
            for number, table in enumerate(tables)
        ]
        return {tables[row["number"]] for row in await self.gateway.fetch(" UNION ALL ".join(parts), page)}

    # --- what writers report ------------------------------------------------------------------------------------

    def note_insert(self, table: str, row: Row) -> None:
        """A row was inserted."""
        self._rows[table][row["uid"]] = row
        self._reindex(table, row["uid"], None, row)

    def note_update(self, table: str, uid: int, changes: Mapping[str, Any]) -> None:
        """Columns of a row were changed."""
        old = self._rows[table].get(uid)
        if old is None:
            # Not read so far: the next read finds it, but lookups may not know it.
            self._rows[table].pop(uid, None)
            any_lookup = self._schema(table).delete_field in changes
            for key in [k for k in self._index if k[0] == table and (any_lookup or k[1] in changes)]:
                del self._index[key]
            return
        new = {**old, **changes}
        self._rows[table][uid] = new
        self._reindex(table, uid, old, new)

    def note_delete(self, table: str, uid: int) -> None:
        """A row was removed for good."""
        self._rows[table][uid] = None
        for (indexed_table, _, _), index in self._index.items():
            if indexed_table == table:
                for uids in index.values():
                    uids.pop(uid, None)

    def _reindex(self, table: str, uid: int, old: Row | None, new: Row) -> None:
        for (indexed_table, column, with_deleted), index in self._index.items():
            if indexed_table != table:
                continue
            if old is not None and old[column] in index:
                index[old[column]].pop(uid, None)
            if new[column] in index and (with_deleted or not self.is_deleted(table, new)):
                index[new[column]][uid] = None
