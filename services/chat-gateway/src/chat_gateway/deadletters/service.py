"""Messages that were given up: shown, and sent again once their cause is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from remit_contracts.events import RUN_STEPS_TOPIC, dead_letter_topic
from service_kit.bus import EventBus, Message, ReceivedMessage
from service_kit.ids import uuid7

_OWN_HEADERS = frozenset({"dlq-reason", "dlq-attempts", "dlq-topic", "dlq-partition", "dlq-offset"})
IDLE_SECONDS = 2.0
JOIN_SECONDS = 20.0


@dataclass(frozen=True)
class DeadLetter:
    """One message, as an operator sees it: its identity and why it was given up, not its content."""

    partition: int
    offset: int
    key: str | None
    event_id: str | None
    event_type: str | None
    reason: str
    attempts: str
    size: int


def dead_letter_of(message: ReceivedMessage) -> DeadLetter:
    """Read a message of the dead-letter topic."""
    headers = dict(message.headers)
    return DeadLetter(
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        event_id=headers.get("ce_id"),
        event_type=headers.get("ce_type"),
        reason=headers.get("dlq-reason", ""),
        attempts=headers.get("dlq-attempts", ""),
        size=len(message.value or b""),
    )


def revived(message: ReceivedMessage) -> Message:
    """The message as it was before it was given up."""
    headers = dict(message.headers)
    kept = tuple((name, value) for name, value in message.headers if name not in _OWN_HEADERS)
    return Message(headers.get("dlq-topic", RUN_STEPS_TOPIC), message.key, message.value, kept)


async def list_dead_letters(bus: EventBus, idle: float = IDLE_SECONDS) -> list[DeadLetter]:
    """Everything in the dead-letter topic, also what was sent again before; reading changes nothing."""
    found: list[DeadLetter] = []

    async def see(message: ReceivedMessage) -> None:
        found.append(dead_letter_of(message))

    await _drain(bus, see, f"chat-gateway-dlq-list-{uuid7()}", idle)
    return found


async def replay_dead_letters(bus: EventBus, group: str, idle: float = IDLE_SECONDS) -> int:
    """Send what is new in the dead-letter topic to its own topic again; each message once.

    Args:
        bus: started.
        group: the consumer's group; its place in the dead letters is kept beside it.
        idle: seconds of silence after which the topic counts as read.
    """
    sent = 0

    async def send(message: ReceivedMessage) -> None:
        nonlocal sent
        await bus.publish(revived(message))
        sent += 1

    await _drain(bus, send, f"{group}-dlq-replay", idle)
    return sent


async def _drain(bus: EventBus, handler: Callable[[ReceivedMessage], Awaitable[None]], group: str, idle: float) -> None:
    """Read until nothing has come for a while."""
    subscription = bus.subscribe([dead_letter_topic(RUN_STEPS_TOPIC)], handler, group=group)
    running = asyncio.create_task(subscription.run())
    loop = asyncio.get_running_loop()
    started = quiet_since = loop.time()
    handled = 0
    try:
        while not running.done():
            await asyncio.sleep(idle / 10)
            now = loop.time()
            joined = bool(subscription.status.assignment)
            if subscription.status.handled != handled or (not joined and now - started < JOIN_SECONDS):
                handled, quiet_since = subscription.status.handled, now
            elif now - quiet_since >= idle:
                break
    finally:
        subscription.stop()
        await running
