"""From the committed step to the change list an editor's program has read, against the broker's bare round trip.

As a browser does: the conversation's stream says that the list changed, then the list is asked for once. The time
begins with the outbox row, the last statement before the step's commit, and ends with the list that has the call, so
the list's own reading counts too, which the limit has no part for.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from event_stream import EventStream
from figures import Figure, median_ms
from remit_contracts.events import run_step_type
from remit_contracts.steps import StepKind
from remit_harness.scenes import Scene, scene
from remit_harness.servers import BrokerServer
from remit_harness.stacks import TestStack
from remit_local.services import GATEWAY, RUNTIME
from service_kit.bus.factory import create_bus
from service_kit.bus.port import Message, ReceivedMessage, Topic

GOAL = 3.0
WAIT_SECONDS = 30.0
_WRITTEN = """
SELECT id, created_at, published_at FROM outbox
WHERE stream = $1 AND type = $2 AND published_at IS NOT NULL
"""
_TAKEN = "SELECT received_at FROM inbox WHERE event_id = $1"


@dataclass(frozen=True)
class Way:
    """One change's way, in seconds.

    Attributes:
        broker: until the relay had it acknowledged and marked.
        consumer: until the gateway's transaction began to store it.
        stream: until the reader was told.
        answer: until the reader had the list.
    """

    broker: float
    consumer: float
    stream: float
    answer: float


def step_to_list(stack: TestStack, broker: BrokerServer, rounds: int) -> Figure:
    """The figure; its parts are printed."""
    element = stack.elements("Business")[1]
    ways: list[Way] = []
    with scene(stack) as editor, EventStream(editor.chat, editor.conversation) as stream:
        for number in range(rounds):
            pending = editor.card(f"Set the header of element {element} to Seen {number}")
            told, read = _until_listed(editor, stream, pending)
            editor.settle(pending["turnDigest"])
            way = _way(stack, UUID(str(pending["run"])), told, read)
            # None where the gateway had it from the runtime before the broker brought it.
            ways += [way] if way is not None else []
    _print_parts(ways)
    bare = asyncio.run(_round_trips(stack, broker, rounds * 5))
    total = median_ms(sum(astuple(way)) for way in ways)
    return Figure("step_to_list", total, median_ms(bare), GOAL, "produce, consume and one insert")


def _until_listed(editor: Scene, stream: EventStream, pending: dict[str, Any]) -> tuple[datetime, datetime]:
    """When the stream told of the run's change, and when the list with it had been read."""
    run = str(pending["run"])
    stream.forget()
    editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        told = stream.wait_for("changes")
        rows = editor.changes()["rows"]
        if any(call["run"] == run for row in rows for call in row["calls"]):
            return told, datetime.now(UTC)
    raise TimeoutError("the change list did not come")


def _way(stack: TestStack, run: UUID, told: datetime, read: datetime) -> Way | None:
    written = stack.rows(RUNTIME, _WRITTEN, str(run), run_step_type(StepKind.TOOL_CHANGES))
    taken = stack.rows(GATEWAY, _TAKEN, written[0]["id"]) if written else []
    if not taken:
        return None
    created, published, received = written[0]["created_at"], written[0]["published_at"], taken[0]["received_at"]
    # The consumer may be quicker than the relay's mark.
    sent = min(published, received)
    return Way(
        broker=(sent - created).total_seconds(),
        consumer=(received - sent).total_seconds(),
        stream=(told - received).total_seconds(),
        answer=(read - told).total_seconds(),
    )


def _print_parts(ways: list[Way]) -> None:
    names = ("to the broker", "to the consumer", "stored and told", "list read")
    parts = zip(names, zip(*(astuple(way) for way in ways), strict=True), strict=True)
    print("step_to_list, ms: " + ", ".join(f"{name} {median(values) * 1000:.1f}" for name, values in parts))


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
