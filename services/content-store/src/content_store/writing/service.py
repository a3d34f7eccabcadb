"""Writes of a person, outside of an agent's calls: one request, one transaction, one DataHandler run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from remit_contracts.calls import Cmdmap, Datamap
from remit_contracts.changes import ChangeAction
from service_kit.auth import TokenInvalidError
from service_kit.logging import get_logger

from content_store.access.hook import PageRightsHook
from content_store.access.readable import Viewer
from content_store.access.rights import BackendAccess
from content_store.access.rules import may_select_table
from content_store.access.users import LoadedUser, load_user
from content_store.caches.flush import CacheFlushFailed, flush_groups, requested
from content_store.calls.committing import CommitRefused, commit, rollback, run_callbacks
from content_store.calls.connections import acquire, give_back
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import TreeLockNeeded, problem_of
from content_store.calls.tree_lock import TreeLock, TreeLockHook, needed_lock, take_tree_lock
from content_store.calls.witness import ChangeWitness
from content_store.capture.grouping import group_rows
from content_store.capture.reader import take_capture
from content_store.datahandler.errors import Refusal, RunTooDeep, UndoNeeded
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.result import ProcessResult
from content_store.errors import RecordNotFoundError, TableNotFoundError, WorkspaceNotFoundError
from content_store.events.records import Origin, append_record_events, record_changes
from content_store.reads.history import HistoryRepository
from content_store.reads.repository import RecordReader
from content_store.records.errors import CallMustEnd, StatementRefused, TransactionLost, ValueNotStorable
from content_store.records.gateway import RecordGateway
from content_store.scope.child_relations import RecordKey
from content_store.workspaces.rules import may_use
from content_store.writing.errors import HistoryEntryNotFoundError, WriteRefusedError
from content_store.writing.places import move_target
from content_store.writing.rollback import PLACE, RollbackPlan, not_restored, rollback_plan

logger = get_logger(__name__)
_REQUEST: Final = "request"
_REFUSED_AS_A_WHOLE: Final = (
    Refusal,
    UndoNeeded,
    StatementRefused,
    TransactionLost,
    CommitRefused,
    ValueNotStorable,
    RunTooDeep,
    CacheFlushFailed,
)


@dataclass(frozen=True)
class Writer:
    """Who writes where."""

    user_uid: int
    workspace: int = 0


@dataclass
class Written:
    """What came of a write: the handler's result, and codes of what failed after the commit."""

    result: ProcessResult
    warnings: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass
class _Run:
    """One attempt: everything that lives as long as its transaction."""

    gateway: RecordGateway
    loaded: LoadedUser
    policy: BackendAccess
    writer: Writer
    lock: TreeLock
    witness: ChangeWitness = field(default_factory=ChangeWitness)


Work = Callable[[_Run], Awaitable["tuple[Written, DataHandler]"]]


def moved_records(witness: ChangeWitness) -> dict[RecordKey, ChangeAction]:
    """Records that were moved and nothing more: within a page the database sees only another sort number (pure)."""
    found: dict[RecordKey, set[ChangeAction]] = {}
    for report in witness.reports:
        found.setdefault(report.key, set()).add(report.action)
    only = {ChangeAction.MOVED, ChangeAction.UPDATED}
    return {
        key: ChangeAction.MOVED for key, actions in found.items() if ChangeAction.MOVED in actions and actions <= only
    }


def _nobody() -> None:
    """Nobody waits for events."""


class RecordWriter:
    """Carries out datamaps and cmdmaps of people.

    Args:
        env: what all writes of the process share.
        applies: pool of short transactions.
        published: called after a commit, to wake the relay.
    """

    def __init__(self, env: StoreEnvironment, applies: Any, published: Callable[[], None] = _nobody) -> None:
        self._env = env
        # What the database refuses is told per entry, not by repeating the request: two statements more are worth that.
        self._options = replace(env.options, savepoint_single_entry=True)
        self._applies = applies
        self._published = published

    async def write(self, writer: Writer, datamap: Mapping[str, Any], cmdmap: Mapping[str, Any]) -> Written:
        """Run both maps.

        Raises:
            TokenInvalidError: the user is gone or disabled.
            WorkspaceNotFoundError: it may not work there.
            CallLocked, CallConflict: the database ended the transaction every time; nothing was written.
            WriteRefusedError: a hook objected to the whole, or the database refused what no entry stands for.
        """
        lock = needed_lock([Datamap(datamap=dict(datamap)), Cmdmap(cmdmap=dict(cmdmap))])

        async def work(run: _Run) -> tuple[Written, DataHandler]:
            return await self._process(run, datamap, cmdmap)

        return await self._repeated(writer, lock, work)

    async def roll_back(self, writer: Writer, table: str, uid: int, entry: int) -> Written:
        """Bring a record back to how it was after an entry of its history, with the rights of the user.

        Raises:
            TableNotFoundError, RecordNotFoundError: not there for this user.
            HistoryEntryNotFoundError: no entry of this record.
        """

        async def work(run: _Run) -> tuple[Written, DataHandler]:
            plan = await self._rollback_plan(run, table, uid, entry)
            written, handler = await self._process(run, plan.datamap(table, uid), plan.cmdmap(table, uid))
            if deletion := plan.deletion(table, uid):
                # Afterwards: what is deleted in the same run is not written, and cannot be moved.
                deleted = await handler.process(None, deletion)
                written.result.outcomes += deleted.outcomes
                written.result.errorLog += deleted.errorLog
            rows = await run.gateway.select(table, {"uid": uid})
            missing = not_restored(self._env.schema.tables[table], plan, rows[0]) if rows else []
            missing += [PLACE for outcome in written.result.failed if outcome.operation == "move"]
            written.skipped = list(dict.fromkeys([*plan.skipped, *missing]))
            return written, handler

        # Going back may move or delete a page.
        return await self._repeated(writer, TreeLock.EXCLUSIVE if table == "pages" else TreeLock.SHARED, work)

    async def _rollback_plan(self, run: _Run, table: str, uid: int, entry: int) -> RollbackPlan:
        described = self._env.schema.tables.get(table)
        if described is None or not may_select_table(table, run.loaded.user):
            raise TableNotFoundError(table=table)
        workspaces = {run.loaded.workspace.uid: run.loaded.workspace} if run.loaded.workspace else {}
        viewer = Viewer(run.loaded.user, run.writer.workspace, workspaces, run.loaded.locale)
        row = await RecordReader(run.gateway, viewer, self._env.schema_name).readable_deleted_too(described, uid)
        if row is None:
            raise RecordNotFoundError(table=table, uid=uid)
        history = HistoryRepository(run.gateway, self._env.schema_name)
        entries = await history.since(table, uid, entry, run.writer.workspace)
        if not entries:
            raise HistoryEntryNotFoundError(entry=entry)
        plan = rollback_plan(described, entries, row)
        if plan.place is not None:
            plan.target = await move_target(run.gateway, described, row, plan.place)
        return plan

    async def _repeated(self, writer: Writer, lock: TreeLock, work: Work) -> Written:
        for attempt in range(self._env.limits.retries + 1):
            try:
                return await self._with_lock(writer, lock, work)
            except CallMustEnd as error:
                if attempt == self._env.limits.retries:
                    raise problem_of(error) from error
        raise AssertionError("not reached")

    async def _with_lock(self, writer: Writer, lock: TreeLock, work: Work) -> Written:
        while True:
            try:
                return await self._transaction(writer, lock, work)
            except TreeLockNeeded as error:
                stronger = TreeLock.EXCLUSIVE if error.exclusive else TreeLock.SHARED
                if stronger <= lock:
                    raise
                lock = stronger
            except _REFUSED_AS_A_WHOLE as error:
                # What is refused per entry is an outcome. This came from around the entries.
                logger.warning("a write was refused as a whole", exc_info=error)
                raise WriteRefusedError(members={"reason": str(error.code)}) from error

    async def _transaction(self, writer: Writer, lock: TreeLock, work: Work) -> Written:
        connection = await acquire(self._applies, self._env.limits.acquire_seconds)
        try:
            transaction = connection.transaction()
            await transaction.start()
            try:
                run = await self._begin(
                    RecordGateway(connection, self._env.schema, self._env.schema_name), writer, lock
                )
                guests = self._env.has_guests
                if guests:
                    await run.gateway.savepoint("SAVEPOINT", _REQUEST)
                written, handler = await work(run)
                if guests:
                    # Refused where a hook ended the transaction and began another: what was reported is not in this one.
                    await run.gateway.savepoint("RELEASE SAVEPOINT", _REQUEST)
                if tags := requested(handler.ctx.flush_requests, "tags"):
                    await self._env.caches.flush_tags(run.gateway, tags)
                await self._publish(connection, run)
                await commit(transaction)
            except BaseException:
                await asyncio.shield(rollback(connection, transaction))
                raise
        finally:
            await give_back(self._env, self._applies, connection)
        self._published()
        await self._after_commit(handler, written)
        return written

    async def _begin(self, gateway: RecordGateway, writer: Writer, lock: TreeLock) -> _Run:
        await take_tree_lock(gateway, lock)
        loaded = await load_user(gateway, writer.user_uid, writer.workspace)
        if loaded is None:
            raise TokenInvalidError
        if not may_use(loaded.workspace, writer.workspace, loaded.user):
            raise WorkspaceNotFoundError(workspace=writer.workspace)
        policy = BackendAccess(
            loaded.user,
            self._env.schema,
            gateway,
            workspace_id=writer.workspace,
            workspace=loaded.workspace,
            schema_name=self._env.schema_name,
        )
        return _Run(gateway, loaded, policy, writer, lock)

    async def _process(
        self, run: _Run, datamap: Mapping[str, Any], cmdmap: Mapping[str, Any]
    ) -> tuple[Written, DataHandler]:
        hooks = [PageRightsHook(run.policy), *self._env.hooks(), run.witness, TreeLockHook(run.lock)]
        handler = DataHandler(
            run.gateway,
            HandlerActor(run.loaded.user, run.writer.workspace),
            hooks,
            policy=run.policy,
            sites=self._env.sites,
            options=self._options,
        )
        return Written(await handler.process(datamap, cmdmap)), handler

    async def _publish(self, connection: Any, run: _Run) -> None:
        """Take what the transaction wrote and tell of it, last before the commit."""
        deltas = group_rows(await take_capture(connection, None))
        origin = Origin.of_user(run.writer.user_uid)
        changes = record_changes(deltas, self._env.relation_ends, origin, moved_records(run.witness))
        if changes:
            await append_record_events(connection, self._env.outbox, changes)

    async def _after_commit(self, handler: DataHandler, written: Written) -> None:
        written.warnings += await flush_groups(self._env.caches, requested(handler.ctx.flush_requests, "group"))
        written.warnings += await run_callbacks(handler.ctx.after_commit)
