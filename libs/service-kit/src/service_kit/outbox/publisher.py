"""Sends claimed rows: streams side by side, each in order and only up to its first failure."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from service_kit.bus.port import BusError, EventBus, Message, PipeliningBus, PublisherFencedError
from service_kit.cloudevents import to_message
from service_kit.outbox.queries import OutboxRow


@dataclass
class PublishOutcome:
    """What became of the rows.

    Attributes:
        done: acknowledged by the broker.
        failed: first failed row of each stream that stopped, with the reason.
    """

    done: list[OutboxRow] = field(default_factory=list)
    failed: list[tuple[OutboxRow, str]] = field(default_factory=list)


def by_stream(rows: Sequence[OutboxRow]) -> dict[str, list[OutboxRow]]:
    """Rows by stream, order kept."""
    streams: dict[str, list[OutboxRow]] = {}
    for row in rows:
        streams.setdefault(row.stream, []).append(row)
    return streams


async def publish_rows(bus: EventBus, rows: Sequence[OutboxRow]) -> PublishOutcome:
    """Publish the rows.

    Raises:
        PublisherFencedError: another publisher has taken over.
    """
    streams = by_stream(rows)
    if bus.transactional:
        return await _in_transactions(bus, streams)
    outcome = PublishOutcome()
    await _all(*(_stream(bus, stream, outcome) for stream in streams.values()))
    return outcome


async def _stream(bus: EventBus, rows: Sequence[OutboxRow], outcome: PublishOutcome) -> None:
    if isinstance(bus, PipeliningBus) and bus.pipelines and len({(row.topic, row.event.key) for row in rows}) == 1:
        await _pipelined(bus, rows, outcome)
        return
    for row in rows:
        try:
            await bus.publish(to_message(row.event, row.topic))
        except PublisherFencedError:
            raise
        except (BusError, ValueError) as error:
            outcome.failed.append((row, f"{type(error).__name__}: {error}"))
            return
        outcome.done.append(row)


async def _pipelined(bus: PipeliningBus, rows: Sequence[OutboxRow], outcome: PublishOutcome) -> None:
    """Rows of one key, as many at a time as arrive whole or not at all."""
    messages: list[Message] = []
    error: Exception | None = None
    for row in rows:
        try:
            messages.append(to_message(row.event, row.topic))
        except ValueError as unusable:
            error = unusable
            break
    arrived, failure = await bus.publish_all(messages)
    error = failure or error
    outcome.done += rows[:arrived]
    if error is not None:
        outcome.failed.append((rows[arrived], f"{type(error).__name__}: {error}"))


async def _in_transactions(bus: EventBus, streams: dict[str, list[OutboxRow]]) -> PublishOutcome:
    """One transaction for all; when it fails, one for each stream, so that one bad stream stops only itself."""
    whole = PublishOutcome()
    try:
        async with bus.transaction():
            await _all(*(_stream(bus, stream, whole) for stream in streams.values()))
            if whole.failed:
                raise _StreamFailedError
    except PublisherFencedError:
        raise
    except (BusError, _StreamFailedError) as error:
        if len(streams) == 1:
            rows = next(iter(streams.values()))
            return PublishOutcome([], whole.failed or [(rows[0], f"{type(error).__name__}: {error}")])
    else:
        return whole
    outcome = PublishOutcome()
    for stream, rows in streams.items():
        part = await _in_transactions(bus, {stream: rows})
        outcome.done += part.done
        outcome.failed += part.failed
    return outcome


class _StreamFailedError(Exception):
    """Leaves a transaction that must not be committed."""


async def _all(*work: Coroutine[Any, Any, None]) -> None:
    """Run side by side; when one raises, the others are cancelled and waited for before it is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
