"""Columns: of the database, and fields as editors know them (SEMANTICS 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from content_store.schema.relations import RelationSpec, describe_relation

DbType = Literal["int", "string", "text", "blob", "decimal", "float", "json", "datetime", "date", "time"]


@dataclass(frozen=True, slots=True)
class DbColumn:
    """A column of the database table.

    Attributes:
        name: of the column.
        type: storage class; ``int`` is 64 bit, ``string`` and ``text`` differ only in what they may be indexed for.
        default: value of a row that does not name the column, ``None`` for none.
        nullable: whether NULL may be stored.
        length: upper limit in characters of a ``string``, ``None`` for no limit.
    """

    name: str
    type: DbType
    default: Any = None
    nullable: bool = False
    length: int | None = None

    @classmethod
    def from_data(cls, name: str, data: Mapping[str, Any]) -> DbColumn:
        """Reads ``{type, default, nullable, length}``."""
        return cls(name, data["type"], data.get("default"), bool(data.get("nullable")), data.get("length"))


@dataclass(frozen=True)
class Column:
    """A field of a record as the editor knows it (one entry of ``columns``)."""

    name: str
    config: Mapping[str, Any]
    l10n_mode: str = ""
    exclude: bool = False
    display_cond: Any = None

    @classmethod
    def from_data(cls, name: str, data: Mapping[str, Any]) -> Column:
        """Reads ``{config, l10n_mode, exclude, displayCond}``."""
        return cls(
            name,
            data.get("config", {}),
            str(data.get("l10n_mode") or ""),
            bool(data.get("exclude")),
            data.get("displayCond"),
        )

    @cached_property
    def type(self) -> str:
        """The field type, e.g. ``input``."""
        return str(self.config.get("type", ""))

    @cached_property
    def relation(self) -> RelationSpec | None:
        """How it keeps its targets, ``None`` where it has none (items only, plain values)."""
        return describe_relation(self.name, self.config)

    @cached_property
    def evals(self) -> tuple[str, ...]:
        """Entries of ``eval`` in order."""
        return tuple(part.strip() for part in str(self.config.get("eval", "")).split(",") if part.strip())

    @property
    def nullable(self) -> bool:
        """May the editor store NULL?"""
        return bool(self.config.get("nullable"))

    @property
    def required(self) -> bool:
        """Must the field hold a value?"""
        return bool(self.config.get("required"))

    @cached_property
    def synchronizable(self) -> bool:
        """Has ``behaviour.allowLanguageSynchronization``."""
        behaviour = self.config.get("behaviour")
        return isinstance(behaviour, Mapping) and bool(behaviour.get("allowLanguageSynchronization"))

    def changed(self, change: Mapping[str, Any]) -> Column:
        """The field with what a record type describes otherwise."""
        return Column(
            self.name,
            {**self.config, **change.get("config", {})},
            str(change.get("l10n_mode", self.l10n_mode) or ""),
            bool(change.get("exclude", self.exclude)),
            change.get("displayCond", self.display_cond),
        )
