"""Who may see and do what with a run; unknown and not readable look the same (T-20, T-54)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from service_kit.auth import Actor
from service_kit.client import RemoteProblem

from agent_runtime.clients.store import StoreClient
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.runs.models import RunRow


class Sight(IntEnum):
    """How much of a run somebody sees: nothing, only its card, everything."""

    NOTHING = 0
    CARD = 1
    FULL = 2


@dataclass(frozen=True)
class Person:
    """Whoever acts on a run."""

    user_uid: int
    locale: str = "en"
    admin: bool = False


class RunAccess:
    """Answers from the run's owner, the configuration's approvers, and the store's word on administrators."""

    def __init__(self, store: StoreClient, configurations: ConfigurationRegistry) -> None:
        self._store = store
        self._configurations = configurations

    async def sight(self, run: RunRow, actor: Actor) -> Sight:
        """What this caller sees of a run."""
        if run.owner_uid == actor.user_uid:
            return Sight.FULL
        if await self.is_admin(actor):
            return Sight.FULL
        configuration = self._configurations.get(run.configuration)
        approver = configuration is not None and actor.user_uid in configuration.approvers
        return Sight.CARD if approver and run.status.waiting else Sight.NOTHING

    async def is_admin(self, actor: Actor) -> bool:
        """The store says so; a user it does not confirm is none."""
        return (await self.person(actor)).admin

    async def person(self, actor: Actor) -> Person:
        """The caller as the store knows it."""
        try:
            user = await self._store.user(actor.user_uid)
        except RemoteProblem as problem:
            if problem.status in {401, 403, 404}:
                return Person(actor.user_uid)
            raise
        return Person(actor.user_uid, user.locale, user.admin)

    def approving(self, user_uid: int) -> list[str]:
        """Names of configurations whose cards this user may decide."""
        return [item.name for item in self._configurations.all() if user_uid in item.approvers]
