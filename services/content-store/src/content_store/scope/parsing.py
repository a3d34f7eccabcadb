"""Strict readers of datamap and cmdmap values (S-42): a value that names no definite target is refused, never skipped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from remit_contracts.records import MAX_UID

_CANONICAL: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_PLACEHOLDER: Final = re.compile(r"[A-Za-z0-9_.:\-]*NEW[A-Za-z0-9_.:\-]*")
ALL_LANGUAGES: Final = -1


class Unreadable(ValueError):
    """The value cannot be read into a definite target; ``value`` is what was given."""

    def __init__(self, value: object) -> None:
        super().__init__(f"{str(value)[:80]!r} names no definite target")
        self.value = value


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A record the same call creates, by the name the datamap gives it."""

    name: str


@dataclass(frozen=True, slots=True)
class RelationItem:
    """An existing record in a list; ``table`` is None where the field has only one."""

    uid: int
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a row goes.

    Attributes:
        target: uid of a page, or of the anchor when ``after``; or the placeholder of either.
        after: behind that record of the same table, on the page it lies on.
    """

    target: int | Placeholder
    after: bool = False


@dataclass(frozen=True, slots=True)
class Paste:
    """Value of ``move`` and ``copy``: where to, and what is updated afterwards."""

    destination: Destination
    update: Mapping[str, Any] | None = None
    ignore_localization: bool = False


def is_placeholder(value: object) -> bool:
    """Is it a name that stands for a record still to be created?"""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


def canonical_uid(value: object) -> int:
    """A uid without sign, blank or leading zero, as number or text; 0 is "none".

    Raises:
        Unreadable: anything else, booleans and numbers beyond a uid included.
    """
    if isinstance(value, str) and _CANONICAL.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_UID:
        raise Unreadable(value)
    return value


def pointer(value: object) -> int | Placeholder:
    """A parent pointer: canonical uid or placeholder; an empty value is 0.

    Raises:
        Unreadable: anything else.
    """
    if value is None or value == "":
        return 0
    return Placeholder(str(value)) if is_placeholder(value) else canonical_uid(value)


def language(value: object) -> int:
    """A language: canonical, or −1 for all; an empty value is 0 (S-06).

    Raises:
        Unreadable: anything else.
    """
    if value is None or value == "":
        return 0
    return ALL_LANGUAGES if repr(value) in ("-1", "'-1'") else canonical_uid(value)


def destination(value: object) -> Destination:
    """A ``pid`` or command target: page, negative uid of an anchor, or a placeholder with or without a minus.

    Raises:
        Unreadable: anything else; an empty value too.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Destination(canonical_uid(abs(value)), after=value < 0)
    if not isinstance(value, str):
        raise Unreadable(value)
    after = value.startswith("-")
    rest = value[1:] if after else value
    if is_placeholder(rest) and not rest.startswith("-"):
        return Destination(Placeholder(rest), after)
    uid = canonical_uid(rest)
    if after and uid == 0:
        raise Unreadable(value)
    return Destination(uid, after)


def paste(value: object) -> Paste:
    """Value of ``move`` or ``copy``: a plain target, a paste array, or ``{target, ignoreLocalization}``.

    Raises:
        Unreadable: any other shape.
    """
    if not isinstance(value, Mapping):
        return Paste(destination(value))
    update = value.get("update")
    known = {"action", "target", "update", "ignoreLocalization"}
    if "target" not in value or not known.issuperset(value) or value.get("action", "paste") != "paste":
        raise Unreadable(value)
    if update is not None and update != [] and not isinstance(update, Mapping):
        raise Unreadable(value)
    return Paste(destination(value["target"]), update or None, bool(value.get("ignoreLocalization")))


def relation_items(value: object, tables: Collection[str]) -> list[Placeholder | RelationItem]:
    """The list of an inline or file field, as text with commas, a list, or one number.

    Args:
        value: as submitted; nothing, an empty text and 0 are the empty list.
        tables: every known table, for ``table_uid``.

    Raises:
        Unreadable: one of the items names no definite record.
    """
    if value is None or (not isinstance(value, bool | float) and value in ("", 0, "0", [])):
        return []
    if isinstance(value, str):
        return [relation_item(part, tables) for part in value.split(",")]
    if isinstance(value, list):
        return [relation_item(part, tables) for part in value]
    return [relation_item(value, tables)]


def relation_item(value: object, tables: Collection[str]) -> Placeholder | RelationItem:
    """One item: canonical uid, placeholder, or ``table_uid`` split at the last underscore with a known table.

    Raises:
        Unreadable: anything else, 0 included.
    """
    table: str | None = None
    rest: object = value
    if isinstance(value, str):
        prefix, underscore, last = value.rpartition("_")
        if underscore and prefix in tables:
            table, rest = prefix, last
    if is_placeholder(rest):
        return Placeholder(str(rest))
    uid = canonical_uid(rest)
    if uid == 0:
        raise Unreadable(value)
    return RelationItem(uid, table)
