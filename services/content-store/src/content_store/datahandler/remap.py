"""Relations that are written after their row: at once, or at the end where they name placeholders."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from content_store.datahandler.guard import guarded
from content_store.datahandler.hooks import HookVeto
from content_store.datahandler.log import LogAction, LogLevel
from content_store.datahandler.relations.csv import Reference, format_reference, parse_reference, parse_references
from content_store.datahandler.relations.foreign_field import attach
from content_store.datahandler.result import EntryOutcome
from content_store.datahandler.run import RemapTask, WaitingOperation
from content_store.datahandler.values.field import FieldContext
from content_store.datahandler.values.relation import stored_value
from content_store.datahandler.writer import update_record
from content_store.schema.flex import format_value, parse_value, structure_of
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.schema.model import Column


async def schedule_tasks(
    run: HandlerRun,
    status: Literal["new", "update"],
    table: str,
    record_id: str,
    uid: int,
    tasks: list[RemapTask],
    fields: dict[str, Any],
) -> bool:
    """Writes relations at once; those with placeholders wait, and the hook after the database operations with them.

    Returns:
        Whether relations were written.
    """
    waiting = [task for task in tasks if task.write_value]
    before = _writes(run)
    for task in tasks:
        if not task.write_value and (task.tokens or status == "update"):
            await _write_relation(run, task, uid)
    written = _writes(run) != before
    operation = WaitingOperation(status, table, record_id, uid, fields)
    if waiting:
        run.tasks += waiting
        run.waiting.append(operation)
    else:
        await _after_operations(run, operation)
    return written


def _writes(run: HandlerRun) -> tuple[int, int]:
    return run.ctx.gateway.writes, run.ctx.mm.changes


async def _after_operations(run: HandlerRun, operation: WaitingOperation) -> None:
    for hook in run.ctx.hooks:
        await hook.after_database_operations(
            run, operation.status, operation.table, operation.record_id, operation.uid, operation.fields
        )


async def finish_waiting(run: HandlerRun, savepoints: bool) -> None:
    """Replaces placeholders and writes the relations that waited, then calls the hooks that waited with them."""
    tasks, run.tasks = run.tasks, []
    waiting, run.waiting = run.waiting, []
    for task in tasks:
        uid = run.uid_of(task.table, task.record_id)
        if uid is None:
            continue
        outcome = EntryOutcome(task.table, task.record_id, task.status, "written", uid)
        work = functools.partial(_write_relation, run, task, uid)
        before = _writes(run)
        done = await guarded(run, outcome, LogAction.UPDATE, work, savepoint=savepoints)
        entry = _entry_of(run, task.table, task.record_id)
        if entry is not None and not done:
            # The record itself stands: the entry is not undone for one relation, but says so.
            entry.drop(task.field, outcome.code or outcome.status)
            entry.message = f"Not written: {task.field}: {outcome.message}"
        elif entry is not None and entry.status == "unchanged" and _writes(run) != before:
            entry.status = "written"
    for operation in waiting:
        await _after_waiting(run, operation)


async def _after_waiting(run: HandlerRun, operation: WaitingOperation) -> None:
    try:
        await _after_operations(run, operation)
    except HookVeto as veto:
        if not run.outermost:
            # The entry around this instance is undone.
            raise
        # Other rows point to this one by now: it stays, and the objection is told.
        run.log_error(LogAction.UPDATE, operation.table, operation.uid, veto.message, veto.data, code=veto.code)
        entry = _entry_of(run, operation.table, operation.record_id)
        if entry is not None:
            entry.message = f"A hook objected after the record was written: {veto}"


def _entry_of(run: HandlerRun, table: str, record_id: str) -> EntryOutcome | None:
    outcomes = run.ctx.outcomes if run.outermost else run.results
    return next((o for o in reversed(outcomes) if (o.table, o.id) == (table, record_id)), None)


async def _write_relation(run: HandlerRun, task: RemapTask, uid: int) -> None:
    table = run.ctx.table(task.table)
    tokens = [text for token in task.tokens if (text := _resolved(run, task, token)) is not None]
    if task.kind == "value":
        await _write_value(run, task, uid, int(tokens[0]) if tokens else 0)
        return
    column = _column(run, task, uid)
    spec = column.relation if column is not None else None
    if column is None or spec is None:
        return
    row = await run.ctx.reader.stored(task.table, uid)
    if row is None:
        return
    field = FieldContext(run, table, column, task.record_id, uid, task.status, row["pid"], row)
    value = await stored_value(field, tokens, spec)
    before = await _mm_targets(run, task, spec, uid)
    await write_targets(run, spec, task.table, uid, tokens)
    if task.write_value or spec.storage == "foreign_field":
        relation = None if before is None else (before, list_of(parse_references(tokens, spec), spec))
        await _write_value(run, task, uid, value, relation)


async def _mm_targets(run: HandlerRun, task: RemapTask, spec: RelationSpec, uid: int) -> str | None:
    """The targets a waiting field has so far, for the history; ``None`` where the field itself holds enough."""
    if spec.storage != "mm" or task.inside is not None or not task.write_value:
        return None
    rows = (await run.ctx.mm.rows_of(spec, task.table, [uid]))[uid]
    return list_of(run.ctx.mm.targets(spec, rows), spec)


def list_of(references: Iterable[Reference], spec: RelationSpec) -> str:
    """Targets as a text that tells them all: with the table's name where there are several tables (pure)."""
    return ",".join(dict.fromkeys(format_reference(r, spec) for r in references if r.uid))


def _column(run: HandlerRun, task: RemapTask, uid: int) -> Column | None:
    outer = run.ctx.table(task.table).columns.get(task.field)
    if outer is None or task.inside is None:
        return outer
    structure = structure_of(outer)
    return structure.sheets.get(task.inside[0], {}).get(task.inside[1])


def _resolved(run: HandlerRun, task: RemapTask, token: str) -> str | None:
    if "NEW" not in token:
        return token
    known = run.placeholders.get(token)
    if known is not None:
        return str(known[1])
    head, underscore, placeholder = token.rpartition("_")
    known = run.placeholders.get(placeholder)
    if underscore and known is not None and known[0] == head:
        return f"{head}_{known[1]}"
    message = "{table}.{field}: nothing was written for {name}, the reference is dropped"
    data = {"table": task.table, "field": task.field, "name": token}
    run.log_error(LogAction.UPDATE, task.table, 0, message, data, level=LogLevel.WARNING)
    return None


async def write_targets(run: HandlerRun, spec: RelationSpec, table: str, uid: int, tokens: list[str]) -> None:
    """Writes a relation that is kept outside of the record: children's pointers or rows of a relation table."""
    ctx = run.ctx
    references = [r for token in tokens if (r := parse_reference(token, spec)) is not None and r.uid]
    if spec.storage == "foreign_field":
        await attach(ctx, spec, table, uid, [r.uid for r in references])
        ctx.references.register(table, uid)
    elif spec.storage == "mm":
        before, after = await ctx.mm.write(spec, table, uid, references)
        register_mm(run, spec, table, uid, [*before, *after])


def register_mm(run: HandlerRun, spec: RelationSpec, table: str, uid: int, targets: list[Reference]) -> None:
    """Index rows belong to the local side: to the record itself, or to the targets of a foreign side."""
    if not spec.opposite:
        run.ctx.references.register(table, uid)
        return
    for target in targets:
        if target.table in run.ctx.schema:
            run.ctx.references.register(target.table, target.uid)


async def _write_value(
    run: HandlerRun, task: RemapTask, uid: int, value: Any, relation: tuple[str, str] | None = None
) -> None:
    # ``relation``: targets before and after. The field only counts them, a history of counts brings nothing back.
    table = run.ctx.table(task.table)
    row = await run.ctx.reader.stored(task.table, uid)
    if row is None:
        return
    if task.inside is not None:
        value = _inside(row, task, value)
    exchanged = relation is not None and relation[0] != relation[1]
    if str(row.get(task.field)) == str(value) and not exchanged:
        return
    relations = {task.field: relation} if relation is not None else None
    await update_record(run, table, row, {task.field: value}, relations=relations)


def _inside(row: Mapping[str, Any], task: RemapTask, value: Any) -> str:
    sheet, name = task.inside or ("", "")
    form = parse_value(row.get(task.field))
    form["data"].setdefault(sheet, {}).setdefault("lDEF", {}).setdefault(name, {})["vDEF"] = str(value)
    return format_value(form)
