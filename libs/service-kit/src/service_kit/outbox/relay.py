"""Publishes the outbox: one leader per service, in order per stream, at least once (T-70, T-71, CALLS 5)."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from service_kit.bus.port import BusError, EventBus, PublisherFencedError
from service_kit.database import server_settings
from service_kit.logging import get_logger
from service_kit.metrics import Metrics
from service_kit.outbox.publisher import PublishOutcome, publish_rows
from service_kit.outbox.queries import PURGE_BATCH, OutboxQueries, OutboxRow
from service_kit.outbox.store import Outbox
from service_kit.outbox.wake import DEFAULT_CHANNEL
from service_kit.pool import plain_url

logger = get_logger(__name__)
# asyncpg calls a statement on a connection the server is just ending an internal error of its own.
_DATABASE_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


@dataclass(frozen=True)
class RelaySettings:
    """How the relay works.

    Attributes:
        poll_interval: seconds between looks when nobody wakes it.
        batch_size: oldest rows that choose the streams of one round.
        stream_batch: rows of one stream in one round.
        retention: seconds a published row is kept.
        purge_interval: seconds between purges.
        measure_interval: seconds between measurements of age and number of waiting events.
        backoff: seconds a failing stream waits, doubled up to ``max_backoff``.
        max_backoff: seconds.
        command_timeout: seconds until a statement counts as failed.
    """

    poll_interval: float = 1.0
    batch_size: int = 200
    stream_batch: int = 100
    retention: float = 7 * 86_400.0
    purge_interval: float = 60.0
    measure_interval: float = 5.0
    backoff: float = 0.1
    max_backoff: float = 30.0
    command_timeout: float = 30.0


class _LeadershipLostError(Exception):
    """The connection that holds the lock is gone, or another publisher fenced us."""


class OutboxRelay:
    """Runs in any number of processes; the one that holds the service's advisory lock publishes.

    Claims, marks and the lock use one connection: when it fails, nothing more is marked and the round is stopped, so
    the next leader repeats what was not marked. Consumers drop what they have seen.

    Args:
        url: of the service's database.
        service: names the lock; one leader per service and database.
        bus: where to; started by the caller.
        outbox: which tables.
        settings: pace and retention.
        metrics: gets the relay's counters and gauges.
        channel: NOTIFY channel that wakes it.
    """

    def __init__(
        self,
        url: str,
        *,
        service: str,
        bus: EventBus,
        outbox: Outbox | None = None,
        settings: RelaySettings | None = None,
        metrics: Metrics | None = None,
        channel: str = DEFAULT_CHANNEL,
    ) -> None:
        self._url = plain_url(url)
        self._service = service
        self._bus = bus
        self._settings = settings or RelaySettings()
        self._channel = channel
        self._queries = OutboxQueries((outbox or Outbox()).schema)
        self._lock_key = zlib.crc32(f"remit-outbox:{service}".encode())
        self._wake = asyncio.Event()
        self._lost = asyncio.Event()
        self._blocked: dict[str, tuple[float, int]] = {}
        self._purge_at = 0.0
        self._measure_at = 0.0
        self.leading = False
        metrics = metrics or Metrics(service)
        self._published = metrics.counter("remit_outbox_published", "Events acknowledged by the broker")
        self._failed = metrics.counter("remit_outbox_failed", "Attempts the broker did not acknowledge")
        self._age = metrics.gauge("remit_outbox_oldest_unpublished_seconds", "Age of the oldest waiting event")
        self._waiting = metrics.gauge("remit_outbox_unpublished", "Events that wait (counted up to 10000)")
        self._leader = metrics.gauge("remit_outbox_leader", "1 while this process publishes")

    async def run(self) -> None:
        """Work until cancelled; a database or broker that is away is waited for."""
        while True:
            try:
                await self._lead_once()
            except _LeadershipLostError as error:
                logger.warning("relay stepped down", service=self._service, reason=str(error))
            except _DATABASE_ERRORS as error:
                logger.warning("relay lost the database", service=self._service, error=type(error).__name__)
            except Exception as error:
                # Nobody would notice a relay that ended: whatever it was, it is logged, and the next round starts anew.
                logger.error("relay failed", service=self._service, exc_info=error)
            await asyncio.sleep(self._settings.poll_interval)

    async def _lead_once(self) -> None:
        """Connect, wait for the lock, publish until something breaks."""
        connection: Any = await asyncpg.connect(
            self._url,
            timeout=10,
            command_timeout=self._settings.command_timeout,
            # What this connection writes may be lost with the server: then events are sent again and dropped as known.
            server_settings={**server_settings(f"{self._service}-relay"), "synchronous_commit": "off"},
        )
        self._lost = asyncio.Event()
        lost = self._lost
        connection.add_termination_listener(lambda _connection: lost.set())
        try:
            while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", self._lock_key):
                # Whoever is asked for metrics tells the same, leading or not.
                await self._measure(connection)
                await self._wait_or_lost(self._settings.poll_interval)
            self._set_leading(True)
            await connection.add_listener(self._channel, self._on_notify)
            while True:
                self._wake.clear()
                outcome = await self._round(connection)
                await self._housekeeping(connection)
                halted = await self._broker_is_away(outcome)
                if halted or not outcome.done:
                    await self._rest(halted)
        finally:
            self._set_leading(False)
            # Not close(): it may wait for a server that is gone, and the lock ends with the socket either way.
            connection.terminate()

    def _set_leading(self, leading: bool) -> None:
        self.leading = leading
        self._leader.set(1 if leading else 0)

    def _on_notify(self, *_args: object) -> None:
        self._wake.set()

    async def _rest(self, halted: bool) -> None:
        """Wait for a wake-up (not while the broker is away), the poll interval or the next retry."""
        now = time.monotonic()
        seconds = min([self._settings.poll_interval, *(max(0.0, at - now) for at, _ in self._blocked.values())])
        await self._wait_or_lost(seconds, *([] if halted else [self._wake]))

    async def _wait_or_lost(self, seconds: float, *events: asyncio.Event) -> None:
        """Wait for one of the events at most so long.

        Raises:
            _LeadershipLostError: the connection ended.
        """
        waits = [asyncio.create_task(event.wait()) for event in (self._lost, *events)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._lost.is_set():
            raise _LeadershipLostError("the database connection ended")

    async def _round(self, connection: Any) -> PublishOutcome:
        """Publish what waits and mark what went out."""
        now = time.monotonic()
        blocked = [stream for stream, (retry_at, _) in self._blocked.items() if retry_at > now]
        rows = await self._queries.claim(connection, blocked, self._settings.batch_size, self._settings.stream_batch)
        outcome = await self._publish_unless_lost(rows) if rows else PublishOutcome()
        if outcome.done:
            await self._queries.mark(connection, [row.id for row in outcome.done])
            self._published.inc(len(outcome.done))
        for row, error in outcome.failed:
            await self._queries.note_failure(connection, row.id, error)
            self._failed.inc()
            logger.warning("event not acknowledged", stream=row.stream, seq=row.seq, error=error)
        self._note_streams(outcome)
        return outcome

    def _note_streams(self, outcome: PublishOutcome) -> None:
        """Block the streams that failed for a while, each longer than the last time."""
        for row in outcome.done:
            self._blocked.pop(row.stream, None)
        for row, _ in outcome.failed:
            attempts = self._blocked.get(row.stream, (0.0, 0))[1] + 1
            pause = min(self._settings.backoff * 2.0 ** min(attempts - 1, 32), self._settings.max_backoff)
            self._blocked[row.stream] = (time.monotonic() + pause, attempts)

    async def _broker_is_away(self, outcome: PublishOutcome) -> bool:
        """Whether nothing went out because the broker is gone, rather than because of the events."""
        if outcome.done or not outcome.failed:
            return False
        try:
            await self._bus.ping()
        except BusError:
            # Every stream would fail the same way; do not learn that one by one.
            self._blocked.clear()
            return True
        return False

    async def _publish_unless_lost(self, rows: Sequence[OutboxRow]) -> PublishOutcome:
        """Publish, but give up at once when the connection with the lock ends."""
        publishing = asyncio.create_task(publish_rows(self._bus, rows))
        losing = asyncio.create_task(self._lost.wait())
        try:
            await asyncio.wait({publishing, losing}, return_when=asyncio.FIRST_COMPLETED)
            if not publishing.done():
                raise _LeadershipLostError("the database connection ended")
            return publishing.result()
        except PublisherFencedError as error:
            raise _LeadershipLostError("another publisher has taken over") from error
        finally:
            losing.cancel()
            publishing.cancel()
            await asyncio.gather(publishing, losing, return_exceptions=True)

    async def _housekeeping(self, connection: Any) -> None:
        """Purge and measure, once in a while."""
        await self._measure(connection)
        now = time.monotonic()
        if now >= self._purge_at:
            purged = await self._queries.purge(connection, self._settings.retention)
            # A full batch means there is more: do not wait for the next interval.
            self._purge_at = now if purged >= PURGE_BATCH else now + self._settings.purge_interval

    async def _measure(self, connection: Any) -> None:
        now = time.monotonic()
        if now >= self._measure_at:
            age, waiting = await self._queries.state(connection)
            self._age.set(age)
            self._waiting.set(waiting)
            self._measure_at = now + self._settings.measure_interval
