"""Connections of calls: taken from a pool with a limit, given back as they were."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
from service_kit.logging import get_logger

from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import TooManyCalls
from content_store.records.lost import LOST, connection_gone

logger = get_logger(__name__)
Pool = Any  # of asyncpg, which is generic only for type checkers


async def acquire(pool: Pool, seconds: float) -> Any:
    """A connection of the pool.

    Raises:
        TooManyCalls: none became free in time.
    """
    try:
        return await pool.acquire(timeout=seconds)
    except TimeoutError as error:
        raise TooManyCalls(headers={"Retry-After": "1"}) from error


async def give_back(env: StoreEnvironment, pool: Pool, connection: Any) -> None:
    """Return a connection, whatever becomes of the request meanwhile.

    What a hook of an installation may have left on its session (a setting, a lock, a LISTEN) must not meet the next
    call. That costs a statement, so it is done only where there are such hooks.
    """
    await asyncio.shield(_give_back(env, pool, connection))


async def _give_back(env: StoreEnvironment, pool: Pool, connection: Any) -> None:
    try:
        if env.has_guests and not connection_gone(connection):
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
            await connection.reset()
    except (*LOST, asyncpg.PostgresError) as error:
        logger.warning("a connection could not be reset and is cut", exc_info=error)
        if not connection_gone(connection):
            connection.terminate()
    finally:
        await pool.release(connection)
