"""Records that name a record in a relation table of theirs: the other side may have no field of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from content_store.schema.flex import relations_of

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.schema.model import Schema
    from content_store.schema.relations import RelationSpec


async def register_holders(ctx: RunContext, table: str, uid: int) -> None:
    """The index entries of the records that name this one may have changed.

    While it was deleted they had none that could be followed back (SEMANTICS 18), so the relation tables are asked.
    """
    asked: set[tuple[str, str]] = set()
    for holder, spec in _local_sides(ctx.schema, table):
        if (holder, spec.mm_table) in asked:
            continue
        asked.add((holder, spec.mm_table))
        for held_by in await ctx.mm.holders_of(spec, table, uid):
            ctx.references.register(holder, held_by)


def _local_sides(schema: Schema, target: str) -> Iterator[tuple[str, RelationSpec]]:
    for table in schema:
        for spec in (s for column in table.pointing_columns for s in relations_of(column)):
            if spec.storage == "mm" and not spec.opposite and (target in spec.tables or spec.tables == ("*",)):
                yield table.name, spec
