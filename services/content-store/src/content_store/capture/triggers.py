"""SQL of the capture triggers of one table (pure: returns statements, runs none).

Four triggers a table, all ``ENABLE ALWAYS``: one per statement kind with transition tables, and one that refuses
TRUNCATE. Their functions are generated per table, so the server plans each of them once per session. They run as the
owner, because the service has no right on the captured rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import MM_COLUMNS, MmTable, Schema, TableSchema

CAPTURE_SCHEMA: Final = "capture"
TRIGGER_NAMES: Final = (
    "remit_capture_insert",
    "remit_capture_update",
    "remit_capture_delete",
    "remit_capture_truncate",
)

_SETTINGS: Final = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_COLUMNS: Final = "(table_id, operation, uid, before, after, other_changed, sorting_changed)"
_MM_COLUMNS: Final = (
    "(table_id, operation, other_changed, sorting_changed, uid_local, uid_foreign, tablenames, fieldname)"
)
# The transaction's start tells a transaction id apart from the same id before a dump and restore.
_OF_WHICH_CALL: Final = """\
  SELECT count(*), count(call.verdict) INTO calls, judged FROM public.call_outcome AS call
   WHERE call.transaction_id = pg_current_xact_id_if_assigned() AND call.begun_at = transaction_timestamp();
  IF judged > 0 THEN
    RAISE EXCEPTION 'a record of % is written after the verdict of the call', TG_TABLE_NAME USING ERRCODE = 'RM004';
  END IF;"""
# A transaction that belongs to no call announces itself: it has to take its rows before its commit. After the rows, so
# that a transaction with immediate constraints does not get around it.
_ANNOUNCED: Final = """\
  IF calls = 0 THEN
    INSERT INTO capture.transaction_without_call DEFAULT VALUES ON CONFLICT DO NOTHING;
  END IF;"""


@dataclass(frozen=True)
class CapturedTable:
    """What the triggers of a record table record.

    Attributes:
        name: of the table.
        identity: SQL column or constant for each part of ``capture.identity`` but the pointers, in its order.
        pointers: columns by which a child names its parent.
        sorting: the sorting column, ``None`` where there is none.
        others: columns whose change counts as a change of the record (S-54).
    """

    name: str
    identity: Sequence[str | None]
    pointers: Sequence[str]
    sorting: str | None
    others: Sequence[str]


def captured_table(table: TableSchema, pointers: Sequence[str] = ()) -> CapturedTable:
    """What to record of a table, from its schema."""

    def known(column: str | None) -> str | None:
        return column if column in table.db_columns else None

    identity = (
        "pid",
        known(table.language_field),
        known(table.parent_field),
        known(table.source_field),
        known("t3ver_wsid"),
        known("t3ver_oid"),
        known("t3ver_state"),
        known(table.delete_field),
    )
    unjudged = {"uid", table.sort_field, table.tstamp_field}
    return CapturedTable(
        table.name,
        identity,
        tuple(column for column in pointers if column in table.db_columns),
        known(table.sort_field),
        tuple(column for column in table.db_columns if column not in unjudged),
    )


def pointer_columns(schema: Schema) -> Mapping[str, tuple[str, ...]]:
    """Columns of each child table by which some field of a parent table finds its children, in a stable order."""
    found: dict[str, set[str]] = {}
    for table in schema:
        for column in table.columns.values():
            config = column.config
            child = config.get("foreign_table")
            if not child or not config.get("foreign_field"):
                continue
            names = [
                config["foreign_field"],
                config.get("foreign_table_field"),
                *config.get("foreign_match_fields", {}),
            ]
            found.setdefault(child, set()).update(name for name in names if name)
    return {child: tuple(sorted(names)) for child, names in found.items()}


def capture_statements(table: CapturedTable, schema_name: str = "public") -> list[str]:
    """Functions and triggers of a record table."""
    insert = f"""\
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_COLUMNS}
  SELECT TG_RELID, 'i', n.uid, NULL, {_identity(table, "n")}, true, false
    FROM new_rows AS n;"""
    update = f"""\
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_COLUMNS}
  SELECT TG_RELID, 'u', coalesce(o.uid, n.uid),
         CASE WHEN o.uid IS NOT NULL THEN {_identity(table, "o")} END,
         CASE WHEN n.uid IS NOT NULL THEN {_identity(table, "n")} END,
         {_differs(table.others)},
         {_differs([table.sorting] if table.sorting else [])}
    FROM old_rows AS o FULL JOIN new_rows AS n ON o.uid = n.uid;"""
    delete = f"""\
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_COLUMNS}
  SELECT TG_RELID, 'd', o.uid, {_identity(table, "o")}, NULL, true, false
    FROM old_rows AS o;"""
    return _triggers(table.name, schema_name, insert, update, delete)


def mm_capture_statements(table: MmTable, schema_name: str = "public") -> list[str]:
    """Functions and triggers of an MM table. An update is told as rows that went and rows that came; rows that only
    changed their order are recorded as updated."""
    ends = ", ".join(
        f"{{row}}.{quote_identifier(name)}" if name in table.db_columns else "''::text"
        for name in MM_COLUMNS
        if not name.startswith("sorting")
    )
    old, new = ends.format(row="o"), ends.format(row="n")
    whole_old, whole_new = (
        ", ".join(f"{row}.{quote_identifier(name)}" for name in table.db_columns) for row in ("o", "n")
    )
    insert = f"""\
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_MM_COLUMNS}
  SELECT TG_RELID, 'i', true, false, {new} FROM new_rows AS n;"""
    delete = f"""\
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_MM_COLUMNS}
  SELECT TG_RELID, 'd', true, false, {old} FROM old_rows AS o;"""
    update = f"""\
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_MM_COLUMNS}
  SELECT TG_RELID, 'd', true, false, gone.*
    FROM (SELECT {old} FROM old_rows AS o EXCEPT ALL SELECT {new} FROM new_rows AS n) AS gone;
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_MM_COLUMNS}
  SELECT TG_RELID, 'i', true, false, come.*
    FROM (SELECT {new} FROM new_rows AS n EXCEPT ALL SELECT {old} FROM old_rows AS o) AS come;
  INSERT INTO {CAPTURE_SCHEMA}.captured_row {_MM_COLUMNS}
  SELECT DISTINCT TG_RELID, 'u'::"char", false, true, {new}
    FROM (SELECT {whole_new} FROM new_rows AS n EXCEPT ALL SELECT {whole_old} FROM old_rows AS o) AS n
   WHERE ({new}) IN (SELECT {old} FROM old_rows AS o);"""
    return _triggers(table.name, schema_name, insert, update, delete)


def capture_hash(statements: Sequence[str]) -> str:
    """Tells whether the triggers of a table are those of this version and this schema."""
    return sha256("\n".join(statements).encode()).hexdigest()


def schema_capture(schema: Schema, schema_name: str = "public") -> Mapping[str, list[str]]:
    """Capture statements of every record and MM table of a schema, by table."""
    pointers = pointer_columns(schema)
    found = {
        table.name: capture_statements(captured_table(table, pointers.get(table.name, ())), schema_name)
        for table in schema
    }
    return found | {name: mm_capture_statements(table, schema_name) for name, table in schema.mm_tables.items()}


def function_name(table: str, kind: str) -> str:
    """Qualified name of a trigger function; a long table name is cut and told apart by its hash."""
    name = f"{table}_{kind}"
    if len(name) > 63:
        name = f"{table[:40]}_{sha256(table.encode()).hexdigest()[:12]}_{kind}"
    return qualified_name(name, CAPTURE_SCHEMA)


def _triggers(table: str, schema_name: str, insert: str, update: str, delete: str) -> list[str]:
    target = qualified_name(table, schema_name)
    statements = []
    kinds = (
        ("insert", insert, "REFERENCING NEW TABLE AS new_rows", ""),
        ("update", update, "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows", " SET enable_nestloop = off"),
        ("delete", delete, "REFERENCING OLD TABLE AS old_rows", ""),
    )
    for kind, body, tables, setting in kinds:
        function = function_name(table, kind)
        statements.append(
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger {_SETTINGS}{setting} AS $capture$\n"
            f"DECLARE\n  calls bigint;\n  judged bigint;\n"
            f"BEGIN\n{_OF_WHICH_CALL}\n{body}\n{_ANNOUNCED}\n  RETURN NULL;\nEND\n$capture$"
        )
        statements.append(f"REVOKE ALL ON FUNCTION {function}() FROM PUBLIC")
        statements.append(
            f"CREATE OR REPLACE TRIGGER remit_capture_{kind} AFTER {kind.upper()} ON {target} {tables} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
        )
    statements.append(
        f"CREATE OR REPLACE TRIGGER remit_capture_truncate BEFORE TRUNCATE ON {target} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {CAPTURE_SCHEMA}.refuse_truncate()"
    )
    return statements + [f"ALTER TABLE {target} ENABLE ALWAYS TRIGGER {name}" for name in TRIGGER_NAMES]


def _identity(table: CapturedTable, row: str) -> str:
    pid, language, parent, source, workspace, live_uid, state, deleted = table.identity
    numbers = (
        [_value(row, pid), _value(row, language, "NULL::bigint")]
        + [_value(row, column, "0::bigint") for column in (parent, source, workspace, live_uid, state)]
        + [f"({row}.{quote_identifier(deleted)} <> 0)" if deleted else "false"]
    )
    pairs = ", ".join(f"'{column}', {row}.{quote_identifier(column)}" for column in table.pointers)
    pointers = f"jsonb_build_object({pairs})" if pairs else "NULL::jsonb"
    return f"ROW({', '.join(numbers)}, {pointers})::{CAPTURE_SCHEMA}.identity"


def _value(row: str, column: str | None, missing: str = "0::bigint") -> str:
    return f"{row}.{quote_identifier(column)}" if column else missing


def _differs(columns: Sequence[str]) -> str:
    if not columns:
        return "false"
    old, new = (", ".join(f"{row}.{quote_identifier(column)}" for column in columns) for row in ("o", "n"))
    return f"(ROW({old}) IS DISTINCT FROM ROW({new}))"
