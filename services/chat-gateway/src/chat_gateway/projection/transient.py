"""Which errors pass by themselves."""

from __future__ import annotations

import asyncpg
from service_kit.client import RemoteProblem, RemoteUnavailable
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

_PASSING_STATUS = frozenset({401, 403, 408, 425, 429})


def is_transient(error: Exception) -> bool:
    """Whether an error says nothing about the message: a service or the database that is away."""
    if isinstance(error, RemoteUnavailable | ConnectionError | PoolTimeoutError | TimeoutError):
        return True
    if isinstance(error, RemoteProblem):
        return error.status >= 500 or error.status in _PASSING_STATUS
    if isinstance(error, InterfaceError | OperationalError):
        return True
    if isinstance(error, DBAPIError):
        state = getattr(error.orig, "sqlstate", None) or ""
        # Connection, resources, operator intervention, and locks or serialization between two writers.
        return error.connection_invalidated or state[:2] in {"08", "53", "57", "40"} or state == "55P03"
    return isinstance(error, asyncpg.InterfaceError | asyncpg.PostgresConnectionError)
