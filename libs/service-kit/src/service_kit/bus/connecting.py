"""Waiting for a broker that is away, so that a service starts without it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from service_kit.bus.port import BusError, EventBus, Topic
from service_kit.logging import get_logger

logger = get_logger(__name__)
RETRY_SECONDS = 2.0


async def connected(bus: EventBus, topics: Sequence[Topic], *, retry_seconds: float = RETRY_SECONDS) -> None:
    """Start the bus and make the topics, however long the broker is away; the outbox keeps what cannot be sent."""
    while True:
        try:
            await bus.start()
            await bus.ensure_topics(topics)
        except BusError as error:
            logger.warning("broker away, events wait in the outbox", error=type(error).__name__)
            await asyncio.sleep(retry_seconds)
        else:
            return
