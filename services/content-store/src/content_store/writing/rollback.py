"""What brings a record back to how it was after an entry of its history (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from content_store.reads.history import history_data, values_of
from content_store.schema.model import TableSchema

_MODIFY: Final = 2
_MOVE: Final = 3
_DELETE: Final = 4
_UNDELETE: Final = 5
#: Their history tells that they changed, or how many children there were: not enough to bring them back.
_NOT_RESTORED: Final = frozenset({"password", "inline", "file"})
_RELATION_TYPES: Final = frozenset({"group", "select", "category"})


@dataclass
class RollbackPlan:
    """Maps for one DataHandler run.

    Attributes:
        fields: values to write.
        commands: of the record, by name.
        skipped: fields that changed since the entry and are left as they are.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    commands: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def datamap(self, table: str, uid: int) -> dict[str, Any]:
        """The values as a datamap."""
        return {table: {str(uid): self.fields}} if self.fields else {}

    def cmdmap(self, table: str, uid: int) -> dict[str, Any]:
        """The commands as a cmdmap."""
        return {table: {str(uid): self.commands}} if self.commands else {}


def rollback_plan(table: TableSchema, entries: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> RollbackPlan:
    """Undo what came after an entry.

    Args:
        table: of the record.
        entries: rows of ``sys_history``, newest first; the last one is the entry to go back to.
        row: the record as it is stored.
    """
    plan = RollbackPlan()
    skipped: dict[str, None] = {}
    page: int | None = None
    deleted: bool | None = None
    for entry in entries[:-1]:
        data = history_data(entry)
        if entry["actiontype"] == _MODIFY:
            for name, value in values_of(data, ("oldRecord",)).items():
                _restore(table, name, value, plan.fields, skipped)
        elif entry["actiontype"] == _MOVE:
            page = values_of(data, ("oldData",)).get("pid", page)
        elif entry["actiontype"] in (_DELETE, _UNDELETE):
            deleted = entry["actiontype"] == _UNDELETE
    plan.skipped = list(skipped)
    is_deleted = bool(table.delete_field and row.get(table.delete_field))
    if deleted is not None and deleted != is_deleted:
        plan.commands["delete" if deleted else "undelete"] = 1
    if page is not None and page != row.get("pid"):
        plan.commands["move"] = page
    return plan


def _restore(table: TableSchema, name: str, value: Any, fields: dict[str, Any], skipped: dict[str, None]) -> None:
    column = table.columns.get(name)
    if column is None:
        return
    if column.type in _NOT_RESTORED:
        skipped[name] = None
        return
    if column.type in _RELATION_TYPES and isinstance(value, list):
        value = ",".join(str(item) for item in value)
    # Entries come newest first, so the oldest value is the one that stays.
    fields[name] = value
