"""One entry or command: carried out or undone alone, always with an outcome (SEMANTICS 2, CALLS 1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from content_store.datahandler.errors import (
    ErrorCode,
    Refusal,
    RunTooDeep,
    StatementRefused,
    UndoNeeded,
    ValueNotStorable,
)
from content_store.datahandler.hooks import HookVeto
from content_store.datahandler.log import LogAction, LogLevel
from content_store.datahandler.result import EntryOutcome
from content_store.datahandler.savepoints import restore_run, snapshot_run

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

_SAVEPOINT: Final = "datahandler_entry"


async def guarded(
    run: HandlerRun,
    outcome: EntryOutcome,
    action: LogAction,
    work: Callable[[], Awaitable[None]],
    *,
    savepoint: bool,
) -> bool:
    """Carries out one entry; what it refuses is logged and written into the outcome, and leaves nothing behind.

    An entry that is refused before it wrote anything needs no savepoint. One that is refused later, or by the database,
    asks for one (:class:`UndoNeeded`): the entry around it that has one is undone and carried out once more, carefully, with a
    savepoint for everything inside.

    Args:
        run: the instance at work.
        outcome: of the entry; the work sets status and uid.
        action: for the log.
        work: the entry; may be called twice.
        savepoint: undo the entry alone; without one a refusal of the database leaves through the caller.

    Returns:
        Whether it was carried out.

    Raises:
        StatementRefused, RunTooDeep, UndoNeeded: there is no savepoint to undo it alone.
        CallMustEnd, TransactionLost: always.
    """
    if savepoint or run.ctx.careful:
        return await _with_savepoint(run, outcome, action, work)
    return await _without_savepoint(run, outcome, action, work)


async def _with_savepoint(
    run: HandlerRun, outcome: EntryOutcome, action: LogAction, work: Callable[[], Awaitable[None]]
) -> bool:
    ctx, given = run.ctx, replace(outcome)
    snapshot = snapshot_run(run)
    await ctx.gateway.savepoint("SAVEPOINT", _SAVEPOINT)
    ctx.savepoints += 1
    try:
        try:
            await work()
        except UndoNeeded:
            if ctx.careful:
                raise
            await ctx.gateway.savepoint("ROLLBACK TO SAVEPOINT", _SAVEPOINT)
            restore_run(run, snapshot)
            vars(outcome).update(vars(given))
            ctx.careful = True
            try:
                await work()
            finally:
                ctx.careful = False
    except (Refusal, ValueNotStorable, StatementRefused, RunTooDeep) as error:
        if isinstance(error, RunTooDeep) and not run.outermost:
            # Nobody inside can make good what went round in circles: the entry that began it is undone.
            raise
        await ctx.gateway.savepoint("ROLLBACK TO SAVEPOINT", _SAVEPOINT)
        restore_run(run, snapshot)
        if isinstance(error, Refusal):
            # What a nested instance had logged went with the rest.
            error.logged = False
        _report(run, outcome, action, error)
        return False
    finally:
        ctx.savepoints -= 1
        if ctx.gateway.connection.is_in_transaction():
            await _release(run)
    return outcome.status in ("written", "unchanged")


async def _without_savepoint(
    run: HandlerRun, outcome: EntryOutcome, action: LogAction, work: Callable[[], Awaitable[None]]
) -> bool:
    ctx = run.ctx
    # What an instance inside another one remembers is put right by the entry around it.
    snapshot = snapshot_run(run) if run.outermost else None
    before = (ctx.gateway.writes, ctx.mm.changes)
    try:
        await work()
    except (Refusal, ValueNotStorable) as error:
        if (ctx.gateway.writes, ctx.mm.changes) != before:
            raise UndoNeeded(str(error.code), str(error)) from error
        if snapshot is not None:
            restore_run(run, snapshot)
            if isinstance(error, Refusal):
                error.logged = False
        _report(run, outcome, action, error)
        return False
    except StatementRefused as error:
        if ctx.savepoints:
            # The transaction has failed up to there; carefully, only this entry is undone.
            raise UndoNeeded(ErrorCode.DATABASE_REFUSED, _refused_text(error)) from error
        _report(run, outcome, action, error)
        raise
    except RunTooDeep as error:
        _report(run, outcome, action, error)
        raise
    return outcome.status in ("written", "unchanged")


def refusal_of(run: HandlerRun, record_id: str, otherwise: str) -> Refusal:
    """Why a nested instance did not write an entry, as a refusal of the entry around it; it has been logged.

    Args:
        run: the nested instance.
        record_id: of its entry.
        otherwise: message where the instance says nothing.
    """
    failed = next((o for o in run.results if o.id == record_id), None)
    message = failed.message if failed is not None and failed.message else otherwise
    if failed is not None and failed.status == "vetoed":
        veto = HookVeto(message, failed.code or ErrorCode.VETOED)
        veto.logged = True
        return veto
    code = failed.code if failed is not None and failed.code else ErrorCode.INVALID_ROW
    return Refusal(code, message, denied=failed is not None and failed.status == "refused", logged=True)


def _refused_text(error: StatementRefused) -> str:
    return f"The database refused the entry ({error.sqlstate})"


async def _release(run: HandlerRun) -> None:
    # In a failed transaction there is nothing to release; what failed is on its way out already.
    try:
        await run.ctx.gateway.savepoint("RELEASE SAVEPOINT", _SAVEPOINT)
    except StatementRefused as error:
        if error.sqlstate != "25P02":
            raise


def _report(
    run: HandlerRun,
    outcome: EntryOutcome,
    action: LogAction,
    error: Refusal | ValueNotStorable | StatementRefused | RunTooDeep,
) -> None:
    level = LogLevel.USER_ERROR
    outcome.uid = None
    if isinstance(error, HookVeto):
        outcome.status = "vetoed"
    elif isinstance(error, Refusal) and error.denied:
        outcome.status = "refused"
    else:
        outcome.status = "error"
    if isinstance(error, StatementRefused):
        # What the database says may name values of rows the user cannot read.
        level, outcome.code = LogLevel.SYSTEM_ERROR, ErrorCode.DATABASE_REFUSED
        outcome.message = _refused_text(error)
    else:
        outcome.code, outcome.message = str(error.code), str(error)
    if isinstance(error, Refusal) and error.logged:
        return
    uid = int(outcome.id) if outcome.id.isdigit() else 0
    data = dict(error.data) if isinstance(error, Refusal) else {}
    details = error.message if isinstance(error, Refusal) else str(outcome.message)
    run.log_error(action, outcome.table, uid, details, data, code=outcome.code, level=level)
