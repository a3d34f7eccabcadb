"""What was changed by whom (SEMANTICS 17): collected during a run, written with one statement at its end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from content_store.records.gateway import RecordGateway

if TYPE_CHECKING:
    from content_store.schema.model import TableSchema

#: Stands for the value of a field that may not be read (passwords).
REDACTED: Final = "[redacted]"


class HistoryAction(IntEnum):
    """Values of ``actiontype``."""

    ADD = 1
    MODIFY = 2
    MOVE = 3
    DELETE = 4
    UNDELETE = 5
    STAGE = 6
    PUBLISH = 7


@dataclass(frozen=True)
class HistoryEntry:
    """One row of ``sys_history`` to be written."""

    tstamp: int
    action: HistoryAction
    table: str
    uid: int
    data: str | None
    workspace: int
    correlation_id: str


def correlation_id(scope: str, table: str, uid: int) -> str:
    """Names the run (scope, shared by nested instances) and the record (subject)."""
    subject = hashlib.md5(f"{table}:{uid}".encode(), usedforsecurity=False).hexdigest()
    return f"0400${scope}:{subject}"


def readable(table: TableSchema, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without what may not be read back."""
    return {
        name: REDACTED if (column := table.columns.get(name)) and column.type == "password" and value else value
        for name, value in values.items()
    }


class HistoryCollector:
    """Entries of a run, in the order of the writes."""

    def __init__(self, user: int, original_user: int, scope: str, workspace: int) -> None:
        self._user = user
        self._original_user = original_user
        self.scope = scope
        self._workspace = workspace
        self.entries: list[HistoryEntry] = []

    def add(self, now: int, action: HistoryAction, table: str, uid: int, data: Mapping[str, Any] | None) -> None:
        """Collects one entry; the workspace is repeated inside the data when not live."""
        text = None
        if data is not None:
            text = json.dumps({**data, "workspace": self._workspace} if self._workspace else dict(data))
        self.entries.append(
            HistoryEntry(now, action, table, uid, text, self._workspace, correlation_id(self.scope, table, uid))
        )

    def added(self, now: int, table: TableSchema, row: Mapping[str, Any]) -> None:
        """A row was inserted."""
        self.add(now, HistoryAction.ADD, table.name, row["uid"], readable(table, row))

    def modified(self, now: int, table: TableSchema, uid: int, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Fields were changed; both mappings hold the changed ones only."""
        data = {"oldRecord": readable(table, old), "newRecord": readable(table, new)}
        self.add(now, HistoryAction.MODIFY, table.name, uid, data)

    async def flush(self, gateway: RecordGateway) -> None:
        """Writes all entries; their uids follow the order of the writes."""
        entries, self.entries = self.entries, []
        if not entries:
            return
        await gateway.fetch(
            f"INSERT INTO {gateway.table('sys_history')} (tstamp, actiontype, usertype, userid, originaluserid, recuid, "
            "tablename, history_data, workspace, correlation_id) "
            "SELECT e.t, e.a, 'BE', $7, $8, e.r, e.n, e.d::jsonb, e.w, e.c FROM unnest($1::bigint[], $2::smallint[], "
            "$3::bigint[], $4::text[], $5::text[], $6::bigint[], $9::text[]) "
            "WITH ORDINALITY AS e(t, a, r, n, d, w, c, position) ORDER BY e.position",
            [e.tstamp for e in entries],
            [int(e.action) for e in entries],
            [e.uid for e in entries],
            [e.table for e in entries],
            [e.data for e in entries],
            [e.workspace for e in entries],
            self._user,
            self._original_user,
            [e.correlation_id for e in entries],
        )
