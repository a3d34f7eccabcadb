"""Who decides about a field of a translation: ``l10n_state`` (SEMANTICS 7, pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from content_store.datahandler.pointers import read_number
from content_store.schema.model import TableSchema

PARENT: Final = "parent"
SOURCE: Final = "source"
CUSTOM: Final = "custom"
_STATES: Final = frozenset({PARENT, SOURCE, CUSTOM})


def state_fields(table: TableSchema) -> list[str]:
    """Fields with ``allowLanguageSynchronization``, in their order."""
    return [c.name for c in table.columns.values() if c.synchronizable]


def parse_state(value: Any) -> dict[str, str]:
    """States from stored JSON or a submitted map; anything else is no state."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else {}
        except ValueError:
            return {}
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(state) for name, state in value.items() if state in _STATES}


@dataclass
class SyncItem:
    """A record of a datamap, or a translation that depends on one.

    Attributes:
        table: of the record.
        id: uid as text, or placeholder.
        language: its language.
        parent: uid or placeholder of the default-language record, ``0`` for none.
        source: the same of the record it was made from.
        new: is it not written yet?
        state: field -> who decides, only for translations.
        changed: fields whose state this datamap changed.
    """

    table: str
    id: str
    language: int
    parent: str
    source: str
    new: bool
    state: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    @classmethod
    def build(
        cls, table: TableSchema, record_id: str, row: Mapping[str, Any] | None, submitted: Mapping[str, Any]
    ) -> SyncItem | None:
        """The item, from the stored row or, for a new one, what is submitted; ``None`` for -1 and free mode."""
        values = row if row is not None else submitted
        language = read_number(values.get(table.language_field or "", 0))
        parent = _pointer(values.get(table.parent_field or ""))
        source = _pointer(values.get(table.source_field or "")) if table.source_field else "0"
        if language is None or language < 0 or (language > 0 and parent == "0"):
            return None
        return cls(table.name, record_id, language, parent, source if source != "0" else parent, row is None)

    @property
    def is_translation(self) -> bool:
        """Has it a language and an original of its own?"""
        return self.language > 0

    @property
    def is_grandchild(self) -> bool:
        """Was it made from another translation?"""
        return self.is_translation and self.source != self.parent

    def state_json(self) -> str | None:
        """What is stored, ``None`` where no field has a state."""
        if not self.state:
            return None
        return json.dumps(self.state, separators=(",", ":"))


def _pointer(value: Any) -> str:
    if isinstance(value, str) and "NEW" in value:
        return value
    return str(max(read_number(value) or 0, 0))


def read_state(item: SyncItem, table: TableSchema, row: Mapping[str, Any] | None, submitted: Mapping[str, Any]) -> None:
    """Sets the states of a translation: stored ones, then submitted ones; missing ones are ``parent``.

    A new grandchild turns ``custom`` into ``source``.
    """
    if not item.is_translation:
        return
    stored = parse_state(row.get("l10n_state")) if row is not None else {}
    wanted = parse_state(submitted.get("l10n_state"))
    for name in state_fields(table):
        before = stored.get(name, PARENT)
        state = wanted.get(name, before)
        if item.new and item.is_grandchild and state == CUSTOM:
            state = SOURCE
        item.state[name] = state
        if row is not None and name in wanted and state != before:
            item.changed.add(name)
