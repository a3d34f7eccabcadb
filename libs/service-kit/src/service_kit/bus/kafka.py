"""The Kafka side of the bus: publishing. Only this package's three modules of Kafka know aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from aiokafka.partitioner import DefaultPartitioner

from service_kit.bus.kafka_consumer import KafkaPoller
from service_kit.bus.kafka_producer import KafkaProducers, close_within
from service_kit.bus.policy import RetryPolicy
from service_kit.bus.port import (
    BusError,
    BusUnavailableError,
    Handler,
    Message,
    MessageTooLargeError,
    PublisherFencedError,
    Topic,
)
from service_kit.bus.subscription import Subscription
from service_kit.logging import get_logger
from service_kit.settings import ProducerMode

logger = get_logger(__name__)


class KafkaBus:
    """An :class:`~service_kit.bus.port.EventBus` over Kafka's protocol.

    Args:
        servers: ``host:port[,host:port]``.
        client_id: seen in the broker's logs.
        producer: ``plain``, ``idempotent`` or ``transactional``.
        transactional_id: for the last; a new producer with it fences the one before.
        publish_timeout: seconds until a message counts as not acknowledged.
        max_message_bytes: largest message.
        stop_timeout: seconds until a client that does not close is dropped.
    """

    def __init__(
        self,
        servers: str,
        *,
        client_id: str,
        producer: ProducerMode = "idempotent",
        transactional_id: str | None = None,
        publish_timeout: float = 10.0,
        max_message_bytes: int = 1_000_000,
        stop_timeout: float = 10.0,
    ) -> None:
        if producer == "transactional" and not transactional_id:
            raise ValueError("a transactional producer needs a transactional id")
        self._servers = servers
        self._client_id = client_id
        self._mode = producer
        self._publish_timeout = publish_timeout
        self._max_message_bytes = max_message_bytes
        self._stop_timeout = stop_timeout
        self._producers = KafkaProducers(
            servers,
            client_id=client_id,
            mode=producer,
            transactional_id=transactional_id,
            publish_timeout=publish_timeout,
            max_message_bytes=max_message_bytes,
            stop_timeout=stop_timeout,
        )
        self._transaction_lock = asyncio.Lock()
        self._in_transaction = False

    @property
    def transactional(self) -> bool:
        """Whether :meth:`transaction` has a meaning."""
        return self._mode == "transactional"

    async def start(self) -> None:
        """Connect the producer; see the port."""
        await self._producers.open()

    async def stop(self) -> None:
        """Close the producer within the stop timeout."""
        await self._producers.discard(self._producers.current)

    async def ping(self) -> None:
        """Ask the broker for its metadata."""
        producer = await self._producers.open()
        try:
            async with asyncio.timeout(self._publish_timeout):
                await producer.client.fetch_all_metadata()
        except (KafkaError, TimeoutError, OSError) as error:
            raise BusUnavailableError(f"the broker does not answer ({type(error).__name__})") from error

    async def ensure_topics(self, topics: Sequence[Topic]) -> None:
        """Create what is not there; see the port."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._servers, client_id=self._client_id)
        try:
            await admin.start()
            # Asked first, because not every broker reports a topic that exists as an error of its own kind.
            existing = set(await admin.list_topics())
            new = [_new_topic(topic) for topic in topics if topic.name not in existing]
            if new:
                answer = await admin.create_topics(new)
                for name, code, *_ in answer.topic_errors:
                    if code not in (0, TopicAlreadyExistsError.errno):
                        raise BusUnavailableError(f"topic {name} was not created: {for_code(code).__name__}")
        except (KafkaError, TimeoutError, OSError) as error:
            raise BusUnavailableError(f"the broker does not answer ({type(error).__name__})") from error
        finally:
            await close_within(admin.close, self._stop_timeout)

    async def publish(self, message: Message) -> None:
        """Send one message and wait for the acknowledgement; see the port."""
        if len(message.value) > self._max_message_bytes:
            raise MessageTooLargeError(f"{len(message.value)} bytes for {message.topic}")
        if self.transactional and not self._in_transaction:
            async with self.transaction():
                await self._send(message)
        else:
            await self._send(message)

    @property
    def pipelines(self) -> bool:
        """Several messages with one key travel in one record batch, which the broker takes whole or not at all."""
        return self._mode == "idempotent"

    async def publish_all(self, messages: Sequence[Message]) -> tuple[int, BusError | None]:
        """Send messages of one key, batch after batch, each acknowledged before the next is sent; see the port."""
        arrived = 0
        try:
            while arrived < len(messages):
                arrived += await self._send_some(messages[arrived:])
        except PublisherFencedError:
            raise
        except BusError as error:
            return arrived, error
        return arrived, None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """One Kafka transaction with a transactional producer; otherwise a plain block."""
        if not self.transactional:
            yield
            return
        async with self._transaction_lock:
            producer = await self._producers.open()
            await self._producers.guarded(producer, producer.begin_transaction())
            self._in_transaction = True
            try:
                yield
                await self._producers.guarded(producer, producer.commit_transaction())
            except BaseException:
                await self._abort(producer)
                raise
            finally:
                self._in_transaction = False

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

        async def open_poller() -> KafkaPoller:
            return await KafkaPoller.open(
                self._servers,
                topics=tuple(topics),
                group=group,
                client_id=self._client_id,
                stop_timeout=self._stop_timeout,
                read_committed=self.transactional,
            )

        return Subscription(open_poller, handler, self.publish, commits=group is not None, retry=retry, on_join=on_join)

    async def _send(self, message: Message) -> None:
        producer = await self._producers.open()
        await self._producers.guarded(producer, producer.send_and_wait(**_record(message)))

    async def _send_some(self, messages: Sequence[Message]) -> int:
        """Send as many from the beginning as one batch holds; how many that was.

        A later message never lies in the client's buffer while an earlier one outside its batch is not acknowledged:
        whatever becomes of a batch, nothing of the same key can arrive ahead of it.
        """
        if len(messages) == 1:
            await self.publish(messages[0])
            return 1
        producer = await self._producers.open()
        batch = producer.create_batch()
        count = 0
        for message in messages:
            if len(message.value) > self._max_message_bytes or batch.append(**_entry(message)) is None:
                break
            count += 1
        batch.close()
        if count < 2:
            await self.publish(messages[0])
            return 1
        try:
            await self._producers.guarded(producer, _sent_batch(producer, batch, messages[0]))
        except MessageTooLargeError:
            # The broker's limit for a batch is below ours: the first message alone shows whether it fits.
            await self.publish(messages[0])
            return 1
        return count

    async def _abort(self, producer: AIOKafkaProducer) -> None:
        if not self._producers.is_current(producer):
            return
        try:
            async with asyncio.timeout(self._publish_timeout):
                await producer.abort_transaction()
        except (KafkaError, TimeoutError, OSError) as error:
            logger.warning("transaction not aborted, producer replaced", error=type(error).__name__)
            await self._producers.discard(producer)


def _record(message: Message) -> dict[str, Any]:
    """A message as the client takes it."""
    return {
        "topic": message.topic,
        "value": message.value,
        "key": None if message.key is None else message.key.encode(),
        "headers": [(name, value.encode()) for name, value in message.headers],
    }


def _entry(message: Message) -> dict[str, Any]:
    """The same for a batch, which knows its topic."""
    return {"timestamp": None, **{name: value for name, value in _record(message).items() if name != "topic"}}


async def _sent_batch(producer: AIOKafkaProducer, batch: Any, first: Message) -> None:
    """Send a batch to the partition of its messages' key and wait for the acknowledgement."""
    partitions = sorted(await producer.partitions_for(first.topic))
    key = None if first.key is None else first.key.encode()
    partition = DefaultPartitioner()(key, partitions, partitions)
    await (await producer.send_batch(batch, first.topic, partition=partition))


def _new_topic(topic: Topic) -> NewTopic:
    settings = {}
    if topic.retention is not None:
        settings["retention.ms"] = str(round(topic.retention.total_seconds() * 1000))
    return NewTopic(topic.name, topic.partitions, topic.replication, topic_configs=settings)
