"""The DataHandler: one way to write records (SEMANTICS 2)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from content_store.access.policy import AccessPolicy, BackendUser
from content_store.datahandler.commands.delete import hard_delete
from content_store.datahandler.commands.dispatch import process_commands
from content_store.datahandler.datamap import process_datamap
from content_store.datahandler.entries import read_cmdmap, read_datamap, without_deleted
from content_store.datahandler.guard import guarded
from content_store.datahandler.log import LogAction
from content_store.datahandler.policy import AdministratorPolicy
from content_store.datahandler.refindex import update_references
from content_store.datahandler.result import EntryOutcome, ProcessResult
from content_store.datahandler.run import HandlerOptions, HandlerRun, RunContext
from content_store.datahandler.savepoints import ContextSnapshot, restore_context, snapshot_context
from content_store.datahandler.sites import Sites
from content_store.records.gateway import RecordGateway
from content_store.records.overlay import OverlayReader

if TYPE_CHECKING:
    from content_store.datahandler.hooks import DataHandlerHook


@dataclass(frozen=True)
class HandlerActor:
    """Who writes.

    Attributes:
        user: with the rights of the groups merged in.
        workspace: acting workspace, 0 is live.
        original_user: uid of the administrator in switch-user mode, else 0.
    """

    user: BackendUser
    workspace: int = 0
    original_user: int = 0


@dataclass(frozen=True)
class HandlerSnapshot:
    """State of a DataHandler at a savepoint of its caller."""

    context: ContextSnapshot
    placeholders: dict[str, tuple[str, int]]
    outcomes: int


class DataHandler:
    """Writes datamaps and cmdmaps inside the transaction of the connection.

    Several :meth:`process` calls of one tool call share placeholders, callbacks and flush requests.

    Args:
        gateway: on a connection that is in a transaction.
        actor: who writes.
        hooks: in the order they are called (see ``load_hooks``).
        policy: rights; without one the actor has to be an administrator.
        sites: languages of the page trees.
        options: settings.
        rehearsal: the transaction will be rolled back.
        now: Unix seconds to write, the clock's by default.

    Raises:
        ValueError: no policy for a user who is no administrator.
    """

    def __init__(
        self,
        gateway: RecordGateway,
        actor: HandlerActor,
        hooks: Sequence[DataHandlerHook] = (),
        *,
        policy: AccessPolicy | None = None,
        sites: Sites | None = None,
        options: HandlerOptions | None = None,
        rehearsal: bool = False,
        now: int | None = None,
        reader: OverlayReader | None = None,
    ) -> None:
        reader = reader or OverlayReader(gateway, actor.workspace)
        if policy is None:
            if not actor.user.admin:
                raise ValueError("a user who is no administrator needs a policy")
            policy = AdministratorPolicy(actor.user, gateway.schema, reader)
        self.ctx = RunContext(
            gateway,
            reader,
            policy,
            hooks,
            sites=sites or Sites(),
            options=options or HandlerOptions(),
            workspace=actor.workspace,
            now=int(time.time()) if now is None else now,
            rehearsal=rehearsal,
            original_user=actor.original_user,
        )
        self.placeholders: dict[str, tuple[str, int]] = {}
        self._within: HandlerRun | None = None

    @classmethod
    def within(cls, run: HandlerRun) -> DataHandler:
        """A DataHandler inside of a run, for hooks that write: everything is shared, the outermost one finishes."""
        handler = cls.__new__(cls)
        handler.ctx = run.ctx
        handler.placeholders = {}
        handler._within = run
        return handler

    async def process(
        self,
        datamap: Any = None,
        cmdmap: Any = None,
        *,
        suggested_uids: Iterable[tuple[str, int]] = (),
    ) -> ProcessResult:
        """Writes the datamap, then carries out the cmdmap.

        Args:
            datamap: ``{table: {uid or "NEW...": {field: value}}}``, raw JSON.
            cmdmap: ``{table: {uid: {command: value}}}``, raw JSON.
            suggested_uids: uids an administrator may choose for new records that name them.

        Returns:
            What happened, per entry and command; mistakes and missing rights are outcomes, not exceptions.

        Raises:
            CallMustEnd: deadlock, serialization failure, lock timeout, cancelled statement.
            TransactionLost: somebody ended the transaction.
            StatementRefused: the database refused the only entry, for which there was no savepoint.
            RunTooDeep: nested instances of the only entry went too deep.
            UndoNeeded: the only entry was refused after it had written; the caller rolls back.
            Refusal: a hook objected where no entry is at work.
        """
        run = self._start(datamap, cmdmap, frozenset(suggested_uids))
        first = len(self.ctx.outcomes)
        before = len(self.ctx.log.error_log)
        read = self._read(run, datamap, cmdmap)
        if read[0]:
            run.datamap = read[0]
            await process_datamap(run)
        if read[1]:
            run.cmdmap = read[1]
            await process_commands(run)
        if self._within is None:
            await self.finish()
        self.placeholders.update(run.placeholders)
        outcomes = self.ctx.outcomes[first:] if self._within is None else run.results
        return self._result(run, outcomes, self.ctx.log.error_log[before:])

    def _start(self, datamap: Any, cmdmap: Any, suggested: frozenset[tuple[str, int]]) -> HandlerRun:
        if self._within is not None:
            run = self._within.nested()
        else:
            self.ctx.reader.forget()
            self.ctx.mm.forget()
            self.ctx.places.forget()
            self.ctx.forget_settings()
            self.ctx.localized.clear()
            run = HandlerRun(self.ctx)
        run.placeholders = dict(self.placeholders)
        run.suggested_uids = suggested
        return run

    def _read(self, run: HandlerRun, datamap: Any, cmdmap: Any) -> tuple[Any, Any]:
        data, commands = read_datamap(datamap, self.ctx.schema), read_cmdmap(cmdmap, self.ctx.schema)
        for outcome in [*data.errors, *commands.errors]:
            message = f"{outcome.table}:{outcome.id} {outcome.operation}: {outcome.message}"
            run.log_error(LogAction.CHECK, outcome.table, 0, message, code=outcome.code or "")
            (self.ctx.outcomes if self._within is None else run.results).append(outcome)
        return without_deleted(data.entries, commands.entries), commands.entries

    async def finish(self) -> None:
        """Bring relations, reference index, history and log up to date with what stands; ``process`` does it itself.

        Only for a caller that goes on in the transaction after an error left :meth:`process`.
        """
        await self.ctx.mm.flush()
        await update_references(self.ctx)
        await self.ctx.history.flush(self.ctx.gateway)
        await self.ctx.log.flush(self.ctx.gateway)

    def _result(self, run: HandlerRun, outcomes: list[EntryOutcome], errors: list[str]) -> ProcessResult:
        return ProcessResult(
            {name: uid for name, (_, uid) in run.placeholders.items()},
            {name: table for name, (table, _) in run.placeholders.items()},
            {table: dict(copies) for table, copies in run.copied.items() if copies},
            {table: dict(copies) for table, copies in run.copied_merged.items() if copies},
            {table: dict(versions) for table, versions in run.auto_versions.items() if versions},
            list(errors),
            list(outcomes),
            self.ctx.correlation_scope,
        )

    async def hard_delete(self, table: str, uid: int) -> EntryOutcome:
        """Removes a record for good, deleted softly or not, as a recycler does; rights are not asked for."""
        run = self._start(None, None, frozenset())
        outcome = EntryOutcome(table, str(uid), "delete", "written", uid)

        async def work() -> None:
            await hard_delete(run, table, uid)

        await guarded(run, outcome, LogAction.DELETE, work, savepoint=True)
        if self._within is None:
            self.ctx.outcomes.append(outcome)
            await self.finish()
        return outcome

    def snapshot(self) -> HandlerSnapshot:
        """State to go back to when the caller rolls back to a savepoint of its own."""
        return HandlerSnapshot(snapshot_context(self.ctx), dict(self.placeholders), len(self.ctx.outcomes))

    def restore(self, snapshot: HandlerSnapshot) -> None:
        """Back to a snapshot: placeholders, work lists, callbacks, flush requests, outcomes."""
        restore_context(self.ctx, snapshot.context)
        self.placeholders = dict(snapshot.placeholders)
        del self.ctx.outcomes[snapshot.outcomes :]


def placeholders_by_table(result: ProcessResult) -> Mapping[str, dict[str, int]]:
    """Placeholders of a result: table -> placeholder -> uid."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, uid in result.substNEWwithIDs.items():
        found[result.substNEWwithIDs_table[name]][name] = uid
    return found
