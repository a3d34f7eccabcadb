"""The diff source of a translation: what its original said when it was last saved (SEMANTICS 3, pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from content_store.schema.model import TableSchema


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def diff_source(
    table: TableSchema,
    fields: Iterable[str],
    original: Mapping[str, Any] | None,
    stored: str | None,
) -> str | None:
    """The JSON to store, keys sorted.

    Args:
        table: of the record.
        fields: submitted ones; language and pointers do not count.
        original: the default-language record, ``None`` for a record that has none (values are then empty texts).
        stored: what is stored now; its other fields stay.

    Returns:
        ``None`` when no field counts.
    """
    without = {table.language_field, table.parent_field, table.source_field, table.diff_source_field, "l10n_state"}
    names = [name for name in fields if name in table.columns and name not in without]
    if not names:
        return None
    values: dict[str, Any] = {}
    if stored:
        try:
            before = json.loads(stored)
        except ValueError:
            before = None
        if isinstance(before, dict):
            values.update(before)
    source = original or {}
    values.update({name: _text(source.get(name)) for name in names})
    return json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":")).replace("/", "\\/")
