"""Records that belong to a record: inline children and file references, however they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from content_store.datahandler.relations.csv import parse_references, split_list
from content_store.datahandler.relations.foreign_field import children_of_many
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


async def child_rows(
    ctx: RunContext, spec: RelationSpec, table: str, uid: int, value: Any, *, deleted: bool = False
) -> list[Row]:
    """Children of one field of a record, in order.

    Args:
        ctx: of the run.
        spec: relation with ``children``.
        table: of the record.
        uid: of the record.
        value: what the field holds (needed for lists).
        deleted: with the children deleted softly.
    """
    if spec.storage == "foreign_field":
        return (await children_of_many(ctx, spec, table, [uid], deleted=deleted)).get(uid, [])
    if spec.storage == "mm" or spec.table not in ctx.schema:
        return []
    uids = [r.uid for r in parse_references(split_list(value), spec) if r.uid]
    rows = await ctx.reader.stored_many(spec.table, uids)
    kept = [rows[u] for u in uids if u in rows and (deleted or not ctx.reader.is_deleted(spec.table, rows[u]))]
    if not ctx.workspace:
        return kept
    seen = await ctx.reader.overlay(spec.table, kept)
    return [seen[row["uid"]] for row in kept if row["uid"] in seen]


async def child_uids(ctx: RunContext, spec: RelationSpec, table: str, uid: int, value: Any) -> list[int]:
    """Uids of :func:`child_rows`."""
    return [row["uid"] for row in await child_rows(ctx, spec, table, uid, value)]


async def all_children(
    ctx: RunContext, table: TableSchema, row: Mapping[str, Any], *, deleted: bool = False
) -> list[tuple[str, Row]]:
    """Children of all fields of a record, flex forms included: (table, row)."""
    from content_store.datahandler.refindex_rows import relation_places

    found: list[tuple[str, Row]] = []
    for place in relation_places(ctx.schema, table, row):
        if place.spec.children:
            rows = await child_rows(ctx, place.spec, table.name, row["uid"], place.value, deleted=deleted)
            found += [(place.spec.table, child) for child in rows]
    return found
