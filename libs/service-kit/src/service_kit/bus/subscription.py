"""The consumer's loop, the same for every broker: order, retries, dead letters, commits and a watchdog."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from service_kit.bus.policy import Place, RetryPolicy, SubscriptionStatus, Timing
from service_kit.bus.port import (
    AssignmentLostError,
    BusError,
    GroupHandler,
    Handler,
    Message,
    PoisonMessageError,
    Poller,
    ReceivedMessage,
)
from service_kit.logging import get_logger

logger = get_logger(__name__)
DEAD_LETTER_SUFFIX = ".dlq"
MAX_TOGETHER = 50


@dataclass
class _Progress:
    """What the watchdog looks at."""

    polled_at: float = field(default_factory=time.monotonic)
    handling: bool = False
    received: int = 0


class _StuckError(BusError):
    """The consumer neither returns nor reads what is there."""


class Subscription:
    """Reads messages while :meth:`run` runs. Made by ``EventBus.subscribe``.

    A message is committed only after its handler returned. A failing one is tried again with pauses while its
    partition waits; the consumer keeps polling meanwhile, so the group does not throw it out. A handler that can take
    several messages at once gets those that arrived together; where that fails they are handled one by one.
    """

    def __init__(
        self,
        open_poller: Callable[[], Awaitable[Poller]],
        handler: Handler,
        publish: Callable[[Message], Awaitable[None]],
        *,
        commits: bool,
        retry: RetryPolicy | None = None,
        on_join: Callable[[], Awaitable[None]] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._open_poller = open_poller
        self._handler = handler
        self._publish = publish
        self._commits = commits
        self._retry = retry or RetryPolicy()
        self._on_join = on_join
        self._timing = timing or Timing()
        self._stopping = asyncio.Event()
        self._attempts: dict[Place, tuple[int, int]] = {}
        self._progress = _Progress()
        self.status = SubscriptionStatus()

    def stop(self) -> None:
        """End after the message in hand."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until :meth:`stop` or cancellation; a broker that is away is waited for."""
        # The loop is a task of its own: cancelling a poll half-way loses messages in the client, so a cancelled
        # run() asks the loop to stop and waits for it.
        loop = asyncio.create_task(self._loop())
        self.status.running = True
        try:
            await asyncio.shield(loop)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait([loop], timeout=self._timing.stop)
            raise
        finally:
            if not loop.done():
                loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)
            self.status.running = False
            self.status.assignment = frozenset()

    async def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                poller = await self._open_poller()
            except BusError as error:
                logger.warning("broker not reachable, trying again", error=str(error))
                await self._pause(self._timing.reopen)
                continue
            self.status.connected = True
            try:
                await self._consume(poller)
            except BusError as error:
                self.status.restarts += 1
                logger.warning("consumer replaced", error=str(error), kind=type(error).__name__)
                await self._pause(self._timing.reopen)
            finally:
                self.status.connected = False
                await poller.close()

    async def _consume(self, poller: Poller) -> None:
        """Read with one consumer until stopped, or until it is found stuck."""
        self._progress = _Progress()
        self.status.assignment = frozenset()
        reading = asyncio.create_task(self._read(poller))
        watching = asyncio.create_task(self._watch(poller, self._progress))
        try:
            await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            reading.cancel()
            outcomes = await asyncio.gather(reading, watching, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                raise outcome

    async def _read(self, poller: Poller) -> None:
        while not self._stopping.is_set():
            batch = await poller.poll(self._timing.poll)
            self._progress.polled_at = self.status.progress_at = time.monotonic()
            self._progress.received += len(batch)
            await self._note_assignment(poller)
            if batch:
                self._progress.handling = True
                try:
                    await self._handle_batch(poller, batch)
                finally:
                    self._progress.handling = False
                    self._progress.polled_at = time.monotonic()

    async def _note_assignment(self, poller: Poller) -> None:
        assignment = poller.assignment()
        if assignment == self.status.assignment:
            return
        self.status.assignment = assignment
        if self._on_join is None:
            return
        try:
            await self._on_join()
        except Exception as error:
            logger.warning("on_join failed", exc_info=error)

    async def _handle_batch(self, poller: Poller, batch: list[ReceivedMessage]) -> None:
        done: dict[Place, int] = {}
        back: dict[Place, int] = {}
        pause = 0.0
        for messages in _together(batch):
            place = (messages[0].topic, messages[0].partition)
            if place not in back and await self._handle_together(place, messages):
                done[place] = messages[-1].offset + 1
                continue
            for message in messages:
                if place in back:
                    break
                if self._stopping.is_set():
                    back[place] = message.offset
                    break
                wait = await self._handle(message)
                self.status.progress_at = time.monotonic()
                if wait is None:
                    done[place] = message.offset + 1
                else:
                    back[place] = message.offset
                    pause = max(pause, wait)
        if done and self._commits:
            try:
                await poller.commit(done)
            except AssignmentLostError:
                logger.info("share changed before the commit; another consumer reads these messages again")
        if back:
            await poller.rewind(back)
            await self._pause(pause)

    async def _handle_together(self, place: Place, messages: Sequence[ReceivedMessage]) -> bool:
        """Handle them all at once where the handler can; false: each has to be handled alone."""
        handler = self._handler
        if len(messages) < 2 or place in self._attempts or self._stopping.is_set():
            return False
        if not isinstance(handler, GroupHandler):
            return False
        try:
            await handler.many(messages)
        except Exception as error:
            # Which of them it is, and what becomes of it, is found out one by one.
            logger.info("messages are handled one by one", count=len(messages), exc_info=error)
            return False
        self.status.handled += len(messages)
        self.status.progress_at = time.monotonic()
        return True

    async def _handle(self, message: ReceivedMessage) -> float | None:
        """Handle one message: ``None`` when it is done with, else the seconds to wait before it is tried again."""
        place = (message.topic, message.partition)
        try:
            await self._handler(message)
        except PoisonMessageError as error:
            return await self._bury(message, error, 1)
        except Exception as error:
            self.status.failures += 1
            offset, attempts = self._attempts.get(place, (message.offset, 0))
            attempts = attempts + 1 if offset == message.offset else 1
            transient = self._retry.is_transient(error)
            logger.warning(
                "message not handled",
                topic=message.topic,
                partition=message.partition,
                offset=message.offset,
                attempts=attempts,
                transient=transient,
                exc_info=error,
            )
            if not transient and attempts >= self._retry.max_attempts:
                return await self._bury(message, error, attempts)
            self._attempts[place] = (message.offset, 0 if transient else attempts)
            return self._retry.pause(attempts)
        self._attempts.pop(place, None)
        self.status.handled += 1
        return None

    async def _bury(self, message: ReceivedMessage, error: Exception, attempts: int) -> float | None:
        """Send a message to the dead-letter topic; while that fails it is not done with."""
        letter = Message(
            f"{message.topic}{DEAD_LETTER_SUFFIX}",
            message.key,
            message.value,
            (
                *message.headers,
                ("dlq-reason", f"{type(error).__name__}: {error}"[:1000]),
                ("dlq-attempts", str(attempts)),
                ("dlq-topic", message.topic),
                ("dlq-partition", str(message.partition)),
                ("dlq-offset", str(message.offset)),
            ),
        )
        place = (message.topic, message.partition)
        try:
            await self._publish(letter)
        except BusError as failure:
            logger.warning("dead letter not accepted, trying again", error=str(failure))
            self._attempts[place] = (message.offset, self._retry.max_attempts)
            return self._retry.max_backoff
        self._attempts.pop(place, None)
        self.status.dead += 1
        logger.error("message given up", topic=message.topic, partition=message.partition, offset=message.offset)
        return None

    async def _watch(self, poller: Poller, progress: _Progress) -> None:
        """Raise when polls do not return, or when messages wait and none is read."""
        quiet_since = time.monotonic()
        seen = progress.received
        while True:
            await asyncio.sleep(self._timing.stuck / 4)
            now = time.monotonic()
            if progress.handling or progress.received != seen:
                quiet_since, seen = now, progress.received
                continue
            if now - progress.polled_at > self._timing.stuck:
                raise _StuckError("the consumer's poll does not return")
            try:
                waiting = await poller.lag()
            except BusError:
                # A broker that is away is no stuck consumer.
                waiting = 0
            if waiting == 0:
                quiet_since = now
            elif now - quiet_since > self._timing.stuck:
                raise _StuckError("messages wait and the consumer does not read them")

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return


def _together(batch: Sequence[ReceivedMessage]) -> Iterator[Sequence[ReceivedMessage]]:
    """Neighbours of one partition, a limited number at a time."""
    for _, group in groupby(batch, key=lambda message: (message.topic, message.partition)):
        messages = list(group)
        for start in range(0, len(messages), MAX_TOGETHER):
            yield messages[start : start + MAX_TOGETHER]


def with_timing(subscription: Subscription, **seconds: float) -> Subscription:
    """The same subscription with other waits; before ``run()``."""
    subscription._timing = replace(subscription._timing, **seconds)
    return subscription
