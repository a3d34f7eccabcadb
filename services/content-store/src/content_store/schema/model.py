"""What a table is: the schema as data, read-only (SEMANTICS 1, DESIGN 6).

A :class:`Schema` is a value. A change at run time makes a new one (:meth:`Schema.with_change`); nobody holds tables
of an old schema longer than one run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from content_store.schema.columns import Column, DbColumn, DbType

__all__ = [
    "MM_COLUMNS",
    "UNSET",
    "VERSION_COLUMNS",
    "Column",
    "DbColumn",
    "DbType",
    "MmTable",
    "Schema",
    "SchemaError",
    "TableSchema",
]

VERSION_COLUMNS: Final = ("t3ver_oid", "t3ver_wsid", "t3ver_state", "t3ver_stage")
MM_COLUMNS: Final = ("uid_local", "uid_foreign", "sorting", "sorting_foreign", "tablenames", "fieldname")


class SchemaError(ValueError):
    """The table description cannot be read; the message names the table and the part."""


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True)
class TableSchema:
    """One record table.

    Attributes:
        name: of the table.
        ctrl: the control section (label, delete, sortby, languageField, ...).
        columns: fields by name, in the order of the description.
        db_columns: database columns by name, in order.
        import_defaults: values loaders use for columns a row does not list.
        type_columns_overrides: record type -> field -> changes.
        allowed_record_types_by_doktype: only for ``pages``: doktype -> tables, ``*`` for all.
    """

    name: str
    ctrl: Mapping[str, Any]
    columns: Mapping[str, Column]
    db_columns: Mapping[str, DbColumn]
    import_defaults: Mapping[str, Any] = field(default_factory=dict)
    type_columns_overrides: Mapping[str, Any] = field(default_factory=dict)
    allowed_record_types_by_doktype: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def _ctrl_field(self, key: str) -> str | None:
        return str(self.ctrl[key]) if self.ctrl.get(key) else None

    @cached_property
    def label_field(self) -> str | None:
        """Field that names the record."""
        return self._ctrl_field("label")

    @cached_property
    def delete_field(self) -> str | None:
        """Flag of soft deletion, ``None`` where rows are deleted hard."""
        return self._ctrl_field("delete")

    @cached_property
    def tstamp_field(self) -> str | None:
        """Unix seconds of the last change."""
        return self._ctrl_field("tstamp")

    @cached_property
    def crdate_field(self) -> str | None:
        """Unix seconds of creation."""
        return self._ctrl_field("crdate")

    @cached_property
    def sort_field(self) -> str | None:
        """Column of the order on a page."""
        return self._ctrl_field("sortby")

    @cached_property
    def language_field(self) -> str | None:
        """Language id, only where the table is translatable."""
        return self._ctrl_field("languageField")

    @cached_property
    def parent_field(self) -> str | None:
        """Pointer of a translation to its default-language record."""
        return self._ctrl_field("transOrigPointerField")

    @cached_property
    def source_field(self) -> str | None:
        """Pointer to the record a translation was made from."""
        return self._ctrl_field("translationSource")

    @cached_property
    def diff_source_field(self) -> str | None:
        """JSON of the source values at the last save."""
        return self._ctrl_field("transOrigDiffSourceField")

    @cached_property
    def orig_uid_field(self) -> str | None:
        """Uid a copy was made from."""
        return self._ctrl_field("origUid")

    @cached_property
    def type_field(self) -> str | None:
        """Column of the record type, without the part that points into a relation."""
        value = self._ctrl_field("type")
        return None if value is None or ":" in value else value

    @cached_property
    def editlock_field(self) -> str | None:
        """Flag that keeps editors out of the record."""
        return self._ctrl_field("editlock")

    @cached_property
    def enable_columns(self) -> Mapping[str, str]:
        """``disabled``, ``starttime``, ``endtime``, ``fe_group`` -> column."""
        value = self.ctrl.get("enablecolumns")
        return dict(value) if isinstance(value, Mapping) else {}

    @cached_property
    def localizable(self) -> bool:
        """Has a language field and a parent pointer."""
        return self.language_field is not None and self.parent_field is not None

    @cached_property
    def versionable(self) -> bool:
        """Takes part in workspaces."""
        return bool(self.ctrl.get("versioningWS")) and "t3ver_oid" in self.db_columns

    @cached_property
    def has_version_columns(self) -> bool:
        """Stores ``t3ver_*`` columns."""
        return "t3ver_wsid" in self.db_columns

    @cached_property
    def security(self) -> Mapping[str, Any]:
        """The ``security`` part of the control section."""
        value = self.ctrl.get("security")
        return value if isinstance(value, Mapping) else {}

    @cached_property
    def root_level(self) -> int:
        """1 only on the root, 0 never there, -1 both."""
        return int(self.ctrl.get("rootLevel") or 0)

    @cached_property
    def has_synchronized_fields(self) -> bool:
        """Is there a field whose value translations take over?"""
        return any(c.l10n_mode == "exclude" or c.synchronizable for c in self.columns.values())

    def column_for(self, name: str, record_type: str | None = None) -> Column | None:
        """The field, with the changes of the record type applied."""
        column = self.columns.get(name)
        if column is None or record_type is None:
            return column
        overrides = self.type_columns_overrides.get(record_type)
        change = overrides.get(name) if isinstance(overrides, Mapping) else None
        if not isinstance(change, Mapping):
            return column
        return Column(
            name,
            {**column.config, **change.get("config", {})},
            str(change.get("l10n_mode", column.l10n_mode) or ""),
            bool(change.get("exclude", column.exclude)),
            change.get("displayCond", column.display_cond),
        )


@dataclass(frozen=True)
class MmTable:
    """A table of relation rows, without uid."""

    name: str
    db_columns: Mapping[str, DbColumn]


@dataclass(frozen=True)
class Schema:
    """All tables.

    Attributes:
        tables: record tables by name, in the order of the description.
        mm_tables: relation tables by name.
    """

    tables: Mapping[str, TableSchema]
    mm_tables: Mapping[str, MmTable]
    source: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Schema:
        """Builds the schema from ``{tables, tables_without_tca}``.

        A table that has no ``db_columns`` (or only some) gets the missing ones by the types of its fields; relation
        tables that fields name and nobody describes are added.

        Raises:
            SchemaError: a part is missing or of the wrong shape.
        """
        # Deriving needs the model; the model only needs it here.
        from content_store.schema.tca_types import derive_db_columns, derive_mm_tables

        tables: dict[str, TableSchema] = {}
        for name, table in data.get("tables", {}).items():
            if not isinstance(table, Mapping) or not isinstance(table.get("columns"), Mapping):
                raise SchemaError(f"{name}: columns are missing")
            given = {c: DbColumn.from_data(c, d) for c, d in table.get("db_columns", {}).items()}
            complete = bool(given) and not table.get("derive_db_columns")
            columns = given if complete else {**derive_db_columns(name, table), **given}
            tables[name] = _table(name, table, columns)
        mm_tables = {
            name: MmTable(name, {c: DbColumn.from_data(c, d) for c, d in table["db_columns"].items()})
            for name, table in data.get("tables_without_tca", {}).items()
            if name != "sys_refindex"
        }
        for name, mm_columns in derive_mm_tables(tables.values()).items():
            mm_tables.setdefault(name, MmTable(name, mm_columns))
        return cls(tables, mm_tables, data)

    def with_change(self, path: Sequence[str], value: Any = UNSET) -> Schema:
        """A schema where one part of the description is set, or unset when no value is given.

        Args:
            path: table name, then keys inside its description.
            value: to put there.
        """
        data = {**self.source, "tables": dict(self.source.get("tables", {}))}
        tables = data["tables"]
        tables[path[0]] = copy.deepcopy(tables[path[0]])
        node: Any = tables[path[0]]
        for key in path[1:-1]:
            node = node.setdefault(key, {})
        if value is UNSET:
            node.pop(path[-1], None)
        else:
            node[path[-1]] = value
        return Schema.from_data(data)

    def __contains__(self, name: object) -> bool:
        return name in self.tables

    def __iter__(self) -> Iterator[TableSchema]:
        return iter(self.tables.values())

    def __getitem__(self, name: str) -> TableSchema:
        return self.tables[name]


def _table(name: str, data: Mapping[str, Any], db_columns: Mapping[str, DbColumn]) -> TableSchema:
    return TableSchema(
        name=name,
        ctrl=data.get("ctrl", {}),
        columns={c: Column.from_data(c, d) for c, d in data["columns"].items()},
        db_columns=db_columns,
        import_defaults=data.get("import_defaults") or {},
        type_columns_overrides=_overrides(data),
        allowed_record_types_by_doktype=data.get("allowed_record_types_by_doktype") or {},
    )


def _overrides(data: Mapping[str, Any]) -> dict[str, Any]:
    """Record type -> field -> changes, also where they stand under ``types``."""
    found: dict[str, Any] = {str(k): v for k, v in (data.get("type_columns_overrides") or {}).items()}
    for record_type, part in (data.get("types") or {}).items():
        if isinstance(part, Mapping) and part.get("columnsOverrides"):
            found[str(record_type)] = {**found.get(str(record_type), {}), **part["columnsOverrides"]}
    return found
