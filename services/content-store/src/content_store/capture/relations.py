"""Which records an MM row connects (pure): both ends count as updated (CALLS 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from content_store.capture.model import Relation
from content_store.schema.model import Column, Schema


@dataclass(frozen=True, slots=True)
class RelationEnds:
    """Tables an MM table connects.

    Attributes:
        local: tables ``uid_local`` may name.
        foreign: tables ``uid_foreign`` may name; ``tablenames`` of the row tells which where there are several.
        any_foreign: a field allows every table.
    """

    local: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    any_foreign: bool = False

    def of(self, relation: Relation) -> list[tuple[str, int]]:
        """Table and uid of each end that can be told; an end that cannot be told is left out."""
        ends = []
        if len(self.local) == 1 and relation.uid_local > 0:
            ends.append((next(iter(self.local)), relation.uid_local))
        table = relation.tablenames
        if not (table and (self.any_foreign or table in self.foreign)):
            table = next(iter(self.foreign)) if len(self.foreign) == 1 and not self.any_foreign else ""
        if table and relation.uid_foreign > 0:
            ends.append((table, relation.uid_foreign))
        return ends


def relation_ends(schema: Schema) -> Mapping[str, RelationEnds]:
    """Both sides of every MM table of the schema, from the fields that use it."""
    local: dict[str, set[str]] = {}
    foreign: dict[str, set[str]] = {}
    everything: set[str] = set()
    for table in schema:
        for column in table.columns.values():
            mm = column.config.get("MM")
            if not mm:
                continue
            targets = _targets(column)
            own, other = (foreign, local) if column.config.get("MM_opposite_field") else (local, foreign)
            own.setdefault(mm, set()).add(table.name)
            if "*" in targets:
                if other is foreign:
                    everything.add(mm)
                continue
            other.setdefault(mm, set()).update(targets)
    return {
        mm: RelationEnds(frozenset(local.get(mm, ())), frozenset(foreign.get(mm, ())), mm in everything)
        for mm in schema.mm_tables
    }


def _targets(column: Column) -> set[str]:
    named: Iterable[str] = str(column.config.get("allowed") or column.config.get("foreign_table") or "").split(",")
    return {name.strip() for name in named if name.strip()}
