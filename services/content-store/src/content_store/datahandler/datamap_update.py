"""A change of a record (SEMANTICS 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from content_store.datahandler.bound_fields import name_bound
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.fields import Target, add_diff_source, check_fields, name_dropped, without_unchanged
from content_store.datahandler.pointers import check_changed_pointers, check_followed, deny
from content_store.datahandler.remap import schedule_tasks
from content_store.datahandler.writer import update_record

if TYPE_CHECKING:
    from content_store.datahandler.result import EntryOutcome
    from content_store.datahandler.run import HandlerRun, RemapTask
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


async def update_entry(run: HandlerRun, outcome: EntryOutcome, submitted: dict[str, Any]) -> None:
    """Writes what is new of the submitted values; a soft-deleted record can be changed, too.

    Raises:
        Refusal: no such record, a missing right, a value that cannot be used.
    """
    table, uid = run.ctx.table(outcome.table), int(outcome.id)
    row = await run.ctx.reader.stored(table.name, uid)
    if row is None:
        data = {"table": table.name, "uid": uid}
        raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
    await _check_rights(run, table, row, submitted)
    refuse_drafts(run, table, row)
    target = Target(table, outcome.id, uid, row["pid"], row, {})
    checked = await check_fields(run, target, submitted)
    values = dict(checked.values)
    _refuse_waiting_page(table, checked.tasks)
    await check_changed_pointers(run, table, row, values)
    if "l10n_state" in run.submitted.get((table.name, outcome.id), ()):
        await check_followed(run, table, row)
    if values or checked.tasks or not checked.dropped:
        await add_diff_source(run, target, submitted, values)
    changes = without_unchanged(target, values, _mm_fields(table))
    for hook in run.ctx.hooks:
        await hook.post_process_field_array(run, "update", table.name, outcome.id, changes)
    changes = {name: value for name, value in changes.items() if name in table.db_columns and name != "uid"}
    if changes:
        relations = await _mm_history(run, table, uid, checked.tasks)
        await update_record(run, table, row, changes, relations=relations)
        outcome.status = "written"
    outcome.uid = uid
    if await schedule_tasks(run, "update", table.name, outcome.id, uid, checked.tasks, changes):
        outcome.status = "written"
    await name_bound(run, target, submitted, {**row, **changes}, checked)
    name_dropped(run, outcome, submitted, checked)


def _refuse_waiting_page(table: TableSchema, tasks: list[RemapTask]) -> None:
    # Which page is translated decides about the rights: it has to be known before.
    waiting = next((t for t in tasks if table.name == "pages" and t.field == table.parent_field), None)
    if waiting is not None:
        data = {"name": ",".join(waiting.tokens)}
        raise Refusal(ErrorCode.UNKNOWN_PLACEHOLDER, "Nothing was written for {name}", data)


async def _check_rights(run: HandlerRun, table: TableSchema, row: Row, submitted: dict[str, Any]) -> None:
    verdict: bool | None = None
    for hook in run.ctx.hooks:
        verdict = await hook.check_record_update_access(run, table.name, row["uid"], submitted, verdict)
    if verdict is False:
        data = {"table": table.name, "uid": row["uid"]}
        raise Refusal("update_denied", "{table}:{uid} may not be changed", data, denied=True)
    if verdict is None:
        policy = run.ctx.policy
        deny(await policy.update(table.name, row, with_pages="pages" in run.root.datamap))
        deny(await policy.edit_record(table.name, row))


def refuse_drafts(run: HandlerRun, table: TableSchema, row: Row) -> None:
    """Rows of another workspace cannot be changed, and drafts cannot be made yet.

    Raises:
        Refusal: the row is a draft of another workspace, or would have to become one.
    """
    data = {"table": table.name, "uid": row["uid"]}
    if not table.versionable:
        if run.ctx.workspace and not table.ctrl.get("versioningWS_alwaysAllowLiveEdit"):
            message = "Records of {table} cannot be changed in a workspace"
            raise Refusal("workspace_table", message, data, denied=True)
        return
    if row["t3ver_wsid"] and row["t3ver_wsid"] != run.ctx.workspace:
        raise Refusal("other_workspace", "{table}:{uid} belongs to another workspace", data, denied=True)
    if run.ctx.workspace and row["t3ver_wsid"] != run.ctx.workspace:
        raise Refusal(ErrorCode.WORKSPACES_UNAVAILABLE, "Drafts of {table}:{uid} cannot be made yet", data)


def _mm_fields(table: TableSchema) -> frozenset[str]:
    return frozenset(column.name for column, spec in table.relation_columns if spec.storage == "mm")


async def _mm_history(
    run: HandlerRun, table: TableSchema, uid: int, tasks: list[RemapTask]
) -> dict[str, tuple[str, str]]:
    """Lists of uids before and after, for fields that only hold a count."""
    found: dict[str, tuple[str, str]] = {}
    for task in tasks:
        column = table.columns.get(task.field)
        spec = column.relation if column is not None and task.inside is None else None
        if spec is None or spec.storage != "mm" or task.write_value:
            continue
        rows = (await run.ctx.mm.rows_of(spec, table.name, [uid]))[uid]
        before = ",".join(r.id for r in run.ctx.mm.targets(spec, rows))
        found[task.field] = (before, ",".join(task.tokens))
    return found
