"""Who is the first on a page, remembered: a run that puts many records on one page asks once (SEMANTICS 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from content_store.records.gateway import RecordGateway
from content_store.records.overlay import VersionState

if TYPE_CHECKING:
    from content_store.schema.model import TableSchema

#: Sort number and uid of the first record.
First = tuple[int, int]
#: There is no record on the page.
NOBODY: Final[First] = (0, 0)


class FirstPlaces:
    """Holds as long as every write since is accounted for, so that a hook's own SQL makes it ask again.

    Args:
        gateway: counts the writes.
    """

    def __init__(self, gateway: RecordGateway) -> None:
        self._gateway = gateway
        self._first: dict[tuple[str, int], First] = {}
        self._writes = gateway.writes

    def forget(self) -> None:
        """After a rollback to a savepoint, and before a run."""
        self._first.clear()
        self._writes = self._gateway.writes

    def known(self, table: str, page: int) -> First | None:
        """The first record, :data:`NOBODY`, or ``None`` where it has to be read."""
        if self._writes != self._gateway.writes:
            self.forget()
        return self._first.get((table, page))

    def remember(self, table: str, page: int, first: First) -> None:
        """It was read just now."""
        if self._writes != self._gateway.writes:
            self.forget()
        self._first[table, page] = first

    def inserted(self, table: TableSchema, row: Mapping[str, Any]) -> None:
        """The last statement inserted this row."""
        if not self._accounted() or not table.sort_field or _uncounted(table, row):
            return
        key, place = (table.name, row["pid"]), (row[table.sort_field], row["uid"])
        first = self._first.get(key)
        if first is not None and (first == NOBODY or place < first):
            self._first[key] = place

    def wrote(self, table: TableSchema, columns: Iterable[str]) -> None:
        """The last statement changed these columns of rows of the table."""
        placing = {table.sort_field, table.delete_field, "pid", "t3ver_oid", "t3ver_state"}
        if self._accounted() and placing.isdisjoint(columns):
            return
        for key in [key for key in self._first if key[0] == table.name]:
            del self._first[key]

    def _accounted(self) -> bool:
        if self._writes + 1 == self._gateway.writes:
            self._writes += 1
            return True
        if self._writes != self._gateway.writes:
            self.forget()
        return False


def _uncounted(table: TableSchema, row: Mapping[str, Any]) -> bool:
    if table.delete_field and row.get(table.delete_field):
        return True
    return table.versionable and bool(row["t3ver_oid"]) and row["t3ver_state"] != VersionState.MOVED
