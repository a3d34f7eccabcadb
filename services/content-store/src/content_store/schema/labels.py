"""Labels of tables, fields and items in the reader's language (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from content_store.schema.model import Schema

FALLBACK_LANGUAGE: Final = "en"


def table_label(schema: Schema, table: str, language: str) -> str:
    """What editors call the records of the table; the table's name where nobody says."""
    return _text(_table(schema, table).get("title"), language) or table


def field_label(schema: Schema, table: str, field: str, language: str) -> str:
    """What editors call the field; the field's name where nobody says."""
    return _text(_column(schema, table, field).get("label"), language) or field


def item_labels(schema: Schema, table: str, field: str, language: str) -> dict[str, str]:
    """Value as text -> label, for fields with items that carry a value; a value without a label stands for itself."""
    items = _column(schema, table, field).get("config", {}).get("items") or ()
    return {
        str(item["value"]): _text(item.get("label"), language) or str(item["value"])
        for item in items
        if isinstance(item, Mapping) and "value" in item
    }


def _table(schema: Schema, table: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema.source.get("tables", {}).get(table, {})
    return found


def _column(schema: Schema, table: str, field: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _table(schema, table).get("columns", {}).get(field, {})
    return found


def _text(label: Any, language: str) -> str:
    if isinstance(label, Mapping):
        return str(label.get(language) or label.get(FALLBACK_LANGUAGE) or next(iter(label.values()), ""))
    return str(label or "")
