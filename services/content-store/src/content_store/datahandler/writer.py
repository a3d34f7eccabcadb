"""Writes of single records, with everything that goes with one: history, log, index, what readers know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from content_store.datahandler.history import HistoryAction
from content_store.datahandler.log import LogAction, LogEntry, LogLevel
from content_store.datahandler.relations.parents import concerns_parents, register_parents
from content_store.records.gateway import Row
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun, RunContext
    from content_store.schema.model import TableSchema


async def insert_record(run: HandlerRun, table: TableSchema, fields: Mapping[str, Any]) -> Row:
    """Inserts a row and returns it as stored."""
    ctx = run.ctx
    row = await ctx.gateway.insert(table.name, fields)
    ctx.places.inserted(table, row)
    ctx.reader.note_insert(table.name, row)
    ctx.history.added(ctx.now, table, {**{k: row[k] for k in fields if k in row}, "uid": row["uid"]})
    ctx.references.register(table.name, row["uid"])
    register_parents(ctx, table.name, row)
    log_message(run, LogAction.INSERT, table, row, 'Record "{label}" ({table}:{uid}) was inserted on page {pid}')
    return row


async def update_record(
    run: HandlerRun,
    table: TableSchema,
    row: Row,
    changes: Mapping[str, Any],
    *,
    relations: Mapping[str, tuple[str, str]] | None = None,
    touch: bool = True,
) -> Row:
    """Changes columns of a stored row and returns the new state.

    Args:
        run: the instance at work.
        table: of the record.
        row: as stored before.
        changes: columns to write.
        relations: counted fields -> list of targets before and after, for the history.
        touch: set ``tstamp`` too.
    """
    ctx = run.ctx
    values = dict(changes)
    if touch and table.tstamp_field:
        values[table.tstamp_field] = ctx.now
    await ctx.gateway.update(table.name, row["uid"], values)
    ctx.places.wrote(table, values)
    ctx.reader.note_update(table.name, row["uid"], values)
    new = {**row, **values}
    old_history = {name: row.get(name) for name in changes}
    new_history = dict(changes)
    for name, (before, after) in (relations or {}).items():
        old_history[name], new_history[name] = before, after
    ctx.history.modified(ctx.now, table, row["uid"], old_history, new_history)
    ctx.references.register_change(ctx, table.name, row["uid"], changes)
    if concerns_parents(ctx, table, changes):
        register_parents(ctx, table.name, row)
        register_parents(ctx, table.name, new)
    if table.name == "pages" and ("TSconfig" in changes or "pid" in changes):
        ctx.forget_settings()
    log_message(run, LogAction.UPDATE, table, new, 'Record "{label}" ({table}:{uid}) was updated')
    return new


async def set_columns(ctx: RunContext, table: TableSchema, uids: list[int], values: Mapping[str, Any]) -> None:
    """Writes around the record API: no history, no log; the index and the readers know."""
    if not uids:
        return
    await ctx.gateway.update_many(table.name, uids, values)
    ctx.places.wrote(table, values)
    for uid in uids:
        ctx.reader.note_update(table.name, uid, values)
        ctx.references.register_change(ctx, table.name, uid, values)


def log_message(run: HandlerRun, action: LogAction, table: TableSchema, row: Mapping[str, Any], details: str) -> None:
    """A message (no error) about a record."""
    label = row.get(table.label_field or "", "")
    column = table.columns.get(table.label_field or "")
    if column is not None and column.type == "password":
        label = ""
    data = {"label": label, "table": table.name, "uid": row["uid"], "pid": row.get("pid", 0)}
    page = row["uid"] if table.name == "pages" else row.get("pid", 0)
    run.ctx.log.add(LogEntry(run.ctx.now, action, LogLevel.MESSAGE, table.name, row["uid"], details, data, page))


def note_history(ctx: RunContext, action: HistoryAction, table: str, uid: int, data: Mapping[str, Any] | None) -> None:
    """An entry that is neither an insert nor a plain update."""
    ctx.history.add(ctx.now, action, table, uid, data)


def relation_columns(table: TableSchema, row: Mapping[str, Any]) -> Iterable[tuple[str, RelationSpec]]:
    """Relation fields of a record, without those inside flex forms."""
    for column, spec in table.relation_columns:
        if column.name in row:
            yield column.name, spec
