"""Ids of runs, calls, conversations, messages and events: UUIDv7, ordered by the time they were made."""

from __future__ import annotations

from uuid import UUID

import uuid_utils


def uuid7() -> UUID:
    """A new UUIDv7 as a standard library ``UUID``."""
    return UUID(int=uuid_utils.uuid7().int)
