"""What lies in a scope and what changed, decided from snapshots alone: shares no code with what it judges (S-84, V-01)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from remit_contracts.calls import CallOutcome, CallResult
from remit_contracts.scope import EffectiveAssignmentScope

Key = tuple[str, int]
Row = dict[str, Any]
PARENTS = {"tt_content": "l18n_parent"}
UNJUDGED = {"sorting", "tstamp", "updatedon"}


@dataclass
class Snapshot:
    """Every row of every record table, and every MM row."""

    rows: dict[Key, Row]
    relations: frozenset[tuple[Any, ...]] = frozenset()


@dataclass
class Findings:
    """What a call did wrong.

    Attributes:
        escapes: rows outside the scope that differ.
        missed: changed rows that are neither listed nor counted.
        invented: listed rows that did not change.
        changed: how many changed.
        listed: how many were listed.
    """

    escapes: list[Key] = field(default_factory=list)
    missed: list[Key] = field(default_factory=list)
    invented: list[Key] = field(default_factory=list)
    changed: int = 0
    listed: int = 0


class Oracle:
    """One scope over one snapshot."""

    def __init__(self, scope: EffectiveAssignmentScope, snapshot: Snapshot) -> None:
        self._scope = scope
        self._rows = snapshot.rows

    def _page(self, uid: int) -> int:
        row = self._rows.get(("pages", uid))
        return row["l10n_parent"] if row and row["sys_language_uid"] > 0 and row["l10n_parent"] else uid

    def page_inside(self, page: int) -> bool:
        """Is the page a root, or within the depth below one?"""
        page, distance, seen = self._page(page), 0, set()
        while page > 0 and page not in seen and ("pages", page) in self._rows:
            seen.add(page)
            if any(root.page == page and distance <= root.depth for root in self._scope.pages):
                return True
            page, distance = self._rows["pages", page]["pid"], distance + 1
        return False

    def _owners(self, table: str, row: Row) -> list[Key]:
        if table == "sys_file_reference" and row["uid_foreign"]:
            return [(row["tablenames"], row["uid_foreign"])]
        return [("sys_file", row["file"])] if table == "sys_file_metadata" and row["file"] else []

    def inside(self, key: Key, row: Row, seen: frozenset[Key] = frozenset()) -> bool:
        """Is the row in scope by what it is, whom it belongs to, or where it lies?"""
        table, uid = key
        named = {(record.table, record.uid) for record in self._scope.records}
        parent = row.get(PARENTS.get(table, "l10n_parent")) or 0
        if key in named or (row.get("sys_language_uid", 0) > 0 and parent and (table, parent) in named):
            return True
        owners = self._owners(table, row)
        if owners:
            known = [(owner, self._rows.get(owner)) for owner in owners]
            return all(o is not None and k not in seen and self.inside(k, o, seen | {key}) for k, o in known)
        return self.page_inside(uid if table == "pages" else row["pid"])

    def holds(self, key: Key) -> bool:
        """Is it there, and inside?"""
        return key in self._rows and self.inside(key, self._rows[key])

    def speaks(self, row: Row) -> bool:
        """Does the language list admit the row?"""
        language = row.get("sys_language_uid")
        return self._scope.languages is None or language is None or language in self._scope.languages

    def narrowed(self, key: Key, row: Row) -> bool:
        """Do table and language lists admit the row?"""
        return (self._scope.tables is None or key[0] in self._scope.tables) and self.speaks(row)

    def hosts(self, key: Key, row: Row) -> list[Key]:
        """Whatever takes the row along when it is deleted: its owner, its page, and that page in its language."""
        page = self._page(row["pid"])
        hosts = [*self._owners(key[0], row), ("pages", page)]
        if key[0] != "pages" and row.get("sys_language_uid", 0) > 0:
            hosts += [
                (table, uid)
                for (table, uid), other in self._rows.items()
                if table == "pages"
                and other["l10n_parent"] == page
                and other["sys_language_uid"] == row["sys_language_uid"]
            ]
        return hosts


def changed_rows(before: Snapshot, after: Snapshot) -> dict[Key, tuple[Row | None, Row | None]]:
    """Rows of which a column other than sorting and the time of change differs."""
    found = {}
    for key in before.rows.keys() | after.rows.keys():
        old, new = before.rows.get(key), after.rows.get(key)
        if _content(old) != _content(new):
            found[key] = (old, new)
    return found


def _content(row: Row | None) -> Row | None:
    return None if row is None else {name: value for name, value in row.items() if name not in UNJUDGED}


def related(before: Snapshot, after: Snapshot) -> set[Key]:
    """Both ends of the MM rows that came or went (only categories have any)."""
    ends: set[Key] = set()
    for _table, local, foreign, tablenames in before.relations ^ after.relations:
        ends |= {("sys_category", local), (tablenames, foreign)}
    return {key for key in ends if key in after.rows}


def judge(
    scope: EffectiveAssignmentScope | None,
    before: Snapshot,
    after: Snapshot,
    result: CallResult | None,
    *,
    named: int = 0,
) -> Findings:
    """Compare what is there with what the scope admits and what the call says it did.

    Args:
        scope: of the call, None for none.
        before: snapshot.
        after: snapshot.
        result: None where the call ended with an error.
        named: entries and commands of the call: so many updates that wrote nothing may be counted.
    """
    findings = Findings()
    changed = changed_rows(before, after)
    if scope is not None:
        findings.escapes = [key for key, (old, new) in changed.items() if _escaped(scope, before, after, key, old, new)]
        findings.escapes += _escaped_relations(scope, before, after)
    if result is None or result.outcome is not CallOutcome.COMMITTED:
        findings.missed = sorted(changed)
        findings.invented = [(c.table, c.uid) for c in (result.changes.changes if result else ())]
        return findings
    listed = {(c.table, c.uid): c for c in result.changes.changes}
    expected = changed.keys() | related(before, after)
    missing = sorted(expected - listed.keys())
    # What was left out counts updates that wrote nothing, too, but each of those was named by the call.
    counted = len(missing) <= result.changes.changes_omitted <= len(missing) + named
    findings.missed = [] if counted else missing or [("omitted", result.changes.changes_omitted)]
    touched = {key for key in listed if before.rows.get(key) != after.rows.get(key)} | expected
    findings.invented = [
        key
        for key, change in listed.items()
        if (key not in touched and change.action != "updated") or not _possible(change.action, key, before, after)
    ]
    findings.changed, findings.listed = len(expected), len(listed)
    return findings


def _possible(action: str, key: Key, before: Snapshot, after: Snapshot) -> bool:
    """Can this have happened to the record, as it was and as it is?"""
    old, new = before.rows.get(key), after.rows.get(key)
    if action == "created":
        return old is None and new is not None
    if action == "deleted":
        # Created and deleted in one call is deleted, too.
        return (old is not None and new is None) or (new is not None and bool(new.get("deleted")))
    if action == "restored":
        return old is not None and new is not None and bool(old.get("deleted")) and not new.get("deleted")
    return new is not None


def _escaped(
    scope: EffectiveAssignmentScope, before: Snapshot, after: Snapshot, key: Key, old: Row | None, new: Row | None
) -> bool:
    then, now = Oracle(scope, before), Oracle(scope, after)
    if old is not None and not then.inside(key, old):
        return True
    if new is not None and (_adopted_outside(now, key, old, new) or _below_itself(after, key, old, new)):
        return True
    if gone(old, new):
        return not Departures(then, before, after).may_go(key)
    if old is not None and not then.narrowed(key, old):
        return True
    return new is not None and not (now.inside(key, new) and now.narrowed(key, new))


def gone(old: Row | None, new: Row | None) -> bool:
    """Was it there, and is it not any more?"""
    return old is not None and (new is None or bool(new.get("deleted") and not old.get("deleted")))


def _original(key: Key, row: Row) -> Key | None:
    uid = row.get(PARENTS.get(key[0], "l10n_parent")) or 0
    return (key[0], uid) if uid and row.get("sys_language_uid", 0) > 0 else None


def _adopted_outside(now: Oracle, key: Key, old: Row | None, new: Row) -> bool:
    """Has it become the translation of a record outside?"""
    original = _original(key, new)
    if original is None or (old is not None and _original(key, old) == original):
        return False
    return not now.holds(original)


def _below_itself(after: Snapshot, key: Key, old: Row | None, new: Row) -> bool:
    """Was it put below itself?"""
    if key[0] != "pages" or (old is not None and old["pid"] == new["pid"]):
        return False
    line: list[int] = []
    page = new["pid"]
    while page not in line and ("pages", page) in after.rows:
        line.append(page)
        page = after.rows["pages", page]["pid"]
    return key[1] in line


class Departures:
    """Which rows may be gone: those the scope admits in full, and what went along with one of them."""

    def __init__(self, then: Oracle, before: Snapshot, after: Snapshot) -> None:
        self._then = then
        self._rows = before.rows
        self._gone = {key for key, old in before.rows.items() if gone(old, after.rows.get(key))}

    def may_go(self, key: Key, seen: frozenset[Key] = frozenset()) -> bool:
        """Is it gone, and rightly?"""
        if key not in self._gone or key in seen:
            return False
        row = self._rows[key]
        return self._then.inside(key, row) and (self._then.narrowed(key, row) or self._along(key, row, seen | {key}))

    def _along(self, key: Key, row: Row, seen: frozenset[Key]) -> bool:
        if any(self.may_go(host, seen) for host in self._then.hosts(key, row)):
            return True
        original = _original(key, row)
        if original is None or not self.may_go(original, seen):
            return False
        return self._then.speaks(row) or self._along(original, self._rows[original], seen | {original})


def _escaped_relations(scope: EffectiveAssignmentScope, before: Snapshot, after: Snapshot) -> list[Key]:
    escaped: list[Key] = []
    departures = Departures(Oracle(scope, before), before, after)
    for relation in before.relations ^ after.relations:
        _table, local, foreign, tablenames = relation
        ends: Iterable[Key] = [("sys_category", local), (tablenames, foreign)]
        inside = any(
            key in snapshot.rows and oracle.inside(key, snapshot.rows[key]) and oracle.narrowed(key, snapshot.rows[key])
            for key in ends
            for snapshot, oracle in ((before, Oracle(scope, before)), (after, Oracle(scope, after)))
        )
        along = relation in before.relations and any(departures.may_go(key) for key in ends)
        if not inside and not along:
            escaped.append(("sys_category", local))
    return escaped
