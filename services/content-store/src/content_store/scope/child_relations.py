"""Which tables are children of an inline or file column, and the record a child row belongs to (S-34)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from content_store.schema.model import Column, Schema
from content_store.scope.parsing import Placeholder, Unreadable, pointer

FILE_REFERENCE: Final = "sys_file_reference"
FILE_METADATA: Final = "sys_file_metadata"

RecordKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ChildPointer:
    """A column of a child table that holds the uid of its owner.

    Attributes:
        field: with the owner's uid.
        table_field: with the owner's table; None where the owner's table is fixed.
        parent_table: the fixed table; one of several where ``table_field`` is set.
    """

    field: str
    table_field: str | None
    parent_table: str


@dataclass(frozen=True, slots=True)
class InlineField:
    """An inline or file column: lists records of ``child_table``."""

    name: str
    child_table: str


class ChildRelations:
    """All pointers of all child tables, read from the schema once."""

    def __init__(self, schema: Schema) -> None:
        pointers: dict[str, dict[tuple[str, str], ChildPointer]] = {}
        self._inline: dict[str, tuple[InlineField, ...]] = {}
        self._tables = frozenset(table.name for table in schema)
        for table in schema:
            fields = [(column, child_table_of(column)) for column in table.columns.values()]
            self._inline[table.name] = tuple(InlineField(c.name, child) for c, child in fields if child)
            for column, child in fields:
                if child and (found := _pointer_of(column, table.name)) is not None:
                    # With a table column the parents share one pointer; without, each parent is one of its own.
                    key = (found.field, "" if found.table_field else table.name)
                    pointers.setdefault(child, {}).setdefault(key, found)
        if FILE_METADATA in schema and "file" in schema[FILE_METADATA].db_columns:
            pointers.setdefault(FILE_METADATA, {}).setdefault(
                ("file", "sys_file"), ChildPointer("file", None, "sys_file")
            )
        self._pointers = {
            child: tuple(p for p in found.values() if child in schema and p.field in schema[child].db_columns)
            for child, found in pointers.items()
        }

    @classmethod
    def of(cls, schema: Schema) -> ChildRelations:
        """The relations of this schema, computed once per schema value."""
        return _relations_of(_ById(schema))

    def pointers(self, table: str) -> tuple[ChildPointer, ...]:
        """Every pointer of a child table; empty for a table that is nobody's child."""
        return self._pointers.get(table, ())

    def pointer_columns(self, table: str) -> tuple[str, ...]:
        """The columns :meth:`owners` reads, in a fixed order."""
        names = [n for p in self.pointers(table) for n in (p.field, p.table_field) if n]
        return tuple(dict.fromkeys(names))

    def inline_fields(self, table: str) -> tuple[InlineField, ...]:
        """Inline and file columns of a table."""
        return self._inline.get(table, ())

    def owners(self, table: str, row: Mapping[str, Any]) -> tuple[RecordKey, ...]:
        """The records a child row belongs to, as its pointers say; a pointer of 0 names none.

        A table the schema does not know is kept: such an owner is found nowhere, so the row is in no scope.
        """
        return tuple((name, uid) for name, uid in self._owners(table, row) if isinstance(uid, int))

    def submitted_owners(
        self, table: str, stored: Mapping[str, Any], submitted: Mapping[str, Any]
    ) -> tuple[tuple[str, int | Placeholder], ...]:
        """The owners an entry gives a row: its pointers, with the stored value for a key it does not carry (S-42).

        Raises:
            Unreadable: a pointer in the entry is no canonical uid.
        """
        return self._owners(table, {**stored, **submitted})

    def _owners(self, table: str, row: Mapping[str, Any]) -> tuple[tuple[str, int | Placeholder], ...]:
        found: dict[tuple[str, int | Placeholder], None] = {}
        for child_pointer in self.pointers(table):
            owner = pointer(row.get(child_pointer.field))
            if owner == 0:
                continue
            name = row.get(child_pointer.table_field) if child_pointer.table_field else child_pointer.parent_table
            if not isinstance(name, str):
                raise Unreadable(name)
            found[name, owner] = None
        return tuple(found)


def child_table_of(column: Column) -> str | None:
    """The table an inline or file column lists records of."""
    if column.type == "file":
        return FILE_REFERENCE
    if column.type == "inline" and not column.config.get("MM"):
        name = column.config.get("foreign_table")
        return str(name) if name else None
    return None


def _pointer_of(column: Column, parent_table: str) -> ChildPointer | None:
    if column.type == "file":
        return ChildPointer("uid_foreign", "tablenames", parent_table)
    field = column.config.get("foreign_field")
    if not field:
        return None
    table_field = column.config.get("foreign_table_field")
    return ChildPointer(str(field), str(table_field) if table_field else None, parent_table)


class _ById:
    """A schema as a key of the cache: by identity, kept alive by the entry."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.schema is self.schema


@lru_cache(maxsize=16)
def _relations_of(key: _ById) -> ChildRelations:
    return ChildRelations(key.schema)
