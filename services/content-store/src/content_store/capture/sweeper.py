"""Publishes rows nobody took: writes of psql, of a migration, of a script (CALLS 2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import groupby
from typing import Any, Final

import asyncpg
from service_kit.logging import get_logger
from service_kit.outbox import Outbox

from content_store.capture.grouping import group_rows
from content_store.capture.reader import captured_row
from content_store.capture.relations import relation_ends
from content_store.events.records import Origin, append_record_events, record_changes
from content_store.schema.model import Schema

logger = get_logger(__name__)

_SWEEP: Final = "SELECT * FROM public.capture_sweep($1, $2)"


class CaptureSweeper:
    """Looks for captured rows of finished transactions that are older than an age, and publishes their changes.

    Any number of them may run; rows are taken once. The order against the events of a call is not promised.

    Args:
        pool: of the service's role.
        schema: tells which records the rows of MM tables connect.
        outbox: takes the events, with actor unknown.
        age: seconds a row is left alone.
        batch: rows taken at once.
        published: called after a commit with events, to wake the relay.
    """

    def __init__(
        self,
        pool: asyncpg.Pool[Any],
        schema: Schema,
        outbox: Outbox,
        *,
        age: float = 10.0,
        batch: int = 1000,
        published: Callable[[], None] | None = None,
    ) -> None:
        self._pool = pool
        self._ends = relation_ends(schema)
        self._outbox = outbox
        self._age = timedelta(seconds=age)
        self._batch = batch
        self._published = published

    async def sweep(self) -> int:
        """Publish one batch; returns how many rows were taken."""
        async with self._pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(_SWEEP, self._age, self._batch)
            changes = []
            for _, group in groupby(
                sorted(rows, key=lambda row: (row["transaction_id"], row["id"])), key=lambda row: row["transaction_id"]
            ):
                found = list(group)
                deltas = group_rows(captured_row(row) for row in found)
                changes += record_changes(deltas, self._ends, Origin(at=found[0]["begun_at"]))
            await append_record_events(connection, self._outbox, changes)
        if changes and self._published is not None:
            self._published()
        return len(rows)

    async def run(self, interval: float = 5.0) -> None:
        """Sweep until cancelled; a database that is away is tried again.

        Args:
            interval: seconds between two looks; a full batch is followed by the next at once.
        """
        while True:
            taken = 0
            try:
                taken = await self.sweep()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                logger.warning("capture_sweep_failed", error=str(error))
            if taken:
                logger.info("capture_swept", rows=taken)
            if taken < self._batch:
                await asyncio.sleep(interval)
