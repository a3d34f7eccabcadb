"""Connections that are gone: the server has undone whatever was not committed."""

from __future__ import annotations

from typing import Any, Final

import asyncpg
from service_kit.outages import SERVER_AWAY

# What a connection that is gone looks like. The driver's own confusion is how it shows while the server's last message
# was read and the end of the connection was not.
LOST: Final = (*SERVER_AWAY, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


def connection_gone(connection: Any) -> bool:
    """Is the connection closed, or taken back by its pool because it broke?"""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True
