"""Statements that read records for a viewer, rights inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from content_store.access.readable import Parameters, ReadableRows, Viewer, page_of_row, with_clause
from content_store.access.users import Queries
from content_store.errors import FilterInvalidError
from content_store.reads.rows import row_source
from content_store.records.casting import cast_for_column
from content_store.records.errors import ValueNotStorable
from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import TableSchema

_CASTS = {"int": "bigint", "decimal": "numeric", "float": "double precision", "json": "jsonb", "datetime": "timestamp"}
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Window:
    """Part of a list.

    Attributes:
        rows: that may be read, in order.
        last: order values of the last row looked at; ``None`` when nothing comes after it.
    """

    rows: Rows
    last: list[int] | None


class RecordReader:
    """Reads rows of record tables as a workspace sees them.

    Args:
        queries: connection or pool.
        viewer: who reads; the right to select the table is judged before.
        schema_name: database schema of the record tables.
    """

    def __init__(self, queries: Queries, viewer: Viewer, schema_name: str = "public") -> None:
        self._queries = queries
        self._viewer = viewer
        self._schema_name = schema_name

    async def window(
        self,
        table: TableSchema,
        filters: Sequence[tuple[str, str]],
        order: Sequence[str],
        after: Sequence[int] | None,
        size: int,
    ) -> Window:
        """The next rows that fit all filters, and those of them the viewer may read.

        A window is limited before the rights are asked for, so one statement costs the same in a table of any size.

        Args:
            table: to read.
            filters: field and value as text; equality.
            order: columns of whole numbers, the last one unique.
            after: order values of the last row of the window before.
            size: rows looked at.

        Raises:
            FilterInvalidError: a value does not fit its field.
        """
        parameters = Parameters()
        conditions = [self._filter(table, name, value, parameters) for name, value in filters]
        source = row_source(table, self._viewer.workspace_id, self._schema_name)
        keys = ", ".join(f"r.{quote_identifier(name)}" for name in order)
        if after is not None:
            marks = ", ".join(parameters.add(value, "bigint") for value in after)
            conditions.append(f"({keys}) > ({marks})")
        found = (
            f"found AS MATERIALIZED (SELECT * FROM {source} r WHERE {' AND '.join(conditions) or 'TRUE'} "
            f"ORDER BY {keys} LIMIT {int(size)})"
        )
        pages = f"SELECT DISTINCT {page_of_row(table, 'r')} FROM found r"
        expressions, shown = self._readable(table, parameters, pages)
        last = f"(SELECT ARRAY[{keys}] FROM found r ORDER BY ({keys}) DESC LIMIT 1)"
        sql = (
            f"{with_clause([found, *expressions])}SELECT w.count AS _count, w.last AS _last, r.* "
            f"FROM (SELECT (SELECT count(*) FROM found) AS count, {last} AS last) w "
            f"LEFT JOIN (SELECT * FROM found r WHERE {shown}) r ON TRUE ORDER BY {keys}"
        )
        rows = await self._fetch(sql, parameters)
        complete = rows[0]["_count"] < size
        return Window([row for row in rows if row["uid"] is not None], None if complete else list(rows[0]["_last"]))

    async def record_with_translations(self, table: TableSchema, uid: int) -> Rows:
        """The row and its translations, those the viewer may read; each with ``_page`` and ``_page_title``."""
        parameters = Parameters()
        mark = parameters.add(uid, "bigint")
        source = row_source(table, self._viewer.workspace_id, self._schema_name)
        which = f"r.uid = {mark}"
        if table.parent_field is not None:
            parent = quote_identifier(table.parent_field)
            # A translation's draft may point to the draft of its parent (SEMANTICS 14).
            drafts = (
                f"SELECT d.uid FROM {qualified_name(table.name, self._schema_name)} d "
                f"WHERE d.t3ver_oid = {mark} AND d.t3ver_oid <> 0"
            )
            also = f" OR r.{parent} IN ({drafts})" if self._viewer.workspace_id and table.versionable else ""
            which = f"({which} OR r.{parent} = {mark}{also})"
        found = f"SELECT * FROM {source} r WHERE {which}"
        expressions, shown = self._readable(
            table, parameters, f"SELECT DISTINCT {page_of_row(table, 'r')} FROM ({found}) r"
        )
        page = page_of_row(table, "r")
        pages = qualified_name("pages", self._schema_name)
        title = f"(SELECT p.title FROM {pages} p WHERE p.uid = {page})"
        sql = (
            f"{with_clause(expressions)}SELECT r.*, {page} AS _page, {title} AS _page_title FROM ({found}) r "
            f"WHERE {shown} ORDER BY r.uid = {mark} DESC, r.uid"
        )
        return await self._fetch(sql, parameters)

    async def readable_deleted_too(self, table: TableSchema, uid: int) -> Mapping[str, Any] | None:
        """The stored row if the viewer may read it, also when it is deleted: what a history asks for."""
        parameters = Parameters()
        mark = parameters.add(uid, "bigint")
        found = f"SELECT * FROM {qualified_name(table.name, self._schema_name)} r WHERE r.uid = {mark}"
        if table.has_version_columns:
            found += f" AND r.t3ver_wsid IN (0, {int(self._viewer.workspace_id)})"
        candidates = f"SELECT {page_of_row(table, 'r')} FROM ({found}) r"
        expressions, shown = self._readable(table, parameters, candidates, deleted_too=True)
        rows = await self._fetch(f"{with_clause(expressions)}SELECT r.* FROM ({found}) r WHERE {shown}", parameters)
        return rows[0] if rows else None

    def _readable(
        self, table: TableSchema, parameters: Parameters, pages: str, *, deleted_too: bool = False
    ) -> tuple[list[str], str]:
        workspace = f"{int(self._viewer.workspace_id)}::bigint"
        readable = ReadableRows(self._viewer, parameters, self._schema_name, deleted_too=deleted_too)
        expressions = readable.page_expressions(f"SELECT page, {workspace} FROM ({pages}) AS found(page)")
        return expressions, readable.condition(table, "r", workspace)

    def _filter(self, table: TableSchema, name: str, value: str, parameters: Parameters) -> str:
        column = table.db_columns[name]
        try:
            cast = cast_for_column(table.name, column, value)
        except ValueNotStorable as error:
            raise FilterInvalidError(field=name) from error
        return f"r.{quote_identifier(name)} = {parameters.add(cast, _CASTS.get(column.type, ''))}"

    async def _fetch(self, sql: str, parameters: Parameters) -> Rows:
        return await self._queries.fetch(sql, *parameters.values)
