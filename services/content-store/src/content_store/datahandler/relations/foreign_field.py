"""Children that point to their parent: inline fields with ``foreign_field`` and file references (SEMANTICS 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from content_store.records.gateway import Row
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.schema.model import TableSchema


async def children_of_many(
    ctx: RunContext, spec: RelationSpec, table: str, uids: Iterable[int], *, deleted: bool = False
) -> dict[int, list[Row]]:
    """Children of each record, in their order.

    Args:
        ctx: of the run.
        spec: a ``foreign_field`` relation.
        table: of the parents.
        uids: of the parents.
        deleted: with the children deleted softly.
    """
    if spec.table not in ctx.schema:
        return {}
    child = ctx.table(spec.table)
    found = await ctx.reader.lookup(spec.table, spec.foreign_field, uids, deleted=deleted)
    return {
        uid: sorted((r for r in rows if belongs(spec, table, r)), key=lambda r: _order(spec, child, r))
        for uid, rows in found.items()
    }


def belongs(spec: RelationSpec, table: str, row: Mapping[str, Any]) -> bool:
    """Is the child one of this field of this table (whatever the uid)?"""
    if spec.foreign_table_field and row.get(spec.foreign_table_field) != table:
        return False
    return all(str(row.get(name)) == str(value) for name, value in spec.match_fields.items())


def sort_column(spec: RelationSpec, child: TableSchema) -> str | None:
    """Column the order of the children is written to."""
    name = spec.sort_by or child.sort_field
    return name if name in child.db_columns else None


def order_columns(spec: RelationSpec, child: TableSchema) -> set[str]:
    """Columns the order of the children depends on."""
    column = spec.sort_by or (None if spec.default_sort_by else child.sort_field)
    if column:
        return {column}
    listed = (spec.default_sort_by or str(child.ctrl.get("default_sortby") or "")).split(",")
    return {words[0] for part in listed if (words := part.split())}


def _order(spec: RelationSpec, child: TableSchema, row: Row) -> tuple[Any, ...]:
    column = spec.sort_by or (None if spec.default_sort_by else child.sort_field)
    if column:
        return (row[column], row["uid"])
    keys: list[Any] = []
    for part in (spec.default_sort_by or str(child.ctrl.get("default_sortby") or "")).split(","):
        words = part.split()
        if not words or words[0] not in row:
            continue
        value = row[words[0]]
        if len(words) > 1 and words[1].upper() == "DESC" and isinstance(value, int):
            value = -value
        keys.append((0, value, "") if isinstance(value, int) else (1, 0, str(value or "")))
    return (*keys, row["uid"])


async def attach(ctx: RunContext, spec: RelationSpec, table: str, uid: int, child_uids: Sequence[int]) -> list[int]:
    """Points the children to their parent and numbers them 1, 2, 3 ...; others that point to it are left alone.

    Children that are right already are not written. Their ``tstamp`` changes, there is no history.

    Returns:
        The children that exist, in order.
    """
    if spec.table not in ctx.schema:
        return []
    child = ctx.table(spec.table)
    rows = await ctx.reader.stored_many(spec.table, child_uids)
    # A child listed twice counts twice; the last place is the one it gets.
    existing = [c for c in child_uids if c in rows]
    same: dict[str, Any] = {spec.foreign_field: uid, **spec.match_fields}
    if spec.foreign_table_field:
        same[spec.foreign_table_field] = table
    same = {name: value for name, value in same.items() if name in child.db_columns}
    sort = sort_column(spec, child)
    numbers = {c: number for number, c in enumerate(existing, 1)}
    wrong = [
        c
        for c in numbers
        if any(str(rows[c][k]) != str(v) for k, v in same.items()) or (sort and rows[c][sort] != numbers[c])
    ]
    if not wrong:
        return existing
    for c in wrong:
        _register(ctx, spec, table, rows[c])
    if child.tstamp_field:
        same[child.tstamp_field] = ctx.now
    if sort:
        await ctx.gateway.update_each(spec.table, sort, {c: numbers[c] for c in wrong}, same)
    else:
        await ctx.gateway.update_many(spec.table, wrong, same)
    ctx.places.wrote(child, (*same, sort) if sort else same)
    for c in wrong:
        ctx.reader.note_update(spec.table, c, {**same, sort: numbers[c]} if sort else same)
    return existing


def _register(ctx: RunContext, spec: RelationSpec, table: str, row: Row) -> None:
    """The child moves from its old parent: that one's index entries change too."""
    old_parent = row[spec.foreign_field]
    old_table = row.get(spec.foreign_table_field) if spec.foreign_table_field else table
    if old_parent and old_table in ctx.schema:
        ctx.references.register(str(old_table), old_parent)
