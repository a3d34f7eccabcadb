"""What the parts of a schema say about each other (pure): targets, pointers, relation tables, columns with a role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from content_store.schema.flex import FlexError, structure_of
from content_store.schema.model import Column, DbColumn, Schema, TableSchema
from content_store.schema.names import is_reserved
from content_store.schema.problems import Problem
from content_store.schema.relations import RelationSpec
from content_store.schema.shapes import SYSTEM_COLUMNS
from content_store.schema.tca_types import PERMISSION_COLUMNS

_CTRL_FIELDS: Final = ("label", "editlock")
_NUMBER_ROLES: Final = (
    "tstamp", "crdate", "delete", "sortby", "editlock", "origUid", "languageField", "transOrigPointerField",
    "translationSource",
)  # fmt: skip
_TEXT_ROLES: Final = ("descriptionColumn", "transOrigDiffSourceField")
_ENABLE_NUMBERS: Final = ("disabled", "starttime", "endtime")
#: What a column with a number's role may be described as.
_NUMBER_TYPES: Final = frozenset(
    {"number", "check", "language", "datetime", "passthrough", "user", "none", "select", "radio", "group"}
)
#: Roles no field can have: to write it would be to delete or move a record around the commands and their rights.
_COMMAND_ROLES: Final = {"delete": "the command delete", "sortby": "the command move"}


def reference_problems(tables: Mapping[str, Mapping[str, Any]]) -> list[Problem]:
    """Places where completed tables name a table or field that is not there."""
    problems: list[Problem] = []
    for name, table in tables.items():
        columns, ctrl = table["columns"], table.get("ctrl", {})
        problems += [
            Problem(name, "ctrl", key, "", f"the table has no field {ctrl[key]!r}")
            for key in _CTRL_FIELDS
            if ctrl.get(key) and ctrl[key] not in columns
        ]
        if ctrl.get("languageField") and not ctrl.get("transOrigPointerField"):
            problems.append(Problem(name, "ctrl", "transOrigPointerField", "", "is missing beside languageField"))
        for field, column in columns.items():
            problems += [
                Problem(name, "columns", field, "config", f"there is no table {target!r}")
                for target in _targets(column["config"])
                if target not in tables
            ]
    return problems


def _targets(config: Mapping[str, Any]) -> list[str]:
    if config.get("type") == "file":
        return ["sys_file_reference"]
    named = [config.get("foreign_table")]
    if config.get("type") == "group":
        named += [part.strip() for part in str(config.get("allowed", "")).split(",")]
    # An empty list or map stands for "left out", like an empty text.
    return list(dict.fromkeys(str(name) for name in named if name and name != "*"))


def tie_problems(schema: Schema) -> list[Problem]:
    """Roles of columns, pointers of children and relation tables that cannot work, of all tables."""
    found: list[Problem] = []
    for table in schema:
        found += _role_problems(table)
        for used in _fields(table):
            found += [Problem(table.name, used.part, used.key, used.place, text) for text in _field_texts(schema, used)]
    return found


@dataclass(frozen=True)
class _Field:
    """A field as it is used: itself, as a record type changes it, or inside of a form."""

    part: str
    key: str
    place: str
    column: Column
    inside: bool = False


def _fields(table: TableSchema) -> Iterator[_Field]:
    for column in table.columns.values():
        yield _Field("columns", column.name, "config", column)
        yield from _inner("columns", column.name, "config", column)
    for record_type in table.type_columns_overrides:
        for name, before in table.columns.items():
            changed = table.column_for(name, record_type)
            if changed is not None and changed is not before:
                yield _Field("type_columns_overrides", record_type, f"{name}.config", changed)
                yield from _inner("type_columns_overrides", record_type, f"{name}.config", changed)


def _inner(part: str, key: str, place: str, column: Column) -> Iterator[_Field]:
    if column.type != "flex":
        return
    try:
        structure = structure_of(column)
    except FlexError:
        return
    for sheet, name, inner in structure.columns():
        yield _Field(part, key, f"{place}.ds.{sheet}.{name}", inner, inside=True)


# --- columns with a role ----------------------------------------------------------------------------------------


def _roles(table: TableSchema) -> Iterator[tuple[str, str, bool]]:
    """Key of the control section, column, and whether it holds a number."""
    for keys, numeric in ((_NUMBER_ROLES, True), (_TEXT_ROLES, False)):
        yield from ((key, str(table.ctrl[key]), numeric) for key in keys if table.ctrl.get(key))
    for key, name in table.enable_columns.items():
        if name and key in (*_ENABLE_NUMBERS, "fe_group"):
            yield "enablecolumns", str(name), key != "fe_group"


def _role_problems(table: TableSchema) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for key, name, numeric in _roles(table):
        if name in SYSTEM_COLUMNS:
            yield Problem(table.name, "ctrl", key, "", f"the store itself writes the column {name!r}")
        elif name in taken:
            yield Problem(table.name, "ctrl", key, "", f"the column {name!r} is {taken[name]} already")
        elif (text := _role_text(table, key, name, numeric)) is not None:
            yield Problem(table.name, "ctrl", key, "", text)
        taken.setdefault(name, key)
        if key in _COMMAND_ROLES and name in table.columns:
            text = f"it is ctrl.{key}, which {_COMMAND_ROLES[key]} writes; it can be no field"
            yield Problem(table.name, "columns", name, "", text)
    if table.name == "pages":
        text = "the rights of a page are no field"
        yield from (Problem("pages", "columns", n, "", text) for n in PERMISSION_COLUMNS if n in table.columns)


def _role_text(table: TableSchema, key: str, name: str, numeric: bool) -> str | None:
    stored, column = table.db_columns.get(name), table.columns.get(name)
    if numeric:
        if not _is_number(stored):
            return f"the column {name!r} has to be a whole number that is never NULL"
        if column is not None and (column.type not in _NUMBER_TYPES or column.config.get("dbType")):
            return f"the field {name!r} holds no whole number"
        return None
    if stored is not None and stored.type not in ("string", "text", "blob"):
        return f"the column {name!r} has to be a text"
    return None


def _is_number(stored: DbColumn | None) -> bool:
    return stored is not None and stored.type == "int" and not stored.nullable


# --- relations --------------------------------------------------------------------------------------------------


def _field_texts(schema: Schema, used: _Field) -> Iterator[str]:
    spec, mm = used.column.relation, used.column.config.get("MM")
    if mm and mm in schema:
        yield f"MM: {mm!r} is a table of records, a relation needs one of its own"
    elif mm and is_reserved(str(mm)):
        yield f"MM: the name {mm!r} is taken by the store itself"
    if used.inside:
        yield from (f"there is no table {t!r}" for t in _targets(used.column.config) if t not in schema)
    if spec is not None and spec.storage == "foreign_field" and spec.table in schema:
        yield from _child_texts(schema[spec.table], spec)


def _child_texts(child: TableSchema, spec: RelationSpec) -> Iterator[str]:
    pointers: list[tuple[str, str, bool | None]] = [
        ("foreign_field", spec.foreign_field, True),
        ("foreign_sortby", spec.sort_by or "", True),
    ]
    pointers += [("foreign_table_field", spec.foreign_table_field, False)]
    pointers += [("foreign_match_fields", str(name), None) for name in spec.match_fields]
    own = {name: key for key, name, _ in _roles(child)}
    for key, name, numeric in pointers:
        if not name:
            continue
        stored = child.db_columns.get(name)
        role = own.get(name)
        if stored is None:
            yield f"{key}: the table {child.name} has no column {name!r}"
        elif name in SYSTEM_COLUMNS or (role is not None and (key, role) != ("foreign_sortby", "sortby")):
            yield f"{key}: the column {name!r} of {child.name} has another use ({role or 'the store writes it'})"
        elif numeric and not _is_number(stored):
            yield f"{key}: the column {name!r} of {child.name} has to be a whole number that is never NULL"
        elif numeric is False and stored.type not in ("string", "text"):
            yield f"{key}: the column {name!r} of {child.name} has to be a text"
