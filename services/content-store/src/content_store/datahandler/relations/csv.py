"""References as text: lists of uids, with the table's name in front where a field takes several tables (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.schema.relations import RelationSpec


@dataclass(frozen=True)
class Reference:
    """A target: ``id`` is a uid, or a placeholder until the record is written."""

    table: str
    id: str

    @property
    def waiting(self) -> bool:
        """Is the target not written yet?"""
        return "NEW" in self.id

    @property
    def uid(self) -> int:
        """The uid, 0 for what is none."""
        return int(self.id) if self.id.isascii() and self.id.isdigit() and len(self.id) < 19 else 0


def split_list(value: Any) -> list[str]:
    """Parts of a submitted list: a text with commas, a number, or a list of scalars.

    Raises:
        Refusal: a map, or a list with something else than scalars.
    """
    if value is None or value is False:
        return []
    if value is True:
        return ["1"]
    parts: Iterable[Any] = value if isinstance(value, list) else str(value).split(",")
    if isinstance(value, dict):
        raise Refusal(ErrorCode.INVALID_VALUE, "A list of references is expected")
    result = []
    for part in parts:
        if isinstance(part, list | dict | bool):
            raise Refusal(ErrorCode.INVALID_VALUE, "A list of references is expected")
        text = "" if part is None else str(part).strip()
        if text:
            result.append(text)
    return result


def parse_reference(token: str, spec: RelationSpec) -> Reference | None:
    """The target a part of a list names; ``None`` where it is no reference into an allowed table.

    ``5`` and ``NEW1`` are in the field's (first) table, ``tt_content_5`` and ``tt_content_NEW1`` in the one named.
    """
    head, underscore, tail = token.rpartition("_")
    if underscore and (tail.isdigit() or "NEW" in tail) and (head in spec.tables or spec.tables == ("*",)):
        return Reference(head, tail)
    if spec.tables == ("*",) or not ("NEW" in token or Reference("", token).uid > 0):
        return None
    return Reference(spec.table, token)


def format_reference(reference: Reference, spec: RelationSpec) -> str:
    """The reference as it is stored in a list."""
    return f"{reference.table}_{reference.id}" if spec.several_tables else reference.id


def parse_references(tokens: Sequence[str], spec: RelationSpec) -> list[Reference]:
    """All parts that name a target."""
    return [r for r in (parse_reference(t, spec) for t in tokens) if r is not None]


def exchange_references(value: Any, spec: RelationSpec, copies: dict[str, dict[int, int]]) -> str | None:
    """The list with every target that has a copy exchanged for it, ``None`` where there is none to exchange."""
    tokens, changed = [], False
    for token in split_list(value):
        reference = parse_reference(token, spec)
        copy = copies.get(reference.table, {}).get(reference.uid) if reference is not None else None
        if reference is not None and copy is not None and copy != reference.uid:
            # The name in front is kept as it was written.
            token = token[: len(token) - len(reference.id)] + str(copy)
            changed = True
        tokens.append(token)
    return ",".join(tokens) if changed else None
