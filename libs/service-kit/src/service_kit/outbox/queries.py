"""The relay's statements, all on the connection that holds its lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from service_kit.cloudevents import CloudEvent

PURGE_BATCH = 5000


@dataclass(frozen=True)
class OutboxRow:
    """One event that waits.

    Attributes:
        id: of the event.
        topic: where to.
        stream: of the event.
        seq: place in the stream.
        event: what is published.
    """

    id: UUID
    topic: str
    stream: str
    seq: int
    event: CloudEvent


class OutboxQueries:
    """Statements for the outbox of one schema."""

    def __init__(self, schema: str) -> None:
        # Claimed by state, never by a cursor: the oldest waiting rows choose the streams, and each stream gives its
        # next rows by sequence. A visible row's predecessors are visible too, because the stream's row lock makes
        # commits follow the sequence.
        self._claim = f"""
            SELECT o.id, o.topic, o.stream, o.seq, o.key, o.type, o.source, o.subject, o.dataschema,
                   o.extensions::text AS extensions, o.data::text AS data, o.time
            FROM (
                SELECT stream, min(created_at) AS age
                FROM (
                    SELECT stream, created_at FROM {schema}.outbox
                    WHERE published_at IS NULL AND stream <> ALL($1::text[])
                    ORDER BY created_at LIMIT $2
                ) oldest
                GROUP BY stream
            ) s
            CROSS JOIN LATERAL (
                SELECT * FROM {schema}.outbox
                WHERE stream = s.stream AND published_at IS NULL
                ORDER BY seq LIMIT $3
            ) o
            ORDER BY s.age, o.stream, o.seq
        """
        self._mark = f"UPDATE {schema}.outbox SET published_at = clock_timestamp() WHERE id = ANY($1::uuid[])"
        self._failure = f"UPDATE {schema}.outbox SET attempts = attempts + 1, last_error = $2 WHERE id = $1"
        self._purge = f"""
            DELETE FROM {schema}.outbox WHERE id IN (
                SELECT id FROM {schema}.outbox
                WHERE published_at < clock_timestamp() - make_interval(secs => $1)
                ORDER BY published_at LIMIT $2
            )
        """
        self._state = f"""
            SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS age, count(*) AS n
            FROM (
                SELECT created_at FROM {schema}.outbox WHERE published_at IS NULL ORDER BY created_at LIMIT 10000
            ) waiting
        """

    async def claim(self, connection: Any, blocked: Sequence[str], oldest: int, per_stream: int) -> list[OutboxRow]:
        """Rows that wait, grouped by stream and in order, without the blocked streams."""
        rows = await connection.fetch(self._claim, list(blocked), oldest, per_stream)
        return [
            OutboxRow(
                id=UUID(int=row["id"].int),
                topic=row["topic"],
                stream=row["stream"],
                seq=row["seq"],
                event=CloudEvent(
                    id=UUID(int=row["id"].int),
                    source=row["source"],
                    type=row["type"],
                    data=row["data"].encode("utf-8"),
                    time=row["time"],
                    subject=row["subject"],
                    key=row["key"],
                    stream=row["stream"],
                    sequence=row["seq"],
                    dataschema=row["dataschema"],
                    extensions=json.loads(row["extensions"]),
                ),
            )
            for row in rows
        ]

    async def mark(self, connection: Any, ids: Sequence[UUID]) -> None:
        """These are on the broker."""
        await connection.execute(self._mark, list(ids))

    async def note_failure(self, connection: Any, event_id: UUID, error: str) -> None:
        """Count an attempt and keep its reason, for whoever looks into the table."""
        await connection.execute(self._failure, event_id, error[:500])

    async def purge(self, connection: Any, retention: float, limit: int = PURGE_BATCH) -> int:
        """Delete rows published longer ago than ``retention`` seconds; returns how many."""
        status = await connection.execute(self._purge, retention, limit)
        return int(status.rpartition(" ")[2])

    async def state(self, connection: Any) -> tuple[float, int]:
        """Age in seconds of the oldest row that waits, and how many wait (at most 10000 are counted)."""
        row = await connection.fetchrow(self._state)
        return float(row["age"]), int(row["n"])
