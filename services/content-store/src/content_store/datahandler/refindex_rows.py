"""What the fields of records say about their references: the rows the index should have (SEMANTICS 18)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.relations.csv import Reference, parse_references, split_list
from content_store.datahandler.relations.foreign_field import children_of_many
from content_store.datahandler.softref import find_soft_references
from content_store.records.gateway import Row
from content_store.schema.flex import FlexError, parse_value, structure_of
from content_store.schema.model import Column, Schema, TableSchema
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext

_END_OF_TIME: Final = 2147483647
# Kinds whose rows repeat the state of the target.
_TARGET_STATE_TYPES: Final = frozenset({"group", "select", "inline"})


@dataclass(frozen=True)
class Place:
    """A relation of a record: in a field, or in a field of its flex form."""

    column: str
    spec: RelationSpec
    flex_pointer: str = ""
    value: Any = None


def relation_places(schema: Schema, table: TableSchema, row: Mapping[str, Any]) -> Iterator[Place]:
    """All relations of a record with the values their fields hold, flex forms included."""
    for column in table.pointing_columns:
        if column.name not in row:
            continue
        spec = column.relation
        if spec is not None:
            yield Place(column.name, spec, "", row[column.name])
        else:
            yield from flex_places(column, row[column.name])


def flex_places(column: Column, value: Any) -> Iterator[Place]:
    """Relations of the fields of a flex form."""
    try:
        structure = structure_of(column)
        data = parse_value(value)["data"] if value else {}
    except FlexError:
        return
    for sheet, name, inner in structure.columns():
        spec = inner.relation
        if spec is not None:
            field = data.get(sheet, {}).get("lDEF", {}).get(name, {})
            yield Place(column.name, spec, f"{sheet}/lDEF/{name}/vDEF/", field.get("vDEF"))


def relevant_columns(table: TableSchema) -> tuple[frozenset[str], frozenset[str]]:
    """Columns the rows of a record depend on, and those the rows pointing to it depend on."""
    enable = table.enable_columns
    state = [enable[k] for k in ("disabled", "starttime", "endtime") if k in enable]
    if table.delete_field:
        state.append(table.delete_field)
    own = {c.name for c in table.pointing_columns} | {c.name for c, _ in table.soft_reference_columns}
    return frozenset(own), frozenset({*state, "t3ver_state", "t3ver_wsid", "t3ver_oid"})


async def rows_for_records(ctx: RunContext, records: Iterable[tuple[str, int]]) -> list[Row]:
    """Index rows (without hash) of the records; soft-deleted and missing ones have none."""
    by_table: dict[str, list[int]] = defaultdict(list)
    for table, uid in records:
        by_table[table].append(uid)
    found: list[tuple[Row, Reference, RelationSpec | None]] = []
    for name, uids in by_table.items():
        stored = await ctx.reader.stored_many(name, uids)
        rows = [row for uid in dict.fromkeys(uids) if (row := stored.get(uid)) and not ctx.reader.is_deleted(name, row)]
        if rows:
            found += await _table_references(ctx, ctx.table(name), rows)
    return await _with_target_state(ctx, found)


async def _table_references(
    ctx: RunContext, table: TableSchema, rows: Sequence[Row]
) -> list[tuple[Row, Reference, RelationSpec | None]]:
    found: list[tuple[Row, Reference, RelationSpec | None]] = []
    places = {row["uid"]: list(relation_places(ctx.schema, table, row)) for row in rows}
    children = await _children(ctx, table.name, places)
    related = await _mm_rows(ctx, table.name, places)
    for row in rows:
        base = _base(table, row)
        for place in places[row["uid"]]:
            spec, key = place.spec, (place.column, place.flex_pointer)
            head = {**base, "field": place.column, "flexpointer": place.flex_pointer}
            if spec.storage == "foreign_field":
                for number, child in enumerate(children.get(key, {}).get(row["uid"], [])):
                    found.append(({**head, "sorting": number}, Reference(spec.table, str(child["uid"])), spec))
            elif spec.storage == "mm":
                found += _mm_references(ctx, head, related.get(key, {}).get(row["uid"], []), spec)
            else:
                references = [r for r in parse_references(split_list(place.value), spec) if r.uid]
                found += [({**head, "sorting": n}, r, spec) for n, r in enumerate(references)]
        found += _soft_references(table, base, row)
    return found


def _mm_references(
    ctx: RunContext, head: Row, rows: Sequence[Row], spec: RelationSpec
) -> list[tuple[Row, Reference, RelationSpec | None]]:
    references = ctx.mm.targets(spec, rows)
    return [
        (
            {**head, "sorting": n, "ref_field": row.get("fieldname", ""), "ref_sorting": row["sorting_foreign"]},
            reference,
            spec,
        )
        for n, (row, reference) in enumerate(zip(rows, references, strict=True))
        if reference.uid
    ]


async def _children(
    ctx: RunContext, table: str, places: Mapping[int, list[Place]]
) -> dict[tuple[str, str], dict[int, list[Row]]]:
    specs: dict[tuple[str, str], tuple[RelationSpec, list[int]]] = {}
    for uid, listed in places.items():
        for place in listed:
            if place.spec.storage == "foreign_field":
                specs.setdefault((place.column, place.flex_pointer), (place.spec, []))[1].append(uid)
    return {key: await children_of_many(ctx, spec, table, uids) for key, (spec, uids) in specs.items()}


async def _mm_rows(
    ctx: RunContext, table: str, places: Mapping[int, list[Place]]
) -> dict[tuple[str, str], dict[int, list[Row]]]:
    specs: dict[tuple[str, str], tuple[RelationSpec, list[int]]] = {}
    for uid, listed in places.items():
        for place in listed:
            # The foreign side of a relation table has no rows of its own.
            if place.spec.storage == "mm" and not place.spec.opposite:
                specs.setdefault((place.column, place.flex_pointer), (place.spec, []))[1].append(uid)
    return {key: await ctx.mm.rows_of(spec, table, uids) for key, (spec, uids) in specs.items()}


def _state(table: TableSchema, row: Mapping[str, Any], prefix: str = "") -> Row:
    enable = table.enable_columns
    return {
        f"{prefix}hidden": int(bool(row.get(enable.get("disabled", ""), 0))),
        f"{prefix}starttime": row.get(enable.get("starttime", ""), 0) or 0,
        f"{prefix}endtime": row.get(enable.get("endtime", ""), 0) or _END_OF_TIME,
        f"{prefix}t3ver_state": row.get("t3ver_state", 0),
    }


def _base(table: TableSchema, row: Row) -> Row:
    return {
        "tablename": table.name,
        "recuid": row["uid"],
        **_state(table, row),
        "flexpointer": "",
        "softref_key": "",
        "softref_id": "",
        "sorting": 0,
        "workspace": row.get("t3ver_wsid", 0),
        "ref_field": "",
        "ref_sorting": 0,
        "ref_string": "",
    }


def _soft_references(table: TableSchema, base: Row, row: Row) -> list[tuple[Row, Reference, RelationSpec | None]]:
    found: list[tuple[Row, Reference, RelationSpec | None]] = []
    for column, parsers in table.soft_reference_columns:
        value = row.get(column.name)
        if not isinstance(value, str) or not value:
            continue
        for reference in find_soft_references(value, parsers):
            head = {
                **base,
                "field": column.name,
                "softref_key": reference.key,
                "softref_id": reference.id,
                "ref_string": reference.text,
            }
            found.append((head, Reference(reference.table, str(reference.uid)), None))
    return found


async def _with_target_state(ctx: RunContext, found: Sequence[tuple[Row, Reference, RelationSpec | None]]) -> list[Row]:
    wanted: dict[str, set[int]] = defaultdict(set)
    for _, reference, spec in found:
        if spec is not None and _repeats_state(spec) and reference.table in ctx.schema:
            wanted[reference.table].add(reference.uid)
    targets = {table: await ctx.reader.stored_many(table, uids) for table, uids in wanted.items()}
    plain = {"ref_hidden": 0, "ref_starttime": 0, "ref_endtime": _END_OF_TIME, "ref_t3ver_state": 0}
    result: list[Row] = []
    for head, reference, spec in found:
        state: Row = plain
        if spec is not None and _repeats_state(spec) and reference.table in ctx.schema:
            target = targets[reference.table].get(reference.uid)
            if target is None or ctx.reader.is_deleted(reference.table, target):
                # A list keeps naming what was deleted; relation tables and children do not count it.
                if spec.storage != "list":
                    continue
            else:
                state = _state(ctx.table(reference.table), target, "ref_")
        result.append({**head, **state, "ref_table": reference.table, "ref_uid": reference.uid})
    return result


def _repeats_state(spec: RelationSpec) -> bool:
    if spec.children:
        return True
    return spec.storage == "mm" and spec.type in _TARGET_STATE_TYPES
