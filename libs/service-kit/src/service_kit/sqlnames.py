"""Names that are put into SQL text: schemas and roles of our own settings, never input."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def identifier(name: str) -> str:
    """The name, when it is a plain one that needs no quotes.

    Raises:
        ValueError: anything else.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no plain SQL name")
    return name
