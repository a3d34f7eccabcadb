"""Moves of records, with what belongs to them (SEMANTICS 10)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from content_store.datahandler.datamap_insert import default_page
from content_store.datahandler.datamap_update import refuse_drafts
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.guard import guarded
from content_store.datahandler.history import HistoryAction
from content_store.datahandler.log import LogAction
from content_store.datahandler.pointers import deny
from content_store.datahandler.refindex_rows import relation_places
from content_store.datahandler.relations.children import child_rows
from content_store.datahandler.relations.parents import concerns_parents, register_parents
from content_store.datahandler.result import EntryOutcome
from content_store.datahandler.slugs import unique_slug
from content_store.datahandler.sorting import Placement, after_record, find_anchor, first_on_page, make_room
from content_store.datahandler.values.field import FieldContext
from content_store.datahandler.values.unique import make_unique
from content_store.datahandler.writer import log_message, note_history, set_columns

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


async def move_record(run: HandlerRun, table_name: str, uid: int, target: int) -> None:
    """Moves a record to a page (0 or more) or behind another record (negative).

    Raises:
        Refusal: no such record or place, a page into its own branch, a missing right.
    """
    table = run.ctx.table(table_name)
    row = await run.ctx.reader.record(table_name, uid)
    if row is None:
        data = {"table": table_name, "uid": uid}
        raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
    refuse_drafts(run, table, row)
    if target < 0 and not table.sort_field:
        raise Refusal(ErrorCode.TABLE_NOT_SORTABLE, "Records of {table} have no order", {"table": table_name})
    anchor = await find_anchor(run.ctx, table, -target) if target < 0 else None
    page = anchor["pid"] if anchor is not None else await default_page(run, target)
    await _check(run, table, row, page)
    handled = False
    for hook in run.ctx.hooks:
        handled = await hook.move_record(run, table_name, uid, target, row, page, handled)
    if handled:
        return
    if is_page_translation(table, row):
        await _follow_page(run, table, row)
        return
    await _place(run, table, row, page, target)
    if row["pid"] != page and table_name != "pages":
        await _move_children(run, table, row, page)
    await _move_translations(run, table, row, page, anchor)
    if table_name == "pages" and row["pid"] != page:
        await _repair_slugs(run, uid)


def is_page_translation(table: TableSchema, row: Mapping[str, Any]) -> bool:
    """Is it the translation of a page (no node of the tree of its own)?"""
    return table.name == "pages" and row[table.language_field or ""] > 0 and bool(row[table.parent_field or ""])


async def _check(run: HandlerRun, table: TableSchema, row: Row, page: int) -> None:
    policy = run.ctx.policy
    deny(await policy.modify_table(table.name))
    deny(await policy.edit_record(table.name, row, all_languages=True))
    if page == row["pid"]:
        deny(await policy.update(table.name, row))
        return
    if table.name == "pages" and page and any(p["uid"] == row["uid"] for p in await run.ctx.reader.rootline(page)):
        raise Refusal(ErrorCode.MOVE_INTO_BRANCH, "Page {uid} cannot move into its own branch", {"uid": row["uid"]})
    deny(await policy.move_away(table.name, row))
    deny(await policy.insert(table.name, page, row))


async def _follow_page(run: HandlerRun, table: TableSchema, row: Row) -> None:
    original = await run.ctx.reader.record("pages", row[table.parent_field or ""])
    if original is not None:
        sorting = original[table.sort_field] if table.sort_field else None
        await _write_place(run, table, row, Placement(original["pid"], sorting))


async def _place(run: HandlerRun, table: TableSchema, row: Row, page: int, target: int) -> None:
    if target < 0:
        place = await after_record(run.ctx, table, -target, row["uid"])
    else:
        place = await first_on_page(run.ctx, table, page, row["uid"])
    fields = await _write_place(run, table, row, place)
    for hook in run.ctx.hooks:
        if target < 0:
            await hook.moved_after_record(run, table.name, row["uid"], -target, fields)
        else:
            await hook.moved_first_on_page(run, table.name, row["uid"], page, fields)


async def _write_place(run: HandlerRun, table: TableSchema, row: Row, place: Placement) -> dict[str, Any]:
    values: dict[str, Any] = {"pid": place.page}
    if table.sort_field and place.sorting is not None:
        values[table.sort_field] = place.sorting
    if not place.makes_room and all(row[name] == value for name, value in values.items()):
        return values
    if table.tstamp_field:
        values[table.tstamp_field] = run.ctx.now
    values.update(await _unique_again(run, table, row, place.page))
    names = [n for n in ("pid", table.tstamp_field, table.sort_field) if n and n in values]
    await make_room(run.ctx, table, place)
    await run.ctx.gateway.update(table.name, row["uid"], values)
    run.ctx.reader.note_update(table.name, row["uid"], values)
    run.ctx.places.wrote(table, values)
    run.ctx.references.register_change(run.ctx, table.name, row["uid"], values)
    if concerns_parents(run.ctx, table, values):
        register_parents(run.ctx, table.name, row)
    data = {"oldData": {n: row[n] for n in names}, "newData": {n: values[n] for n in names}}
    note_history(run.ctx, HistoryAction.MOVE, table.name, row["uid"], data)
    if table.name == "pages":
        run.ctx.forget_settings()
    details = 'Record "{label}" ({table}:{uid}) was moved to page {pid}'
    log_message(run, LogAction.MOVE, table, {**row, **values}, details)
    return values


async def _unique_again(run: HandlerRun, table: TableSchema, row: Row, page: int) -> dict[str, Any]:
    if row["pid"] == page:
        return {}
    repaired: dict[str, Any] = {}
    for column in table.columns.values():
        if column.type in ("input", "email") and {"unique", "uniqueInPid"} & set(column.evals):
            field = FieldContext(run, table, column, str(row["uid"]), row["uid"], "update", page, row)
            value = await make_unique(field, row.get(column.name))
            if value != row.get(column.name):
                repaired[column.name] = value
    return repaired


async def _move_children(run: HandlerRun, table: TableSchema, row: Row, page: int) -> None:
    """Each child goes first on the new page, the last one first, so that their order stays."""
    for place in relation_places(run.ctx.schema, table, row):
        if not place.spec.children or place.spec.table not in run.ctx.schema:
            continue
        column = table.columns[place.column]
        behaviour = column.config.get("behaviour")
        if isinstance(behaviour, Mapping) and behaviour.get("disableMovingChildrenWithParent"):
            continue
        children = await child_rows(run.ctx, place.spec, table.name, row["uid"], place.value)
        for child in reversed(children):
            await _move_along(run, place.spec.table, child["uid"], page)


async def _move_translations(run: HandlerRun, table: TableSchema, row: Row, page: int, anchor: Row | None) -> None:
    if not table.localizable or row[table.language_field or ""] != 0:
        return
    translations = await run.ctx.reader.translations(table.name, row["uid"])
    if not translations:
        return
    if table.name == "pages":
        for translation in translations:
            await _follow_page(run, table, translation)
        return
    by_language: dict[int, int] = {}
    if anchor is not None:
        others = await run.ctx.reader.translations(table.name, anchor["uid"])
        by_language = {t[table.language_field or ""]: t["uid"] for t in others}
    for translation in translations:
        after = by_language.get(translation[table.language_field or ""])
        await _move_along(run, table.name, translation["uid"], -after if after is not None else page)


async def _move_along(run: HandlerRun, table: str, uid: int, target: int) -> None:
    outcome = EntryOutcome(table, str(uid), "move", "written")
    work = functools.partial(move_record, run, table, uid, target)
    await guarded(run, outcome, LogAction.MOVE, work, savepoint=False)


async def _repair_slugs(run: HandlerRun, uid: int) -> None:
    """Slugs of a moved page, its translations and everything below are made unique where they are now."""
    pages = run.ctx.table("pages")
    column = next((c for c in pages.columns.values() if c.type == "slug" and c.name in pages.db_columns), None)
    if column is None:
        return
    for page in await branch_of(run, uid):
        row = await run.ctx.reader.stored("pages", page)
        if row is None or not row.get(column.name):
            continue
        slug = await unique_slug(
            run.ctx,
            pages,
            column,
            row[column.name],
            page=row.get(pages.parent_field or "") or page,
            language=row.get(pages.language_field or "", 0),
            uid=page,
        )
        if slug != row[column.name]:
            await set_columns(run.ctx, pages, [page], {column.name: slug})


async def branch_of(run: HandlerRun, uid: int, *, deleted: bool = False) -> list[int]:
    """A page and all pages below, translations too, parents first; ``deleted`` with those deleted softly."""
    ctx, pages = run.ctx, run.ctx.table("pages")
    kept = f' AND p."{pages.delete_field}" = 0' if pages.delete_field and not deleted else ""
    name = ctx.gateway.table("pages")
    rows = await ctx.gateway.fetch(
        f"WITH RECURSIVE branch(uid, level) AS (SELECT $1::bigint, 0 UNION ALL SELECT p.uid, b.level + 1 "
        f"FROM {name} p JOIN branch b ON p.pid = b.uid{kept}) CYCLE uid SET is_cycle USING path "
        "SELECT uid, min(level) AS level FROM branch WHERE NOT is_cycle GROUP BY uid ORDER BY level, uid",
        uid,
    )
    found = [row["uid"] for row in rows]
    await ctx.reader.stored_many("pages", found)
    translations = await ctx.reader.translations_of_many("pages", found)
    extra = [t["uid"] for listed in translations.values() for t in listed]
    return list(dict.fromkeys([*found, *extra]))
