"""What a table is: the schema as data, read-only (SEMANTICS 1, DESIGN 6).

A :class:`Schema` is a value. A change at run time makes a new one (:meth:`Schema.with_change`); nobody holds tables
of an old schema longer than one run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from content_store.schema.columns import Column, DbColumn, DbType
from content_store.schema.tables import MmTable, TableSchema

if TYPE_CHECKING:
    from content_store.schema.parents import Parents

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

    @cached_property
    def parents_of(self) -> Parents:
        """Child table -> the fields its rows are children of by a pointer: (parent table, relation)."""
        # Flex forms need the model; the model only needs them here.
        from content_store.schema.parents import find_parents

        return find_parents(self)

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
