"""Undelete: a record deleted softly comes back with its children, without its translations (SEMANTICS 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from content_store.datahandler.datamap_update import refuse_drafts
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.history import HistoryAction
from content_store.datahandler.log import LogAction
from content_store.datahandler.pointers import deny
from content_store.datahandler.relations.children import all_children
from content_store.datahandler.relations.holders import register_holders
from content_store.datahandler.relations.parents import register_parents
from content_store.datahandler.remap import register_mm
from content_store.datahandler.writer import log_message, note_history, relation_columns

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


async def undelete_record(run: HandlerRun, table_name: str, uid: int) -> None:
    """The command ``undelete``.

    Raises:
        Refusal: not deleted softly, its page is deleted, or a missing right.
    """
    ctx, table = run.ctx, run.ctx.table(table_name)
    row = await ctx.reader.stored(table_name, uid)
    data: dict[str, Any] = {"table": table_name, "uid": uid}
    if row is None or not ctx.reader.is_deleted(table_name, row):
        raise Refusal(ErrorCode.NOT_DELETED, "{table}:{uid} is not deleted", data)
    if ctx.workspace:
        raise Refusal(ErrorCode.WORKSPACES_UNAVAILABLE, "Records are only restored in the live workspace", data)
    await _check(run, table, row)
    await _restore(run, table, row, set())


async def _check(run: HandlerRun, table: TableSchema, row: Row) -> None:
    """What the user restores, and each child that comes back with it, has to be theirs to restore."""
    ctx, table_name = run.ctx, table.name
    refuse_drafts(run, table, row)
    if row["pid"] and await ctx.reader.record("pages", row["pid"]) is None:
        data = {"table": table_name, "uid": row["uid"]}
        raise Refusal(ErrorCode.PAGE_DELETED, "The page of {table}:{uid} is deleted", data)
    deny(await ctx.policy.modify_table(table_name))
    deny(await ctx.policy.insert(table_name, row["pid"], row))
    deny(await ctx.policy.edit_record(table_name, row))


async def _restore(run: HandlerRun, table: TableSchema, row: Row, seen: set[tuple[str, int]]) -> None:
    if (table.name, row["uid"]) in seen:
        return
    seen.add((table.name, row["uid"]))
    ctx = run.ctx
    values: dict[str, Any] = {table.delete_field or "": 0}
    if table.tstamp_field:
        values[table.tstamp_field] = ctx.now
    await ctx.gateway.update(table.name, row["uid"], values)
    ctx.reader.note_update(table.name, row["uid"], values)
    ctx.references.register(table.name, row["uid"], as_target=True)
    await register_holders(ctx, table.name, row["uid"])
    register_parents(ctx, table.name, row)
    for _, spec in relation_columns(table, row):
        if spec.storage == "mm":
            rows = (await ctx.mm.rows_of(spec, table.name, [row["uid"]]))[row["uid"]]
            register_mm(run, spec, table.name, row["uid"], ctx.mm.targets(spec, rows))
    note_history(ctx, HistoryAction.UNDELETE, table.name, row["uid"], None)
    log_message(run, LogAction.INSERT, table, row, 'Record "{label}" ({table}:{uid}) was restored')
    for child_table, child in await all_children(ctx, table, row, deleted=True):
        schema = ctx.table(child_table)
        if schema.delete_field and child[schema.delete_field]:
            if (child_table, child["uid"]) not in seen:
                await _check(run, schema, child)
            await _restore(run, schema, child, seen)
