"""What a single value of a table file may be (pure): each rule is a test and the words for what it expects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

# Shorter than PostgreSQL allows, so that triggers and indexes can be named after the table.
TABLE_PATTERN: Final = r"^[a-z][a-z0-9_]{0,49}$"
FIELD_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_]{0,59}$"
#: Longest text column a length may be given for.
MAX_LENGTH: Final = 10_485_760
_BIGINT: Final = 2**63
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


@dataclass(frozen=True)
class Rule:
    """A test of a value, and what it expects, in words."""

    holds: Callable[[Any], bool]
    expects: str


def is_integer(value: Any) -> bool:
    """A whole number that a 64 bit column holds, or its text (flex forms know no numbers)."""
    if isinstance(value, str):
        return _INTEGER.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and -_BIGINT <= value < _BIGINT


def is_number(value: Any) -> bool:
    """A finite number or its text."""
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def is_scalar(value: Any) -> bool:
    """A text, a finite number, true, false or nothing."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | str) or is_integer(value)


def _natural(value: Any, least: int = 0, most: int = MAX_LENGTH) -> bool:
    return is_integer(value) and least <= int(value) <= most


def one_of(*values: str) -> Rule:
    """One of these texts."""
    return Rule(lambda value: isinstance(value, str) and value in values, f"one of {', '.join(values)} is expected")


def matching(pattern: str, expects: str) -> Rule:
    """A text of this pattern, to its very end."""
    known = re.compile(pattern.rstrip("$"))
    return Rule(lambda value: isinstance(value, str) and known.fullmatch(value) is not None, expects)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or (is_integer(value) and str(value) in ("0", "1"))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _is_map(value: Any, each: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) and each(v) for k, v in value.items())


def _is_slug_fields(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) or _is_texts(part) for part in value)


TEXT: Final = Rule(_is_text, "a text is expected")
FLAG: Final = Rule(_is_flag, "true or false is expected")
NATURAL: Final = Rule(_natural, "a whole number of 0 or more is expected")
LENGTH: Final = Rule(
    lambda v: not isinstance(v, str) and _natural(v, 1), f"a whole number from 1 to {MAX_LENGTH} is expected"
)
INTEGER: Final = Rule(is_integer, "a whole number is expected")
NUMBER: Final = Rule(is_number, "a number is expected")
SCALAR: Final = Rule(is_scalar, "a text or a number is expected")
FIELD: Final = matching(
    FIELD_PATTERN, "the name of a field is expected: letters, digits and _, a letter first, up to 60"
)
TABLE: Final = matching(
    TABLE_PATTERN, "the name of a table is expected: a to z, digits and _, a letter first, up to 50"
)
TYPE_FIELD: Final = matching(
    r"[A-Za-z][A-Za-z0-9_]{0,59}(:[A-Za-z][A-Za-z0-9_]{0,59})?",
    "a field, or a relation and a field behind a colon, is expected",
)
KEYS: Final = Rule(lambda v: isinstance(v, str) or is_integer(v), "keys with commas are expected")
TEXTS: Final = Rule(_is_texts, "a list of texts is expected")
ANY_MAP: Final = Rule(lambda v: isinstance(v, Mapping), "a map is expected")
FLAGS: Final = Rule(lambda v: _is_map(v, _is_flag), "a map of true and false is expected")
NATURALS: Final = Rule(lambda v: _is_map(v, _natural), "a map of whole numbers is expected")
CONSTANTS: Final = Rule(lambda v: _is_map(v, is_scalar), "a map of field and value is expected")
TEXT_MAP: Final = Rule(lambda v: _is_map(v, _is_text), "a map of texts is expected")
USAGE: Final = Rule(lambda v: _is_map(v, _is_texts), "a map of table and list of fields is expected")
SLUG_FIELDS: Final = Rule(_is_slug_fields, "a list of fields, or of lists of fields, is expected")
#: What a slug may be filled with: one character that needs no escape in an address.
FALLBACK: Final = matching(r"[-_.~]", "one of the characters - _ . ~ is expected")


def holds_nul(value: Any) -> bool:
    """Is there a NUL character in a text, at any depth? No column and no identifier can hold one."""
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, Mapping):
        return any(holds_nul(key) or holds_nul(part) for key, part in value.items())
    return isinstance(value, list) and any(holds_nul(part) for part in value)
