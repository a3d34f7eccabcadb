"""The text form of server-sent events. Pure."""

from __future__ import annotations

import json
from typing import Any

from remit_contracts.conversations import ServerEvent

HEARTBEAT = b": still here\n\n"
MAX_EVENT_ID = 2**63 - 1


def frame(event: ServerEvent) -> bytes:
    """One event; its id is what a client resumes from."""
    data = json.dumps(event.data, separators=(",", ":"), ensure_ascii=True)
    return f"id: {event.id}\nevent: {event.type}\ndata: {data}\n\n".encode()


def unnumbered(kind: str, data: dict[str, Any]) -> bytes:
    """A frame without an id: it is not part of the log and nothing can be resumed from it."""
    return f"event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def retry_frame(milliseconds: int) -> bytes:
    """How long a client waits before it connects again."""
    return f"retry: {milliseconds}\n\n".encode()


def last_event_id(header: str | None) -> int | None:
    """The id a client resumes from; none without one, or where it was never an id of ours."""
    if header is None or not (header.isascii() and header.isdigit()) or len(header) > 19:
        return None
    value = int(header)
    return value if value <= MAX_EVENT_ID else None
