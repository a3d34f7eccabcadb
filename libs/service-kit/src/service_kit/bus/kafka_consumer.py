"""The Kafka side of the bus: consuming."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    IllegalStateError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from service_kit.bus.port import AssignmentLostError, BusUnavailableError, Offsets, ReceivedMessage
from service_kit.logging import get_logger

logger = get_logger(__name__)
_LOST = (
    CommitFailedError,
    IllegalStateError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
_CALL_TIMEOUT = 10.0


class KafkaPoller:
    """A :class:`~service_kit.bus.port.Poller`: one aiokafka consumer."""

    def __init__(self, consumer: AIOKafkaConsumer, stop_timeout: float) -> None:
        self._consumer = consumer
        self._stop_timeout = stop_timeout

    @classmethod
    async def open(
        cls,
        servers: str,
        *,
        topics: tuple[str, ...],
        group: str | None,
        client_id: str,
        stop_timeout: float,
        read_committed: bool,
    ) -> KafkaPoller:
        """Connect and join.

        Raises:
            BusUnavailableError: the broker does not answer.
        """
        consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=servers,
            client_id=client_id,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="latest" if group is None else "earliest",
            isolation_level="read_committed" if read_committed else "read_uncommitted",
            max_poll_records=500,
            # The client has one request per broker: a partition whose messages were just taken waits for the end of
            # the one under way, however long that waits for messages of the others.
            fetch_max_wait_ms=100,
            # A new topic, or one a restarted broker forgot, is seen within this time.
            metadata_max_age_ms=30_000,
        )
        poller = cls(consumer, stop_timeout)
        try:
            async with asyncio.timeout(stop_timeout * 2):
                await consumer.start()
                if group is None:
                    # Until positions are known, messages sent meanwhile would be missed.
                    await asyncio.gather(*(consumer.position(place) for place in consumer.assignment()))
        except (KafkaError, TimeoutError, OSError) as error:
            await poller.close()
            raise BusUnavailableError(f"the broker does not answer ({type(error).__name__})") from error
        return poller

    async def poll(self, timeout: float) -> list[ReceivedMessage]:  # noqa: ASYNC109 - a wait, not a deadline
        """See the port."""
        try:
            batches = await self._consumer.getmany(timeout_ms=round(timeout * 1000))
        except (KafkaError, OSError) as error:
            raise BusUnavailableError(f"poll failed ({type(error).__name__})") from error
        return [
            ReceivedMessage(
                topic=record.topic,
                key=None if record.key is None else record.key.decode(errors="replace"),
                value=record.value or b"",
                headers=tuple((name, value.decode(errors="replace")) for name, value in record.headers),
                partition=record.partition,
                offset=record.offset,
            )
            for records in batches.values()
            for record in records
        ]

    async def commit(self, offsets: Offsets) -> None:
        """See the port."""
        try:
            async with asyncio.timeout(_CALL_TIMEOUT):
                await self._consumer.commit({TopicPartition(*place): offset for place, offset in offsets.items()})
        except _LOST as error:
            raise AssignmentLostError(type(error).__name__) from error
        except (KafkaError, TimeoutError, OSError) as error:
            # Not committed only means read again: the inbox drops what was handled.
            logger.warning("commit failed", error=type(error).__name__)

    async def rewind(self, offsets: Offsets) -> None:
        """See the port."""
        share = self._consumer.assignment()
        for place, offset in offsets.items():
            partition = TopicPartition(*place)
            if partition in share:
                try:
                    self._consumer.seek(partition, offset)
                except IllegalStateError:
                    logger.info("share changed before the rewind", topic=place[0], partition=place[1])

    def assignment(self) -> frozenset[tuple[str, int]]:
        """See the port."""
        return frozenset((partition.topic, partition.partition) for partition in self._consumer.assignment())

    async def lag(self) -> int:
        """See the port. Ends of the log are the broker's own, not those the last fetch brought."""
        share = list(self._consumer.assignment())
        if not share:
            return 0
        try:
            async with asyncio.timeout(_CALL_TIMEOUT):
                ends = await self._consumer.end_offsets(share)
                waiting = 0
                for partition in share:
                    waiting += max(0, ends[partition] - await self._consumer.position(partition))
        except (KafkaError, TimeoutError, OSError) as error:
            raise BusUnavailableError(f"no answer about the log's end ({type(error).__name__})") from error
        return waiting

    async def close(self) -> None:
        """See the port."""
        try:
            async with asyncio.timeout(self._stop_timeout):
                await self._consumer.stop()
        except (KafkaError, TimeoutError, OSError) as error:
            logger.warning("consumer not closed cleanly", error=type(error).__name__)
