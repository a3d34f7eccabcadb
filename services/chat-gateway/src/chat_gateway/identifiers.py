"""Identifiers that leave the record: reduced to the characters identifiers use (R-010)."""

from __future__ import annotations

import re

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_.:\-]+")
MAX_IDENTIFIER = 80
UNNAMED = "unnamed"


def reduce_identifier(text: object) -> str:
    """The identifier without any character that could form prose or markup, at most 80 characters (R-010)."""
    return _NOT_IDENTIFIER.sub("", str(text))[:MAX_IDENTIFIER] or UNNAMED
