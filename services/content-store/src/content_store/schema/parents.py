"""Which fields find their records by a pointer in these: children and their parents, read once per schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from content_store.schema.columns import Column
from content_store.schema.flex import FlexError, parse_structure
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.schema.model import Schema

#: Child table -> fields its rows are children of: (parent table, relation).
Parents = Mapping[str, tuple[tuple[str, RelationSpec], ...]]


def find_parents(schema: Schema) -> Parents:
    """All of a schema, those inside flex forms included. Ask ``Schema.parents_of``."""
    found: dict[str, list[tuple[str, RelationSpec]]] = defaultdict(list)
    for table in schema:
        for spec in (s for column in table.pointing_columns for s in _relations(column)):
            if spec.storage == "foreign_field":
                found[spec.table].append((table.name, spec))
    return {child: tuple(parents) for child, parents in found.items()}


def _relations(column: Column) -> Iterator[RelationSpec]:
    if column.relation is not None:
        yield column.relation
        return
    try:
        inside = list(parse_structure(str(column.config.get("ds") or "")).columns())
    except FlexError:
        return
    yield from (inner.relation for _, _, inner in inside if inner.relation is not None)
