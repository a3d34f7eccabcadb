"""Working through a datamap: entries, then what waited for placeholders (SEMANTICS 2)."""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from content_store.datahandler.datamap_insert import insert_entry
from content_store.datahandler.datamap_update import update_entry
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.guard import guarded
from content_store.datahandler.hooks import HookVeto
from content_store.datahandler.log import LogAction
from content_store.datahandler.pointers import canonical_pointers, with_known_pointers
from content_store.datahandler.remap import finish_waiting
from content_store.datahandler.result import NOT_CARRIED_OUT, EntryOutcome
from content_store.datahandler.savepoints import SYNC_SAVEPOINT, restore_run
from content_store.datahandler.sync import synchronize

if TYPE_CHECKING:
    from content_store.datahandler.entries import DataMap
    from content_store.datahandler.run import HandlerRun


async def process_datamap(run: HandlerRun) -> None:
    """Writes all entries of ``run.datamap``. Refused entries are skipped, logged and reported."""
    _read_pointers(run)
    for hook in run.ctx.hooks:
        await hook.before_start(run)
    submitted = _copied(run.datamap)
    entries = sum(len(rows) for rows in submitted.values())
    savepoints = run.outermost and (entries > 1 or run.ctx.options.savepoint_single_entry)
    first = len(_outcomes(run))
    failed = await _synchronized_entries(run, savepoints)
    while run.before_sync is not None:
        if not failed:
            await run.ctx.gateway.savepoint("RELEASE SAVEPOINT", SYNC_SAVEPOINT)
            run.before_sync = None
            break
        # Children of translations were made or deleted for an entry that was then refused: once more, without it.
        await _undo_synchronization(run, failed, first)
        first += len(failed)
        for outcome in failed:
            del submitted[outcome.table][outcome.id]
        run.datamap = _copied(submitted)
        failed = await _synchronized_entries(run, savepoints)
    await finish_waiting(run, savepoints)
    for hook in run.ctx.hooks:
        await hook.after_all_operations(run)


def _read_pointers(run: HandlerRun) -> None:
    # Everybody sees the same language and original, hooks included; what cannot be read is refused with its entry.
    for name, rows in run.datamap.items():
        table = run.ctx.schema.tables.get(name)
        if table is None:
            continue
        for row in rows.values():
            with suppress(Refusal):
                row.update(canonical_pointers(table, row))


def _copied(datamap: DataMap) -> DataMap:
    return {table: {key: dict(row) for key, row in rows.items()} for table, rows in datamap.items()}


async def _synchronized_entries(run: HandlerRun, savepoints: bool) -> list[EntryOutcome]:
    """Extends the datamap and writes its entries; returns those submitted that were not carried out."""
    run.bound = {}
    run.submitted = {(table, key): frozenset(row) for table, rows in run.datamap.items() for key, row in rows.items()}
    first = len(_outcomes(run))
    await synchronize(run)
    tables = sorted(run.datamap, key=lambda name: name != "pages")
    for table in tables:
        for record_id, row in list(run.datamap[table].items()):
            await _process_entry(run, table, record_id, row, savepoints)
    return [o for o in _outcomes(run)[first:] if o.status in NOT_CARRIED_OUT and (o.table, o.id) in run.submitted]


def _outcomes(run: HandlerRun) -> list[EntryOutcome]:
    return run.ctx.outcomes if run.outermost else run.results


async def _undo_synchronization(run: HandlerRun, failed: list[EntryOutcome], first: int) -> None:
    if run.before_sync is None:
        return
    await run.ctx.gateway.savepoint("ROLLBACK TO SAVEPOINT", SYNC_SAVEPOINT)
    await run.ctx.gateway.savepoint("RELEASE SAVEPOINT", SYNC_SAVEPOINT)
    restore_run(run, run.before_sync)
    run.before_sync = None
    del _outcomes(run)[first:]
    _outcomes(run).extend(failed)
    for outcome in failed:
        action = LogAction.INSERT if outcome.operation == "new" else LogAction.UPDATE
        uid = 0 if "NEW" in outcome.id else int(outcome.id)
        run.log_error(action, outcome.table, uid, outcome.message or "", code=outcome.code or "")


async def _process_entry(run: HandlerRun, table: str, record_id: str, row: dict[str, Any], savepoint: bool) -> None:
    new = "NEW" in record_id
    outcome = EntryOutcome(table, record_id, "new" if new else "update", "unchanged")
    action = LogAction.INSERT if new else LogAction.UPDATE
    await guarded(run, outcome, action, functools.partial(_entry, run, outcome, row), savepoint=savepoint)
    if run.outermost:
        run.ctx.outcomes.append(outcome)
    else:
        run.results.append(outcome)


async def _entry(run: HandlerRun, outcome: EntryOutcome, row: dict[str, Any]) -> None:
    table, record_id = outcome.table, outcome.id
    if table not in run.ctx.schema:
        raise Refusal(ErrorCode.UNKNOWN_TABLE, "There is no table {table}", {"table": table})
    submitted: dict[str, Any] = dict(row)
    for hook in run.ctx.hooks:
        changed = await hook.pre_process_field_array(run, submitted, table, record_id)
        if changed is None:
            raise HookVeto("A hook keeps this entry from being written")
        submitted = changed
    await check_table(run, table)
    schema = run.ctx.table(table)
    submitted = with_known_pointers(run, schema, canonical_pointers(schema, submitted))
    if outcome.operation == "new":
        await insert_entry(run, outcome, submitted)
    else:
        await update_entry(run, outcome, submitted)


async def check_table(run: HandlerRun, table: str) -> None:
    """Asks whether the user, and every hook, lets the table be written.

    Raises:
        Refusal: not.
    """
    denial = await run.ctx.policy.modify_table(table)
    allowed = denial is None
    for hook in run.ctx.hooks:
        allowed = await hook.check_modify_access_list(run, table, allowed)
    if allowed:
        return
    if denial is not None:
        raise Refusal(denial.code, denial.message, denial.data or {}, denied=True)
    raise Refusal("table_modify", "Table {table} may not be written", {"table": table}, denied=True)
