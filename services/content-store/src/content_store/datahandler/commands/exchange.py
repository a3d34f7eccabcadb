"""References exchanged after commands: copied records point to copies where their targets were copied too (SEMANTICS 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from content_store.datahandler.refindex_rows import flex_places
from content_store.datahandler.relations.csv import Reference, exchange_references
from content_store.datahandler.remap import register_mm
from content_store.datahandler.writer import set_columns
from content_store.schema.flex import format_value, parse_value
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import Column, TableSchema


async def exchange_copied_references(run: HandlerRun) -> None:
    """Looks through all records the commands copied; each that changes is written once."""
    records, run.exchange = run.exchange, {}
    if not any(run.copied_merged.values()):
        return
    by_table: dict[str, list[int]] = {}
    for name, uid in records:
        by_table.setdefault(name, []).append(uid)
    for name, uids in by_table.items():
        table = run.ctx.table(name)
        for _, spec in table.relation_columns:
            if spec.storage == "mm":
                await run.ctx.mm.rows_of(spec, name, uids)
        for uid, row in (await run.ctx.reader.stored_many(name, uids)).items():
            changes: dict[str, Any] = {}
            for field in sorted(records[name, uid]):
                column = table.columns.get(field)
                if column is None or field not in row:
                    continue
                value = await _exchanged(run, table, column, row)
                if value is not None:
                    changes[field] = value
            if changes:
                await set_columns(run.ctx, table, [uid], changes)


async def _exchanged(run: HandlerRun, table: TableSchema, column: Column, row: Row) -> Any:
    if column.type == "flex":
        return _exchanged_form(run, column, row)
    spec = column.relation
    if spec is None or spec.storage == "foreign_field":
        return None
    if spec.storage == "mm":
        await _exchange_mm(run, spec, table, row)
        return None
    return exchange_references(row[column.name], spec, run.copied_merged)


def _exchanged_form(run: HandlerRun, column: Column, row: Row) -> str | None:
    form: dict[str, Any] | None = None
    for place in flex_places(column, row[column.name]):
        if place.spec.storage != "list" or place.spec.children:
            continue
        value = exchange_references(place.value, place.spec, run.copied_merged)
        if value is not None:
            form = form or parse_value(row[column.name])
            sheet, language, name, _, _ = place.flex_pointer.split("/")
            form["data"][sheet][language][name]["vDEF"] = value
    return format_value(form) if form is not None else None


async def _exchange_mm(run: HandlerRun, spec: RelationSpec, table: TableSchema, row: Row) -> None:
    rows = (await run.ctx.mm.rows_of(spec, table.name, [row["uid"]]))[row["uid"]]
    targets = run.ctx.mm.targets(spec, rows)
    exchanged = [Reference(t.table, str(run.copied_merged.get(t.table, {}).get(t.uid, t.uid))) for t in targets]
    if exchanged != targets:
        before, after = await run.ctx.mm.write(spec, table.name, row["uid"], exchanged)
        register_mm(run, spec, table.name, row["uid"], [*before, *after])
