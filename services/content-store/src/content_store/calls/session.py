"""One call at work on one connection: its user, its scope, its operations and its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from remit_contracts.actor import ActorContext
from remit_contracts.calls import Operation, OperationResult

from content_store.access.hook import PageRightsHook
from content_store.access.readable import Viewer
from content_store.access.rights import BackendAccess
from content_store.access.users import LoadedUser, load_user
from content_store.caches.flush import requested
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import ActorUnknown, WorkspaceDenied
from content_store.calls.handling import CallHandler
from content_store.calls.operations import CallEffects, OperationRunner
from content_store.calls.plan import CallPlan
from content_store.calls.reading import RowReader
from content_store.calls.tree_lock import TreeLockHook
from content_store.calls.verdict import Judged, Verdict, judge
from content_store.calls.witness import ChangeWitness
from content_store.datahandler.handler import HandlerActor
from content_store.datahandler.hooks import DataHandlerHook
from content_store.records.gateway import RecordGateway
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.guard import AssignmentScopeGuard
from content_store.scope.hook import AssignmentScopeHook
from content_store.scope.topology import PageTopology
from content_store.workspaces.rules import may_use


class CallSession:
    """Guard, collector and handler of one call; ended with its transaction on every way out (S-62).

    Attributes:
        plan: the call.
        effects: what waits for the commit.
        guard: what the scope refused.
        witness: what the DataHandlers reported.
    """

    def __init__(
        self,
        env: StoreEnvironment,
        gateway: RecordGateway,
        plan: CallPlan,
        loaded: LoadedUser,
        *,
        lock: TreeLockHook,
        rehearsal: bool = False,
        savepoints: bool = True,
    ) -> None:
        self._env = env
        self._gateway = gateway
        self.plan = plan
        self._rehearsal = rehearsal
        self._workspace = plan.actor.workspace_id
        self._checker = AssignmentScopeChecker(plan.scope) if plan.scope is not None else None
        self.guard = AssignmentScopeGuard()
        self.witness = ChangeWitness()
        self.effects = CallEffects()
        topology = PageTopology(gateway, self._workspace) if self._checker is not None else None
        policy = self._policy(loaded)
        self._handler = CallHandler(
            gateway,
            HandlerActor(loaded.user, self._workspace),
            policy,
            self._hooks(lock, policy, topology),
            sites=env.sites,
            options=env.options,
            witness=self.witness,
            rehearsal=rehearsal,
            topology=topology,
        )
        workspaces = {loaded.workspace.uid: loaded.workspace} if loaded.workspace is not None else {}
        viewer = Viewer(loaded.user, self._workspace, workspaces, loaded.locale)
        self._runner = OperationRunner(
            self._handler, RowReader(gateway, viewer), self.guard, self._flush_tags, self.effects, savepoints=savepoints
        )

    def _policy(self, loaded: LoadedUser) -> BackendAccess:
        return BackendAccess(
            loaded.user,
            self._env.schema,
            self._gateway,
            workspace_id=self._workspace,
            workspace=loaded.workspace,
            schema_name=self._env.schema_name,
        )

    def _hooks(self, lock: TreeLockHook, policy: BackendAccess, topology: PageTopology | None) -> list[DataHandlerHook]:
        hooks: list[DataHandlerHook] = [PageRightsHook(policy), *self._env.hooks(), self.witness, lock]
        if self._checker is not None and topology is not None and self._env.scope_hook:
            # Last: it judges what the others made of a map.
            hooks.append(AssignmentScopeHook(self._checker, topology, self.guard))
        return hooks

    async def _flush_tags(self, tags: Sequence[str]) -> None:
        await self._env.caches.flush_tags(self._gateway, tags)

    async def run(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Carry out operations in order."""
        results = await self._runner.run(operations)
        self.effects.after_commit = list(self._handler.after_commit)
        return results

    async def verdict(self) -> Verdict:
        """Judge everything the call did so far; nothing may be written afterwards."""
        about = Judged(
            call_id=None if self._rehearsal else self.plan.call_id,
            checker=self._checker,
            shown=self.plan.shown,
            target=self.plan.write_target,
            workspace=self._workspace,
        )
        return await judge(
            self._env,
            self._gateway,
            about,
            self.witness,
            self.guard,
            self._handler.placeholders,
            self._handler.copies,
        )

    @property
    def placeholders(self) -> dict[str, tuple[str, int]]:
        """Placeholder -> table and uid, of all operations so far."""
        return self._handler.placeholders

    @property
    def copies(self) -> dict[tuple[str, int], int]:
        """Table and uid of each copy or translation made so far -> uid of its source."""
        return self._handler.copies

    async def flush_requested_tags(self) -> None:
        """Flush the tags DataHandlers asked for, inside the transaction; their groups wait for the commit (S-69).

        Raises:
            CacheFlushFailed, StatementRefused: stale entries would stay, so the call must not be committed.
        """
        if tags := requested(self._handler.flushes, "tags"):
            await self._flush_tags(tags)
        self.effects.flush_groups += requested(self._handler.flushes, "group")


async def load_actor(gateway: RecordGateway, actor: ActorContext) -> LoadedUser:
    """The acting user with its rights, and the workspace it wants to work in, in one statement.

    Raises:
        ActorUnknown: there is no such user, or it is disabled.
        WorkspaceDenied: it may not work there.
    """
    loaded = await load_user(gateway, actor.user_uid, actor.workspace_id)
    if loaded is None:
        raise ActorUnknown
    if not may_use(loaded.workspace, actor.workspace_id, loaded.user):
        raise WorkspaceDenied
    return loaded
