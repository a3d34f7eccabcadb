"""Record events since a position, for consumers that missed some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol
from uuid import UUID

from remit_contracts.events import RECORDS_TOPIC, RecordChanged

# The one relay marks rows in the order it published them, on one connection. So this order has no gaps a reader could
# skip, as positions taken at the time of writing would have.
_READ: Final = """
SELECT id, stream, seq, time, data::text AS data, published_at FROM public.outbox
 WHERE topic = $1 AND published_at IS NOT NULL AND (published_at, id) > ($2, $3)
 ORDER BY published_at, id LIMIT $4
"""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = (_EPOCH, UUID(int=0))
_MAX_MICROSECONDS: Final = 253_402_300_799 * 1_000_000


class InvalidPositionError(ValueError):
    """The position was not given out by this list."""


class Connection(Protocol):
    """What is used of a database connection or pool."""

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        """Run a query, all rows."""


@dataclass(frozen=True)
class PublishedRecordEvent:
    """A published event.

    Attributes:
        id: of the event, the same as on the topic.
        stream: ``table:uid``.
        sequence: place in the stream, from 1 without gaps.
        time: when the record was changed.
        position: to ask for what came after.
        change: what happened.
    """

    id: UUID
    stream: str
    sequence: int
    time: datetime
    position: str
    change: RecordChanged


async def list_record_events(
    connection: Connection, after: str | None = None, limit: int = 200
) -> list[PublishedRecordEvent]:
    """Published events after a position, oldest first; kept as long as the outbox keeps published rows.

    Args:
        connection: of the service.
        after: position of the last event known, ``None`` from the beginning.
        limit: most events of the answer.

    Raises:
        InvalidPositionError: ``after`` cannot be read.
    """
    moment, event_id = _position(after) if after else _FIRST
    rows = await connection.fetch(_READ, RECORDS_TOPIC, moment, event_id, limit)
    return [
        PublishedRecordEvent(
            id=UUID(int=row["id"].int),
            stream=row["stream"],
            sequence=row["seq"],
            time=row["time"],
            position=_text(row["published_at"], row["id"]),
            change=RecordChanged.model_validate_json(row["data"]),
        )
        for row in rows
    ]


def _text(moment: datetime, event_id: UUID) -> str:
    return f"{(moment - _EPOCH) // timedelta(microseconds=1)}.{event_id.hex}"


def _position(text: str) -> tuple[datetime, UUID]:
    moment, dot, event_id = text.partition(".")
    if not (dot and moment.isascii() and moment.isdigit() and len(moment) <= 18 and len(event_id) == 32):
        raise InvalidPositionError("the position cannot be read")
    microseconds = int(moment)
    if microseconds > _MAX_MICROSECONDS:
        raise InvalidPositionError("the position cannot be read")
    try:
        return _EPOCH + timedelta(microseconds=microseconds), UUID(hex=event_id)
    except ValueError as error:
        raise InvalidPositionError("the position cannot be read") from error
