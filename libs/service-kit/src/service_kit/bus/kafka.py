"""The Kafka side of the bus: publishing. The only package that knows aiokafka is this one and its consumer half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerClosed,
    ProducerFenced,
    RecordTooLargeError,
    TopicAlreadyExistsError,
    TransactionCoordinatorFenced,
    UnknownProducerId,
    for_code,
)

from service_kit.bus.kafka_consumer import KafkaPoller
from service_kit.bus.policy import RetryPolicy
from service_kit.bus.port import (
    BusError,
    BusUnavailableError,
    Handler,
    Message,
    MessageTooLargeError,
    PublisherFencedError,
    PublishError,
    Topic,
)
from service_kit.bus.subscription import Subscription
from service_kit.logging import get_logger
from service_kit.settings import ProducerMode

logger = get_logger(__name__)

# After these a producer never works again (OutOfOrderSequenceNumber: aiokafka issue 1017): a new one must be made.
_BROKEN_PRODUCER = (
    OutOfOrderSequenceNumber,
    UnknownProducerId,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerClosed,
    ProducerFenced,
    TransactionCoordinatorFenced,
)
_FENCED = (ProducerFenced, InvalidProducerEpoch, TransactionCoordinatorFenced)


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
        self._transactional_id = transactional_id
        self._publish_timeout = publish_timeout
        self._max_message_bytes = max_message_bytes
        self._stop_timeout = stop_timeout
        self._producer: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._transaction_lock = asyncio.Lock()
        self._in_transaction = False

    @property
    def transactional(self) -> bool:
        """Whether :meth:`transaction` has a meaning."""
        return self._mode == "transactional"

    async def start(self) -> None:
        """Connect the producer; see the port."""
        await self._open()

    async def stop(self) -> None:
        """Close the producer within the stop timeout."""
        await self._discard()

    async def ping(self) -> None:
        """Ask the broker for its metadata."""
        producer = await self._open()
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
        """With numbered messages the broker takes none behind a gap; a plain producer has no such guard."""
        return self._mode == "idempotent"

    async def publish_all(self, messages: Sequence[Message]) -> tuple[int, BusError | None]:
        """Send several before the first is acknowledged; see the port."""
        sent: list[asyncio.Future[Any]] = []
        failure: BusError | None = None
        try:
            producer = await self._open()
            for message in messages:
                if len(message.value) > self._max_message_bytes:
                    raise MessageTooLargeError(f"{len(message.value)} bytes for {message.topic}")
                await self._guarded(_collect(producer.send(**_record(message)), sent))
        except PublisherFencedError:
            raise
        except BusError as error:
            failure = error
        for place, future in enumerate(sent):
            try:
                await self._guarded(future)
            except BusError as error:
                await asyncio.gather(*sent[place + 1 :], return_exceptions=True)
                if isinstance(error, PublisherFencedError):
                    raise
                return place, error
        return len(sent), failure

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """One Kafka transaction with a transactional producer; otherwise a plain block."""
        if not self.transactional:
            yield
            return
        async with self._transaction_lock:
            producer = await self._open()
            await self._guarded(producer.begin_transaction())
            self._in_transaction = True
            try:
                yield
                await self._guarded(producer.commit_transaction())
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
        producer = await self._open()
        await self._guarded(producer.send_and_wait(**_record(message)))

    async def _guarded(self, work: Awaitable[Any]) -> None:
        """Await a producer's work; its errors become ours, and a producer that is beyond repair is thrown away."""
        try:
            # aiokafka gives up by itself after the publish timeout; the outer one is for the times it does not.
            async with asyncio.timeout(self._publish_timeout * 2):
                await work
        except (RecordTooLargeError, MessageSizeTooLargeError) as error:
            raise MessageTooLargeError(str(error)) from error
        except _BROKEN_PRODUCER as error:
            await self._discard()
            kind = PublisherFencedError if self.transactional and isinstance(error, _FENCED) else PublishError
            raise kind(type(error).__name__) from error
        except TimeoutError as error:
            # What is still in the client's buffer must not go out behind a later attempt.
            await self._discard()
            raise PublishError("not acknowledged in time") from error
        except (KafkaError, OSError) as error:
            if self.transactional:
                # The state of its transaction is not known any more; a new producer begins with a clear one.
                await self._discard()
            raise PublishError(type(error).__name__) from error

    async def _abort(self, producer: AIOKafkaProducer) -> None:
        if self._producer is None or self._producer is not producer:
            return
        try:
            async with asyncio.timeout(self._publish_timeout):
                await self._producer.abort_transaction()
        except (KafkaError, TimeoutError, OSError) as error:
            logger.warning("transaction not aborted, producer replaced", error=type(error).__name__)
            await self._discard()

    async def _open(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer is not None:
                return self._producer
            producer = self._make_producer()
            try:
                async with asyncio.timeout(self._publish_timeout):
                    await producer.start()
            except (KafkaError, TimeoutError, OSError) as error:
                await close_within(producer.stop, self._stop_timeout)
                raise BusUnavailableError(f"the broker does not answer ({type(error).__name__})") from error
            self._producer = producer
            return producer

    def _make_producer(self) -> AIOKafkaProducer:
        options: dict[str, Any] = {}
        if self._mode == "idempotent":
            options["enable_idempotence"] = True
        elif self._mode == "transactional":
            options["transactional_id"] = self._transactional_id
        return AIOKafkaProducer(
            bootstrap_servers=self._servers,
            client_id=self._client_id,
            acks="all",
            request_timeout_ms=round(self._publish_timeout * 1000),
            max_request_size=self._max_message_bytes + 65_536,
            **options,
        )

    async def _discard(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await close_within(producer.stop, self._stop_timeout)


def _record(message: Message) -> dict[str, Any]:
    """A message as the client takes it."""
    return {
        "topic": message.topic,
        "value": message.value,
        "key": None if message.key is None else message.key.encode(),
        "headers": [(name, value.encode()) for name, value in message.headers],
    }


async def _collect(sending: Awaitable[asyncio.Future[Any]], sent: list[asyncio.Future[Any]]) -> None:
    sent.append(await sending)


def _new_topic(topic: Topic) -> NewTopic:
    settings = {}
    if topic.retention is not None:
        settings["retention.ms"] = str(round(topic.retention.total_seconds() * 1000))
    return NewTopic(topic.name, topic.partitions, topic.replication, topic_configs=settings)


async def close_within(close: Callable[[], Awaitable[Any]], seconds: float) -> None:
    """Close a client; one that hangs (all brokers gone) or fails is dropped and logged."""
    try:
        async with asyncio.timeout(seconds):
            await close()
    except (KafkaError, KafkaConnectionError, TimeoutError, OSError) as error:
        logger.warning("client not closed cleanly", error=type(error).__name__)
