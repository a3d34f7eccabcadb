"""The Kafka side of the bus: one producer at a time, its errors in our words, and its end when it may be broken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaProducer
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
    TransactionCoordinatorFenced,
    UnknownProducerId,
)

from service_kit.bus.port import BusUnavailableError, MessageTooLargeError, PublisherFencedError, PublishError
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
# One stream's events of a round fit into one batch, well below the 1 MB a broker takes unless told otherwise.
MAX_BATCH_BYTES = 262_144


class KafkaProducers:
    """Opens a producer when one is needed, and another after the one before was thrown away.

    Args:
        servers: ``host:port[,host:port]``.
        client_id: seen in the broker's logs.
        mode: ``plain``, ``idempotent`` or ``transactional``.
        transactional_id: for the last.
        publish_timeout: seconds until a message counts as not acknowledged.
        max_message_bytes: largest message.
        stop_timeout: seconds until a producer that does not close is dropped.
    """

    def __init__(
        self,
        servers: str,
        *,
        client_id: str,
        mode: ProducerMode,
        transactional_id: str | None,
        publish_timeout: float,
        max_message_bytes: int,
        stop_timeout: float,
    ) -> None:
        self._servers = servers
        self._client_id = client_id
        self._mode = mode
        self._transactional_id = transactional_id
        self._publish_timeout = publish_timeout
        self._max_message_bytes = max_message_bytes
        self._stop_timeout = stop_timeout
        self.current: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> AIOKafkaProducer:
        """The current producer, connected.

        Raises:
            BusUnavailableError: the broker does not answer.
        """
        async with self._opening:
            if self.current is not None:
                return self.current
            producer = self._make()
            try:
                async with asyncio.timeout(self._publish_timeout):
                    await producer.start()
            except (KafkaError, TimeoutError, OSError) as error:
                await close_within(producer.stop, self._stop_timeout)
                raise BusUnavailableError(f"the broker does not answer ({type(error).__name__})") from error
            self.current = producer
            return producer

    def is_current(self, producer: AIOKafkaProducer) -> bool:
        """Nothing has taken its place, and it was not thrown away."""
        return self.current is producer

    async def guarded(self, producer: AIOKafkaProducer, work: Awaitable[Any]) -> None:
        """Await a producer's work; its errors become ours, and a producer that may be beyond repair is thrown away.

        Raises:
            PublishError: not acknowledged.
        """
        try:
            # aiokafka gives up by itself after the publish timeout; the outer one is for the times it does not.
            async with asyncio.timeout(self._publish_timeout * 2):
                await work
        except (RecordTooLargeError, MessageSizeTooLargeError) as error:
            await self._discard_numbered(producer)
            raise MessageTooLargeError(str(error)) from error
        except _BROKEN_PRODUCER as error:
            await self.discard(producer)
            fenced = self._mode == "transactional" and isinstance(error, _FENCED)
            raise (PublisherFencedError if fenced else PublishError)(type(error).__name__) from error
        except TimeoutError as error:
            # What is still in the client's buffer must not go out behind a later attempt.
            await self.discard(producer)
            raise PublishError("not acknowledged in time") from error
        except (KafkaError, OSError) as error:
            await self._discard_numbered(producer)
            raise PublishError(type(error).__name__) from error

    async def discard(self, producer: AIOKafkaProducer | None) -> None:
        """Close a producer once; one that took its place meanwhile is left alone."""
        if producer is None or not self.is_current(producer):
            return
        self.current = None
        await close_within(producer.stop, self._stop_timeout)

    async def _discard_numbered(self, producer: AIOKafkaProducer) -> None:
        """After a failure it is not known which number the broker waits for, or where its transaction stands."""
        if self._mode != "plain":
            await self.discard(producer)

    def _make(self) -> AIOKafkaProducer:
        options: dict[str, Any] = {}
        if self._mode == "idempotent":
            options["enable_idempotence"] = True
        elif self._mode == "transactional":
            options["transactional_id"] = self._transactional_id
        return AIOKafkaProducer(
            bootstrap_servers=self._servers,
            client_id=self._client_id,
            acks="all",
            max_batch_size=MAX_BATCH_BYTES,
            request_timeout_ms=round(self._publish_timeout * 1000),
            max_request_size=self._max_message_bytes + 65_536,
            **options,
        )


async def close_within(close: Callable[[], Awaitable[Any]], seconds: float) -> None:
    """Close a client; one that hangs (all brokers gone) or fails is dropped and logged."""
    try:
        async with asyncio.timeout(seconds):
            await close()
    except (KafkaError, KafkaConnectionError, TimeoutError, OSError) as error:
        logger.warning("client not closed cleanly", error=type(error).__name__)
