"""Copies of pages with the records on them and, where asked for, the pages below (SEMANTICS 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from content_store.datahandler.commands.copy import CopyOptions, copy_record, skip_refused
from content_store.datahandler.commands.prefetch import prefetch_for_copy
from content_store.datahandler.relations.foreign_field import belongs
from content_store.datahandler.writer import set_columns

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema

_LEVEL_LIMIT = 100


async def copy_page(run: HandlerRun, uid: int, target: int, options: CopyOptions) -> int | None:
    """Copies a page, its translations, what lies on it, and as many levels below as the user's setting says.

    Raises:
        Refusal: the page itself could not be copied.
    """
    levels = _levels(run)
    subpages = await _subpages(run, uid, levels) if levels > 0 else []
    root = await _copy_one_page(run, uid, target, options)
    if root is None:
        return None
    for page in subpages:
        parent = run.copied["pages"].get(page["pid"])
        # Below the new root nothing is copied once more when it lies inside of its own source.
        if parent is None or page["uid"] == root:
            continue
        await skip_refused(run, "pages", page["uid"], _copy_one_page(run, page["uid"], parent, CopyOptions()))
    return root


def _levels(run: HandlerRun) -> int:
    value = str((run.ctx.policy.user.uc or {}).get("copyLevels", 0))
    return min(int(value), _LEVEL_LIMIT) if value.isascii() and value.isdigit() else 0


async def _subpages(run: HandlerRun, uid: int, levels: int) -> list[Row]:
    """Pages below that the user sees, parents before children, within a level by sorting descending."""
    schema, found, level = run.ctx.table("pages"), [], [uid]
    seen = {uid}
    while level and levels > 0:
        below = await run.ctx.reader.lookup("pages", "pid", level)
        following: list[int] = []
        for parent in level:
            rows = [r for r in below.get(parent, []) if r[schema.language_field or "sys_language_uid"] == 0]
            for row in sorted(rows, key=lambda r: (-r["sorting"], r["uid"])):
                if row["uid"] in seen or await run.ctx.policy.show_page(row["uid"]) is not None:
                    continue
                seen.add(row["uid"])
                found.append(row)
                following.append(row["uid"])
        level, levels = following, levels - 1
    return found


async def _copy_one_page(run: HandlerRun, uid: int, target: int, options: CopyOptions) -> int | None:
    allowed = [t for t in run.ctx.schema if t.name != "pages" and _copies_along(run, t)]
    used = await run.ctx.reader.tables_on_page([t.name for t in allowed], uid)
    tables = [t for t in allowed if t.name in used]
    content = {table.name: await _records_on(run, table, uid) for table in tables}
    await prefetch_for_copy(run.ctx, {"pages": [uid], **{t: [r["uid"] for r in rows] for t, rows in content.items()}})
    copy = await copy_record(run, "pages", uid, target, options)
    if copy is None:
        return None
    for table in tables:
        await _copy_records(run, table, await _on_their_own(run, table, content[table.name]), copy)
    return copy


async def _on_their_own(run: HandlerRun, table: TableSchema, rows: Sequence[Row]) -> list[Row]:
    """The rows that are nobody's children.

    A child comes along with its parent, or stays behind with it (refused, or its field is not taken along): copied on
    its own it would join the original, whichever of the two tables comes first and wherever the parent lies.
    """
    children: set[int] = set()
    for parent, spec in run.ctx.schema.parents_of.get(table.name, ()):
        pointers = {
            row["uid"]: uid for row in rows if (uid := row.get(spec.foreign_field)) and belongs(spec, parent, row)
        }
        found = await run.ctx.reader.stored_many(parent, list(dict.fromkeys(pointers.values()))) if pointers else {}
        children.update(child for child, uid in pointers.items() if uid in found)
    return [row for row in rows if row["uid"] not in children]


def _copies_along(run: HandlerRun, table: TableSchema) -> bool:
    user = run.ctx.policy.user
    return user.admin or table.name in user.tables_modify


async def _records_on(run: HandlerRun, table: TableSchema, page: int) -> list[Row]:
    rows = (await run.ctx.reader.lookup(table.name, "pid", [page])).get(page, [])
    if table.sort_field:
        return sorted(rows, key=lambda r: (-r[table.sort_field or ""], r["uid"]))
    return rows


async def _copy_records(run: HandlerRun, table: TableSchema, rows: list[Row], page: int) -> None:
    here = {row["uid"] for row in rows}
    free: list[Row] = []
    for row in rows:
        if table.localizable and row[table.language_field or ""] > 0:
            parent = row[table.parent_field or ""]
            if parent in here:
                # Comes along with its default-language record.
                continue
            if not parent and table.source_field and row[table.source_field]:
                free.append(row)
        await skip_refused(run, table.name, row["uid"], copy_record(run, table.name, row["uid"], page, CopyOptions()))
    # Sources of free translations may have been copied after them.
    for row in free:
        copy = run.copied[table.name].get(row["uid"])
        source = run.copied[table.name].get(row[table.source_field or ""])
        if copy is not None and source is not None:
            await set_columns(run.ctx, table, [copy], {table.source_field or "": source})
