"""The outbox over a real broker, with its database connection cut again and again."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

import asyncpg
import pytest
from remit_harness.servers import BrokerServer
from service_kit.bus import ReceivedMessage, Topic, create_bus
from service_kit.bus.subscription import with_timing
from service_kit.cloudevents import from_message
from service_kit.ids import uuid7
from service_kit.outbox import Outbox, OutboxEvent, OutboxRelay, RelaySettings
from service_kit.settings import ProducerMode

Until = Callable[[Callable[[], bool | Awaitable[bool]]], Awaitable[None]]
FAST = RelaySettings(poll_interval=0.02, batch_size=10, stream_batch=5)
STREAMS, EVENTS, CUTS = 4, 40, 5


@pytest.mark.req("T-70", "T-71")
@pytest.mark.chaos
@pytest.mark.parametrize("mode", ["plain", "idempotent", "transactional"])
async def test_cut_connections_lose_nothing_and_keep_the_order(
    url: str, broker: BrokerServer, until: Until, mode: ProducerMode
) -> None:
    if mode != "plain" and broker.kind != "kafka":
        pytest.skip("needs a broker with idempotent producers (Apache Kafka)")
    topic, identity = f"kit.{uuid7().hex[-12:]}", f"kit-{uuid7().hex[-12:]}"
    bus = create_bus(f"kafka://{broker.address}", client_id="kit", producer=mode, transactional_id=identity)
    received: dict[str, list[int]] = defaultdict(list)

    async def handle(message: ReceivedMessage) -> None:
        event = from_message(message)
        assert event.stream is not None
        assert event.sequence is not None
        received[event.stream].append(event.sequence)

    await bus.start()
    await bus.ensure_topics([Topic(topic, partitions=2)])
    relay = asyncio.create_task(OutboxRelay(url, service="kit", bus=bus, settings=FAST).run())
    subscription = with_timing(bus.subscribe([topic], handle, group=identity), poll=0.1)
    reading = asyncio.create_task(subscription.run())
    connection = await asyncpg.connect(url)
    try:
        cut = 0
        for number in range(EVENTS):
            async with connection.transaction():
                events = [
                    OutboxEvent(topic=topic, stream=f"s{one}", key="k", type="t", source="/kit", data={"n": number})
                    for one in range(STREAMS)
                ]
                await Outbox().append_raw(connection, events)
            if number % (EVENTS // CUTS) == EVENTS // CUTS - 1:
                cut += await connection.fetchval(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE application_name = 'kit-relay' AND datname = current_database()"
                )
            await asyncio.sleep(0.005)
        await until(lambda: sorted({n for n in received["s0"]}) == list(range(1, EVENTS + 1)))
        await until(lambda: all(max(received[f"s{one}"], default=0) == EVENTS for one in range(STREAMS)))
        assert cut > 0, "the control: there was something to cut"
    finally:
        await connection.close()
        relay.cancel()
        subscription.stop()
        await asyncio.gather(relay, reading, return_exceptions=True)
        await bus.stop()
    for numbers in received.values():
        kept: list[int] = []
        for number in numbers:
            if not kept or number > kept[-1]:
                kept.append(number)
        assert kept == list(range(1, EVENTS + 1))
