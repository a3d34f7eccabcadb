"""Raw copies: a row as it is stored, with its own children; for children of copied records (SEMANTICS 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from content_store.datahandler.commands.copy_values import copy_children, taken_along
from content_store.datahandler.defaults import schema_defaults
from content_store.datahandler.log import LogAction, LogLevel
from content_store.datahandler.refindex_rows import relation_places
from content_store.datahandler.relations.foreign_field import attach
from content_store.datahandler.remap import register_mm
from content_store.datahandler.values.special import new_uuid
from content_store.datahandler.writer import insert_record, relation_columns
from content_store.schema.flex import format_value, parse_value
from content_store.schema.model import VERSION_COLUMNS
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


async def copy_raw(run: HandlerRun, table_name: str, uid: int, page: int) -> int | None:
    """Copies a row to a page, each value as stored; children first, so they get the smaller uids.

    Returns:
        Uid of the copy; ``None`` when there is no such record.
    """
    from content_store.datahandler.commands.copy import CopyOptions

    ctx, table = run.ctx, run.ctx.table(table_name)
    row = await ctx.reader.record(table_name, uid)
    if row is None or not await _may_copy(run, table, row):
        return None
    values, kept_out = _raw_values(run, table, row, page)
    children: list[tuple[RelationSpec, list[int]]] = []
    for place in list(relation_places(ctx.schema, table, row)):
        if not place.spec.children or place.spec.storage == "mm" or place.column in kept_out:
            continue
        made = await copy_children(run, place.spec, table, row, place.value, page, CopyOptions())
        value: Any = len(made) if place.spec.storage == "foreign_field" else ",".join(map(str, made))
        if place.flex_pointer:
            value = _in_form(values[place.column], place.flex_pointer, value)
        values[place.column] = value
        children.append((place.spec, made))
    copy = (await insert_record(run, table, values))["uid"]
    for spec, made in children:
        if spec.storage == "foreign_field":
            await attach(ctx, spec, table_name, copy, made)
    await _copy_mm(run, table, uid, copy, kept_out)
    run.note_copy(table_name, uid, copy)
    run.exchange[table_name, copy] = {name for name, _ in relation_columns(table, row)}
    return int(copy)


def _in_form(form: Any, pointer: str, value: Any) -> str:
    sheet, language, name, _, _ = pointer.split("/")
    data = parse_value(form)
    data["data"].setdefault(sheet, {}).setdefault(language, {}).setdefault(name, {})["vDEF"] = str(value)
    return format_value(data)


def _raw_values(run: HandlerRun, table: TableSchema, row: Row, page: int) -> tuple[dict[str, Any], set[str]]:
    """Values of the copy, and the fields that are not taken from the source."""
    values = {name: value for name, value in row.items() if name in table.db_columns and name != "uid"}
    along = taken_along(run, table)
    kept_out = {name for name in table.columns if name in values and name not in along}
    defaults = schema_defaults(table)
    for name in kept_out:
        del values[name]
        if name in defaults:
            values[name] = defaults[name]
    values.update({name: 0 for name in VERSION_COLUMNS if name in table.db_columns})
    values["pid"] = page
    for time_field in (table.tstamp_field, table.crdate_field):
        if time_field and time_field in values:
            values[time_field] = run.ctx.now
    if table.orig_uid_field:
        values[table.orig_uid_field] = row["uid"]
    for column in table.columns.values():
        if column.type == "uuid" and column.name in values:
            values[column.name] = new_uuid(column)
    return values, kept_out


async def _may_copy(run: HandlerRun, table: TableSchema, row: Row) -> bool:
    """A child the user could not have copied alone is left out, and that is told."""
    policy = run.ctx.policy
    denial = await policy.modify_table(table.name)
    if denial is None and row["pid"]:
        denial = await policy.show_page(row["pid"])
    denial = denial or await policy.edit_record(table.name, row)
    if denial is None:
        return True
    message = "{table}:{uid} was not copied along: " + denial.message
    data = {**(denial.data or {}), "table": table.name, "uid": row["uid"]}
    run.log_error(LogAction.INSERT, table.name, row["uid"], message, data, code=denial.code, level=LogLevel.WARNING)
    return False


async def _copy_mm(run: HandlerRun, table: TableSchema, uid: int, copy: int, kept_out: set[str]) -> None:
    row = await run.ctx.reader.stored(table.name, uid)
    for name, spec in relation_columns(table, row or {}):
        if spec.storage != "mm" or name in kept_out:
            continue
        rows = (await run.ctx.mm.rows_of(spec, table.name, [uid]))[uid]
        targets = run.ctx.mm.targets(spec, rows)
        await run.ctx.mm.write(spec, table.name, copy, targets)
        register_mm(run, spec, table.name, copy, targets)
