"""A raw asyncpg pool for paths where each round trip counts."""

from __future__ import annotations

from typing import Any

import asyncpg

from service_kit.database import server_settings
from service_kit.statements import StatementCounter

Pool = asyncpg.Pool
Connection = asyncpg.Connection


async def _cheap_reset(connection: Any) -> None:
    """Leave nothing behind without asking the server, unless a transaction is open.

    asyncpg's own reset costs a round trip per release to undo session locks, LISTEN, cursors and SET. Users of this
    pool take transaction-level locks and SET LOCAL only, which end with the transaction.
    """
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")


async def create_pool(
    url: str,
    *,
    application_name: str,
    min_size: int = 1,
    max_size: int = 10,
    connect_timeout: float = 10.0,
    command_timeout: float | None = None,
    statement_timeout: float | None = None,
    lock_timeout: float | None = None,
    idle_in_transaction_timeout: float | None = None,
    counter: StatementCounter | None = None,
) -> asyncpg.Pool[asyncpg.Record]:
    """A started pool; close it with ``await pool.close()``.

    Inside, only transaction-level advisory locks and ``SET LOCAL`` may be used (see :func:`_cheap_reset`).

    Args:
        url: libpq URL, with or without the driver name.
        application_name: seen in ``pg_stat_activity``.
        min_size: connections opened at once.
        max_size: most connections.
        connect_timeout: seconds.
        command_timeout: seconds after which the client gives a statement up.
        statement_timeout: seconds after which the server cancels a statement.
        lock_timeout: seconds a statement waits for a lock.
        idle_in_transaction_timeout: seconds after which the server ends a transaction nobody works in.
        counter: counts every statement (tests).
    """
    settings = server_settings(application_name, statement_timeout, lock_timeout)
    if idle_in_transaction_timeout is not None:
        settings["idle_in_transaction_session_timeout"] = f"{round(idle_in_transaction_timeout * 1000)}ms"

    async def prepare(connection: Any) -> None:
        if counter is not None:
            counter.attach(connection)

    return await asyncpg.create_pool(
        plain_url(url),
        min_size=min_size,
        max_size=max_size,
        timeout=connect_timeout,
        command_timeout=command_timeout,
        server_settings=settings,
        init=prepare,
        reset=_cheap_reset,
    )


def plain_url(url: str) -> str:
    """The URL without SQLAlchemy's driver name, as libpq and asyncpg read it."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme.partition('+')[0]}{separator}{rest}"
