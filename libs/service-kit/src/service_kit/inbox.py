"""The consumer's memory: which events were handled, and how far each stream was read (CALLS 5).

Written in the same transaction as what the event causes, so an event counts once however often it is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import text

from service_kit.database import ReadSession, WriteSession
from service_kit.sqlnames import identifier


def inbox_ddl(schema: str = "public") -> str:
    """SQL that makes the tables, to be run by the owner; safe to repeat."""
    s = identifier(schema)
    return f"""
CREATE TABLE IF NOT EXISTS {s}.inbox (
    consumer text NOT NULL,
    event_id uuid NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, event_id)
);
CREATE INDEX IF NOT EXISTS inbox_received ON {s}.inbox (received_at);
CREATE TABLE IF NOT EXISTS {s}.inbox_stream (
    consumer text NOT NULL,
    stream text NOT NULL,
    last_seq bigint NOT NULL,
    PRIMARY KEY (consumer, stream)
);
"""


class Verdict(StrEnum):
    """What to do with an event."""

    NEW = "new"
    """Handle it: it is the next one, and is now remembered."""
    SEEN = "seen"
    """Drop it: handled before, or its place in the stream is behind us."""
    GAP = "gap"
    """Do not handle it yet: events before it are missing. Nothing was remembered."""


@dataclass(frozen=True)
class Acceptance:
    """The answer of :meth:`Inbox.accept`.

    Attributes:
        verdict: what to do.
        last_seq: place of the last event handled in the stream before this one; 0 when there is none.
    """

    verdict: Verdict
    last_seq: int


class Inbox:
    """The inbox of one consumer.

    Args:
        consumer: name; two projections of one database keep separate memories.
        schema: where the tables are.
    """

    def __init__(self, consumer: str, schema: str = "public") -> None:
        s = identifier(schema)
        self._consumer = consumer
        self._lock = text(f"""
            INSERT INTO {s}.inbox_stream (consumer, stream, last_seq) VALUES (:consumer, :stream, 0)
            ON CONFLICT (consumer, stream) DO UPDATE SET last_seq = inbox_stream.last_seq
            RETURNING last_seq
        """)
        self._remember = text(f"""
            INSERT INTO {s}.inbox (consumer, event_id) VALUES (:consumer, :event_id)
            ON CONFLICT DO NOTHING RETURNING event_id
        """)
        self._remember_all = text(f"""
            INSERT INTO {s}.inbox (consumer, event_id)
            SELECT :consumer, event_id FROM unnest(CAST(:event_ids AS uuid[])) AS event_id
            ON CONFLICT DO NOTHING RETURNING event_id
        """)
        self._advance = text(f"""
            INSERT INTO {s}.inbox_stream (consumer, stream, last_seq) VALUES (:consumer, :stream, :seq)
            ON CONFLICT (consumer, stream) DO UPDATE SET last_seq = greatest(inbox_stream.last_seq, excluded.last_seq)
        """)
        self._last = text(f"SELECT last_seq FROM {s}.inbox_stream WHERE consumer = :consumer AND stream = :stream")
        self._purge = text(f"""
            DELETE FROM {s}.inbox WHERE consumer = :consumer
            AND received_at < clock_timestamp() - make_interval(secs => :seconds)
        """)

    async def accept(
        self, session: WriteSession, event_id: UUID, stream: str, seq: int, *, any_start: bool = False
    ) -> Acceptance:
        """Judge an event and remember it when it is new. Locks the stream to the end of the transaction.

        Args:
            session: the unit of work the event is handled in.
            event_id: of the event.
            stream: it belongs to.
            seq: its place there, from 1.
            any_start: the first event seen of a stream may have any place, for consumers that joined late.
        """
        names = {"consumer": self._consumer, "stream": stream}
        last = int((await session.execute(self._lock, names)).scalar_one())
        if seq <= last:
            return Acceptance(Verdict.SEEN, last)
        if seq > last + 1 and not (any_start and last == 0):
            return Acceptance(Verdict.GAP, last)
        known = await self.seen(session, event_id)
        await session.execute(self._advance, {**names, "seq": seq})
        return Acceptance(Verdict.SEEN if known else Verdict.NEW, last)

    async def seen(self, session: WriteSession, event_id: UUID) -> bool:
        """Remember an event that belongs to no stream; says whether it was known already."""
        found = await session.execute(self._remember, {"consumer": self._consumer, "event_id": event_id})
        return found.first() is None

    async def unseen(self, session: WriteSession, event_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Remember events that belong to no stream, in one statement; gives those that were not known."""
        values = {"consumer": self._consumer, "event_ids": list(event_ids)}
        return frozenset(UUID(str(found)) for found in (await session.execute(self._remember_all, values)).scalars())

    async def advance(self, session: WriteSession, stream: str, seq: int) -> None:
        """Set how far a stream was read, when its events up to there are had from elsewhere or are gone for good."""
        await session.execute(self._advance, {"consumer": self._consumer, "stream": stream, "seq": seq})

    async def last_seq(self, session: ReadSession | WriteSession, stream: str) -> int:
        """Place of the last event handled; 0 when there is none."""
        found = await session.execute(self._last, {"consumer": self._consumer, "stream": stream})
        return int(found.scalar_one_or_none() or 0)

    async def purge(self, session: WriteSession, older_than: float) -> int:
        """Forget event ids older than so many seconds; streams keep their place, which drops late repeats too."""
        result = await session.execute(self._purge, {"consumer": self._consumer, "seconds": older_than})
        return int(getattr(result, "rowcount", 0))
