"""A topology whose rows are all given, for tests of rules that need no database: what is read is what is listed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

from content_store.records.gateway import RecordGateway
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.scope.child_relations import RecordKey
from content_store.scope.places import PAGES, RowPlace
from content_store.scope.topology import PageTopology


@lru_cache(maxsize=1)
def known_schema() -> Schema:
    """The tables of the store, loaded once."""
    return load_schema()


def page(uid: int, pid: int, **values: Any) -> RowPlace:
    """A page, in the default language where none is given."""
    return RowPlace(PAGES, uid, pid, **{"language": 0, **values})


def content(uid: int, pid: int, language: int = 0, **values: Any) -> RowPlace:
    """A content element."""
    return RowPlace("tt_content", uid, pid, language=language, **values)


def reference(uid: int, pid: int, owner: int, table: str = "tt_content", **values: Any) -> RowPlace:
    """A file reference of a record."""
    pointers = (("uid_foreign", owner), ("tablenames", table))
    return RowPlace(
        "sys_file_reference", uid, pid, **{"language": 0, "owners": ((table, owner),), "pointers": pointers, **values}
    )


#: The rows of the test store that lie in its page trees.
TOWN = (
    *(page(uid, pid) for uid, pid in ((1, 0), (10, 1), (100, 10), (1000, 100), (11, 1), (2, 0), (20, 2))),
    *(page(30, 1, language=1, parent=10), page(31, 10, language=1, parent=100)),
    *(content(5, 10), content(9, 10), content(8, 10, 1, parent=5), content(6, 100), content(7, 20)),
    *(reference(50, 10, 5), reference(70, 20, 7)),
)


class KnownTopology(PageTopology):
    """Reads from rows in memory instead of a database.

    Args:
        rows: everything there is; a later one takes the place of an earlier one of the same uid.
        workspace: of the run.
    """

    def __init__(self, rows: Iterable[RowPlace] = TOWN, workspace: int = 0) -> None:
        super().__init__(RecordGateway(cast("Any", None), known_schema()), workspace)
        self._stock = {row.key: row for row in rows}

    async def _read(self, keys: set[RecordKey], pages: set[int]) -> None:
        wanted = keys | {(PAGES, page) for page in pages}
        self.places.add(row for row in self._stock.values() if row.key in wanted or row.table == PAGES)
        self.places.mark_missing(wanted)

    async def below(self, pages: Iterable[int]) -> dict[int, dict[int, int]]:
        """As the statement finds them: pages in the default language that are not deleted."""
        found: dict[int, dict[int, int]] = {}
        for start in pages:
            level, line = 0, [start]
            found[start] = {}
            while line := [
                row.live_uid
                for row in self._stock.values()
                if row.table == PAGES and row.pid in line and (row.language or 0) <= 0 and not row.deleted
            ]:
                level += 1
                found[start] |= dict.fromkeys(line, level)
        return found

    async def translations(self, table: str, uid: int) -> list[RowPlace]:
        """Of a record and of its versions."""
        of = {uid, *(row.uid for row in self._stock.values() if row.table == table and row.version_of == uid)}
        rows = self._stock.values()
        return [
            row for row in rows if row.table == table and row.parent in of and row.is_translation and not row.deleted
        ]
