"""How a field keeps its relation: the one reading of the parts of its description that say so (pure, SEMANTICS 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Final, Literal

StorageKind = Literal["list", "foreign_field", "mm"]

_RELATION_TYPES: Final = frozenset({"select", "group", "category", "inline", "file"})
_FILE_REFERENCE: Final = {
    "foreign_table": "sys_file_reference",
    "foreign_field": "uid_foreign",
    "foreign_sortby": "sorting_foreign",
    "foreign_table_field": "tablenames",
}
_CATEGORY_MM: Final = "sys_category_record_mm"


@dataclass(frozen=True)
class RelationSpec:
    """Storage of one relation field.

    Attributes:
        field: name of the field (of the inner field in a flex form).
        type: field type.
        storage: ``list`` in the field itself, ``foreign_field`` in the children, ``mm`` in a relation table.
        tables: allowed targets; ``("*",)`` for any.
        children: the targets belong to the record (inline, file): copied, moved and deleted with it.
        foreign_field: column of the child with the parent's uid.
        foreign_table_field: column of the child with the parent's table.
        match_fields: constants of the child.
        sort_by: column of the child with the order, ``None`` for its own sort column.
        default_sort_by: fallback order, as in SQL.
        mm_table: relation table.
        opposite: this side is the foreign side of the relation table.
        mm_match_fields: constants of the relation rows.
        opposite_usage: table -> fields on the other side.
        localize_references: targets are localized with the record.
        kept_by_translations: a translation starts with the targets of its original, also on the own side of a
            relation table.
    """

    field: str
    type: str
    storage: StorageKind
    tables: tuple[str, ...]
    children: bool = False
    foreign_field: str = ""
    foreign_table_field: str = ""
    match_fields: Mapping[str, Any] = dataclass_field(default_factory=dict)
    sort_by: str | None = None
    default_sort_by: str = ""
    mm_table: str = ""
    opposite: bool = False
    mm_match_fields: Mapping[str, Any] = dataclass_field(default_factory=dict)
    opposite_usage: Mapping[str, list[str]] = dataclass_field(default_factory=dict)
    localize_references: bool = False
    kept_by_translations: bool = False

    @property
    def table(self) -> str:
        """The (first) target table."""
        return self.tables[0]

    @property
    def several_tables(self) -> bool:
        """May targets lie in more than one table, so that references carry the table's name?"""
        return len(self.tables) > 1 or self.tables == ("*",)

    @property
    def counted(self) -> bool:
        """Does the field hold the number of targets instead of the targets?"""
        return self.storage != "list"


def describe_relation(name: str, config: Mapping[str, Any]) -> RelationSpec | None:
    """The relation of a field, ``None`` where it has none (items only, plain values). Ask ``Column.relation``."""
    kind = str(config.get("type", ""))
    if kind not in _RELATION_TYPES:
        return None
    config = {**_FILE_REFERENCE, **config} if kind == "file" else config
    tables = _targets(kind, config)
    if not tables:
        return None
    if config.get("MM") or (kind == "category" and _category_mm(config)):
        return _mm_relation(name, kind, tables, config)
    if kind in ("inline", "file"):
        match_fields = config.get("foreign_match_fields") or ({"fieldname": name} if kind == "file" else {})
        return RelationSpec(
            name,
            kind,
            "foreign_field" if config.get("foreign_field") else "list",
            tables,
            children=True,
            foreign_field=str(config.get("foreign_field", "")),
            foreign_table_field=str(config.get("foreign_table_field", "")),
            match_fields=dict(match_fields),
            sort_by=config.get("foreign_sortby") or None,
            default_sort_by=str(config.get("foreign_default_sortby", "")),
        )
    return RelationSpec(
        name,
        kind,
        "list",
        tables,
        localize_references=bool(config.get("localizeReferencesAtParentLocalization")),
    )


def _targets(kind: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    if kind == "group":
        return tuple(t.strip() for t in str(config.get("allowed", "")).split(",") if t.strip())
    if kind == "category":
        return (str(config.get("foreign_table", "sys_category")),)
    return (str(config["foreign_table"]),) if config.get("foreign_table") else ()


def _category_mm(config: Mapping[str, Any]) -> bool:
    return str(config.get("relationship", "manyToMany")) == "manyToMany"


def _mm_relation(name: str, kind: str, tables: tuple[str, ...], config: Mapping[str, Any]) -> RelationSpec:
    usage = config.get("MM_oppositeUsage") or {}
    return RelationSpec(
        name,
        kind,
        "mm",
        tables,
        children=kind == "inline",
        mm_table=str(config.get("MM") or _CATEGORY_MM),
        opposite=bool(config.get("MM_opposite_field")) or (kind == "category" and not config.get("MM")),
        mm_match_fields=dict(config.get("MM_match_fields") or {}),
        opposite_usage={str(t): [str(f) for f in fields] for t, fields in usage.items()},
        kept_by_translations=config.get("l10n_mode") == "exclude",
    )
