"""Layer two: no DataHandler of the call, nested ones and those of hooks included, writes outside the scope (S-30 to S-49)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from remit_contracts.scope import ScopeReason

from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.log import LogAction
from content_store.scope import parsing
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.child_relations import RecordKey
from content_store.scope.commands import CommandCheck
from content_store.scope.entries import EntryCheck
from content_store.scope.guard import AssignmentScopeGuard
from content_store.scope.parsing import Placeholder, Unreadable
from content_store.scope.topology import PageTopology

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

_LOG_ACTIONS: Final = {
    "create": LogAction.INSERT,
    "update": LogAction.UPDATE,
    "move": LogAction.MOVE,
    "delete": LogAction.DELETE,
    "localize": LogAction.LOCALIZE,
    "copyToLanguage": LogAction.LOCALIZE,
    "version": LogAction.VERSIONIZE,
    "discard": LogAction.DISCARD,
}
_EMPTY_LISTS: Final[tuple[Any, ...]] = ("", "0", 0, None, [])
_CODE_PREFIX: Final = "assignment_scope"


class AssignmentScopeHook(DataHandlerHook):
    """Holds every instance of one call to the scope. Comes last among the hooks, so it judges what they made of a map.

    Refuses by vetoing the entry or removing the command, records it on the guard and in the error log, and never
    raises: a tool could swallow that (S-45).

    Args:
        checker: the effective scope of the call.
        topology: rows and pages, cached for the call; this hook forgets in it what was written.
        guard: takes the refusals.
    """

    def __init__(self, checker: AssignmentScopeChecker, topology: PageTopology, guard: AssignmentScopeGuard) -> None:
        self._checker = checker
        self._topology = topology
        self._guard = guard
        self._submitted: dict[int, frozenset[tuple[str, str]]] = {}
        self._log: dict[int, list[Callable[[], None]]] = {}

    # --- datamap ------------------------------------------------------------------------------------------------

    async def before_start(self, run: HandlerRun) -> None:
        """Remember what was submitted: what translations add later is an entry nobody asked for (S-49)."""
        self._submitted[id(run)] = frozenset((table, key) for table, rows in run.datamap.items() for key in rows)

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        """Veto an entry outside the scope before its fields are processed."""
        if table not in run.ctx.schema:
            return row  # The DataHandler refuses it itself, with the right reason.
        check = EntryCheck(
            self._checker, self._topology, lambda name: _resolve(run, name), lambda t, p: self._lister(run, t, p)
        )
        operation, uid = "create", None
        try:
            if parsing.is_placeholder(record_id):
                # Also where the call has used the name: of another table or in another instance it is another record.
                verdict = await check.new(table, record_id, row)
            else:
                operation = "update"
                uid = parsing.canonical_uid(record_id)
                verdict = await check.update(table, uid, row)
        except Unreadable:
            self._refuse(run, operation, table, uid, None, ScopeReason.SCOPE_UNRESOLVABLE, record_id)
            return None
        if verdict is None:
            return row
        if uid is not None and await self._writes_nothing(run, table, record_id, uid, row):
            # Without its values it cannot bring its bookkeeping up to date either: nothing is written for certain.
            return {}
        self._refuse(run, operation, table, uid, verdict.pid, verdict.reason, record_id)
        return None

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        """Forget the row: the next question is about what it is now."""
        self._topology.forget(table, uid)

    async def after_all_operations(self, run: HandlerRun) -> None:
        """The instance is done with its datamap."""
        self._submitted.pop(id(run), None)
        self._write_log(run)

    # --- cmdmap -------------------------------------------------------------------------------------------------

    async def before_commands(self, run: HandlerRun) -> None:
        """Remove commands outside the scope before the first one runs."""
        if not run.cmdmap:
            return
        self._topology.forget()
        check = CommandCheck(
            self._checker,
            self._topology,
            lambda name: _resolve(run, name),
            copies_subpages=_copy_levels(run) > 0,
        )
        for table in list(run.cmdmap):
            if table not in run.ctx.schema:
                continue
            for record_id, commands in list(run.cmdmap[table].items()):
                for command in list(commands):
                    await self._check_command(run, check, command, table, record_id)
                if not commands:
                    del run.cmdmap[table][record_id]
        self._write_log(run)

    async def _check_command(
        self, run: HandlerRun, check: CommandCheck, command: str, table: str, record_id: str
    ) -> None:
        commands = run.cmdmap[table][record_id]
        uid: int | None = None
        try:
            known = _resolve(run, record_id) if parsing.is_placeholder(record_id) else None
            uid = known[1] if known is not None else parsing.canonical_uid(record_id)
            verdict = await check.judge(command, table, uid, commands[command])
        except Unreadable:
            del commands[command]
            self._refuse(run, command, table, uid, None, ScopeReason.SCOPE_UNRESOLVABLE, record_id)
            return
        if verdict is not None:
            del commands[command]
            self._refuse(run, command, table, uid, verdict.pid, verdict.reason, record_id)

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        """Rows moved, came or went: forget what was read."""
        self._topology.forget()

    # --- helpers ------------------------------------------------------------------------------------------------

    def _refuse(
        self,
        run: HandlerRun,
        operation: str,
        table: str,
        uid: int | None,
        pid: int | None,
        reason: ScopeReason,
        record: str = "",
    ) -> None:
        self._guard.refuse(operation, table, uid, pid, reason, record=record)
        log = functools.partial(
            run.log_error,
            _LOG_ACTIONS.get(operation, LogAction.CHECK),
            table,
            uid or 0,
            "The assignment scope does not admit to {operation} {table}:{record} ({reason})",
            {"operation": operation, "table": table, "record": uid or "new", "reason": str(reason)},
            code=f"{_CODE_PREFIX}.{reason}",
            page=pid if pid is not None else -1,
        )
        # A refused entry is undone with what it logged, so that is written when the instance is through with them.
        self._log.setdefault(id(run), []).append(log)

    def _write_log(self, run: HandlerRun) -> None:
        for log in self._log.pop(id(run), []):
            log()

    async def _writes_nothing(self, run: HandlerRun, table: str, record_id: str, uid: int, row: Fields) -> bool:
        """Is it an entry nobody submitted whose values are those stored already (S-49)?"""
        if (table, record_id) in self._submitted.get(id(run), frozenset()):
            return False
        stored = (await run.ctx.gateway.select_by_uids(table, [uid])).get(uid)
        return stored is not None and equals_stored(run, table, row, stored)

    def _lister(self, run: HandlerRun, table: str, placeholder: str) -> tuple[str, str] | None:
        """The record of the datamap whose inline field lists a placeholder."""
        instance: HandlerRun | None = run
        while instance is not None:
            for parent_table, rows in instance.datamap.items():
                fields = [f for f in self._topology.relations.inline_fields(parent_table) if f.child_table == table]
                for record_id, row in rows.items() if fields else ():
                    if any(_lists(row.get(f.name), placeholder) for f in fields):
                        return parent_table, record_id
            instance = instance.parent
        return None


def equals_stored(run: HandlerRun, table: str, row: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Would nothing be written: each value is the stored one, compared as text?

    A list of related records is equal only where both are empty: what is stored is a number.
    """
    columns = run.ctx.schema[table].columns
    for name, value in row.items():
        column = columns.get(name)
        if column is None or name not in stored:
            continue
        if column.config.get("MM") or column.type in ("inline", "file") or isinstance(value, dict | list):
            if value in _EMPTY_LISTS and stored[name] in _EMPTY_LISTS:
                continue
            return False
        if (value is None) is not (stored[name] is None) or str(value) != str(stored[name]):
            return False
    return True


def _resolve(run: HandlerRun, name: str) -> RecordKey | None:
    """The record behind a placeholder, of this instance, one around it, or an earlier operation of the call."""
    instance: HandlerRun | None = run
    while instance is not None:
        if (known := instance.placeholders.get(name)) is not None:
            return known
        instance = instance.parent
    return None


def _lists(value: object, placeholder: str) -> bool:
    try:
        return Placeholder(placeholder) in [
            item for item in parsing.relation_items(value, ()) if isinstance(item, Placeholder)
        ]
    except Unreadable:
        return False


def _copy_levels(run: HandlerRun) -> int:
    settings = run.ctx.policy.user.uc or {}
    value = settings.get("copyLevels", 0)
    try:
        return int(value)
    except (TypeError, ValueError):
        return 1  # What cannot be read may copy a branch, so the branch is judged.
