"""Which records a generated call names: something inside of its scope and something outside of it."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from remit_contracts.scope import EffectiveAssignmentScope

from store_support.fuzz.oracle import Oracle, Snapshot

TABLES = ("tt_content", "pages", "sys_file_reference", "sys_category", "sys_file_metadata", "sys_redirect")
_WEIGHTS = (12, 7, 5, 2, 2, 1)
_LISTABLE = ("tt_content", "pages", "sys_file_reference", "sys_category", "sys_file_metadata")


class Targets:
    """Uids by table for one call.

    Args:
        source: of chance.
        snapshot: what there is.

    Attributes:
        scope: of the call; None for none.
    """

    def __init__(self, source: random.Random, snapshot: Snapshot) -> None:
        self.random = source
        self.known: dict[str, list[int]] = defaultdict(list)
        self._deleted: dict[str, list[int]] = defaultdict(list)
        for (table, uid), row in sorted(snapshot.rows.items()):
            (self._deleted if row.get("deleted") else self.known)[table].append(uid)
        self.scope = self._scope()
        self._inside: dict[str, list[int]] = defaultdict(list)
        self._outside: dict[str, list[int]] = defaultdict(list)
        self._beyond: dict[str, list[int]] = defaultdict(list)
        oracle = Oracle(self.scope, snapshot) if self.scope is not None else None
        for key, row in sorted(snapshot.rows.items()):
            if not row.get("deleted"):
                lies = oracle is None or oracle.inside(key, row)
                inside = lies and (oracle is None or oracle.narrowed(key, row))
                (self._inside if inside else self._outside)[key[0]].append(key[1])
                if lies and not inside:
                    self._beyond[key[0]].append(key[1])

    def _scope(self) -> EffectiveAssignmentScope | None:
        """Any scope, most of them of some size, sometimes none or an empty one."""
        r = self.random
        kind = r.random()
        if kind < 0.07:
            return None
        if kind < 0.1:
            return EffectiveAssignmentScope()
        pages, records = self.known["pages"] or [1], self.known
        roots = [
            {"page": r.choice((r.choice((1, 10, 12, 2, 20)), r.choice(pages))), "depth": r.choice((0, 1, 1, 2, 99))}
            for _ in range(r.choice((0, 1, 1, 1, 2)))
        ]
        named = []
        for _ in range(r.choice((0, 0, 1, 2)) if roots else 2):
            table = r.choice((*_LISTABLE, "sys_file"))
            if records[table]:
                named.append(f"{table}:{r.choice(records[table])}")
        values: dict[str, Any] = {"pages": roots, "records": named}
        if r.random() < 0.2:
            values["tables"] = sorted({*r.sample(_LISTABLE, r.randint(1, 3)), "tt_content"})
        if r.random() < 0.25:
            values["languages"] = r.choice(([0], [0, 1], [1], [-1, 0], [0, 1, -1]))
        return EffectiveAssignmentScope.model_validate(values)

    def table(self) -> str:
        """A table, mostly content and pages, and mostly one of which something lies in the scope."""
        weights = [
            w if self._inside[t] or self.scope is None else w * 0.06 for t, w in zip(TABLES, _WEIGHTS, strict=True)
        ]
        return self.random.choices(TABLES, weights)[0]

    def may_create(self, table: str) -> bool:
        """Is there a page in the scope to put a record of the table on?"""
        listed = self.scope is None or self.scope.tables is None or table in self.scope.tables
        return bool(self._inside["pages"]) and listed and table != "sys_redirect"

    def uid(self, table: str, *, outside: float = 0.2) -> int:
        """A uid of the table.

        Args:
            table: name.
            outside: how likely it is one outside of the scope.
        """
        r = self.random
        if r.random() < 0.02:
            return r.randint(1, 9999)
        if r.random() < 0.04 and self._deleted[table]:
            return r.choice(self._deleted[table])
        wanted, other = self._inside[table], self._outside[table]
        if r.random() < outside:
            wanted, other = other, wanted
        return r.choice(wanted or other or [1])

    def beyond(self, *, outside: float) -> tuple[str, int]:
        """A row that lies in the scope, of a table or language the scope does not list; where there is none, any.

        Args:
            outside: how likely any is one outside of the scope.
        """
        kinds = [(table, uid) for table in TABLES for uid in self._beyond[table]]
        table = self.table()
        return self.random.choice(kinds) if kinds else (table, self.uid(table, outside=outside))

    def deleted(self, table: str) -> int:
        """A uid of a row that was deleted softly, where there is one."""
        return self.random.choice(self._deleted[table] or self.known[table] or [1])
