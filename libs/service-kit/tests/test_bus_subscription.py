"""What the consumer's loop does when a consumer misbehaves; with consumers that misbehave on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from service_kit.bus import (
    BusUnavailableError,
    Message,
    PoisonMessageError,
    ReceivedMessage,
    RetryPolicy,
    Subscription,
)
from service_kit.bus.memory import MemoryBroker, MemoryBus, MemoryPoller
from service_kit.bus.policy import Timing
from service_kit.bus.subscription import MAX_TOGETHER

Until = Callable[[Callable[[], bool | Awaitable[bool]]], Awaitable[None]]
TIMING = Timing(poll=0.02, stop=0.1, stuck=0.1, reopen=0.01)


class Deaf(MemoryPoller):
    """Never returns anything, like a consumer that lost its broker and does not know."""

    async def poll(self, timeout: float) -> list[ReceivedMessage]:  # noqa: ASYNC109
        self._place_positions()
        await asyncio.sleep(timeout)
        return []


class Hanging(MemoryPoller):
    """Does not come back at all."""

    async def poll(self, timeout: float) -> list[ReceivedMessage]:  # noqa: ASYNC109
        await asyncio.Event().wait()
        return []


@pytest.mark.parametrize("kind", [Deaf, Hanging])
async def test_a_stuck_consumer_is_replaced(kind: type[MemoryPoller], until: Until) -> None:
    bus = MemoryBus()
    await bus.publish(Message("t", "k", b"a"))
    opened: list[MemoryPoller] = []
    received: list[ReceivedMessage] = []

    async def open_poller() -> MemoryPoller:
        opened.append((kind if not opened else MemoryPoller)(bus.broker, ("t",), "g"))
        return opened[-1]

    async def handle(message: ReceivedMessage) -> None:
        received.append(message)

    subscription = Subscription(open_poller, handle, bus.publish, commits=True, timing=TIMING)
    task = asyncio.create_task(subscription.run())
    await until(lambda: len(received) == 1)
    subscription.stop()
    await task
    assert subscription.status.restarts == 1
    assert len(opened) == 2


async def test_a_quiet_topic_and_a_slow_handler_are_not_stuck(until: Until) -> None:
    bus = MemoryBus()
    received: list[ReceivedMessage] = []

    async def handle(message: ReceivedMessage) -> None:
        await asyncio.sleep(0.4)
        received.append(message)

    async def open_poller() -> MemoryPoller:
        return MemoryPoller(bus.broker, ("t",), "g")

    subscription = Subscription(open_poller, handle, bus.publish, commits=True, timing=TIMING)
    task = asyncio.create_task(subscription.run())
    await asyncio.sleep(0.3)
    await bus.publish(Message("t", "k", b"a"))
    await bus.publish(Message("t", "k", b"b"))
    await until(lambda: len(received) == 2)
    subscription.stop()
    await task
    assert subscription.status.restarts == 0


async def test_a_broker_that_is_away_is_waited_for(until: Until) -> None:
    broker = MemoryBroker()
    bus = MemoryBus(broker)
    received: list[ReceivedMessage] = []
    joins: list[int] = []

    async def handle(message: ReceivedMessage) -> None:
        received.append(message)

    async def joined() -> None:
        joins.append(1)

    async def open_poller() -> MemoryPoller:
        broker.check()
        return MemoryPoller(broker, ("t",), "g")

    subscription = Subscription(
        open_poller, handle, bus.publish, commits=True, on_join=joined, timing=TIMING, retry=RetryPolicy()
    )
    broker.available = False
    task = asyncio.create_task(subscription.run())
    await asyncio.sleep(0.05)
    broker.available = True
    await until(lambda: len(joins) == 1)
    await bus.publish(Message("t", "k", b"a"))
    await until(lambda: len(received) == 1)
    broker.available = False
    broker.wake()
    await until(lambda: subscription.status.restarts == 1)
    # It comes back without its messages, but with the group's old positions.
    broker.forget()
    broker.available = True
    await until(lambda: len(joins) == 2)
    await bus.publish(Message("t", "k", b"b"))
    await until(lambda: len(received) == 2)
    subscription.stop()
    await task
    assert received[1].offset == received[0].offset == 0


class Grouping:
    """Takes messages together; one that is bad fails the group it is in, and then alone."""

    def __init__(self, bad: bytes | None = None) -> None:
        self.bad = bad
        self.groups: list[list[bytes]] = []
        self.alone: list[bytes] = []

    async def __call__(self, message: ReceivedMessage) -> None:
        if message.value == self.bad:
            raise PoisonMessageError("bad")
        self.alone.append(message.value)

    async def many(self, messages: Sequence[ReceivedMessage]) -> None:
        if any(message.value == self.bad for message in messages):
            raise ValueError("one of them is bad")
        self.groups.append([message.value for message in messages])


@pytest.mark.parametrize("bad", [None, b"m3"])
async def test_messages_that_arrive_together_are_handled_together_unless_one_of_them_is_bad(
    until: Until, bad: bytes | None
) -> None:
    bus = MemoryBus()
    sent = [f"m{number}".encode() for number in range(MAX_TOGETHER + 3)]
    for value in sent:
        await bus.publish(Message("t", "k", value))
    handler = Grouping(bad)

    async def open_poller() -> MemoryPoller:
        return MemoryPoller(bus.broker, ("t",), "g")

    subscription = Subscription(open_poller, handler, bus.publish, commits=True, timing=TIMING)
    task = asyncio.create_task(subscription.run())
    await until(lambda: subscription.status.handled + subscription.status.dead == len(sent))
    subscription.stop()
    await task
    if bad is None:
        assert handler.groups == [sent[:MAX_TOGETHER], sent[MAX_TOGETHER:]]
        assert handler.alone == []
    else:
        assert handler.alone == [value for value in sent[:MAX_TOGETHER] if value != bad]
        assert handler.groups == [sent[MAX_TOGETHER:]]
        assert subscription.status.dead == 1
    assert sum(offset for (_, place), offset in bus.broker.committed.items() if place[0] == "t") == len(sent)


async def test_an_unreachable_dead_letter_topic_keeps_the_message(until: Until) -> None:
    bus = MemoryBus()
    await bus.publish(Message("t", "k", b"bad"))
    refused = 0

    async def publish(message: Message) -> None:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise BusUnavailableError("no")
        await bus.publish(message)

    async def handle(_message: ReceivedMessage) -> None:
        raise ValueError("bad")

    async def open_poller() -> MemoryPoller:
        return MemoryPoller(bus.broker, ("t",), "g")

    policy = RetryPolicy(max_attempts=1, backoff=0.001, max_backoff=0.002)
    subscription = Subscription(open_poller, handle, publish, commits=True, timing=TIMING, retry=policy)
    task = asyncio.create_task(subscription.run())
    await until(lambda: subscription.status.dead == 1)
    subscription.stop()
    await task
    assert [m.value for log in bus.broker.logs.values() for m in log if m.topic == "t.dlq"] == [b"bad"]
