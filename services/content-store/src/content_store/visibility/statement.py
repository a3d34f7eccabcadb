"""The one statement that finds what a viewer may see of a list of records (R-090 to R-094)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from remit_contracts.visibility import RecordKey

from content_store.access.readable import FILE_TABLES, Parameters, ReadableRows, Viewer, page_of_row, with_clause
from content_store.access.rules import may_select_table
from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import Schema, TableSchema
from content_store.workspaces.rules import LIVE, may_use_live

_MARKED_FOR_DELETION: Final = 2


@dataclass
class Statement:
    """SQL with its arguments; columns: position, uid, page, workspace, language, deleted, title, page_title."""

    sql: str
    args: list[Any] = field(default_factory=list)


def visibility_statement(
    keys: Sequence[RecordKey], viewer: Viewer, schema: Schema, schema_name: str = "public"
) -> Statement | None:
    """The statement for these records; ``None`` where no table among them may be read at all.

    Args:
        keys: what is asked for; the position in the answer is the index.
        viewer: with every workspace it may use.
        schema: tables there are; records of others are withheld.
        schema_name: database schema of the record tables.
    """
    by_table = _by_readable_table(keys, viewer, schema)
    if not by_table:
        return None
    parameters = Parameters()
    # The rights of the row's page are asked for in the workspace the row is stored in.
    readable = ReadableRows(viewer, parameters, schema_name, deleted_too=True)
    selects = [
        _facts(schema.tables[table], entries, parameters, readable, schema_name) for table, entries in by_table.items()
    ]
    usable = "TRUE" if viewer.user.admin else f"workspace = ANY({parameters.add(_usable(viewer), 'bigint[]')})"
    facts = f"fact AS (SELECT * FROM ({' UNION ALL '.join(selects)}) f WHERE {usable})"
    expressions = [facts, *readable.page_expressions("SELECT DISTINCT page, workspace FROM fact WHERE page > 0")]
    shown = (
        "TRUE"
        if viewer.user.admin
        else ("(f.apart OR (f.page, f.workspace) IN (SELECT uid, workspace FROM readable_page))")
    )
    pages = qualified_name("pages", schema_name)
    page_title = (
        f"COALESCE((SELECT v.title FROM {pages} v WHERE v.t3ver_oid = f.page AND v.t3ver_oid <> 0 "
        f"AND f.workspace > 0 AND v.t3ver_wsid = f.workspace AND v.deleted = 0 LIMIT 1), "
        f"(SELECT p.title FROM {pages} p WHERE p.uid = f.page))"
    )
    return Statement(
        f"{with_clause(expressions)}SELECT f.*, {page_title} AS page_title FROM fact f WHERE {shown} ORDER BY position",
        parameters.values,
    )


def _by_readable_table(
    keys: Sequence[RecordKey], viewer: Viewer, schema: Schema
) -> Mapping[str, list[tuple[int, RecordKey]]]:
    found: dict[str, list[tuple[int, RecordKey]]] = {}
    for position, key in enumerate(keys):
        if key.table in schema.tables and may_select_table(key.table, viewer.user):
            found.setdefault(key.table, []).append((position, key))
    return found


def _usable(viewer: Viewer) -> list[int]:
    live = [LIVE] if may_use_live(viewer.user) else []
    return sorted([*live, *viewer.workspaces])


def _facts(
    table: TableSchema,
    entries: Sequence[tuple[int, RecordKey]],
    parameters: Parameters,
    readable: ReadableRows,
    schema_name: str,
) -> str:
    """SELECT of the records of one table that exist and whose language the viewer may use.

    ``apart`` is true for records that are not judged by a page: files by their mounts (R-091), and records outside of
    the page tree whose table is declared readable there (A-20).
    """
    positions = parameters.add([position for position, _ in entries], "int[]")
    uids = parameters.add([key.uid for _, key in entries], "bigint[]")
    lives = parameters.add([key.live_uid or 0 for _, key in entries], "bigint[]")
    workspace = "r.t3ver_wsid" if table.has_version_columns else "0::bigint"
    language = f"r.{quote_identifier(table.language_field)}" if table.language_field else "NULL::bigint"
    return (
        f"SELECT k.position, k.uid, {_page(table, schema_name)} AS page, {workspace} AS workspace, "
        f"{language} AS language, {_deleted(table)} AS deleted, {title_of_row(table, schema_name)} AS title, "
        f"{readable.apart(table, 'r')} AS apart "
        f"FROM unnest({positions}, {uids}, {lives}) AS k(position, uid, live) "
        # A draft that is gone because it was published is judged by its live row.
        f"CROSS JOIN LATERAL (SELECT * FROM {qualified_name(table.name, schema_name)} t "
        "WHERE t.uid IN (k.uid, k.live) ORDER BY t.uid = k.uid DESC LIMIT 1) r "
        f"WHERE {readable.language(table, 'r')}"
    )


def _page(table: TableSchema, schema_name: str) -> str:
    if table.name in FILE_TABLES:
        return "0::bigint"
    page = page_of_row(table, "r")
    if table.name != "pages":
        return page
    # A draft stands for its live page; a translation's draft may point to either of them.
    return (
        f"COALESCE((SELECT d.t3ver_oid FROM {qualified_name('pages', schema_name)} d "
        f"WHERE d.uid = {page} AND d.t3ver_oid <> 0), {page})"
    )


def _deleted(table: TableSchema) -> str:
    flags = [f"r.{quote_identifier(table.delete_field)} <> 0"] if table.delete_field else []
    if table.has_version_columns:
        flags.append(f"r.t3ver_state = {_MARKED_FOR_DELETION}")
    return f"({' OR '.join(flags)})" if flags else "FALSE"


def title_of_row(table: TableSchema, schema_name: str = "public") -> str:
    """Expression of a record's title: its label, else the first alternative that is not empty.

    A label that is a reference to a file is the name of the file.
    """
    alternatives = str(table.ctrl.get("label_alt") or "").split(",")
    parts: list[str] = []
    references: list[str] = []
    for name in dict.fromkeys(part.strip() for part in [table.label_field or "", *alternatives]):
        column = table.columns.get(name)
        if name not in table.db_columns or (column is not None and column.type == "password"):
            continue
        if column is not None and "sys_file" in (column.config.get("allowed"), column.config.get("foreign_table")):
            file = qualified_name("sys_file", schema_name)
            references.append(f"(SELECT f.name FROM {file} f WHERE f.uid::text = r.{quote_identifier(name)}::text)")
        else:
            parts.append(f"NULLIF(r.{quote_identifier(name)}::text, '')")
    return f"COALESCE({', '.join([*parts, *references, chr(39) * 2])})"
