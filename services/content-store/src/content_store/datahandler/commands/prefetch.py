"""Reads in bulk what copying records asks for, so that copying one costs no statements for reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from content_store.datahandler.refindex_rows import Place, relation_places
from content_store.datahandler.relations.csv import parse_references, split_list

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.records.gateway import Row

#: Children of children; a deeper nesting is read record by record.
_DEPTH: Final = 20
_Uids = dict[str, list[int]]


async def prefetch_for_copy(ctx: RunContext, records: Mapping[str, Sequence[int]]) -> None:
    """Translations, children (and theirs) and relation rows of the records: a few statements per table and level."""
    level: _Uids = {table: list(uids) for table, uids in records.items()}
    seen: dict[str, set[int]] = defaultdict(set)
    for _ in range(_DEPTH):
        following: _Uids = defaultdict(list)
        for table, uids in level.items():
            new = [uid for uid in dict.fromkeys(uids) if uid not in seen[table]]
            seen[table].update(new)
            if new:
                await _prefetch(ctx, table, new, following)
        if not following:
            return
        level = following


async def _prefetch(ctx: RunContext, name: str, uids: list[int], found: _Uids) -> None:
    table = ctx.table(name)
    rows = await ctx.reader.stored_many(name, uids)
    if table.localizable:
        for translations in (await ctx.reader.translations_of_many(name, uids)).values():
            found[name] += [row["uid"] for row in translations]
        if table.source_field:
            await ctx.reader.lookup(name, table.source_field, uids)
    by_place: dict[tuple[str, str], tuple[Place, list[Row]]] = {}
    for row in rows.values():
        for place in relation_places(ctx.schema, table, row):
            by_place.setdefault((place.column, place.flex_pointer), (place, []))[1].append(row)
            if place.spec.children and place.spec.storage == "list":
                found[place.spec.table] += [
                    r.uid for r in parse_references(split_list(place.value), place.spec) if r.uid
                ]
    for place, holders in by_place.values():
        await _prefetch_place(ctx, name, place, [row["uid"] for row in holders], found)
    for unknown in [t for t in found if t not in ctx.schema]:
        del found[unknown]


async def _prefetch_place(ctx: RunContext, name: str, place: Place, uids: list[int], found: _Uids) -> None:
    spec = place.spec
    if spec.storage == "mm":
        await ctx.mm.rows_of(spec, name, uids)
    elif spec.storage == "foreign_field" and spec.table in ctx.schema:
        for children in (await ctx.reader.lookup(spec.table, spec.foreign_field, uids)).values():
            found[spec.table] += [row["uid"] for row in children]
