"""The transactional outbox: events are written with what they tell of, and a relay publishes them in order."""

from __future__ import annotations

from service_kit.outbox.relay import OutboxRelay, RelaySettings
from service_kit.outbox.store import EventTooLargeError, Outbox, OutboxEvent, StoredEvent, outbox_ddl, outbox_grants
from service_kit.outbox.wake import OutboxWaker

__all__ = [
    "EventTooLargeError",
    "Outbox",
    "OutboxEvent",
    "OutboxRelay",
    "OutboxWaker",
    "RelaySettings",
    "StoredEvent",
    "outbox_ddl",
    "outbox_grants",
]
