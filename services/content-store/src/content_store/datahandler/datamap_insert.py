"""A new record (SEMANTICS 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from content_store.datahandler.bound_fields import name_bound
from content_store.datahandler.defaults import new_record_defaults
from content_store.datahandler.entries import read_uid
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.fields import Target, add_diff_source, check_fields, name_dropped
from content_store.datahandler.pointers import check_originals, deny, translated_uid
from content_store.datahandler.remap import schedule_tasks
from content_store.datahandler.sorting import Placement, after_record, find_anchor, first_on_page, make_room
from content_store.datahandler.writer import insert_record
from content_store.records.overlay import VersionState
from content_store.schema.tca_types import PERMISSION_COLUMNS

if TYPE_CHECKING:
    from content_store.datahandler.result import EntryOutcome
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


@dataclass(frozen=True)
class Destination:
    """Where a new record is asked to go, before rights are asked for.

    Attributes:
        page: it will lie on.
        anchor: uid of the record to follow, 0 for the top of the page.
        original: the page it translates; a translation has the place of its page.
    """

    page: int
    anchor: int = 0
    original: Row | None = None


async def insert_entry(run: HandlerRun, outcome: EntryOutcome, submitted: dict[str, Any]) -> None:
    """Writes a new record and names it in the outcome and the placeholder map.

    Raises:
        Refusal: no place for it, a missing right, a value that cannot be used.
    """
    table = run.ctx.table(outcome.table)
    submitted, goal = await _goal(run, table, submitted)
    original = goal.original
    await _check_rights(run, table, goal.page, submitted, original)
    base = await new_record_defaults(run.ctx, table, goal.page, submitted)
    # A default has to be allowed like a value that is given.
    deny(await run.ctx.policy.edit_record(table.name, {**base, **submitted}, new=True))
    if original is not None:
        base.update({name: original[name] for name in PERMISSION_COLUMNS})
    for column in table.columns.values():
        # A slug is built for every new record, a required UUID made.
        if column.type in ("slug", "uuid") and column.name not in submitted and column.name in table.db_columns:
            submitted[column.name] = ""
    target = Target(table, outcome.id, 0, goal.page, None, base)
    checked = await check_fields(run, target, submitted)
    values = {**base, **checked.values}
    await _check_pointers(run, table, goal, values)
    await add_diff_source(run, target, submitted, values)
    values.update(await _suggested_uid(run, table, submitted))
    stored = await _placed(run, table, goal, outcome.id, values)
    row = await insert_record(run, table, stored)
    run.placeholders[outcome.id] = (table.name, row["uid"])
    outcome.status, outcome.uid = "written", row["uid"]
    await name_bound(run, target, submitted, row, checked)
    name_dropped(run, outcome, submitted, checked)
    await schedule_tasks(run, "new", table.name, outcome.id, row["uid"], checked.tasks, stored)


async def _goal(run: HandlerRun, table: TableSchema, submitted: dict[str, Any]) -> tuple[dict[str, Any], Destination]:
    """The row with a language, and where it goes; a page that becomes a translation by it goes to its page."""
    goal = await resolve_destination(run, table, submitted.get("pid"), await _translated_page(run, table, submitted))
    submitted = await _with_language(run, table, goal.page, submitted)
    original = await _translated_page(run, table, submitted)
    if original is not None and goal.original is None:
        goal = await resolve_destination(run, table, None, original)
    return submitted, goal


async def _check_pointers(run: HandlerRun, table: TableSchema, goal: Destination, values: Mapping[str, Any]) -> None:
    await check_originals(run, table, 0, values)
    judged = goal.original["uid"] if goal.original is not None else 0
    if table.name == "pages" and translated_uid(table, values) != judged:
        # Rights were asked for another page than the one that would be written.
        raise Refusal(ErrorCode.INVALID_VALUE, "The page does not translate the page it was submitted for")


async def _placed(
    run: HandlerRun, table: TableSchema, goal: Destination, record_id: str, values: dict[str, Any]
) -> dict[str, Any]:
    """What is stored, once nobody can object any more; only then the neighbours make room."""
    place = await _place(run, table, goal)
    values.update(_system_values(run, table, place))
    writes = run.ctx.gateway.writes
    for hook in run.ctx.hooks:
        await hook.post_process_field_array(run, "new", table.name, record_id, values)
    if run.ctx.gateway.writes != writes and table.sort_field and values.get(table.sort_field) == place.sorting:
        # A hook wrote: the number may be taken by now.
        place = await _place(run, table, goal)
        values[table.sort_field] = place.sorting
    stored = {name: value for name, value in values.items() if name in table.db_columns}
    if place.makes_room:
        for name, value in stored.items():
            run.ctx.gateway.cast(table.name, name, value)
    await make_room(run.ctx, table, place)
    return stored


async def _translated_page(run: HandlerRun, table: TableSchema, submitted: Mapping[str, Any]) -> Row | None:
    parent = translated_uid(table, submitted) if table.name == "pages" else 0
    if not parent:
        return None
    page = await run.ctx.reader.record("pages", parent)
    if page is None:
        raise Refusal(ErrorCode.PAGE_NOT_FOUND, "There is no page {page} to translate", {"page": parent})
    return page


async def resolve_destination(
    run: HandlerRun, table: TableSchema, pid: Any, original: Row | None = None
) -> Destination:
    """Where a ``pid`` asks to go: on a page, or with a minus sign behind a record. Only reads.

    Raises:
        Refusal: no such page or anchor, a placeholder nobody wrote, or something else than a number.
    """
    if original is not None:
        return Destination(original["pid"], 0, original)
    number = _place_number(run, table, pid)
    if number < 0:
        return Destination((await find_anchor(run.ctx, table, -number))["pid"], -number)
    return Destination(await default_page(run, number))


async def _place(run: HandlerRun, table: TableSchema, goal: Destination) -> Placement:
    if goal.original is not None:
        return Placement(goal.page, goal.original[table.sort_field] if table.sort_field else None)
    if goal.anchor:
        return await after_record(run.ctx, table, goal.anchor)
    return await first_on_page(run.ctx, table, goal.page)


def _place_number(run: HandlerRun, table: TableSchema, pid: Any) -> int:
    if isinstance(pid, bool) or not isinstance(pid, int | str):
        raise Refusal(ErrorCode.MISSING_PAGE, "A new record of {table} needs a page (pid)", {"table": table.name})
    text = str(pid).strip()
    negative = text.startswith("-")
    rest = text[1:] if negative else text
    if "NEW" in rest:
        uid = run.uid_of(table.name if negative else "pages", rest)
        if uid is None:
            raise Refusal(ErrorCode.UNKNOWN_PLACEHOLDER, "Nothing was written for {name}", {"name": rest})
        return -uid if negative else uid
    if not rest.isascii() or not rest.isdigit() or len(rest) > 18:
        raise Refusal(ErrorCode.MISSING_PAGE, "A new record of {table} needs a page (pid)", {"table": table.name})
    return -int(rest) if negative else int(rest)


async def default_page(run: HandlerRun, page: int) -> int:
    """The default-language page of a page or page translation; 0 is the root.

    Raises:
        Refusal: there is no such page.
    """
    if page == 0:
        return 0
    row = await run.ctx.reader.record("pages", page)
    if row is None:
        raise Refusal(ErrorCode.PAGE_NOT_FOUND, "There is no page {page}", {"page": page})
    schema = run.ctx.table("pages")
    if schema.localizable and row[schema.language_field or ""] > 0 and row[schema.parent_field or ""]:
        return int(row[schema.parent_field or ""])
    return page


async def _with_language(run: HandlerRun, table: TableSchema, page: int, submitted: dict[str, Any]) -> dict[str, Any]:
    name, policy = table.language_field, run.ctx.policy
    if not name or name in submitted or policy.may_use_language(0):
        return submitted
    site = await run.ctx.site_of(page)
    usable = [language for language in (site.languages if site else ()) if policy.may_use_language(language)]
    return {**submitted, name: usable[0]} if usable else submitted


async def _check_rights(
    run: HandlerRun, table: TableSchema, page: int, submitted: Mapping[str, Any], original: Row | None
) -> None:
    policy, with_pages = run.ctx.policy, "pages" in run.root.datamap
    if original is not None:
        deny(await policy.update("pages", original))
    else:
        deny(await policy.insert(table.name, page, submitted, with_pages=with_pages))
    deny(await policy.edit_record(table.name, submitted, new=True))
    if run.ctx.workspace and not table.versionable and not table.ctrl.get("versioningWS_alwaysAllowLiveEdit"):
        data = {"table": table.name}
        raise Refusal("workspace_table", "Records of {table} cannot be made in a workspace", data, denied=True)


def _system_values(run: HandlerRun, table: TableSchema, place: Placement) -> dict[str, Any]:
    values: dict[str, Any] = {"pid": place.page}
    if table.sort_field and place.sorting is not None:
        values[table.sort_field] = place.sorting
    for name in (table.crdate_field, table.tstamp_field):
        if name and name in table.db_columns:
            values[name] = run.ctx.now
    if run.ctx.workspace and table.versionable:
        values.update({"t3ver_wsid": run.ctx.workspace, "t3ver_state": int(VersionState.NEW), "t3ver_oid": 0})
    return values


async def _suggested_uid(run: HandlerRun, table: TableSchema, submitted: Mapping[str, Any]) -> dict[str, int]:
    uid = read_uid(submitted.get("uid"))
    if uid is None or not run.ctx.policy.user.admin or (table.name, uid) not in run.root.suggested_uids:
        return {}
    if await run.ctx.reader.stored(table.name, uid) is not None:
        raise Refusal(ErrorCode.UID_TAKEN, "{table}:{uid} exists already", {"table": table.name, "uid": uid})
    return {"uid": uid}
