"""What is sent without waiting for each acknowledgement: a later event never arrives ahead of one that failed."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError
from remit_harness.servers import BrokerServer
from service_kit.bus import Message, ReceivedMessage, Topic, kafka_producer
from service_kit.bus.kafka import KafkaBus
from service_kit.bus.port import PipeliningBus, PublishError
from service_kit.bus.subscription import with_timing
from service_kit.cloudevents import from_message
from service_kit.ids import uuid7
from service_kit.outbox import Outbox, OutboxEvent, OutboxRelay, RelaySettings

Until = Callable[[Callable[[], bool | Awaitable[bool]]], Awaitable[None]]
Send = Callable[[], Awaitable[asyncio.Future[Any]]]
STREAMS, EVENTS = 3, 60


class FaultyProducer(AIOKafkaProducer):  # type: ignore[misc] # aiokafka has no types
    """Loses part of what it is given, or only the acknowledgement, as a producer does whose buffer outlives an outage.

    Attributes:
        faults: probability of each of the two.
        lost: how often it happened.
        made: producers so far.
    """

    faults: float = 0.0
    lost = 0
    made = 0

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        FaultyProducer.made += 1

    async def _perhaps(self, send: Send) -> asyncio.Future[Any]:
        drawn = random.random()  # noqa: S311 - chance, not secrecy
        if drawn >= 2 * FaultyProducer.faults:
            return await send()
        FaultyProducer.lost += 1
        if drawn < FaultyProducer.faults:
            await (await send())
        failed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        failed.set_exception(KafkaTimeoutError())
        return failed

    async def send(self, *args: Any, **options: Any) -> asyncio.Future[Any]:
        return await self._perhaps(lambda: super(FaultyProducer, self).send(*args, **options))

    async def send_batch(self, *args: Any, **options: Any) -> asyncio.Future[Any]:
        return await self._perhaps(lambda: super(FaultyProducer, self).send_batch(*args, **options))


@pytest.fixture
def faulty(broker: BrokerServer, monkeypatch: pytest.MonkeyPatch) -> KafkaBus:
    """A bus whose producers are faulty once they are told to be."""
    if broker.kind != "kafka":
        pytest.skip("needs a broker with idempotent producers (Apache Kafka)")
    for name in ("faults", "lost", "made"):
        monkeypatch.setattr(FaultyProducer, name, 0)
    monkeypatch.setattr(kafka_producer, "AIOKafkaProducer", FaultyProducer)
    return KafkaBus(broker.address, client_id="kit", producer="idempotent")


async def read_all(bus: KafkaBus, topic: str, enough: Callable[[], bool], found: list[ReceivedMessage]) -> None:
    """Everything on the topic, repeats included, until it is enough."""

    async def take(message: ReceivedMessage) -> None:
        found.append(message)

    subscription = with_timing(bus.subscribe([topic], take, group=uuid7().hex), poll=0.1)
    reading = asyncio.create_task(subscription.run())
    try:
        async with asyncio.timeout(60):
            while not enough():  # noqa: ASYNC110 - the reader sets no event
                await asyncio.sleep(0.02)
    finally:
        subscription.stop()
        await reading


def first_seen(numbers: Sequence[int]) -> list[int]:
    """Each number once, where it came first: what a reader that remembers nothing learns, in that order."""
    return list(dict.fromkeys(numbers))


@pytest.mark.req("T-70", "T-71")
async def test_no_event_arrives_ahead_of_one_that_failed(url: str, faulty: KafkaBus, until: Until) -> None:
    topic = f"kit.{uuid7().hex[-12:]}"
    await faulty.start()
    await faulty.ensure_topics([Topic(topic, partitions=2)])
    connection = await asyncpg.connect(url)
    try:
        for number in range(EVENTS):
            async with connection.transaction():
                # Streams of one key and of their own; every third event fills a good part of a batch.
                await Outbox().append_raw(
                    connection,
                    [
                        OutboxEvent(
                            topic=topic, stream=f"s{one}", key="shared" if one else None, type="t", source="/kit",
                            data={"text": "x" * (60_000 if number % 3 == 0 else 10)},
                        )
                        for one in range(STREAMS)
                    ],
                )  # fmt: skip
        FaultyProducer.faults = 0.2
        settings = RelaySettings(poll_interval=0.02, batch_size=1000, stream_batch=20, backoff=0.001, max_backoff=0.01)
        relay = asyncio.create_task(OutboxRelay(url, service="kit", bus=faulty, settings=settings).run())
        try:
            await until(lambda: _nothing_waits(connection))
        finally:
            relay.cancel()
            await asyncio.gather(relay, return_exceptions=True)
    finally:
        await connection.close()
    found: list[ReceivedMessage] = []
    received: dict[str, list[int]] = defaultdict(list)
    try:
        await read_all(faulty, topic, lambda: len({_place(one) for one in found}) == STREAMS * EVENTS, found)
    finally:
        await faulty.stop()
    for message in found:
        stream, sequence = _place(message)
        received[stream].append(sequence)
    assert FaultyProducer.lost > 5, "the control: something was lost"
    assert len(found) > STREAMS * EVENTS, "the control: something came twice"
    for numbers in received.values():
        assert first_seen(numbers) == list(range(1, EVENTS + 1))


async def test_after_a_failure_another_producer_goes_on(faulty: KafkaBus, until: Until) -> None:
    topic = f"kit.{uuid7().hex[-12:]}"
    await faulty.start()
    found: list[ReceivedMessage] = []
    try:
        await faulty.ensure_topics([Topic(topic, partitions=1)])
        assert isinstance(faulty, PipeliningBus)
        messages = [Message(topic, "k", str(number).encode()) for number in range(10)]
        assert await faulty.publish_all(messages[:5]) == (5, None)
        FaultyProducer.faults = 0.5
        arrived, error = await faulty.publish_all(messages[5:])
        assert arrived == 0
        assert isinstance(error, PublishError)
        FaultyProducer.faults = 0.0
        assert await faulty.publish_all(messages[5:]) == (5, None)
        assert FaultyProducer.made == 2
        await read_all(faulty, topic, lambda: any(one.value == b"9" for one in found), found)
    finally:
        await faulty.stop()
    assert first_seen([int(one.value) for one in found]) == list(range(10))


def _place(message: ReceivedMessage) -> tuple[str, int]:
    event = from_message(message)
    assert event.stream is not None
    assert event.sequence is not None
    return event.stream, event.sequence


async def _nothing_waits(connection: Any) -> bool:
    return bool(await connection.fetchval("SELECT count(*) = 0 FROM outbox WHERE published_at IS NULL"))
