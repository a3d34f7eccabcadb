"""Wakes the relay after a commit. Only a wake-up: a lost one costs a poll interval, never an event."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from service_kit.database import server_settings
from service_kit.logging import get_logger
from service_kit.pool import plain_url

logger = get_logger(__name__)
_FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
DEFAULT_CHANNEL = "remit_outbox"


class OutboxWaker:
    """Sends NOTIFY on a connection of its own, many rings as one.

    NOTIFY inside the writing transaction would make all such commits wait for each other (a third slower when it was
    measured), so it comes after the commit: ``session.after_commit(waker.ring_later)`` or ``waker.ring()``.
    """

    def __init__(self, url: str, channel: str = DEFAULT_CHANNEL) -> None:
        self._url = plain_url(url)
        self._channel = channel
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Ask for a wake-up; costs nothing and never fails."""
        self._rung.set()

    async def ring_later(self) -> None:
        """The same as an after-commit callback."""
        self.ring()

    async def start(self) -> None:
        """Begin to send."""
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """End; rings that were not sent are dropped."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _work(self) -> None:
        connection: Any = None
        try:
            while True:
                await self._rung.wait()
                self._rung.clear()
                try:
                    if connection is None or connection.is_closed():
                        connection = await asyncpg.connect(
                            self._url, timeout=10, server_settings=server_settings("remit-waker")
                        )
                    await connection.execute("SELECT pg_notify($1, '')", self._channel)
                except _FAILURES as error:
                    logger.info("wake-up not sent, the relay polls", error=type(error).__name__)
                    await asyncio.sleep(1)
        finally:
            if connection is not None:
                connection.terminate()
