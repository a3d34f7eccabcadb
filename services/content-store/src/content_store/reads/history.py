"""The history of a record, as far as its reader may read the record and its fields."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from content_store.access.users import Queries
from content_store.deps import Reading
from content_store.errors import RecordNotFoundError
from content_store.reads.cursors import decode_cursor, encode_cursor
from content_store.reads.rows import readable_fields
from content_store.reads.schemas import HistoryEntryView, HistoryView
from content_store.reads.service import readable_table, reader_of
from content_store.schema.ddl import qualified_name
from content_store.schema.model import TableSchema

ACTIONS: Final = {1: "add", 2: "modify", 3: "move", 4: "delete", 5: "undelete", 6: "stage", 7: "publish"}
#: Keys of the stored data that hold values before and after, by action.
_BEFORE: Final = ("oldRecord", "oldData")
_AFTER: Final = ("newRecord", "newData")


async def record_history(reading: Reading, table_name: str, uid: int, cursor: str | None, limit: int) -> HistoryView:
    """Entries of a record, newest first, drafts of the workspace worked in included.

    Raises:
        TableNotFoundError: there is no such table for this reader.
        RecordNotFoundError: there is no such record for this reader; one that is deleted still has its history.
        CursorInvalidError: as named.
    """
    table = readable_table(reading, table_name)
    before = decode_cursor(cursor, 1)[0] if cursor is not None else None
    if await reader_of(reading).readable_deleted_too(table, uid) is None:
        raise RecordNotFoundError(table=table.name, uid=uid)
    repository = HistoryRepository(reading.services.reads, reading.services.schema_name)
    rows = await repository.entries(table, uid, reading.viewer.workspace_id, before, limit)
    fields = set(readable_fields(table, reading.viewer.user))
    entries = [entry_view(table, row, fields) for row in rows[:limit]]
    return HistoryView(
        entries=entries, next_cursor=encode_cursor([rows[limit - 1]["uid"]]) if len(rows) > limit else None
    )


class HistoryRepository:
    """Reads ``sys_history``.

    Args:
        queries: connection or pool.
        schema_name: database schema it lies in.
    """

    def __init__(self, queries: Queries, schema_name: str = "public") -> None:
        self._queries = queries
        self._schema_name = schema_name
        self._name = qualified_name("sys_history", schema_name)

    async def entries(
        self, table: TableSchema, uid: int, workspace: int, before: int | None, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Entries made live or in the workspace, newest first; one more than ``limit`` where there are more.

        What was done to a draft is kept under the draft's own uid until it is published.
        """
        records = "recuid = $2"
        if workspace and table.has_version_columns:
            drafts = (
                f"SELECT d.uid FROM {qualified_name(table.name, self._schema_name)} d "
                f"WHERE d.t3ver_oid = $2 AND d.t3ver_oid <> 0 AND d.t3ver_wsid = {int(workspace)}"
            )
            records = f"({records} OR recuid IN ({drafts}))"
        return await self._queries.fetch(
            f"SELECT * FROM {self._name} WHERE tablename = $1 AND {records} AND workspace = ANY($3::bigint[]) "
            f"AND ($4::bigint IS NULL OR uid < $4) ORDER BY uid DESC LIMIT {int(limit) + 1}",
            table.name,
            uid,
            [0, workspace],
            before,
        )

    async def since(self, table: str, uid: int, entry: int, workspace: int) -> Sequence[Mapping[str, Any]]:
        """The entry and all later ones of the record, newest first; empty where the entry is not of this record."""
        rows = await self._queries.fetch(
            f"SELECT * FROM {self._name} WHERE tablename = $1 AND recuid = $2 AND uid >= $3 "
            "AND workspace = ANY($4::bigint[]) ORDER BY uid DESC",
            table,
            uid,
            entry,
            [0, workspace],
        )
        return rows if rows and rows[-1]["uid"] == entry else []


def entry_view(table: TableSchema, row: Mapping[str, Any], readable: Collection[str]) -> HistoryEntryView:
    """One entry with the values of the fields that may be read (pure)."""
    data = history_data(row)
    before, after = values_of(data, _BEFORE), values_of(data, _AFTER)
    if row["actiontype"] == 1:
        after = data
    secret = {name for name in {*before, *after} if (c := table.columns.get(name)) and c.type == "password"}
    return HistoryEntryView(
        uid=row["uid"],
        at=datetime.fromtimestamp(row["tstamp"], UTC),
        action=ACTIONS.get(row["actiontype"], "other"),
        user_uid=row["userid"],
        workspace_id=row["workspace"],
        correlation_id=row["correlation_id"],
        before={name: value for name, value in before.items() if name in readable},
        after={name: value for name, value in after.items() if name in readable},
        fields=sorted(secret),
    )


def history_data(row: Mapping[str, Any]) -> dict[str, Any]:
    """The stored data of an entry as a map; anything else counts as empty."""
    stored = row["history_data"]
    data = json.loads(stored) if isinstance(stored, str) else stored
    return data if isinstance(data, dict) else {}


def values_of(data: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The map under the first of the keys that is there."""
    found = next((data[key] for key in keys if isinstance(data.get(key), dict)), None)
    return dict(found) if found is not None else {}
