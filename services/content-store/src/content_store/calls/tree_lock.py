"""The lock of the page tree (CALLS 1): moves and deletions of pages alone, new rows beside each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from remit_contracts.calls import Cmdmap, Datamap, Operation

from content_store.calls.errors import TreeLockNeeded
from content_store.datahandler.hooks import DataHandlerHook, Fields
from content_store.records.gateway import Row
from content_store.scope.places import PAGES

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import RecordGateway

# Names this lock among the advisory locks of the database.
TREE_LOCK: Final = 0x52656D69745472
_RESHAPING: Final = frozenset({"move", "delete"})
_PLACING: Final = frozenset({"move", "copy", "localize", "copyToLanguage", "inlineLocalizeSynchronize", "undelete"})


class TreeLock(IntEnum):
    """How much of the tree a call needs for itself."""

    NONE = 0
    SHARED = 1
    EXCLUSIVE = 2


def needed_lock(operations: Iterable[Operation]) -> TreeLock:
    """The lock the operations ask for, as far as they say it; what hooks add is seen by :class:`TreeLockHook`."""
    lock = TreeLock.NONE
    for operation in operations:
        if isinstance(operation, Datamap):
            lock = max(lock, _datamap_lock(operation.datamap))
        elif isinstance(operation, Cmdmap):
            lock = max(lock, _cmdmap_lock(operation.cmdmap))
    return lock


def _datamap_lock(datamap: Mapping[str, Any]) -> TreeLock:
    rows = (row for row in datamap.values() if isinstance(row, Mapping))
    placing = any(not str(key).isdigit() for row in rows for key in row)
    return TreeLock.SHARED if placing else TreeLock.NONE


def _cmdmap_lock(cmdmap: Mapping[str, Any]) -> TreeLock:
    lock = TreeLock.NONE
    for table, rows in cmdmap.items():
        for commands in rows.values() if isinstance(rows, Mapping) else ():
            names = set(commands) if isinstance(commands, Mapping) else set()
            if table == PAGES and names & _RESHAPING:
                return TreeLock.EXCLUSIVE
            if names & _PLACING:
                lock = TreeLock.SHARED
    return lock


async def take_tree_lock(gateway: RecordGateway, lock: TreeLock) -> None:
    """Take the lock for the transaction, before its first row lock; it is never upgraded."""
    if lock is not TreeLock.NONE:
        function = "pg_advisory_xact_lock" if lock is TreeLock.EXCLUSIVE else "pg_advisory_xact_lock_shared"
        await gateway.fetch(f"SELECT {function}($1)", TREE_LOCK)


class TreeLockHook(DataHandlerHook):
    """Ends a call in which something nested needs more of the tree than the call has locked.

    Args:
        held: what the call took at its start.
        on_demand: takes the shared lock when the first row is placed: in an open call, which cannot be repeated.
    """

    def __init__(self, held: TreeLock, on_demand: Callable[[TreeLock], Awaitable[None]] | None = None) -> None:
        self._held = held
        self._on_demand = on_demand

    async def _need(self, lock: TreeLock) -> None:
        if lock <= self._held:
            return
        if self._on_demand is None or lock is TreeLock.EXCLUSIVE:
            raise TreeLockNeeded(exclusive=lock is TreeLock.EXCLUSIVE)
        await self._on_demand(lock)
        self._held = lock

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        """A new row is placed somewhere."""
        if not record_id.isdigit():
            await self._need(TreeLock.SHARED)
        return row

    async def delete_action(self, run: HandlerRun, table: str, uid: int, record: Row, handled: bool) -> bool:
        """A page goes, with everything below it."""
        if table == PAGES:
            await self._need(TreeLock.EXCLUSIVE)
        return handled

    async def move_record(
        self, run: HandlerRun, table: str, uid: int, target: int, record: Row, page: int, handled: bool
    ) -> bool:
        """A page takes another place in the tree; any other record goes onto a page."""
        await self._need(TreeLock.EXCLUSIVE if table == PAGES else TreeLock.SHARED)
        return handled
