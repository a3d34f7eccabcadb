"""Carries out the operations of a call, each undone alone when the database refuses it (CALLS 1, S-57)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from remit_contracts.calls import (
    Cmdmap,
    Datamap,
    EntryError,
    Expect,
    FlushCache,
    Operation,
    OperationResult,
    Read,
    RollbackReason,
)
from service_kit.logging import get_logger
from service_kit.problems import ProblemError

from content_store.caches.flush import FLUSH_FAILED, CacheFlushFailed
from content_store.calls.errors import CallRolledBack, SavepointNeeded
from content_store.calls.handling import CallHandler, HandlerState
from content_store.calls.reading import RowReader
from content_store.datahandler.errors import RunTooDeep, UndoNeeded
from content_store.datahandler.log import storable
from content_store.datahandler.result import DroppedField, EntryOutcome, ProcessResult
from content_store.datahandler.run import AfterCommit
from content_store.records.errors import (
    CALL_ENDING_SQLSTATES,
    CallMustEnd,
    StatementRefused,
    TransactionLost,
    ValueNotStorable,
)
from content_store.records.lost import connection_gone
from content_store.scope.guard import AssignmentScopeGuard

logger = get_logger(__name__)
# In a failed transaction every statement is refused with this state until it is rolled back to a savepoint.
_FAILED_TRANSACTION = "25P02"


@dataclass
class CallEffects:
    """What has to happen after the commit, and what went wrong on the way.

    Attributes:
        after_commit: callbacks of hooks (S-59).
        flush_groups: cache groups.
        hook_failed: a hook raised after something was written.
    """

    after_commit: list[AfterCommit] = field(default_factory=list)
    flush_groups: list[str] = field(default_factory=list)
    hook_failed: bool = False


class OperationRunner:
    """Runs operations one after the other on the call's connection.

    Args:
        handler: runs datamaps and cmdmaps and keeps what they report.
        reader: of ``read`` and ``expect``.
        guard: knows what the scope refused.
        flush_tags: flushes cache tags inside the transaction.
        effects: collects what waits for the commit.
        savepoints: undo an operation alone. Without them what the database refuses leaves as
            :class:`SavepointNeeded`, and the call is repeated: a savepoint costs each call a statement.
    """

    def __init__(
        self,
        handler: CallHandler,
        reader: RowReader,
        guard: AssignmentScopeGuard,
        flush_tags: Callable[[Sequence[str]], Coroutine[Any, Any, None]],
        effects: CallEffects,
        *,
        savepoints: bool = True,
    ) -> None:
        self._handler = handler
        self._reader = reader
        self._guard = guard
        self._flush_tags = flush_tags
        self._effects = effects
        self._savepoints = savepoints
        self._count = 0

    async def run(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """All of them in order.

        Raises:
            CallMustEnd: the database ended more than a statement.
            CallRolledBack: an unmet ``expect``, or the transaction is gone.
        """
        try:
            return [await self._one(operation) for operation in operations]
        except (TransactionLost, StatementRefused) as error:
            # An operation before this one left the transaction ended or failed, and nothing told of it at the time.
            raise CallRolledBack(RollbackReason.COMMIT_REFUSED, "transaction_lost") from error

    async def _one(self, operation: Operation) -> OperationResult:
        match operation:
            case Datamap():
                return await self._maps("datamap", operation.datamap, {})
            case Cmdmap():
                return await self._maps("cmdmap", {}, operation.cmdmap)
            case Read():
                return await self._reader.read(operation, self._handler.placeholders)
            case Expect():
                return await self._expect(operation)
            case FlushCache():
                return await self._flush(operation)

    # --- datamap and cmdmap -------------------------------------------------------------------------------------

    async def _maps(self, kind: str, datamap: Mapping[str, Any], cmdmap: Mapping[str, Any]) -> OperationResult:
        refused = len(self._guard)
        savepoint = await self._savepoint()
        state = self._handler.snapshot()
        try:
            result = await self._handler.process(datamap, cmdmap)
        except (CallMustEnd, CallRolledBack, TransactionLost):
            raise
        except (StatementRefused, ValueNotStorable, asyncpg.PostgresError, RunTooDeep, UndoNeeded) as error:
            self._end_where_needed(error)
            await self._undo(savepoint, state)
            return self._failed(kind, getattr(error, "code", "database_refused"), refused)
        except ProblemError as error:
            await self._undo(savepoint, state)
            return self._failed(kind, error.code, refused)
        except Exception as error:  # noqa: BLE001 - a hook's error is an error of the operation, told as such (S-66)
            return await self._hook_failed(kind, error, savepoint, state, refused)
        return self._done(kind, result, refused)

    async def _savepoint(self) -> str:
        self._count += 1
        name = f"operation_{self._count}"
        if self._savepoints:
            await self._handler.gateway.savepoint("SAVEPOINT", name)
        return name

    async def _hook_failed(
        self, kind: str, error: Exception, savepoint: str, state: HandlerState, refused: int
    ) -> OperationResult:
        """What was written before a hook raised stands, unless the database took it back with the hook's statement."""
        if connection_gone(self._handler.gateway.connection) or isinstance(error, asyncpg.InternalClientError):
            raise asyncpg.InterfaceError("the connection of the call is gone") from error
        logger.warning("a hook failed during a call", exc_info=error)
        try:
            await self._handler.finish_failed()
        except StatementRefused as failed:
            if failed.sqlstate != _FAILED_TRANSACTION:
                raise
            await self._undo(savepoint, state)
            return self._failed(kind, "hook_failed", refused)
        self._effects.hook_failed = True
        return self._failed(kind, "hook_failed", refused)

    @staticmethod
    def _end_where_needed(error: Exception) -> None:
        """An error of a hook's own statement that says the transaction cannot go on ends the call, too."""
        sqlstate = str(getattr(error, "sqlstate", "") or "")
        if sqlstate in CALL_ENDING_SQLSTATES:
            raise CallMustEnd(sqlstate, str(error)) from error

    async def _undo(self, savepoint: str, state: HandlerState) -> None:
        if connection_gone(self._handler.gateway.connection):
            raise asyncpg.InterfaceError("the connection of the call is gone")
        if not self._savepoints:
            raise SavepointNeeded
        try:
            await self._handler.gateway.savepoint("ROLLBACK TO SAVEPOINT", savepoint)
        except (TransactionLost, StatementRefused) as error:
            # The savepoint went with a COMMIT or ROLLBACK that was not ours.
            raise CallRolledBack(RollbackReason.COMMIT_REFUSED, "transaction_lost") from error
        self._handler.restore(state)

    def _failed(self, kind: str, code: str, refused: int) -> OperationResult:
        own = EntryError(operation=kind, table="", record="", code=str(code))
        return OperationResult(op=kind, errors=(own, *self._scope_errors(refused)))

    def _done(self, kind: str, result: ProcessResult, refused: int) -> OperationResult:
        scope_errors = self._scope_errors(refused)
        told = {(error.table, error.record) for error in scope_errors}
        errors = [
            _entry_error(outcome)
            for outcome in result.failed
            if not (outcome.status == "vetoed" and (outcome.table, outcome.id) in told)
        ]
        errors += [
            _dropped_error(outcome, dropped)
            for outcome in result.outcomes
            if outcome not in result.failed
            for dropped in outcome.dropped
        ]
        return OperationResult(
            op=kind,
            placeholders=dict(result.substNEWwithIDs),
            copies={
                table: {str(source): copy for source, copy in copies.items()}
                for table, copies in result.copyMappingArray_merged.items()
            },
            errors=(*errors, *scope_errors),
        )

    def _scope_errors(self, refused: int) -> tuple[EntryError, ...]:
        return tuple(
            EntryError(operation=write.operation, table=write.table, record=record, code=write.reason)
            for write, record in self._guard.submitted_since(refused)
        )

    # --- the others ---------------------------------------------------------------------------------------------

    async def _expect(self, operation: Expect) -> OperationResult:
        if not await self._reader.matches(operation.table, operation.uid, operation.hash):
            raise CallRolledBack(RollbackReason.EXPECT)
        return OperationResult(op=operation.op)

    async def _flush(self, operation: FlushCache) -> OperationResult:
        """A group waits for the commit; a tag is flushed in place and goes with the transaction (S-59)."""
        if operation.tags:
            savepoint = await self._savepoint()
            try:
                await self._flush_tags(operation.tags)
            except (CacheFlushFailed, StatementRefused, asyncpg.PostgresError) as error:
                self._end_where_needed(error)
                logger.warning("cache tags were not flushed", exc_info=error)
                await self._undo(savepoint, self._handler.snapshot())
                return self._failed(operation.op, FLUSH_FAILED, len(self._guard))
        if operation.group is not None:
            self._effects.flush_groups.append(operation.group)
        return OperationResult(op=operation.op)


def _dropped_error(outcome: EntryOutcome, dropped: DroppedField) -> EntryError:
    """The entry was carried out without this field: a "saved" must not hide that."""
    return EntryError(
        operation=outcome.operation,
        table=storable(outcome.table)[:64],
        record=storable(outcome.id)[:64],
        code=dropped.code,
        message=f"{dropped.field} was not written",
    )


def _entry_error(outcome: EntryOutcome) -> EntryError:
    return EntryError(
        operation=outcome.operation,
        table=storable(outcome.table)[:64],
        record=storable(outcome.id)[:64],
        code=outcome.code or outcome.status,
        message=storable(outcome.message or ""),
    )
