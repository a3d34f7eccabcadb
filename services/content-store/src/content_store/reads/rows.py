"""Rows of a table as a workspace sees them, as a FROM item (SEMANTICS 14), and how they leave the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from content_store.access.policy import BackendUser
from content_store.access.rules import may_use_field
from content_store.records.casting import from_database
from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import VERSION_COLUMNS, TableSchema

_MARKED_FOR_DELETION: Final = 2
_PERMISSIONS: Final = frozenset({"perms_userid", "perms_groupid", "perms_user", "perms_group", "perms_everybody"})


def row_source(table: TableSchema, workspace: int, schema_name: str = "public") -> str:
    """All columns of the rows a workspace sees, not deleted: live rows, rows new in it, and its drafts over live ones.

    The uid is that of the live row, every other value that of the draft, as the overlay reader of the handler has it.
    """
    name = qualified_name(table.name, schema_name)
    columns = [quote_identifier(column) for column in table.db_columns]
    alive = f" AND p.{quote_identifier(table.delete_field)} = 0" if table.delete_field else ""
    if not table.has_version_columns:
        return f"(SELECT {', '.join(columns)} FROM {name} p WHERE TRUE{alive})"
    if not workspace or not table.versionable:
        return f"(SELECT {', '.join(columns)} FROM {name} p WHERE p.t3ver_wsid = 0 AND p.t3ver_oid = 0{alive})"
    values = ", ".join(
        f"p.{c}" if c == '"uid"' else f"CASE WHEN v.uid IS NULL THEN p.{c} ELSE v.{c} END AS {c}" for c in columns
    )
    draft_alive = f" AND v.{quote_identifier(table.delete_field)} = 0" if table.delete_field else ""
    return (
        f"(SELECT {values} FROM {name} p LEFT JOIN {name} v ON v.t3ver_oid = p.uid AND v.t3ver_oid <> 0 "
        f"AND v.t3ver_wsid = {int(workspace)}{draft_alive} WHERE p.t3ver_oid = 0 "
        f"AND p.t3ver_wsid IN (0, {int(workspace)}){alive} "
        f"AND (v.uid IS NULL OR v.t3ver_state <> {_MARKED_FOR_DELETION}))"
    )


def readable_fields(table: TableSchema, user: BackendUser) -> list[str]:
    """Columns a user may read, in the order of the table: never a password, no field the rights keep back.

    Columns that are no fields are kept back too, but for those that say what the row is and where it lies.
    """
    technical = {
        "uid", "pid", table.tstamp_field, table.crdate_field, table.sort_field, table.language_field,
        table.parent_field, table.source_field, "l10n_state", *VERSION_COLUMNS,
    }  # fmt: skip
    if table.name == "pages":
        technical |= _PERMISSIONS
    return [name for name in table.db_columns if _readable(table, name, technical, user)]


def _readable(table: TableSchema, name: str, technical: set[str | None], user: BackendUser) -> bool:
    column = table.columns.get(name)
    if column is not None and column.type == "password":
        return False
    if name in technical:
        return True
    return column is not None and name != table.diff_source_field and may_use_field(table, name, user)


def as_json(row: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
    """The fields of a row as JSON values."""
    return {name: from_database(row[name]) for name in fields}
