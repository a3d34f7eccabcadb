"""What the services know of a message broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from service_kit.bus.policy import RetryPolicy
    from service_kit.bus.subscription import Subscription


class BusError(Exception):
    """Base of everything the bus reports."""


class BusUnavailableError(BusError):
    """The broker does not answer."""


class PublishError(BusError):
    """A message was not acknowledged; it may or may not be on the broker."""


class MessageTooLargeError(PublishError):
    """The message is over the limit and will never be accepted."""


class PublisherFencedError(PublishError):
    """Another publisher with the same transactional id has taken over; this one must stop."""


class AssignmentLostError(BusError):
    """The partition now belongs to another consumer; what was read of it comes again there."""


class PoisonMessageError(Exception):
    """Raised by a handler: this message can never be handled. It goes to the dead-letter topic at once."""


@dataclass(frozen=True)
class Message:
    """One message. Messages with the same key of one topic stay in the order they were acknowledged in.

    Attributes:
        topic: name.
        key: text, or ``None`` for any partition.
        value: bytes; a foreign message without a value reads as empty.
        headers: names and values in order; values are text in UTF-8.
    """

    topic: str
    key: str | None
    value: bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ReceivedMessage(Message):
    """A message with its place. The place is a hint: a broker that lost its memory gives it out again."""

    partition: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Topic:
    """A topic to create.

    Attributes:
        name: of the topic.
        partitions: how many consumers of one group can share the work.
        replication: copies; 1 on a single broker.
        retention: how long messages are kept; broker's default when ``None``.
    """

    name: str
    partitions: int = 6
    replication: int = 1
    retention: timedelta | None = None


Handler = Callable[[ReceivedMessage], Awaitable[None]]


@runtime_checkable
class GroupHandler(Protocol):
    """A handler that can also take several messages of one partition at once, in their order.

    When :meth:`many` raises, every one of its messages is handed to the handler alone, also those that were done with.
    """

    async def __call__(self, message: ReceivedMessage) -> None:
        """Handle one message."""

    async def many(self, messages: Sequence[ReceivedMessage]) -> None:
        """Handle messages together, because they cost less so."""


@runtime_checkable
class PipeliningBus(Protocol):
    """A bus that sends several messages as one, so that none of them can arrive ahead of one that failed."""

    @property
    def pipelines(self) -> bool:
        """Whether it does so as it is set up."""

    async def publish_all(self, messages: Sequence[Message]) -> tuple[int, BusError | None]:
        """Send messages with one key; gives how many arrived before the first that failed, and why that one did.

        Nothing behind the failed one was sent, unless together with it, as one that arrives whole or not at all.

        Raises:
            PublisherFencedError: another publisher has taken over.
        """


class EventBus(Protocol):
    """A broker, as publisher and consumer see it."""

    async def start(self) -> None:
        """Connect.

        Raises:
            BusUnavailableError: the broker does not answer.
        """

    async def stop(self) -> None:
        """Disconnect; ends within seconds also when the broker is gone."""

    async def ensure_topics(self, topics: Sequence[Topic]) -> None:
        """Create the topics that are not there yet.

        Raises:
            BusUnavailableError: the broker does not answer or refuses.
        """

    async def publish(self, message: Message) -> None:
        """Send one message and wait until the broker has it.

        Raises:
            PublishError: it was not acknowledged.
        """

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """What is published inside becomes visible together, where the broker can; elsewhere a block without meaning.

        Raises:
            PublishError: on leaving, when nothing of it will become visible.
        """

    @property
    def transactional(self) -> bool:
        """Whether :meth:`transaction` has a meaning."""

    def subscribe(
        self,
        topics: Sequence[str],
        handler: Handler,
        *,
        group: str | None,
        retry: RetryPolicy | None = None,
        on_join: Callable[[], Awaitable[None]] | None = None,
    ) -> Subscription:
        """A subscription, which works while its ``run()`` runs.

        Args:
            topics: names.
            handler: called per message; the position is committed after it returned.
            group: consumers of one group share the messages and begin at the earliest one. ``None``: this consumer
                alone gets every message sent from now on, and commits nothing.
            retry: what happens when the handler raises.
            on_join: called whenever the consumer (re)joined or its share changed: time to look for gaps.
        """

    async def ping(self) -> None:
        """For readiness.

        Raises:
            BusUnavailableError: the broker does not answer.
        """


Offsets = Mapping[tuple[str, int], int]
"""Next offset to read by topic and partition."""


class Poller(Protocol):
    """One consumer of one broker; what :class:`~service_kit.bus.subscription.Subscription` drives."""

    async def poll(self, timeout: float) -> list[ReceivedMessage]:  # noqa: ASYNC109 - a wait, not a deadline
        """Messages, in order per partition, or nothing after ``timeout`` seconds."""

    async def commit(self, offsets: Offsets) -> None:
        """Remember positions for the group.

        Raises:
            AssignmentLostError: a partition is no longer ours.
        """

    async def rewind(self, offsets: Offsets) -> None:
        """Read on from these positions; partitions that are no longer ours are left out."""

    def assignment(self) -> frozenset[tuple[str, int]]:
        """Our share: topics and partitions."""

    async def lag(self) -> int:
        """How many messages of our share are not read yet.

        Raises:
            BusUnavailableError: the broker does not say.
        """

    async def close(self) -> None:
        """Leave the group; ends within seconds also when the broker is gone."""
