"""Records a row is a child of: their index entries change with the row, and with its place among the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from content_store.datahandler.relations.foreign_field import belongs, order_columns

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.schema.model import TableSchema


def register_parents(ctx: RunContext, table: str, row: Mapping[str, Any]) -> None:
    """The index entries of the row's parents may have changed."""
    for parent, spec in ctx.schema.parents_of.get(table, ()):
        uid = row.get(spec.foreign_field)
        if isinstance(uid, int) and uid > 0 and belongs(spec, parent, row):
            ctx.references.register(parent, uid)


def concerns_parents(ctx: RunContext, table: TableSchema, columns: Iterable[str]) -> bool:
    """Is one of the columns a pointer to a parent, or does it give the order of its children?"""
    changed = set(columns)
    return any(
        not changed.isdisjoint(
            {spec.foreign_field, spec.foreign_table_field, *spec.match_fields, *order_columns(spec, table)}
        )
        for _, spec in ctx.schema.parents_of.get(table.name, ())
    )
