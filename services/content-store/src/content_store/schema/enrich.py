"""Completes a table description as a site developer writes it (pure): standard fields, relations, items.

What the control section names but no column describes gets the usual column; ``file`` and ``category`` fields get
the relation behind them; ``items`` become the plain values the DataHandler works with. A complete description passes
through unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CATEGORY_MM: Final = "sys_category_record_mm"
FILE_RELATION: Final = {
    "foreign_table": "sys_file_reference",
    "foreign_field": "uid_foreign",
    "foreign_sortby": "sorting_foreign",
    "foreign_table_field": "tablenames",
    "foreign_label": "uid_local",
    "foreign_selector": "uid_local",
}
_CATEGORY_RELATION: Final = {"foreign_table": "sys_category", "relationship": "manyToMany"}
_CATEGORY_MANY: Final = {"MM": CATEGORY_MM, "MM_opposite_field": "items", "maxitems": 99_999, "default": 0}

_LABELS: Final = {
    "disabled": {"en": "Hidden", "de": "Verborgen"},
    "starttime": {"en": "Visible from", "de": "Sichtbar ab"},
    "endtime": {"en": "Visible until", "de": "Sichtbar bis"},
    "fe_group": {"en": "Visible for groups", "de": "Sichtbar für Gruppen"},
    "editlock": {"en": "Only administrators may edit", "de": "Nur Administratoren dürfen bearbeiten"},
    "descriptionColumn": {"en": "Notes", "de": "Notizen"},
    "languageField": {"en": "Language", "de": "Sprache"},
    "transOrigPointerField": {"en": "Translation of", "de": "Übersetzung von"},
    "translationSource": {"en": "Translated from", "de": "Übersetzt aus"},
    "transOrigDiffSourceField": {"en": "Source at the last save", "de": "Ausgangstext beim letzten Speichern"},
}


def enriched_tables(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """All tables of a schema, completed.

    Args:
        tables: by name, each ``{ctrl, columns, ...}``.
    """
    done = {name: _enriched_table(name, table) for name, table in tables.items()}
    usage: dict[str, list[str]] = {}
    for name, table in done.items():
        for field, column in table["columns"].items():
            if column["config"].get("MM") == CATEGORY_MM and column["config"].get("MM_opposite_field"):
                usage.setdefault(name, []).append(field)
    items = done.get("sys_category", {}).get("columns", {}).get("items")
    if items is not None:
        items["config"].setdefault("MM_oppositeUsage", usage)
    return done


def _enriched_table(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    columns = {
        field: {**column, "config": _enriched_config(name, field, column.get("config", {}))}
        for field, column in table.get("columns", {}).items()
    }
    for field, column in _standard_columns(name, table.get("ctrl", {})).items():
        columns.setdefault(field, column)
    return {**table, "columns": columns, "derive_db_columns": True}


def _enriched_config(table: str, field: str, config: Mapping[str, Any]) -> dict[str, Any]:
    complete = dict(config)
    if config.get("type") == "file":
        complete = {**FILE_RELATION, **complete}
        complete.setdefault("foreign_match_fields", {"fieldname": field, "tablenames": table})
    if config.get("type") == "category":
        complete = {**_CATEGORY_RELATION, **complete}
        if complete["relationship"] == "manyToMany":
            complete = {**_CATEGORY_MANY, **complete}
            complete.setdefault("MM_match_fields", {"tablenames": table, "fieldname": field})
    if "items" in complete and "item_values" not in complete:
        items = complete["items"]
        # Of check boxes only their number matters, of a choice the values.
        complete["item_values"] = len(items) if config.get("type") == "check" else [item["value"] for item in items]
    elif config.get("type") == "check":
        complete.setdefault("item_values", 1)
    return complete


def _standard_columns(name: str, ctrl: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    enable = ctrl.get("enablecolumns") or {}
    times = {"type": "datetime", "default": 0}
    found: dict[str, dict[str, Any]] = {}

    def add(key: str, field: Any, config: dict[str, Any], **more: Any) -> None:
        if field:
            found[str(field)] = {"label": _LABELS[key], **more, "config": config}

    add("disabled", enable.get("disabled"), {"type": "check", "default": 0, "item_values": 1}, exclude=True)
    add("starttime", enable.get("starttime"), dict(times), exclude=True)
    add("endtime", enable.get("endtime"), {**times, "range": {"upper": 4_291_747_200}}, exclude=True)
    groups = {"type": "select", "renderType": "selectMultipleSideBySide", "maxitems": 20, "item_values": [-1, -2]}
    add("fe_group", enable.get("fe_group"), {**groups, "exclusiveKeys": "-1,-2"}, exclude=True)
    check = {"type": "check", "item_values": 1}
    add("editlock", ctrl.get("editlock"), check, displayCond="HIDE_FOR_NON_ADMINS")
    add("descriptionColumn", ctrl.get("descriptionColumn"), {"type": "text", "max": 2000}, exclude=True)
    language = ctrl.get("languageField")
    if language:
        add("languageField", language, {"type": "language"})
        parent = {"type": "group", "allowed": name, "relationship": "manyToOne", "default": 0, "maxitems": 1}
        add("transOrigPointerField", ctrl.get("transOrigPointerField"), parent, displayCond=f"FIELD:{language}:>:0")
        add("transOrigDiffSourceField", ctrl.get("transOrigDiffSourceField"), {"type": "passthrough", "default": ""})
        add("translationSource", ctrl.get("translationSource"), {"type": "passthrough"})
    return found
