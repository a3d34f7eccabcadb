from __future__ import annotations

import asyncio

import pytest
from service_kit.bus import Topic, connected
from service_kit.bus.memory import MemoryBroker, MemoryBus
from service_kit.bus.port import BusUnavailableError


class _LateBus(MemoryBus):
    """A broker that answers the third time."""

    tries = 0

    async def start(self) -> None:
        self.tries += 1
        if self.tries < 3:
            raise BusUnavailableError("not yet")
        await super().start()


@pytest.mark.req("T-71")
async def test_a_broker_that_is_away_is_waited_for() -> None:
    bus = _LateBus(MemoryBroker())
    await connected(bus, [Topic("events")], retry_seconds=0.01)
    assert bus.tries == 3
    await bus.ping()
    await bus.stop()


async def test_the_wait_can_be_ended() -> None:
    bus = _LateBus(MemoryBroker())
    waiting = asyncio.create_task(connected(bus, [], retry_seconds=60))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
