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

    def narrowed(self, key: Key, row: Row) -> bool:
        """Do table and language lists admit the row?"""
        languages, tables = self._scope.languages, self._scope.tables
        language = row.get("sys_language_uid")
        return (tables is None or key[0] in tables) and (languages is None or language is None or language in languages)


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
    deleted = old is not None and (new is None or (new.get("deleted") and not old.get("deleted")))
    then, now = Oracle(scope, before), Oracle(scope, after)
    if old is not None and not then.inside(key, old):
        return True
    if deleted:
        return False
    if old is not None and not then.narrowed(key, old):
        return True
    return new is not None and not (now.inside(key, new) and now.narrowed(key, new))


def _escaped_relations(scope: EffectiveAssignmentScope, before: Snapshot, after: Snapshot) -> list[Key]:
    escaped: list[Key] = []
    for _table, local, foreign, tablenames in before.relations ^ after.relations:
        ends: Iterable[Key] = [("sys_category", local), (tablenames, foreign)]
        inside = any(
            key in snapshot.rows and Oracle(scope, snapshot).inside(key, snapshot.rows[key])
            for key in ends
            for snapshot in (before, after)
        )
        if not inside:
            escaped.append(("sys_category", local))
    return escaped
