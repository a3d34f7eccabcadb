"""The DataHandler of a call: one placeholder map, one set of hooks, one collector over all its operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from content_store.access.policy import AccessPolicy
from content_store.calls.witness import ChangeWitness, WitnessState
from content_store.datahandler.handler import DataHandler, HandlerActor, HandlerSnapshot
from content_store.datahandler.hooks import DataHandlerHook
from content_store.datahandler.result import ProcessResult
from content_store.datahandler.run import AfterCommit, FlushRequest, HandlerOptions
from content_store.datahandler.sites import Sites
from content_store.records.gateway import RecordGateway
from content_store.scope.child_relations import RecordKey
from content_store.scope.topology import PageTopology


@dataclass(frozen=True, slots=True)
class HandlerState:
    """What goes back to where it was with a savepoint (CALLS 1)."""

    handler: HandlerSnapshot
    copies: Mapping[RecordKey, int]
    witness: WitnessState


class CallHandler:
    """Runs datamaps and cmdmaps of one call.

    Args:
        gateway: of the call.
        actor: whose writes they are.
        policy: the actor's rights.
        hooks: in order; the scope's comes last.
        sites: languages by page.
        options: of the DataHandler.
        witness: hears what is written; one of the hooks.
        rehearsal: the transaction will be rolled back.
        topology: what layer two has read; forgotten with a savepoint.

    Attributes:
        copies: table and uid of copies and translations -> uid of the source.
    """

    def __init__(
        self,
        gateway: RecordGateway,
        actor: HandlerActor,
        policy: AccessPolicy,
        hooks: Sequence[DataHandlerHook],
        *,
        sites: Sites,
        options: HandlerOptions,
        witness: ChangeWitness,
        rehearsal: bool = False,
        topology: PageTopology | None = None,
    ) -> None:
        self.gateway = gateway
        self._policy = policy
        self._witness = witness
        self._topology = topology
        self._handler = DataHandler(
            gateway, actor, hooks, policy=policy, sites=sites, options=options, rehearsal=rehearsal
        )
        self.copies: dict[RecordKey, int] = {}

    @property
    def placeholders(self) -> dict[str, RecordKey]:
        """Placeholder -> table and uid, of all operations so far."""
        return self._handler.placeholders

    @property
    def after_commit(self) -> list[AfterCommit]:
        """Callbacks of hooks."""
        return self._handler.ctx.after_commit

    @property
    def flushes(self) -> list[FlushRequest]:
        """Wishes of hooks and of the DataHandler itself."""
        return self._handler.ctx.flush_requests

    async def process(self, datamap: Mapping[str, Any], cmdmap: Mapping[str, Any]) -> ProcessResult:
        """Run one operation; placeholders of earlier ones are known in keys and values."""
        known = dict(self.placeholders)
        result = await self._handler.process(with_known_keys(datamap, known), with_uids(cmdmap, known))
        for table, copies in result.copyMappingArray_merged.items():
            self.copies.update({(table, copy): source for source, copy in copies.items()})
        for name in known:
            result.substNEWwithIDs.pop(name, None)
        return result

    async def finish_failed(self) -> None:
        """After an error that left the transaction alive: bring history, log and index of what stands up to date."""
        await self._handler.finish()

    def snapshot(self) -> HandlerState:
        """What to go back to."""
        return HandlerState(self._handler.snapshot(), dict(self.copies), self._witness.snapshot())

    def restore(self, state: HandlerState) -> None:
        """Forget what the savepoint undid, and everything read since."""
        self._handler.restore(state.handler)
        self.copies = dict(state.copies)
        self._witness.restore(state.witness)
        if self._topology is not None:
            self._topology.forget()
        forget_pages(self._policy)


def forget_pages(policy: AccessPolicy) -> None:
    """Have the rights read pages again, where they keep any."""
    forget: Callable[[], None] | None = getattr(policy, "forget_pages", None)
    if forget is not None:
        forget()


def with_known_keys(datamap: Mapping[str, Any], placeholders: Mapping[str, RecordKey]) -> dict[str, Any]:
    """A datamap in which an entry for a record of an earlier operation is an update of it."""
    return {
        table: {_key(table, key, placeholders): row for key, row in rows.items()} if isinstance(rows, Mapping) else rows
        for table, rows in datamap.items()
    }


def with_uids(cmdmap: Mapping[str, Any], placeholders: Mapping[str, RecordKey]) -> dict[str, Any]:
    """A cmdmap in which placeholders of earlier operations are uids: in keys, and in targets of move and copy.

    Anything else stays as it was given: the DataHandler reads it, and refuses what it cannot read.
    """
    resolved: dict[str, Any] = {}
    for table, rows in cmdmap.items():
        if not isinstance(rows, Mapping):
            resolved[table] = rows
            continue
        resolved[table] = {
            _key(table, key, placeholders): _commands(table, commands, placeholders) for key, commands in rows.items()
        }
    return resolved


def _key(table: str, key: str, placeholders: Mapping[str, RecordKey]) -> str:
    known = placeholders.get(key)
    return str(known[1]) if known is not None and known[0] == table else key


def _commands(table: str, commands: Any, placeholders: Mapping[str, RecordKey]) -> Any:
    if not isinstance(commands, Mapping):
        return commands
    return {name: _value(table, value, placeholders) for name, value in commands.items()}


def _value(table: str, value: Any, placeholders: Mapping[str, RecordKey]) -> Any:
    if isinstance(value, Mapping) and "target" in value:
        return {**value, "target": _target(table, value["target"], placeholders)}
    return _target(table, value, placeholders)


def _target(table: str, value: Any, placeholders: Mapping[str, RecordKey]) -> Any:
    if not isinstance(value, str):
        return value
    after = value.startswith("-")
    known = placeholders.get(value.removeprefix("-"))
    if known is None or known[0] != (table if after else "pages"):
        return value
    return -known[1] if after else known[1]
