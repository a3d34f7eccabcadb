"""Readiness of a broker, asked with a real client: it answers, and knows who leads a topic."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

_METADATA = 3
_METADATA_VERSION = 1
_FIND_COORDINATOR = 10
_CLIENT = b"remit-ready"


def wait_until_ready(address: str, seconds: float, alive: Callable[[], bool]) -> None:
    """Block until the broker at ``host:port`` lists itself in its metadata and has a coordinator for groups.

    Raises:
        TimeoutError: it ended, or did not answer within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not alive():
            raise TimeoutError("the broker ended")
        if is_ready(address):
            return
        time.sleep(0.1)
    raise TimeoutError("the broker did not answer in time")


def is_ready(address: str) -> bool:
    """The broker answers a metadata request with at least one broker, and names a group coordinator."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2) as connection:
            connection.settimeout(5)
            brokers = _ask(connection, _METADATA, _METADATA_VERSION, struct.pack(">i", 0))
            if struct.unpack_from(">i", brokers)[0] < 1:
                return False
            group = b"remit-ready"
            answer = _ask(connection, _FIND_COORDINATOR, 0, struct.pack(">h", len(group)) + group)
            return bool(struct.unpack_from(">h", answer)[0] == 0)
    except (OSError, struct.error):
        return False


def _ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """One request of Kafka's protocol (header version 1); the answer without its correlation id."""
    header = struct.pack(">hhih", key, version, 7, len(_CLIENT)) + _CLIENT
    request = header + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    size = struct.unpack(">i", _exactly(connection, 4))[0]
    return _exactly(connection, size)[4:]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    return data
