"""Cursors of lists paged by keyset: where the last page ended, in a form clients do not look into."""

from __future__ import annotations

import base64
import binascii
import json

from content_store.errors import CursorInvalidError

_MAX_LENGTH = 200
_MAX = 2**63 - 1


def encode_cursor(values: list[int]) -> str:
    """The cursor of the last row's order values."""
    return base64.urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode()).rstrip(b"=").decode()


def decode_cursor(cursor: str, length: int) -> list[int]:
    """The order values of a cursor.

    Args:
        cursor: as the client sends it.
        length: how many values the list is ordered by.

    Raises:
        CursorInvalidError: it was not made by :func:`encode_cursor` for such a list.
    """
    try:
        if len(cursor) > _MAX_LENGTH:
            raise CursorInvalidError
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise CursorInvalidError from error
    if not isinstance(values, list) or len(values) != length:
        raise CursorInvalidError
    if not all(isinstance(v, int) and not isinstance(v, bool) and -_MAX <= v <= _MAX for v in values):
        raise CursorInvalidError
    return values
