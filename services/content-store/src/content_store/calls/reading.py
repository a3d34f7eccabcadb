"""``read`` and ``expect``: rows as the call sees them, its own writes included, within the rights of its user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remit_contracts.calls import EntryError, OperationResult, Read

from content_store.access.readable import Parameters, ReadableRows, Viewer, page_of_row, with_clause
from content_store.access.rules import may_select_table, may_use_field
from content_store.datahandler.log import storable
from content_store.records.casting import from_database
from content_store.records.gateway import RecordGateway, Row
from content_store.records.hashing import record_hash
from content_store.records.overlay import OverlayReader
from content_store.schema.model import TableSchema
from content_store.scope.child_relations import RecordKey
from content_store.scope.parsing import Unreadable, canonical_uid

_SYSTEM_FIELDS = ("uid", "pid")


class RowReader:
    """Reads rows for one call.

    Args:
        gateway: of the call.
        viewer: whose rights hold, and the workspace.
    """

    def __init__(self, gateway: RecordGateway, viewer: Viewer) -> None:
        self._gateway = gateway
        self._viewer = viewer

    async def read(self, operation: Read, placeholders: Mapping[str, RecordKey]) -> OperationResult:
        """The rows in the order asked for; one that is not there or not readable is an error entry, both alike.

        Fields of type password are never part of a row, nor are fields the user has no right to.
        """
        described = self._gateway.schema.tables.get(operation.table)
        if described is None or not may_select_table(operation.table, self._viewer.user):
            code = "unknown_table" if described is None else "record_not_found"
            return OperationResult(op="read", errors=(_error(operation.table, "", code),))
        fields, unknown = self._fields(described, operation.fields)
        if unknown:
            return OperationResult(
                op="read", errors=tuple(_error(operation.table, f, "unknown_field") for f in unknown)
            )
        wanted = [(str(given), _uid(operation.table, given, placeholders)) for given in operation.uids]
        found = await self._readable(described, [uid for _, uid in wanted if uid])
        rows, hashes, errors = [], {}, []
        for given, uid in wanted:
            row = found.get(uid or 0)
            if row is None or uid is None:
                errors.append(_error(operation.table, given, "record_not_found"))
                continue
            rows.append({name: from_database(row[name]) for name in fields if name in row})
            hashes[str(uid)] = record_hash(described, row)
        return OperationResult(op="read", rows=tuple(rows), hashes=hashes, errors=tuple(errors))

    def _fields(self, table: TableSchema, asked: list[str] | None) -> tuple[list[str], list[str]]:
        user = self._viewer.user
        secret = {c.name for c in table.columns.values() if c.type == "password"}
        allowed = [n for n in table.db_columns if n not in secret and may_use_field(table, n, user)]
        if asked is None:
            return allowed, []
        wanted = dict.fromkeys((*_SYSTEM_FIELDS, *asked))
        return [n for n in wanted if n in allowed], [n[:64] for n in asked if n not in table.db_columns or n in secret]

    async def _readable(self, table: TableSchema, uids: list[int]) -> dict[int, Row]:
        parameters = Parameters()
        readable = ReadableRows(self._viewer, parameters, self._gateway.schema_name)
        workspace = str(int(self._viewer.workspace_id))
        wanted = parameters.add(uids, "bigint[]")
        name = self._gateway.table(table.name)
        pages = readable.page_expressions(
            f"SELECT {page_of_row(table, 'c')}, {workspace}::bigint FROM {name} c WHERE c.uid = ANY({wanted})"
        )
        condition = readable.condition(table, "r", f"{workspace}::bigint")
        sql = f"{with_clause(pages)}SELECT r.* FROM {name} r WHERE r.uid = ANY({wanted}) AND {condition}"
        rows: list[Row] = [dict(row) for row in await self._gateway.fetch(sql, *parameters.values)]
        reader = OverlayReader(self._gateway, self._viewer.workspace_id)
        alive = [row for row in rows if not reader.is_deleted(table.name, row) and reader.in_workspace(table.name, row)]
        return await reader.overlay(table.name, alive)

    async def matches(self, table: str, uid: int, expected: str) -> bool:
        """Lock the row to the end of the call and compare its hash; a row that is gone does not match."""
        described = self._gateway.schema.tables.get(table)
        if described is None:
            return False
        args: list[Any] = [uid]
        condition = "uid = $1"
        if described.has_version_columns and self._viewer.workspace_id:
            args.append(self._viewer.workspace_id)
            condition += " OR (t3ver_oid = $1 AND t3ver_oid <> 0 AND t3ver_wsid = $2::bigint)"
        sql = f"SELECT * FROM {self._gateway.table(table)} WHERE {condition} ORDER BY uid FOR UPDATE"
        rows = [dict(row) for row in await self._gateway.fetch(sql, *args)]
        live = next((row for row in rows if row["uid"] == uid), None)
        if live is None or (described.delete_field and live[described.delete_field]):
            return False
        reader = OverlayReader(self._gateway, self._viewer.workspace_id)
        seen = (await reader.overlay(table, [live])).get(uid)
        return seen is not None and record_hash(described, seen) == expected


def _uid(table: str, given: int | str, placeholders: Mapping[str, RecordKey]) -> int | None:
    if isinstance(given, str) and given in placeholders:
        known = placeholders[given]
        return known[1] if known[0] == table else None
    try:
        return canonical_uid(given) or None
    except Unreadable:
        return None


def _error(table: str, record: str, code: str) -> EntryError:
    return EntryError(operation="read", table=table, record=storable(record)[:64], code=code)
