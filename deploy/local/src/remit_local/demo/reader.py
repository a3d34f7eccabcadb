"""An independent consumer: it knows the broker and the contracts, and nothing of the services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from remit_contracts.events import RUN_STEPS_TOPIC
from service_kit.bus.factory import create_bus
from service_kit.bus.port import ReceivedMessage


@dataclass(frozen=True)
class ReadEvent:
    """An event with its headers and where it lay."""

    headers: dict[str, str]
    payload: dict[str, Any]
    place: str

    @property
    def kind(self) -> str:
        """Kind of the step it carries."""
        return str(self.payload.get("step", {}).get("kind", ""))

    @property
    def run(self) -> str:
        """The run it belongs to."""
        return str(self.payload.get("runId", ""))


def read_events(
    broker_url: str, enough: Callable[[list[ReadEvent]], bool], seconds: float = 20.0, topic: str = RUN_STEPS_TOPIC
) -> list[ReadEvent]:
    """Read a topic from its beginning until ``enough`` is satisfied or the time is over."""
    return asyncio.run(_read(broker_url, enough, seconds, topic))


async def _read(
    broker_url: str, enough: Callable[[list[ReadEvent]], bool], seconds: float, topic: str
) -> list[ReadEvent]:
    found: list[ReadEvent] = []
    bus = create_bus(broker_url, client_id="demo-reader", producer="plain")
    await bus.start()
    done = asyncio.Event()

    async def keep(message: ReceivedMessage) -> None:
        place = f"{message.topic}, partition {message.partition}, offset {message.offset}, key {message.key}"
        found.append(ReadEvent(dict(message.headers), json.loads(message.value or b"{}"), place))
        if enough(found):
            done.set()

    # A group of its own: it takes nothing away from anybody and begins at the earliest message.
    subscription = bus.subscribe([topic], keep, group=f"demo-reader-{uuid4().hex[:12]}")
    running = asyncio.create_task(subscription.run())
    try:
        async with asyncio.timeout(seconds):
            await done.wait()
    except TimeoutError:
        return found
    finally:
        subscription.stop()
        await asyncio.wait([running], timeout=15)
        await bus.stop()
    return found
