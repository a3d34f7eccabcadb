"""The cursor of the conversation list: activity and id of the last row."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from service_kit.clock import isoformat

from chat_gateway.changes.reader import decode_cursor, encode_cursor
from chat_gateway.conversations.errors import CursorInvalidError


def encode_place(place: tuple[datetime, UUID]) -> str:
    """A cursor behind this row."""
    return encode_cursor(f"{isoformat(place[0])}|{place[1]}")


def decode_place(cursor: str) -> tuple[datetime, UUID]:
    """Activity and id of the last row that was read.

    Raises:
        CursorInvalidError: no cursor of this list.
    """
    moment, _, identifier = decode_cursor(cursor).partition("|")
    try:
        place = datetime.fromisoformat(moment), UUID(identifier)
    except ValueError as error:
        raise CursorInvalidError from error
    if place[0].tzinfo is None:
        raise CursorInvalidError
    return place
