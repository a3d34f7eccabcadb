"""Which fields find their records by a pointer in these: children and their parents, read once per schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from content_store.schema.flex import relations_of
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.schema.model import Schema

#: Child table -> fields its rows are children of: (parent table, relation).
Parents = Mapping[str, tuple[tuple[str, RelationSpec], ...]]


def find_parents(schema: Schema) -> Parents:
    """All of a schema, those inside flex forms included. Ask ``Schema.parents_of``."""
    found: dict[str, list[tuple[str, RelationSpec]]] = defaultdict(list)
    for table in schema:
        for spec in (s for column in table.pointing_columns for s in relations_of(column)):
            if spec.storage == "foreign_field":
                found[spec.table].append((table.name, spec))
    return {child: tuple(parents) for child, parents in found.items()}
