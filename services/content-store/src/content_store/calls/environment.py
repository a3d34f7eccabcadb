"""What every call of one process shares: schema, hooks, limits, and how a user and an event are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from remit_contracts.changes import MAX_CHANGES
from service_kit.outbox import Outbox

from content_store.caches.flush import CacheFlusher, NoCaches
from content_store.calls.one_connection import OneConnection
from content_store.capture.relations import RelationEnds, relation_ends
from content_store.datahandler.hooks import DataHandlerHook
from content_store.datahandler.run import HandlerOptions
from content_store.datahandler.sites import Sites
from content_store.schema.model import Schema

HookSource = Callable[[], Sequence[DataHandlerHook]]


def nothing() -> None:
    """Nobody has to be told."""


@dataclass(frozen=True)
class CallLimits:
    """Limits of calls; each is a setting.

    Attributes:
        lock_timeout: seconds a statement of a call waits for a lock.
        rehearsal_lock_timeout: the same for a rehearsal.
        retries: how often an ``apply`` the database ended is repeated.
        max_rows: from so many judged rows on a call is not judgeable (S-55).
        max_history: the same for history rows.
        max_changes: entries of a change list (C-07).
        idle_seconds: an open call without a request for so long is ended (S-64).
        hard_seconds: an open call is ended after so long whatever it does (S-64).
        placing_seconds: an open call is ended so long after it first placed a row (CALLS 1).
        max_open: calls open at once in this process.
        acquire_seconds: a request waits so long for a connection.
    """

    lock_timeout: float = 2.0
    rehearsal_lock_timeout: float = 1.0
    retries: int = 2
    max_rows: int = 5000
    max_history: int = 5000
    max_changes: int = MAX_CHANGES
    idle_seconds: float = 10.0
    hard_seconds: float = 60.0
    placing_seconds: float = 10.0
    max_open: int = 8
    acquire_seconds: float = 5.0


@dataclass(frozen=True)
class StoreEnvironment:
    """Everything a call needs besides its request and its connection.

    Attributes:
        schema: tables.
        schema_name: schema of the database the record tables lie in.
        sites: languages by page.
        hooks: installed hooks; asked anew for every call.
        options: of the DataHandler.
        outbox: takes the record events.
        caches: what a flush reaches.
        limits: of calls.
        one_connection: knows whether every record table lies in this database (S-60).
        published: told after a commit that made events; only wakes somebody up.
        scope_hook: False only in controls: layer two is taken away.
        effect_check: False only in controls: the verdict against the scope is taken away.
    """

    schema: Schema
    sites: Sites
    hooks: HookSource = tuple
    schema_name: str = "public"
    options: HandlerOptions = field(default_factory=HandlerOptions)
    outbox: Outbox = field(default_factory=Outbox)
    caches: CacheFlusher = field(default_factory=NoCaches)
    limits: CallLimits = field(default_factory=CallLimits)
    published: Callable[[], None] = nothing
    one_connection: OneConnection = field(default_factory=OneConnection)
    scope_hook: bool = True
    effect_check: bool = True

    @cached_property
    def relation_ends(self) -> Mapping[str, RelationEnds]:
        """Which tables each MM table connects."""
        return relation_ends(self.schema)

    @cached_property
    def has_guests(self) -> bool:
        """Are there hooks that are not the store's own?"""
        return any(not type(hook).__module__.startswith("content_store.") for hook in self.hooks())
