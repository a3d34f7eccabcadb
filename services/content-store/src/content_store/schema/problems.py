"""One thing that is wrong with a table file, and the line that tells it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: (table,) or (table, part, key) -> file that says it.
Origins = Mapping[tuple[str, ...], str]


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where.

    Attributes:
        table: its name.
        part: ``ctrl``, ``columns``, ``db_columns`` or ``type_columns_overrides``.
        key: key of the control section, field, column or record type.
        place: inside of it, e.g. ``config.max``; may be empty.
        text: the reason, for a person.
    """

    table: str
    part: str
    key: str
    place: str
    text: str


def problem_lines(problems: Iterable[Problem], origins: Origins) -> list[str]:
    """A line per problem: file, table, place, reason; the file is the one that says the wrong part."""
    lines = []
    for found in problems:
        source = origins.get((found.table, found.part, found.key)) or origins.get((found.table,), found.table)
        place = ".".join(part for part in (found.part, found.key, found.place) if part)
        lines.append(f"{source}: {found.table}: {place}: {found.text}")
    return list(dict.fromkeys(lines))
