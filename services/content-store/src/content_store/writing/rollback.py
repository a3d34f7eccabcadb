"""What brings a record back to how it was after an entry of its history (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from content_store.datahandler.relations.csv import format_reference, parse_reference
from content_store.reads.history import history_data, values_of
from content_store.schema.flex import FlexError, structure_of
from content_store.schema.model import Column, TableSchema
from content_store.schema.relations import RelationSpec
from content_store.schema.tca_types import PERMISSION_COLUMNS

_MODIFY: Final = 2
_MOVE: Final = 3
_DELETE: Final = 4
_UNDELETE: Final = 5
#: Their history tells that they changed, or how many children there were: not enough to bring them back.
_NOT_RESTORED: Final = frozenset({"password", "inline", "file"})
_RELATION_TYPES: Final = frozenset({"group", "select", "category"})
#: Named where the place of a record was not brought back.
PLACE: Final = "pid"


@dataclass(frozen=True)
class Place:
    """Where the record was: its page, and its number in the order where the table has one."""

    page: int
    sorting: int | None


@dataclass
class RollbackPlan:
    """Maps for two DataHandler runs: values and place first, then a deletion, which would keep both from being written.

    Attributes:
        fields: values to write.
        place: to move to, ``None`` where it lies there already.
        target: of the move, a page or minus the uid of the record before it; set by who can ask for the neighbours.
        deleted: to be deleted (``True``) or restored (``False``), ``None`` to stay as it is.
        skipped: fields that changed since the entry and are left as they are.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    place: Place | None = None
    target: int | None = None
    deleted: bool | None = None
    skipped: list[str] = field(default_factory=list)

    def datamap(self, table: str, uid: int) -> dict[str, Any]:
        """The values as a datamap."""
        return {table: {str(uid): dict(self.fields)}} if self.fields else {}

    def cmdmap(self, table: str, uid: int) -> dict[str, Any]:
        """Restoring and moving as a cmdmap."""
        commands: dict[str, Any] = {"undelete": 1} if self.deleted is False else {}
        if self.target is not None:
            commands["move"] = self.target
        return {table: {str(uid): commands}} if commands else {}

    def deletion(self, table: str, uid: int) -> dict[str, Any]:
        """The deletion as a cmdmap, for afterwards."""
        return {table: {str(uid): {"delete": 1}}} if self.deleted else {}


def rollback_plan(table: TableSchema, entries: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> RollbackPlan:
    """Undo what came after an entry.

    Args:
        table: of the record.
        entries: rows of ``sys_history``, newest first; the last one is the entry to go back to.
        row: the record as it is stored.
    """
    plan = RollbackPlan()
    before: dict[str, Any] = {}
    place: dict[str, Any] = {}
    deleted: bool | None = None
    for entry in entries[:-1]:
        data = history_data(entry)
        # Entries come newest first, so the oldest value is the one that stays.
        if entry["actiontype"] == _MODIFY:
            before.update(values_of(data, ("oldRecord",)))
        elif entry["actiontype"] == _MOVE:
            place.update(values_of(data, ("oldData",)))
        elif entry["actiontype"] in (_DELETE, _UNDELETE):
            deleted = entry["actiontype"] == _UNDELETE
    wanted = entries[-1]
    after = values_of(history_data(wanted), ("newRecord",)) if wanted["actiontype"] == _MODIFY else {}
    for name, value in before.items():
        _restore(table, row, name, value, after.get(name), plan)
    is_deleted = bool(table.delete_field and row.get(table.delete_field))
    plan.deleted = deleted if deleted is not None and deleted != is_deleted else None
    _set_place(table, row, place, plan, movable=not is_deleted or plan.deleted is False)
    return plan


def _set_place(
    table: TableSchema, row: Mapping[str, Any], before: Mapping[str, Any], plan: RollbackPlan, *, movable: bool
) -> None:
    page, sort = before.get("pid"), table.sort_field
    if page is None:
        return
    number = before.get(sort) if sort else None
    if page == row.get("pid") and (number is None or number == row.get(sort or "")):
        return
    if movable:
        plan.place = Place(page, number)
    else:
        # What is deleted, and was, cannot be moved.
        plan.skipped.append(PLACE)


def _restore(
    table: TableSchema, row: Mapping[str, Any], name: str, before: Any, after: Any, plan: RollbackPlan
) -> None:
    record_type = str(row.get(table.type_field)) if table.type_field and row.get(table.type_field) else None
    column = table.column_for(name, record_type)
    if column is None:
        if name == "l10n_state" or (table.name == "pages" and name in PERMISSION_COLUMNS):
            plan.fields[name] = before
        elif name in table.db_columns and name != table.tstamp_field:
            plan.skipped.append(name)
        return
    if column.type in _NOT_RESTORED or _holds_counts(column):
        plan.skipped.append(name)
        return
    if column.relation is not None and column.relation.counted:
        # How it was after the entry is known best from the entry itself, where it wrote the field.
        listed = _listed(after, column.relation) if after is not None else None
        listed = listed if listed is not None else _listed(before, column.relation)
        if listed is None:
            plan.skipped.append(name)
        else:
            plan.fields[name] = listed
        return
    if column.type in _RELATION_TYPES and isinstance(before, list):
        before = ",".join(str(item) for item in before)
    plan.fields[name] = before


def _listed(value: Any, spec: RelationSpec) -> str | None:
    """The targets a history names, ``None`` where it only counts them or leaves open which table they are in."""
    if not isinstance(value, str):
        return None
    tokens = [part.strip() for part in value.split(",") if part.strip()]
    references = [parse_reference(token, spec) for token in tokens]
    found = [r for r in references if r is not None and r.uid]
    if len(found) != len(tokens):
        return None
    if spec.several_tables and any(token == r.id for token, r in zip(tokens, found, strict=True)):
        return None
    return ",".join(format_reference(r, spec) for r in found)


def _holds_counts(column: Column) -> bool:
    """Is it a form with relations of which it holds no more than their number?"""
    if column.type != "flex":
        return False
    try:
        inside = structure_of(column).columns()
    except FlexError:
        return True
    return any(inner.relation is not None and inner.relation.counted for _, _, inner in inside)


def not_restored(table: TableSchema, plan: RollbackPlan, row: Mapping[str, Any]) -> list[str]:
    """Names of what the record is not like afterwards, in spite of the plan: refused, corrected, or counted.

    Args:
        table: of the record.
        plan: that was carried out.
        row: the record as it is stored now.
    """
    found = [
        name
        for name, value in plan.fields.items()
        if (column := table.columns.get(name)) is None or column.relation is None or not column.relation.counted
        if not _is_same(row.get(name), value)
    ]
    if plan.place is not None and row.get("pid") != plan.place.page:
        found.append(PLACE)
    if plan.deleted is not None and table.delete_field and bool(row.get(table.delete_field)) != plan.deleted:
        found.append(table.delete_field)
    return found


def _is_same(stored: Any, value: Any) -> bool:
    return stored == value or ("" if stored is None else str(stored)) == ("" if value is None else str(value))
