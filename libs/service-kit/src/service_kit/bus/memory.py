"""A broker in memory: the same behaviour without a server, for tests and for one process alone."""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from service_kit.bus.policy import RetryPolicy
from service_kit.bus.port import (
    AssignmentLostError,
    BusUnavailableError,
    Handler,
    Message,
    MessageTooLargeError,
    Offsets,
    PublishError,
    ReceivedMessage,
    Topic,
)
from service_kit.bus.subscription import Subscription

Place = tuple[str, int]
DEFAULT_PARTITIONS = 6


class MemoryBroker:
    """The logs, groups and positions; give one to several buses to make them talk."""

    def __init__(self) -> None:
        self.logs: dict[Place, list[ReceivedMessage]] = {}
        self.partitions: dict[str, int] = {}
        self.committed: dict[tuple[str, Place], int] = {}
        self.members: dict[str, list[MemoryPoller]] = {}
        self.changed = asyncio.Event()
        self.available = True
        self._round_robin = itertools.count()

    def check(self) -> None:
        """Fail while the broker plays dead.

        Raises:
            BusUnavailableError: ``available`` is false.
        """
        if not self.available:
            raise BusUnavailableError("the broker is switched off")

    def create(self, topic: str, partitions: int = DEFAULT_PARTITIONS) -> None:
        """Create a topic unless it is there."""
        if topic not in self.partitions:
            self.partitions[topic] = partitions
            self.logs.update({(topic, number): [] for number in range(partitions)})

    def append(self, message: Message) -> None:
        """Put a message at the end of its partition."""
        self.create(message.topic)
        count = self.partitions[message.topic]
        number = next(self._round_robin) if message.key is None else zlib.crc32(message.key.encode())
        log = self.logs[(message.topic, number % count)]
        log.append(
            ReceivedMessage(message.topic, message.key, message.value, message.headers, number % count, len(log))
        )
        self.wake()

    def wake(self) -> None:
        """Tell every consumer to look again."""
        self.changed.set()
        self.changed = asyncio.Event()

    def forget(self) -> None:
        """Lose all messages but keep the groups' positions, as a memory-only broker does that restarts."""
        for log in self.logs.values():
            log.clear()
        self.wake()


class MemoryBus:
    """An :class:`~service_kit.bus.port.EventBus` over a :class:`MemoryBroker`."""

    def __init__(self, broker: MemoryBroker | None = None, max_message_bytes: int = 1_000_000) -> None:
        self.broker = broker or MemoryBroker()
        self._max_message_bytes = max_message_bytes

    @property
    def transactional(self) -> bool:
        """Never."""
        return False

    async def start(self) -> None:
        """Check that the broker is there."""
        self.broker.check()

    async def stop(self) -> None:
        """Nothing is open."""

    async def ping(self) -> None:
        """Check that the broker is there."""
        self.broker.check()

    async def ensure_topics(self, topics: Sequence[Topic]) -> None:
        """Create what is not there."""
        self.broker.check()
        for topic in topics:
            self.broker.create(topic.name, topic.partitions)

    async def publish(self, message: Message) -> None:
        """Append the message; raises as the port says."""
        if len(message.value) > self._max_message_bytes:
            raise MessageTooLargeError(f"{len(message.value)} bytes for {message.topic}")
        await asyncio.sleep(0)
        try:
            self.broker.check()
        except BusUnavailableError as error:
            raise PublishError(str(error)) from error
        self.broker.append(message)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A block without meaning."""
        yield

    def subscribe(
        self,
        topics: Sequence[str],
        handler: Handler,
        *,
        group: str | None,
        retry: RetryPolicy | None = None,
        on_join: Callable[[], Awaitable[None]] | None = None,
    ) -> Subscription:
        """See the port."""

        async def open_poller() -> MemoryPoller:
            self.broker.check()
            return MemoryPoller(self.broker, tuple(topics), group)

        return Subscription(open_poller, handler, self.publish, commits=group is not None, retry=retry, on_join=on_join)


class MemoryPoller:
    """One consumer. Partitions are dealt to the group's members in the order they joined."""

    def __init__(self, broker: MemoryBroker, topics: tuple[str, ...], group: str | None) -> None:
        self._broker = broker
        self._topics = topics
        self._group = group
        self._positions: dict[Place, int] = {}
        for topic in topics:
            broker.create(topic)
        if group is None:
            self._positions = {place: len(log) for place, log in broker.logs.items() if place[0] in topics}
        else:
            broker.members.setdefault(group, []).append(self)
            broker.wake()

    def assignment(self) -> frozenset[Place]:
        """Our share."""
        mine = [place for place in self._broker.logs if place[0] in self._topics]
        if self._group is None:
            return frozenset(mine)
        members = self._broker.members[self._group]
        turn = members.index(self)
        return frozenset(place for number, place in enumerate(sorted(mine)) if number % len(members) == turn)

    def _place_positions(self) -> None:
        """Forget partitions that went to others, begin new ones where the group stands."""
        share = self.assignment()
        self._positions = {place: position for place, position in self._positions.items() if place in share}
        for place in share:
            known = self._broker.committed.get((self._group or "", place), 0)
            position = self._positions.setdefault(place, known)
            if position > len(self._broker.logs[place]):
                self._positions[place] = 0

    async def poll(self, timeout: float) -> list[ReceivedMessage]:  # noqa: ASYNC109 - a wait, not a deadline
        """See the port."""
        self._broker.check()
        changed = self._broker.changed
        found = self._take()
        if not found:
            try:
                async with asyncio.timeout(timeout):
                    await changed.wait()
            except TimeoutError:
                return []
            found = self._take()
        return found

    def _take(self) -> list[ReceivedMessage]:
        self._place_positions()
        found: list[ReceivedMessage] = []
        for place in sorted(self._positions):
            fresh = self._broker.logs[place][self._positions[place] :]
            found.extend(fresh)
            self._positions[place] += len(fresh)
        return found

    async def commit(self, offsets: Offsets) -> None:
        """See the port."""
        self._broker.check()
        share = self.assignment()
        if any(place not in share for place in offsets):
            raise AssignmentLostError("the share changed")
        for place, offset in offsets.items():
            self._broker.committed[(self._group or "", place)] = offset

    async def rewind(self, offsets: Offsets) -> None:
        """See the port."""
        share = self.assignment()
        self._positions.update({place: offset for place, offset in offsets.items() if place in share})

    async def lag(self) -> int:
        """See the port."""
        self._broker.check()
        return sum(max(0, len(self._broker.logs[place]) - at) for place, at in self._positions.items())

    async def close(self) -> None:
        """Leave the group."""
        if self._group is not None and self in self._broker.members[self._group]:
            self._broker.members[self._group].remove(self)
            self._broker.wake()
