"""The outbox's tables, and how events get into them inside the caller's transaction (T-70, CALLS 5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import text

from service_kit.clock import utc_now
from service_kit.context import current_traceparent
from service_kit.database import WriteSession
from service_kit.ids import uuid7
from service_kit.sqlnames import identifier

MAX_EVENT_BYTES = 900_000


class EventTooLargeError(ValueError):
    """An event no broker would take; found while its transaction can still be undone."""


@dataclass(frozen=True)
class OutboxEvent:
    """An event to publish.

    Attributes:
        topic: where to.
        stream: the sequence it belongs to (a run, ``table:uid``); order is promised per stream.
        type: CloudEvents type, e.g. ``remit.run.step.v1``.
        source: CloudEvents source, e.g. ``/agent-runtime``.
        data: a pydantic model (written by alias), JSON text, or JSON values.
        key: message key; the stream when ``None``.
        subject: CloudEvents subject.
        dataschema: address of the JSON Schema.
        extensions: further CloudEvents attributes.
        id: UUIDv7.
        time: when it happened.
    """

    topic: str
    stream: str
    type: str
    source: str
    data: BaseModel | str | bytes | Mapping[str, Any] | Sequence[Any]
    key: str | None = None
    subject: str | None = None
    dataschema: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid7)
    time: datetime = field(default_factory=utc_now)


@dataclass(frozen=True)
class StoredEvent:
    """The place an event got.

    Attributes:
        id: of the event.
        stream: of the event.
        sequence: place in the stream, from 1 without gaps.
    """

    id: UUID
    stream: str
    sequence: int


def outbox_ddl(schema: str = "public") -> str:
    """SQL that makes the tables, to be run by the owner; safe to repeat.

    Rows of ``outbox_stream`` are kept for ever: a stream that began again at 1 would be taken for old news.
    """
    s = identifier(schema)
    return f"""
CREATE TABLE IF NOT EXISTS {s}.outbox_stream (
    stream text PRIMARY KEY,
    next bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS {s}.outbox (
    id uuid PRIMARY KEY,
    topic text NOT NULL,
    stream text NOT NULL,
    seq bigint NOT NULL,
    key text NOT NULL,
    type text NOT NULL,
    source text NOT NULL,
    subject text,
    dataschema text,
    extensions jsonb NOT NULL,
    data json NOT NULL,
    time timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    published_at timestamptz,
    UNIQUE (stream, seq)
);
CREATE INDEX IF NOT EXISTS outbox_unpublished_age ON {s}.outbox (created_at) WHERE published_at IS NULL;
CREATE INDEX IF NOT EXISTS outbox_unpublished_stream ON {s}.outbox (stream, seq) WHERE published_at IS NULL;
CREATE INDEX IF NOT EXISTS outbox_published ON {s}.outbox (published_at) WHERE published_at IS NOT NULL;
"""


def outbox_grants(role: str, schema: str = "public") -> str:
    """SQL that lets a role write events and run the relay."""
    s, r = identifier(schema), identifier(role)
    return f"""
GRANT SELECT, INSERT, UPDATE ON {s}.outbox_stream TO {r};
GRANT SELECT, INSERT, UPDATE, DELETE ON {s}.outbox TO {r};
"""


# One statement: the streams' rows are locked in sorted order, so two writers never wait for each other crosswise, and
# the row lock held to the commit makes the sequence gapless and in commit order.
_APPEND = """
WITH bumped AS (
    INSERT INTO {schema}.outbox_stream AS s (stream, next)
    SELECT wanted.stream, wanted.n + 1
    FROM unnest(CAST({streams} AS text[]), CAST({counts} AS bigint[])) AS wanted(stream, n)
    ORDER BY wanted.stream COLLATE "C"
    ON CONFLICT (stream) DO UPDATE SET next = s.next + excluded.next - 1
    RETURNING s.stream, s.next
)
INSERT INTO {schema}.outbox
    (id, topic, stream, seq, key, type, source, subject, dataschema, extensions, data, time)
SELECT e.id, e.topic, e.stream, b.next - e.behind, e.key, e.type, e.source, e.subject, e.dataschema,
       e.extensions, e.data, e.time
FROM unnest(
    CAST({ids} AS uuid[]), CAST({topics} AS text[]), CAST({event_streams} AS text[]), CAST({behind} AS bigint[]),
    CAST({keys} AS text[]), CAST({types} AS text[]), CAST({sources} AS text[]), CAST({subjects} AS text[]),
    CAST({dataschemas} AS text[]), CAST(CAST({extensions} AS text[]) AS jsonb[]),
    CAST(CAST({datas} AS text[]) AS json[]), CAST({times} AS timestamptz[])
) AS e(id, topic, stream, behind, key, type, source, subject, dataschema, extensions, data, time)
JOIN bumped b ON b.stream = e.stream
RETURNING id, stream, seq
"""
_ARGUMENTS = (
    "streams", "counts", "ids", "topics", "event_streams", "behind", "keys", "types", "sources", "subjects",
    "dataschemas", "extensions", "datas", "times",
)  # fmt: skip


class Outbox:
    """Writes events into the outbox of one schema.

    Args:
        schema: where the tables are.
        max_event_bytes: largest data, below the broker's own limit.
    """

    def __init__(self, schema: str = "public", max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.schema = identifier(schema)
        self._max_event_bytes = max_event_bytes
        named = {name: f":{name}" for name in _ARGUMENTS}
        numbered = {name: f"${number}" for number, name in enumerate(_ARGUMENTS, start=1)}
        self._named_sql = text(_APPEND.format(schema=self.schema, **named))
        self._numbered_sql = _APPEND.format(schema=self.schema, **numbered)

    async def append(self, session: WriteSession, events: Sequence[OutboxEvent]) -> list[StoredEvent]:
        """Add events inside the session's transaction, as its last statement: the streams stay locked to its end.

        Raises:
            EventTooLargeError: the transaction can still be rolled back.
        """
        if not events:
            return []
        result = await session.execute(self._named_sql, self._arguments(events))
        return _in_order(events, [(row.id, row.stream, row.seq) for row in result])

    async def append_raw(self, connection: Any, events: Sequence[OutboxEvent]) -> list[StoredEvent]:
        """The same inside the transaction of an asyncpg connection; one statement.

        Raises:
            EventTooLargeError: the transaction can still be rolled back.
        """
        if not events:
            return []
        rows = await connection.fetch(self._numbered_sql, *self._arguments(events).values())
        return _in_order(events, [(row["id"], row["stream"], row["seq"]) for row in rows])

    def _arguments(self, events: Sequence[OutboxEvent]) -> dict[str, list[Any]]:
        """Values by name, in the order of ``_ARGUMENTS``."""
        counts = Counter(event.stream for event in events)
        left = dict(counts)
        behind = []
        for event in events:
            behind.append(left[event.stream])
            left[event.stream] -= 1
        streams = sorted(counts, key=lambda stream: stream.encode())
        traceparent = current_traceparent()
        return {
            "streams": streams,
            "counts": [counts[stream] for stream in streams],
            "ids": [event.id for event in events],
            "topics": [event.topic for event in events],
            "event_streams": [event.stream for event in events],
            "behind": behind,
            "keys": [event.key if event.key is not None else event.stream for event in events],
            "types": [event.type for event in events],
            "sources": [event.source for event in events],
            "subjects": [event.subject for event in events],
            "dataschemas": [event.dataschema for event in events],
            "extensions": [_extensions(event, traceparent) for event in events],
            "datas": [self._data(event) for event in events],
            "times": [event.time for event in events],
        }

    def _data(self, event: OutboxEvent) -> str:
        if isinstance(event.data, BaseModel):
            data = event.data.model_dump_json(by_alias=True)
        elif isinstance(event.data, bytes):
            data = event.data.decode("utf-8")
        elif isinstance(event.data, str):
            data = event.data
        else:
            data = json.dumps(event.data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(data.encode("utf-8"))
        if size > self._max_event_bytes:
            raise EventTooLargeError(f"{event.type} has {size} bytes, the limit is {self._max_event_bytes}")
        return data


def _extensions(event: OutboxEvent, traceparent: str | None) -> str:
    extensions = dict(event.extensions)
    if traceparent is not None:
        extensions.setdefault("traceparent", traceparent)
    return json.dumps(extensions)


def _in_order(events: Sequence[OutboxEvent], rows: list[tuple[Any, str, int]]) -> list[StoredEvent]:
    places = {UUID(str(row_id)): StoredEvent(UUID(str(row_id)), stream, seq) for row_id, stream, seq in rows}
    return [places[event.id] for event in events]
