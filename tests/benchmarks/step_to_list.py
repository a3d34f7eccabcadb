"""From the committed step to the visible row of the change list, against the broker's bare round trip."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
from figures import Figure, median_ms
from remit_harness.scenes import Scene, scene
from remit_harness.servers import BrokerServer
from remit_harness.stacks import TestStack
from remit_local.services import GATEWAY
from service_kit.bus.factory import create_bus
from service_kit.bus.port import Message, ReceivedMessage, Topic

GOAL = 3.0


def step_to_list(stack: TestStack, broker: BrokerServer, rounds: int) -> Figure:
    """The gateway's list is asked for again and again until the row is there."""
    element = stack.elements("Business")[1]
    seen: list[float] = []
    with scene(stack) as editor:
        for number in range(rounds):
            pending = editor.card(f"Set the header of element {element} to Seen {number}")
            seen.append(_until_listed(editor, pending))
            editor.settle(pending["turnDigest"])
    bare = asyncio.run(_round_trips(stack, broker, rounds * 5))
    return Figure("step_to_list", median_ms(seen), median_ms(bare), GOAL, "produce, consume and one insert")


def _until_listed(editor: Scene, pending: dict[str, Any]) -> float:
    """Seconds between the step's time and the first answer that lists its call."""
    run = str(pending["run"])
    editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        rows = editor.changes()["rows"]
        now = datetime.now(UTC)
        for call in (call for row in rows for call in row["calls"] if call["run"] == run):
            return (now - datetime.fromisoformat(call["at"])).total_seconds()
    raise TimeoutError("the change list did not come")


async def _round_trips(stack: TestStack, broker: BrokerServer, rounds: int) -> list[float]:
    topic = f"remit.bench.{uuid4().hex}"
    bus = create_bus(broker.url, client_id="bench", producer="idempotent" if broker.transactional else "plain")
    await bus.start()
    await bus.ensure_topics([Topic(topic, partitions=1)])
    connection = await asyncpg.connect(stack.database_urls[GATEWAY])
    await connection.execute("CREATE TABLE bench_row (n int, value text)")
    arrived: asyncio.Queue[float] = asyncio.Queue()

    async def insert(message: ReceivedMessage) -> None:
        await connection.execute("INSERT INTO bench_row VALUES (1, $1)", (message.value or b"").decode())
        await arrived.put(time.perf_counter())

    subscription = bus.subscribe([topic], insert, group=f"bench-{uuid4().hex}")
    running = asyncio.create_task(subscription.run())
    durations: list[float] = []
    try:
        for number in range(rounds):
            begin = time.perf_counter()
            await bus.publish(Message(topic, "key", f"row {number}".encode()))
            durations.append(await asyncio.wait_for(arrived.get(), 60) - begin)
    finally:
        subscription.stop()
        await running
        await connection.close()
        await bus.stop()
    return durations
