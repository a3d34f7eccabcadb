"""Record and relation tables as they are described, read-only (SEMANTICS 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from content_store.schema.columns import Column, DbColumn
from content_store.schema.relations import RelationSpec


@dataclass(frozen=True)
class TableSchema:
    """One record table.

    Attributes:
        name: of the table.
        ctrl: the control section (label, delete, sortby, languageField, ...).
        columns: fields by name, in the order of the description.
        db_columns: database columns by name, in order.
        import_defaults: values loaders use for columns a row does not list.
        type_columns_overrides: record type -> field -> changes.
        allowed_record_types_by_doktype: only for ``pages``: doktype -> tables, ``*`` for all.
    """

    name: str
    ctrl: Mapping[str, Any]
    columns: Mapping[str, Column]
    db_columns: Mapping[str, DbColumn]
    import_defaults: Mapping[str, Any] = field(default_factory=dict)
    type_columns_overrides: Mapping[str, Any] = field(default_factory=dict)
    allowed_record_types_by_doktype: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def _ctrl_field(self, key: str) -> str | None:
        return str(self.ctrl[key]) if self.ctrl.get(key) else None

    @cached_property
    def label_field(self) -> str | None:
        """Field that names the record."""
        return self._ctrl_field("label")

    @cached_property
    def delete_field(self) -> str | None:
        """Flag of soft deletion, ``None`` where rows are deleted hard."""
        return self._ctrl_field("delete")

    @cached_property
    def tstamp_field(self) -> str | None:
        """Unix seconds of the last change."""
        return self._ctrl_field("tstamp")

    @cached_property
    def crdate_field(self) -> str | None:
        """Unix seconds of creation."""
        return self._ctrl_field("crdate")

    @cached_property
    def sort_field(self) -> str | None:
        """Column of the order on a page."""
        return self._ctrl_field("sortby")

    @cached_property
    def language_field(self) -> str | None:
        """Language id, only where the table is translatable."""
        return self._ctrl_field("languageField")

    @cached_property
    def parent_field(self) -> str | None:
        """Pointer of a translation to its default-language record."""
        return self._ctrl_field("transOrigPointerField")

    @cached_property
    def source_field(self) -> str | None:
        """Pointer to the record a translation was made from."""
        return self._ctrl_field("translationSource")

    @cached_property
    def diff_source_field(self) -> str | None:
        """JSON of the source values at the last save."""
        return self._ctrl_field("transOrigDiffSourceField")

    @cached_property
    def orig_uid_field(self) -> str | None:
        """Uid a copy was made from."""
        return self._ctrl_field("origUid")

    @cached_property
    def type_field(self) -> str | None:
        """Column of the record type, without the part that points into a relation."""
        value = self._ctrl_field("type")
        return None if value is None or ":" in value else value

    @cached_property
    def editlock_field(self) -> str | None:
        """Flag that keeps editors out of the record."""
        return self._ctrl_field("editlock")

    @cached_property
    def enable_columns(self) -> Mapping[str, str]:
        """``disabled``, ``starttime``, ``endtime``, ``fe_group`` -> column."""
        value = self.ctrl.get("enablecolumns")
        return dict(value) if isinstance(value, Mapping) else {}

    @cached_property
    def localizable(self) -> bool:
        """Has a language field and a parent pointer."""
        return self.language_field is not None and self.parent_field is not None

    @cached_property
    def versionable(self) -> bool:
        """Takes part in workspaces."""
        return bool(self.ctrl.get("versioningWS")) and "t3ver_oid" in self.db_columns

    @cached_property
    def has_version_columns(self) -> bool:
        """Stores ``t3ver_*`` columns."""
        return "t3ver_wsid" in self.db_columns

    @cached_property
    def security(self) -> Mapping[str, Any]:
        """The ``security`` part of the control section."""
        value = self.ctrl.get("security")
        return value if isinstance(value, Mapping) else {}

    @cached_property
    def root_level(self) -> int:
        """1 only on the root, 0 never there, -1 both."""
        return int(self.ctrl.get("rootLevel") or 0)

    @cached_property
    def has_synchronized_fields(self) -> bool:
        """Is there a field whose value translations take over?"""
        return any(c.l10n_mode == "exclude" or c.synchronizable for c in self.columns.values())

    @cached_property
    def relation_columns(self) -> tuple[tuple[Column, RelationSpec], ...]:
        """Fields that have a relation, without those inside flex forms."""
        return tuple((c, c.relation) for c in self.columns.values() if c.relation is not None)

    @cached_property
    def pointing_columns(self) -> tuple[Column, ...]:
        """Fields that have a relation or are flex forms, which may hold some."""
        return tuple(c for c in self.columns.values() if c.relation is not None or c.type == "flex")

    @cached_property
    def soft_reference_columns(self) -> tuple[tuple[Column, tuple[str, ...]], ...]:
        """Fields whose texts are searched for references, with the names of the parsers."""
        return tuple(
            (c, tuple(str(c.config["softref"]).split(","))) for c in self.columns.values() if c.config.get("softref")
        )

    def column_for(self, name: str, record_type: str | None = None) -> Column | None:
        """The field, with the changes of the record type applied."""
        if record_type is None or record_type not in self.type_columns_overrides or name not in self.columns:
            return self.columns.get(name)
        return self._overridden[record_type].get(name) or self.columns[name]

    @cached_property
    def _overridden(self) -> Mapping[str, Mapping[str, Column]]:
        return {
            record_type: {
                name: self.columns[name].changed(change)
                for name, change in (overrides.items() if isinstance(overrides, Mapping) else ())
                if name in self.columns and isinstance(change, Mapping)
            }
            for record_type, overrides in self.type_columns_overrides.items()
        }


@dataclass(frozen=True)
class MmTable:
    """A table of relation rows, without uid."""

    name: str
    db_columns: Mapping[str, DbColumn]
