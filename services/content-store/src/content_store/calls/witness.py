"""Hooks and history as witnesses of a call (C-03): what the DataHandlers of a call report, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from remit_contracts.changes import ChangeAction, Witness

from content_store.datahandler.history import HistoryAction
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.scope.child_relations import RecordKey

if TYPE_CHECKING:
    from content_store.datahandler.history import HistoryEntry
    from content_store.datahandler.run import HandlerRun

_HISTORY_ACTIONS: Final = {
    HistoryAction.ADD: ChangeAction.CREATED,
    HistoryAction.MODIFY: ChangeAction.UPDATED,
    HistoryAction.MOVE: ChangeAction.MOVED,
    HistoryAction.DELETE: ChangeAction.DELETED,
    HistoryAction.UNDELETE: ChangeAction.RESTORED,
    HistoryAction.PUBLISH: ChangeAction.UPDATED,
}
_COMMAND_ACTIONS: Final = {
    "move": ChangeAction.MOVED,
    "delete": ChangeAction.DELETED,
    "undelete": ChangeAction.RESTORED,
    "discard": ChangeAction.DELETED,
    "version": ChangeAction.UPDATED,
    "inlineLocalizeSynchronize": ChangeAction.UPDATED,
}


@dataclass(frozen=True, slots=True)
class Report:
    """One thing a DataHandler said it did.

    Attributes:
        wrote: it wrote at least one column; an update that changed nothing did not (C-16).
    """

    table: str
    uid: int
    action: ChangeAction
    witness: Witness
    wrote: bool = True

    @property
    def key(self) -> RecordKey:
        """Table and uid as reported: of a live record, of a version, or of a new row."""
        return self.table, self.uid


@dataclass(frozen=True, slots=True)
class WitnessState:
    """Where the reports of a call stood when a savepoint was taken."""

    reports: int
    named: frozenset[RecordKey]
    history_rows: int


class ChangeWitness(DataHandlerHook):
    """Hears of every write of every DataHandler of one call, nested ones and those of hooks included.

    Attributes:
        reports: in order.
        named: rows an operation named, by an entry or a command.
        history_rows: how many the call writes.
        ran: a DataHandler was at work at all.
        placed: a row was placed, or moved.
    """

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.named: set[RecordKey] = set()
        self.history_rows = 0
        self.ran = False
        self.placed = False
        self._submitted: dict[int, frozenset[tuple[str, str]]] = {}
        self._read: tuple[list[HistoryEntry], int] = ([], 0)

    def snapshot(self) -> WitnessState:
        """What to go back to with a savepoint."""
        return WitnessState(len(self.reports), frozenset(self.named), self.history_rows)

    def restore(self, state: WitnessState) -> None:
        """Forget what was reported since: the savepoint undid it."""
        del self.reports[state.reports :]
        self.named = set(state.named)
        self.history_rows = state.history_rows
        self._read = ([], 0)

    def _report(self, table: str, uid: int, action: ChangeAction, witness: Witness, *, wrote: bool = True) -> None:
        self.reports.append(Report(table, uid, action, witness, wrote))
        if action in (ChangeAction.CREATED, ChangeAction.MOVED):
            self.placed = True

    async def before_start(self, run: HandlerRun) -> None:
        """A DataHandler is at work; what translations add to its entries later, nobody asked for."""
        self.ran = True
        self._submitted[id(run)] = frozenset((table, key) for table, rows in run.datamap.items() for key in rows)

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        """An entry was carried out.

        One that translations added and that wrote nothing is no change of anything (S-49).
        """
        if not fields and (table, record_id) not in self._submitted.get(id(run), frozenset()):
            return
        action = ChangeAction.CREATED if status == "new" else ChangeAction.UPDATED
        self.named.add((table, uid))
        self._report(table, uid, action, Witness.HOOKS, wrote=bool(fields))

    async def after_all_operations(self, run: HandlerRun) -> None:
        """The datamap of an instance is done."""
        self._submitted.pop(id(run), None)
        self._read_history(run)

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        """A command was carried out; what copies and translations made reports itself, entry by entry."""
        self.named.update((table, known) for known in (uid, *results))
        if (action := _COMMAND_ACTIONS.get(command)) is not None:
            self._report(table, uid, action, Witness.HOOKS)

    async def after_commands(self, run: HandlerRun) -> None:
        """The commands of an instance are done."""
        self._read_history(run)

    def _read_history(self, run: HandlerRun) -> None:
        """Take in what was added to the history since: in memory, so its cost never depends on the table (C-15)."""
        if not run.outermost:
            # An entry around it may still be undone, and its history with it.
            return
        entries = run.ctx.history.entries
        start = self._read[1] if self._read[0] is entries else 0
        for entry in entries[start:]:
            self.history_rows += 1
            # history_data is never read (C-04).
            if (action := _HISTORY_ACTIONS.get(entry.action)) is not None:
                self._report(entry.table, entry.uid, action, Witness.HISTORY)
        self._read = (entries, len(entries))
