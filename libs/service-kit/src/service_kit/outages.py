"""Errors that say the database is away, not that a request or our code is wrong (pure)."""

from __future__ import annotations

from typing import Final

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service_kit.problems import ProblemError

#: The server ended the connection, is starting, or takes no more of them.
SERVER_AWAY: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)
_STATES: Final = frozenset({"57P01", "57P02", "57P03", "53300"})


class DatabaseUnavailableError(ProblemError):
    """The database went away during the request. Who wrote asks what became of it: an answer was not possible."""

    code = "database_unavailable"
    status = 503
    title = "The database cannot be reached at the moment"
    detail_text = "Try again in a moment. Whether a write was done has to be looked up first."


def is_database_outage(error: BaseException) -> bool:
    """Is the database away? An error of one request, or a fault of ours, is none."""
    if isinstance(error, DBAPIError):
        state = str(getattr(error.orig, "sqlstate", None) or "")
        return bool(error.connection_invalidated) or state[:2] == "08" or state in _STATES
    if isinstance(error, asyncpg.InterfaceError):
        # The driver has one class for a connection that is closed and for a wrong use of one.
        return "closed" in str(error)
    return isinstance(error, (*SERVER_AWAY, PoolTimeoutError, ConnectionError))
