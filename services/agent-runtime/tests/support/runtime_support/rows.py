"""Rows of the small store: enough of a content store to write pages and elements in, with a scope check. Tests only."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from remit_contracts.calls import (
    Cmdmap,
    Datamap,
    EntryError,
    Expect,
    FlushCache,
    Operation,
    OperationResult,
    Read,
    ShownChange,
)
from remit_contracts.changes import ChangeAction, ObservedChangeSet, RecordChange, RefusedWrite
from remit_contracts.scope import EffectiveAssignmentScope

PARENT = {"pages": "l10n_parent", "tt_content": "l18n_parent"}


class ExpectationUnmet(Exception):
    """A row is not as it was expected to be."""


@dataclass
class Rows:
    """Tables in memory.

    Attributes:
        forbidden: table, uid and the user who may not use that record.
        side_effects: records every writing call changes along.
        refuse_beside: a record every writing call also tries to change, through the scope check.
        dropped_fields: names of fields that are silently not written.
    """

    tables: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: {"pages": {}, "tt_content": {}})
    next_uid: int = 1000
    forbidden: set[tuple[str, int, int]] = field(default_factory=set)
    side_effects: list[tuple[str, int]] = field(default_factory=list)
    refuse_beside: tuple[str, int] | None = None
    dropped_fields: set[str] = field(default_factory=set)

    def add(self, table: str, uid: int, **values: Any) -> None:
        """A row as it is at the start."""
        row = {"uid": uid, "pid": 0, "sys_language_uid": 0, PARENT[table]: 0, "hidden": 0, "deleted": 0, **values}
        self.tables[table][uid] = row

    def get(self, table: str, uid: int, user_uid: int = 1) -> dict[str, Any] | None:
        """A row this user may see."""
        row = self.tables.get(table, {}).get(uid)
        if row is None or row["deleted"] or (table, uid, user_uid) in self.forbidden:
            return None
        return row

    def hash(self, table: str, uid: int) -> str:
        """Hash of the columns."""
        return hashlib.sha256(json.dumps(self.tables[table][uid], sort_keys=True).encode()).hexdigest()

    def page_of(self, table: str, row: dict[str, Any]) -> int:
        """The page a row counts to."""
        if table == "pages":
            return int(row["l10n_parent"] or row["uid"])
        return int(row["pid"])

    def in_scope(self, table: str, row: dict[str, Any], scope: EffectiveAssignmentScope | None) -> bool:
        """Named record, its translation, or on a named page (depth is left to the real store)."""
        if scope is None:
            return True
        if scope.tables is not None and table not in scope.tables:
            return False
        named = {(record.table, record.uid) for record in scope.records}
        if (table, row["uid"]) in named or (table, row.get(PARENT[table])) in named:
            return True
        return self.page_of(table, row) in {root.page for root in scope.pages}

    def copy(self) -> Rows:
        """An independent copy, for a transaction."""
        return copy.deepcopy(self)


@dataclass
class Call:
    """One call while it runs on a copy of the rows."""

    rows: Rows
    scope: EffectiveAssignmentScope | None
    user_uid: int
    target: tuple[str, int | str] | None = None
    placeholders: dict[str, int] = field(default_factory=dict)
    changes: dict[tuple[str, int], ChangeAction] = field(default_factory=dict)
    refused: list[RefusedWrite] = field(default_factory=list)

    def run(self, operations: list[Operation]) -> tuple[OperationResult, ...]:
        """Carry the operations out in order."""
        results = tuple(self._one(operation) for operation in operations)
        for table, uid in self.rows.side_effects if self.changes else ():
            self.rows.tables[table][uid]["header"] = "changed along"
            self.changes.setdefault((table, uid), ChangeAction.UPDATED)
        beside = self.rows.refuse_beside
        if beside is not None and self.changes:
            self._allowed("update", beside[0], self.rows.tables[beside[0]][beside[1]])
        return results

    def change_set(self) -> ObservedChangeSet:
        """The list of the call."""
        wanted = self.target
        if wanted is not None and isinstance(wanted[1], str):
            wanted = (wanted[0], self.placeholders.get(wanted[1], 0))
        return ObservedChangeSet(
            changes=tuple(
                RecordChange(table=table, uid=uid, action=action, write_target=(table, uid) == wanted)
                for (table, uid), action in self.changes.items()
            ),
            witnesses=("hooks", "database"),
            refused=tuple(self.refused),
        )

    def shown(self) -> tuple[ShownChange, ...]:
        """The list as a card shows it: new rows by a path, not by uid."""
        created = [key for key, action in self.changes.items() if action is ChangeAction.CREATED]
        names = {key: f"new-{place}" for place, key in enumerate(created)}
        return tuple(
            ShownChange(
                table=table,
                action=action.value,
                record=names.get((table, uid), str(uid)),
                pid=str(self.rows.tables[table][uid]["pid"]),
                language=self.rows.tables[table][uid]["sys_language_uid"],
            )
            for (table, uid), action in self.changes.items()
        )

    def _one(self, operation: Operation) -> OperationResult:
        if isinstance(operation, Expect):
            if self.rows.get(operation.table, operation.uid) is None or operation.hash != self.rows.hash(
                operation.table, operation.uid
            ):
                raise ExpectationUnmet
            return OperationResult(op="expect")
        if isinstance(operation, Read):
            return self._read(operation)
        if isinstance(operation, FlushCache):
            return OperationResult(op="flushCache")
        return self._datamap(operation) if isinstance(operation, Datamap) else self._cmdmap(operation)

    def _read(self, operation: Read) -> OperationResult:
        rows: list[dict[str, Any]] = []
        errors: list[EntryError] = []
        for given in operation.uids:
            row = self.rows.get(operation.table, int(self.placeholders.get(str(given), given)), self.user_uid)
            if row is None:
                code = "record_not_found"
                errors.append(EntryError(operation="read", table=operation.table, record=str(given), code=code))
            else:
                rows.append(dict(row))
        return OperationResult(op="read", rows=tuple(rows), errors=tuple(errors))

    def _datamap(self, operation: Datamap) -> OperationResult:
        made: dict[str, int] = {}
        errors: list[EntryError] = []
        for table, entries in operation.datamap.items():
            for key, values in entries.items():
                if key.startswith("NEW"):
                    uid = self._create(table, dict(values))
                    if uid:
                        made[key] = self.placeholders[key] = uid
                    continue
                row = self.rows.get(table, int(key), self.user_uid)
                if row is None:
                    errors.append(EntryError(operation="update", table=table, record=key, code="not_permitted"))
                elif self._allowed("update", table, row):
                    row.update({name: value for name, value in values.items() if name not in self.rows.dropped_fields})
                    self.changes.setdefault((table, int(key)), ChangeAction.UPDATED)
        return OperationResult(op="datamap", placeholders=made, errors=tuple(errors))

    def _create(self, table: str, values: dict[str, Any]) -> int:
        place = int(values.pop("pid"))
        pid = place if place >= 0 else int(self.rows.tables[table][-place]["pid"])
        uid = self.rows.next_uid
        row = {"uid": uid, "sys_language_uid": 0, PARENT[table]: 0, "hidden": 0, "deleted": 0, **values, "pid": pid}
        if not self._allowed("create", table, row):
            return 0
        self.rows.next_uid += 1
        self.rows.tables[table][uid] = row
        self.changes[(table, uid)] = ChangeAction.CREATED
        return uid

    def _cmdmap(self, operation: Cmdmap) -> OperationResult:
        copies: dict[str, dict[str, int]] = {}
        errors: list[EntryError] = []
        for table, entries in operation.cmdmap.items():
            for key, commands in entries.items():
                row = self.rows.get(table, int(key), self.user_uid)
                if row is None:
                    errors.append(EntryError(operation="command", table=table, record=key, code="not_permitted"))
                    continue
                for name, value in commands.items():
                    uid = self._command(table, row, name, value)
                    if uid:
                        copies.setdefault(table, {})[key] = uid
        return OperationResult(op="cmdmap", copies=copies, errors=tuple(errors))

    def _command(self, table: str, row: dict[str, Any], name: str, value: Any) -> int:
        if not self._allowed(name, table, row):
            return 0
        if name == "delete":
            row["deleted"] = 1
            self.changes[(table, row["uid"])] = ChangeAction.DELETED
        elif name == "move":
            place, update = (value["target"], value["update"]) if isinstance(value, dict) else (value, {})
            row["pid"] = place if place >= 0 else self.rows.tables[table][-place]["pid"]
            row.update(update)
            self.changes[(table, row["uid"])] = ChangeAction.MOVED
        elif name == "localize":
            values = {**row, "sys_language_uid": value, PARENT[table]: row["uid"], "hidden": 1}
            return self._create(table, values)
        elif name == "copy":
            return self._create(table, {**row, **value["update"], "pid": value["target"]})
        return 0

    def _allowed(self, operation: str, table: str, row: dict[str, Any]) -> bool:
        if self.rows.in_scope(table, row, self.scope):
            return True
        self.refused.append(
            RefusedWrite(
                operation=operation, table=table, uid=row.get("uid"), pid=row.get("pid"), reason="outside_scope"
            )
        )
        return False
