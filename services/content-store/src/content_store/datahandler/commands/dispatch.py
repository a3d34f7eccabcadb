"""Working through a cmdmap (SEMANTICS 8)."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.commands.copy import CopyOptions, copy_record
from content_store.datahandler.commands.copy_page import copy_page
from content_store.datahandler.commands.delete import delete_record
from content_store.datahandler.commands.exchange import exchange_copied_references
from content_store.datahandler.commands.inline import localize_children
from content_store.datahandler.commands.localize import localize_record
from content_store.datahandler.commands.move import move_record
from content_store.datahandler.commands.paste import (
    PlacedValue,
    collect_paste,
    language_of_update,
    read_placed_value,
)
from content_store.datahandler.commands.prefetch import prefetch_for_copy
from content_store.datahandler.commands.undelete import undelete_record
from content_store.datahandler.datamap import check_table, process_datamap
from content_store.datahandler.entries import DataMap, read_uid
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.guard import guarded
from content_store.datahandler.log import LogAction
from content_store.datahandler.result import NOT_CARRIED_OUT, DroppedField, EntryOutcome

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

_ACTIONS: Final = {
    "move": LogAction.MOVE,
    "delete": LogAction.DELETE,
    "localize": LogAction.LOCALIZE,
    "copyToLanguage": LogAction.LOCALIZE,
    "inlineLocalizeSynchronize": LogAction.LOCALIZE,
    "version": LogAction.VERSIONIZE,
    "discard": LogAction.DISCARD,
}
#: Code of the fields of an update that a later command of the run took the place of (SEMANTICS 8).
_SUPERSEDED: Final = "paste_superseded"
_MESSAGE_LIMIT: Final = 1000


async def process_commands(run: HandlerRun) -> None:
    """Carries out all commands of ``run.cmdmap``, then exchanges references and applies the paste update."""
    for hook in run.ctx.hooks:
        await hook.before_commands(run)
    pasting: EntryOutcome | None = None
    for table, records in run.cmdmap.items():
        for record_id, commands in records.items():
            for command, value in commands.items():
                earlier = run.paste_datamap
                outcome = await _process(run, table, record_id, command, value)
                if pasting is not None:
                    _not_pasted(pasting, earlier, _SUPERSEDED, "only the update of the last command is applied")
                pasting = outcome if run.paste_datamap else None
    await exchange_copied_references(run)
    for hook in run.ctx.hooks:
        await hook.after_commands(run)
    paste, run.paste_datamap = run.paste_datamap, {}
    if paste and pasting is not None:
        await _paste(run, pasting, paste)
    elif run.ctx.hooks:
        await process_datamap(run.nested())


async def _paste(run: HandlerRun, pasting: EntryOutcome, paste: DataMap) -> None:
    """Applies the update of a copy or move; what of it is not written is undone alone and told with the command."""
    results: list[EntryOutcome] = []

    async def work() -> None:
        nested = run.nested(_copied(paste))
        await process_datamap(nested)
        results[:] = nested.results

    applied = EntryOutcome(pasting.table, str(pasting.uid), "update", "written")
    if not await guarded(run, applied, LogAction.UPDATE, work, savepoint=True):
        _not_pasted(pasting, paste, applied.code or applied.status, applied.message or "")
        return
    reasons = []
    for result in results:
        fields = paste.get(result.table, {}).get(result.id)
        if result.status in NOT_CARRIED_OUT and not result.dropped:
            # Of what the synchronization of translations added nobody gave a field.
            dropped = [DroppedField(name, result.code or result.status) for name in fields or ()]
        else:
            dropped = result.dropped
        pasting.dropped += [d for d in dropped if d not in pasting.dropped]
        if dropped or result.status in NOT_CARRIED_OUT:
            reasons.append(f"{result.table}:{result.id}: {result.message or result.code or result.status}")
    if reasons:
        pasting.message = f"The update was not applied as a whole: {'; '.join(reasons)}"[:_MESSAGE_LIMIT]


def _not_pasted(pasting: EntryOutcome, paste: DataMap, code: str, reason: str) -> None:
    """The command itself stands, so it stays written; it names each field that is not as it was to be."""
    for name in dict.fromkeys(name for rows in paste.values() for fields in rows.values() for name in fields):
        pasting.drop(name, code)
    pasting.message = f"The update was not applied: {reason}"[:_MESSAGE_LIMIT]


def _copied(datamap: DataMap) -> DataMap:
    return {table: {key: dict(row) for key, row in rows.items()} for table, rows in datamap.items()}


async def _process(run: HandlerRun, table: str, record_id: str, command: str, value: Any) -> EntryOutcome:
    outcome = EntryOutcome(table, record_id, command, "written")
    run.copied = defaultdict(dict)
    run.paste_datamap = {}
    action = _ACTIONS.get(command, LogAction.INSERT)
    work = functools.partial(_command, run, outcome, value)
    await guarded(run, outcome, action, work, savepoint=True)
    if run.outermost:
        run.ctx.outcomes.append(outcome)
    else:
        run.results.append(outcome)
    return outcome


async def _command(run: HandlerRun, outcome: EntryOutcome, value: Any) -> None:
    table, uid, command = outcome.table, int(outcome.id), outcome.operation
    if table not in run.ctx.schema:
        raise Refusal(ErrorCode.UNKNOWN_TABLE, "There is no table {table}", {"table": table})
    placed = read_placed_value(value) if command in ("copy", "move") else None
    update = placed.update if placed is not None else None
    for hook in run.ctx.hooks:
        value = await hook.pre_process_command(run, command, table, uid, value, update)
    await check_table(run, table)
    handled = False
    for hook in run.ctx.hooks:
        handled = await hook.process_command(run, command, table, uid, value, handled, update)
    if handled:
        outcome.uid = uid
    elif placed is not None:
        await _placing(run, outcome, uid, read_placed_value(value))
    else:
        await _simple(run, outcome, uid, value)
    results = [outcome.uid] if outcome.uid is not None else []
    for hook in run.ctx.hooks:
        await hook.post_process_command(run, command, table, uid, value, update, results)


async def _placing(run: HandlerRun, outcome: EntryOutcome, uid: int, placed: PlacedValue) -> None:
    table = outcome.table
    if outcome.operation == "copy":
        _refuse_in_workspace(run, outcome)
    row = await run.ctx.reader.record(table, uid)
    update = language_of_update(run, table, row, dict(placed.update)) if row and placed.update is not None else None
    if outcome.operation == "move":
        await move_record(run, table, uid, placed.target)
        outcome.uid = uid
        collect_paste(run, table, uid, update)
        return
    options = CopyOptions(first=True, ignore_localization=placed.ignore_localization)
    if table == "pages":
        copy = await copy_page(run, uid, placed.target, options)
    else:
        await prefetch_for_copy(run.ctx, {table: [uid]})
        copy = await copy_record(run, table, uid, placed.target, options)
    outcome.uid = copy
    if copy is not None:
        collect_paste(run, table, copy, update)


def _refuse_in_workspace(run: HandlerRun, outcome: EntryOutcome) -> None:
    # What comes along (children, translations) would have to become drafts as well.
    if run.ctx.workspace:
        data = {"command": outcome.operation}
        raise Refusal(ErrorCode.WORKSPACES_UNAVAILABLE, "There is no {command} in a workspace yet", data)


async def _simple(run: HandlerRun, outcome: EntryOutcome, uid: int, value: Any) -> None:
    table, command = outcome.table, outcome.operation
    if command in ("localize", "copyToLanguage", "inlineLocalizeSynchronize"):
        _refuse_in_workspace(run, outcome)
    if command in ("localize", "copyToLanguage"):
        language = read_uid(value)
        if language is None:
            raise Refusal(ErrorCode.UNKNOWN_LANGUAGE, "The id of a language is expected")
        outcome.uid = await localize_record(run, table, uid, language, connected=command == "localize")
    elif command == "inlineLocalizeSynchronize":
        outcome.uid = await localize_children(run, table, uid, value)
    elif command in ("delete", "undelete"):
        if not value:
            outcome.status = "unchanged"
            return
        await (delete_record if command == "delete" else undelete_record)(run, table, uid)
        outcome.uid = uid
    else:
        raise Refusal(ErrorCode.WORKSPACES_UNAVAILABLE, "There are no drafts yet: {command}", {"command": command})
    if outcome.uid is None:
        outcome.status = "unchanged"
