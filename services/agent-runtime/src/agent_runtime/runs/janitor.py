"""The purge on its own clock: every worker brings it, one of them leads (T-55)."""

from __future__ import annotations

import asyncio
import zlib

import asyncpg
from service_kit.database import server_settings
from service_kit.logging import get_logger
from service_kit.pool import plain_url
from sqlalchemy.exc import SQLAlchemyError

from agent_runtime.runs.journal import RunJournal
from agent_runtime.runs.retention import Purged, purge_old
from agent_runtime.settings import RuntimeSettings

logger = get_logger(__name__)
LOCK_KEY = zlib.crc32(b"remit-purge:agent-runtime")
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


class Janitor:
    """Removes what is old at the interval of the settings; an interval of 0 leaves it to the command.

    The leader holds an advisory lock on a connection of its own for as long as a purge takes and until the next one,
    so of all workers one works; when it goes away its connection ends and another one takes over at its next look.

    Attributes:
        leading: this process holds the lock.
    """

    def __init__(self, journal: RunJournal, settings: RuntimeSettings) -> None:
        self._journal = journal
        self._settings = settings
        self.leading = False

    async def run(self) -> None:
        """Work until cancelled; a database that is away is waited for."""
        interval = self._settings.purge_interval
        if interval <= 0:
            return
        while True:
            try:
                await self._lead(interval)
            except _AWAY as error:
                logger.warning("purge lost the database", error=type(error).__name__)
            except Exception as error:
                # A purge that ended silently would let the database grow: logged, and tried again.
                logger.error("purge failed", exc_info=error)
            await asyncio.sleep(interval)

    async def _lead(self, interval: float) -> None:
        """Purge again and again while the lock is ours; returns where another worker has it."""
        connection = await asyncpg.connect(
            plain_url(self._settings.database_url.get_secret_value()),
            timeout=self._settings.database_connect_timeout,
            server_settings=server_settings("agent-runtime-purge"),
        )
        try:
            while await self._ours(connection):
                self.leading = True
                _report(await purge_old(self._journal, self._settings))
                await asyncio.sleep(interval)
        finally:
            self.leading = False
            # Not close(): it may wait for a server that is gone, and the lock ends with the socket either way.
            connection.terminate()

    async def _ours(self, connection: asyncpg.Connection[asyncpg.Record]) -> bool:
        """Take the lock, or make sure that the connection that holds it is still there."""
        statement = "SELECT true" if self.leading else "SELECT pg_try_advisory_lock($1)"
        values = () if self.leading else (LOCK_KEY,)
        return bool(await connection.fetchval(statement, *values))


def _report(removed: Purged) -> None:
    if any((removed.cancelled, removed.runs, removed.governance, removed.keys)):
        logger.info(
            "old rows removed",
            cancelled=removed.cancelled,
            runs=removed.runs,
            governance=removed.governance,
            keys=removed.keys,
        )
