"""What an editor may have changed, told from the rows before and after alone; shares no code with the rights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Row = Mapping[str, Any]
Rows = dict[tuple[str, int], dict[str, Any]]

EDIT_PAGE, DELETE_PAGE, NEW_PAGE, CONTENT = 2, 4, 8, 16
#: Columns that change without anybody editing them: the order of neighbours, times, what translations remember.
_BOOKKEEPING: Final = frozenset({"sorting", "sorting_foreign", "tstamp"})


@dataclass(frozen=True)
class EditorRights:
    """Rights of the editor of a test, as its group has them; ``root_tables`` may lie outside of the page tree."""

    uid: int
    group: int
    mount: int
    tables: frozenset[str]
    languages: frozenset[int]
    fields: frozenset[str]
    content_types: frozenset[str]
    root_tables: frozenset[str]


@dataclass(frozen=True)
class Oracle:
    """Compares two states.

    Attributes:
        rights: of the editor.
        excluded: table -> columns that need a right of their own -> their default.
        synchronized: table -> columns translations take over.
        visibility: table -> columns that hide a record; copies keep them.
    """

    rights: EditorRights
    excluded: Mapping[str, Mapping[str, Any]]
    synchronized: Mapping[str, frozenset[str]]
    visibility: Mapping[str, frozenset[str]]

    def violations(self, before: Rows, after: Rows) -> list[str]:
        """Everything the editor's request did and was not allowed to do, one line each."""
        found: list[str] = []
        for key in sorted(before.keys() | after.keys()):
            old, new = before.get(key), after.get(key)
            changed = _changed(old, new)
            if not changed:
                continue
            found += [
                f"{key}: {reason} (changed: {sorted(changed)})" for reason in self._judge(key, changed, before, after)
            ]
        return found

    def _judge(self, key: tuple[str, int], changed: set[str], before: Rows, after: Rows) -> Iterable[str]:
        table, old, new = key[0], before.get(key), after.get(key)
        if table not in self.rights.tables:
            yield "table"
            return
        if new is None:
            yield "removed for good"
            return
        for row in filter(None, (old, new)):
            language = row.get("sys_language_uid", 0)
            if language >= 0 and language not in self.rights.languages:
                yield f"language {language}"
        if old is not None and old.get("editlock") and table != "pages":
            yield "record lock"
        yield from self._fields(table, changed, old, new)
        yield from self._page(table, changed, old, new, before, after)

    def _fields(self, table: str, changed: set[str], old: Row | None, new: Row) -> Iterable[str]:
        for name, default in self.excluded.get(table, {}).items():
            if f"{table}:{name}" in self.rights.fields or name not in changed:
                continue
            if old is not None:
                translation = new.get("sys_language_uid", 0) > 0 and name in self.synchronized.get(table, frozenset())
                if not translation:
                    yield f"field {name}"
            elif (
                new.get("sys_language_uid", 0) <= 0
                and name not in self.visibility.get(table, ())
                and new[name] != default
            ):
                yield f"field {name} of a new record is {new[name]!r}"
        if table == "tt_content" and "CType" in changed and new["CType"] not in self.rights.content_types:
            yield f"content type {new['CType']}"

    def _page(
        self, table: str, changed: set[str], old: Row | None, new: Row, before: Rows, after: Rows
    ) -> Iterable[str]:
        states = (before, after)
        if table == "pages":
            if old is None:
                parent = new["l10n_parent"] if new["sys_language_uid"] > 0 and new["l10n_parent"] else new["pid"]
                bit = EDIT_PAGE if parent != new["pid"] else NEW_PAGE
                if not self._may(parent, bit, states):
                    yield f"page {parent} (new page)"
                return
            page = old["l10n_parent"] if old["sys_language_uid"] > 0 and old["l10n_parent"] else old["uid"]
            moved = old["pid"] != new["pid"] or old["deleted"] < new["deleted"]
            if not self._may(page, DELETE_PAGE if moved else EDIT_PAGE, states):
                yield f"page {page}"
            if (
                moved
                and old["pid"] != new["pid"]
                and page == old["uid"]
                and not self._may(new["pid"], NEW_PAGE, states)
            ):
                yield f"page {new['pid']} (moved there)"
            return
        for pid in {new["pid"], *([old["pid"]] if old is not None else [])}:
            bits = CONTENT | EDIT_PAGE if table == "sys_file_reference" else CONTENT
            gone = _deleted(pid, before) < _deleted(pid, after)
            if gone and old is not None:
                bits |= DELETE_PAGE
            if not (pid == 0 and table in self.rights.root_tables) and not self._may(pid, bits, states):
                yield f"page {pid}"

    def _may(self, page: int, bits: int, states: Iterable[Rows]) -> bool:
        """Any of the bits on the page, inside the mount, in one of the states."""
        return any(self._may_in(page, bits, rows) for rows in states)

    def _may_in(self, page: int, bits: int, rows: Rows) -> bool:
        row = rows.get(("pages", page))
        if row is None or not self._held(row) & bits or (row["editlock"] and bits != NEW_PAGE):
            return False
        seen: set[int] = set()
        while row is not None and row["uid"] not in seen:
            if row["uid"] == self.rights.mount:
                return True
            seen.add(row["uid"])
            row = rows.get(("pages", row["pid"]))
        return False

    def _held(self, row: Row) -> int:
        held: int = row["perms_everybody"]
        if row["perms_userid"] == self.rights.uid:
            held |= row["perms_user"]
        if row["perms_groupid"] == self.rights.group:
            held |= row["perms_group"]
        return held


def _deleted(page: int, rows: Rows) -> int:
    row = rows.get(("pages", page))
    return 1 if row is None else int(row["deleted"])


def _changed(old: Row | None, new: Row | None) -> set[str]:
    if old is None or new is None:
        return set(new or old or {})
    return {name for name in new if old.get(name) != new[name]} - _BOOKKEEPING


def doubled_places(rows: Rows) -> list[tuple[str, int, int]]:
    """Table, page and number of live rows that share a place on their page."""
    seen: set[tuple[str, int, int]] = set()
    doubled: list[tuple[str, int, int]] = []
    for (table, _), row in rows.items():
        if "sorting" not in row or row.get("deleted") or row.get("t3ver_oid"):
            continue
        if table == "pages" and row["l10n_parent"]:
            continue
        place = (table, row["pid"], row["sorting"])
        if place in seen:
            doubled.append(place)
        seen.add(place)
    return doubled
