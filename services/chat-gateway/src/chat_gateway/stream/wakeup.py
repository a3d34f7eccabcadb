"""Wakes open streams: NOTIFY after the commit on another connection, coalesced; the stored log stays the truth (CALLS 5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
from service_kit.database import Database, WriteSession
from service_kit.logging import get_logger
from sqlalchemy import text

logger = get_logger(__name__)
CHANNEL = "remit_chat_stream"
_PENDING = "chat_wakeup"
_NOTIFY = text("SELECT pg_notify(:channel, payload) FROM unnest(CAST(:payloads AS text[])) AS payload")


class Wakeup:
    """Sends wake-ups and hands received ones to the streams of this process.

    Args:
        database: sends on a connection of its pool.
        url: for the connection that listens.
        retry: seconds before a lost connection is opened again.
    """

    def __init__(self, database: Database, url: str, retry: float = 1.0) -> None:
        self._sending = database.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._url = url
        self._retry = retry
        self._waiting: dict[UUID, set[asyncio.Event]] = {}

    def after_commit(self, session: WriteSession, conversation_id: UUID) -> None:
        """Wake the conversation's streams once the transaction is durable; once, however often it is asked."""
        pending: set[UUID] = session.info.setdefault(_PENDING, set())
        if not pending:

            async def send() -> None:
                await self._send(pending)

            session.after_commit(send)
        pending.add(conversation_id)

    async def _send(self, conversations: set[UUID]) -> None:
        # One statement and no transaction around it: readers wait for this.
        async with self._sending.connect() as connection:
            await connection.execute(_NOTIFY, {"channel": CHANNEL, "payloads": [str(one) for one in conversations]})

    @asynccontextmanager
    async def watching(self, conversation_id: UUID) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever the conversation changed."""
        signal = asyncio.Event()
        self._waiting.setdefault(conversation_id, set()).add(signal)
        try:
            yield signal
        finally:
            waiting = self._waiting.get(conversation_id, set())
            waiting.discard(signal)
            if not waiting:
                self._waiting.pop(conversation_id, None)

    async def listen(self) -> None:
        """Receive wake-ups until cancelled; a lost connection is opened again, and polling covers the time between."""
        while True:
            try:
                connection = await asyncpg.connect(self._url)
            except (OSError, asyncpg.PostgresError) as error:
                logger.warning("wake-ups cannot be received", error=type(error).__name__)
                await asyncio.sleep(self._retry)
                continue
            closed = asyncio.Event()
            connection.add_termination_listener(lambda _connection, closed=closed: closed.set())
            try:
                await connection.add_listener(CHANNEL, self._received)
                await closed.wait()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                logger.warning("wake-ups lost", error=type(error).__name__)
            finally:
                if not connection.is_closed():
                    await connection.close()
            await asyncio.sleep(self._retry)

    def _received(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        try:
            conversation_id = UUID(str(payload))
        except ValueError:
            return
        for signal in self._waiting.get(conversation_id, ()):
            signal.set()
