"""Both brokers: start, restart on the same address, and what each keeps."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from remit_local.brokers.base import Broker, BrokerError
from remit_local.brokers.kafka import KafkaBroker, kafka_possible
from remit_local.brokers.ready import is_ready
from remit_local.brokers.tansu import TansuBroker
from service_kit.bus.factory import create_bus
from service_kit.bus.port import Message, ReceivedMessage

KINDS = [
    TansuBroker,
    pytest.param(
        KafkaBroker,
        marks=pytest.mark.skipif(kafka_possible() is not None, reason=f"Apache Kafka: {kafka_possible()}"),
    ),
]


@pytest.fixture(params=KINDS)
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    broker: Broker = request.param(tmp_path / "broker", owner=os.getpid())
    broker.start()
    yield broker
    broker.stop()


async def _publish(broker: Broker, topic: str, text: str) -> None:
    bus = create_bus(broker.url, client_id="test", producer="idempotent" if broker.transactional else "plain")
    await bus.start()
    await bus.publish(Message(topic, "key", text.encode()))
    await bus.stop()


async def _read(broker: Broker, topic: str, count: int) -> list[str]:
    bus = create_bus(broker.url, client_id="test", producer="plain")
    await bus.start()
    found: list[str] = []
    enough = asyncio.Event()

    async def keep(message: ReceivedMessage) -> None:
        found.append((message.value or b"").decode())
        if len(found) >= count:
            enough.set()

    subscription = bus.subscribe([topic], keep, group=f"test-{uuid4().hex}")
    running = asyncio.create_task(subscription.run())
    async with asyncio.timeout(60):
        await enough.wait()
    subscription.stop()
    await running
    await bus.stop()
    return found


async def test_a_killed_broker_comes_back_and_a_lasting_one_remembers(local: Broker) -> None:
    topic = f"remit.test.{uuid4().hex}"
    address = local.address
    await _publish(local, topic, "one")
    assert await _read(local, topic, 1) == ["one"]
    local.kill()
    assert not local.running
    assert not is_ready(address)
    local.restart()
    assert local.address == address
    await _publish(local, topic, "two")
    expected = ["one", "two"] if local.lasting else ["two"]
    assert await _read(local, topic, len(expected)) == expected


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(BrokerError, match="is taken"):
            TansuBroker(tmp_path, port=other.getsockname()[1], owner=os.getpid()).start()
