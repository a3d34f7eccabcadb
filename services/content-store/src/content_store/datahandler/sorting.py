"""Sort numbers and places (SEMANTICS 6). Interval 256; all languages of a page share one sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.first_places import NOBODY
from content_store.datahandler.relations.parents import concerns_parents, register_parents
from content_store.records.gateway import Row
from content_store.records.overlay import VersionState

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.schema.model import TableSchema

INTERVAL: Final = 256
_SHIFT: Final = 2 * INTERVAL


@dataclass(frozen=True)
class Placement:
    """Where a record goes. Finding it writes nothing: what may still be refused must leave the neighbours alone.

    Attributes:
        page: it lies on.
        sorting: number in sorted tables.
        makes_room: there is no number free; :func:`make_room` has to move the others up before the record is written.
        above: those above this number move, ``None`` for all.
    """

    page: int
    sorting: int | None
    makes_room: bool = False
    above: int | None = None


def _visible(table: TableSchema) -> str:
    # Live rows, rows new in any workspace and move rows share the sequence.
    return f"(t3ver_oid = 0 OR t3ver_state = {int(VersionState.MOVED)})" if table.versionable else ""


def _not_deleted(table: TableSchema) -> dict[str, Any]:
    return {table.delete_field: 0} if table.delete_field else {}


async def first_on_page(ctx: RunContext, table: TableSchema, page: int, uid: int = 0) -> Placement:
    """Place of a record that becomes the first on the page; ``uid`` is the record itself when it exists."""
    sort = table.sort_field
    if not sort:
        return Placement(page, None)
    known = ctx.places.known(table.name, page)
    if known is None:
        rows = await ctx.gateway.select(
            table.name, {"pid": page, **_not_deleted(table)}, order_by=(sort, "uid"), limit=1, extra=_visible(table)
        )
        known = (int(rows[0][sort]), rows[0]["uid"]) if rows else NOBODY
        ctx.places.remember(table.name, page, known)
    if known == NOBODY:
        return Placement(page, INTERVAL)
    first, holder = known
    if uid and holder == uid:
        return Placement(page, first)
    if first < 1:
        return Placement(page, INTERVAL, makes_room=True)
    return Placement(page, first // 2)


async def after_record(ctx: RunContext, table: TableSchema, anchor_uid: int, uid: int = 0) -> Placement:
    """Place of a record that comes behind another of its table.

    Raises:
        Refusal: there is no such anchor.
    """
    anchor = await find_anchor(ctx, table, anchor_uid)
    sort = table.sort_field
    if not sort:
        return Placement(anchor["pid"], None)
    number = int(anchor[sort])
    if anchor["uid"] == uid:
        return Placement(anchor["pid"], number)
    name = '"' + sort.replace('"', '""') + '"'
    extra = " AND ".join(part for part in (_visible(table), f"{name} >= {number}") if part)
    rows = await ctx.gateway.select(
        table.name, {"pid": anchor["pid"], **_not_deleted(table)}, order_by=(sort, "-uid"), limit=2, extra=extra
    )
    if len(rows) < 2:
        return Placement(anchor["pid"], number + INTERVAL)
    between = number + (int(rows[1][sort]) - number) // 2
    if not number < between < int(rows[1][sort]):
        return Placement(anchor["pid"], number + INTERVAL, makes_room=True, above=number)
    return Placement(anchor["pid"], between)


async def find_anchor(ctx: RunContext, table: TableSchema, anchor_uid: int) -> Row:
    """The row a record is placed behind: the live record of a version, or its move row in the workspace.

    Raises:
        Refusal: there is no such anchor.
    """
    anchor = await ctx.reader.stored(table.name, anchor_uid)
    if anchor is not None and table.versionable and anchor["t3ver_oid"] and anchor["t3ver_state"] != VersionState.MOVED:
        anchor = await ctx.reader.stored(table.name, anchor["t3ver_oid"])
    if anchor is None or ctx.reader.is_deleted(table.name, anchor):
        data = {"table": table.name, "uid": anchor_uid}
        raise Refusal(ErrorCode.ANCHOR_NOT_FOUND, "There is no record {table}:{uid} to place it after", data)
    if ctx.workspace and table.versionable:
        versions = (await ctx.reader.lookup_stored(table.name, "t3ver_oid", [anchor["uid"]])).get(anchor["uid"], [])
        moved = [
            v for v in versions if v["t3ver_wsid"] == ctx.workspace and v["t3ver_state"] == int(VersionState.MOVED)
        ]
        return moved[0] if moved else anchor
    return anchor


async def make_room(ctx: RunContext, table: TableSchema, place: Placement) -> None:
    """Moves the records behind a place up, where it needs that; right before the record itself is written."""
    if not place.makes_room:
        return
    numbers = await ctx.gateway.shift_sorting(
        table.name,
        place.page,
        place.above,
        _SHIFT,
        delete_field=table.delete_field,
        live_only=table.has_version_columns,
    )
    ctx.places.wrote(table, (table.sort_field or "",))
    for uid, number in numbers.items():
        ctx.reader.note_update(table.name, uid, {table.sort_field or "": number})
    if concerns_parents(ctx, table, (table.sort_field or "",)):
        # Children on other pages kept their numbers.
        for row in (await ctx.reader.stored_many(table.name, numbers)).values():
            register_parents(ctx, table.name, row)
