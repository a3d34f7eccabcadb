"""An independent consumer: it knows the broker and the contracts, and nothing of the services."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

STOP_SECONDS = 15.0


@dataclass(frozen=True)
class ReadEvent:
    """An event with its headers and where it lay."""

    headers: dict[str, str]
    payload: dict[str, Any]
    place: str

    @property
    def kind(self) -> str:
        """Kind of the step it carries."""
        return str(self.payload.get("step", {}).get("kind", ""))

    @property
    def run(self) -> str:
        """The run it belongs to."""
        return str(self.payload.get("runId", ""))


class EventReader:
    """Reads a topic from its beginning, in a thread of its own while it is entered, and keeps what it read.

    Args:
        broker_url: ``kafka://host:port``.
        topic: the runs' steps unless told.
    """

    def __init__(self, broker_url: str, topic: str | None = None) -> None:
        self._broker_url = broker_url
        self._topic = topic
        self._found: list[ReadEvent] = []
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="event-reader")
        self._work: Future[None] | None = None

    def __enter__(self) -> Self:
        self._work = self._thread.submit(self._run)
        self._work.add_done_callback(lambda _: self._tell())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(RuntimeError):  # its loop is closed where it failed
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.shutdown()

    def wait(self, enough: Callable[[list[ReadEvent]], bool], seconds: float = 20.0) -> list[ReadEvent]:
        """Everything read so far, once it satisfies ``enough`` or the time is over.

        Raises:
            BusUnavailableError: the broker does not answer.
        """
        with self._news:
            self._news.wait_for(lambda: self._ended or enough(self._found), seconds)
            if self._work is not None and self._ended:
                self._work.result()
            return list(self._found)

    @property
    def _ended(self) -> bool:
        return self._work is not None and self._work.done()

    def _tell(self) -> None:
        with self._news:
            self._news.notify_all()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._read())

    async def _read(self) -> None:
        # Slow to load, and wanted by nobody who only starts a stack.
        from remit_contracts.events import RUN_STEPS_TOPIC
        from service_kit.bus.factory import create_bus
        from service_kit.bus.port import ReceivedMessage

        async def keep(message: ReceivedMessage) -> None:
            place = f"{message.topic}, partition {message.partition}, offset {message.offset}, key {message.key}"
            event = ReadEvent(dict(message.headers), json.loads(message.value or b"{}"), place)
            with self._news:
                self._found.append(event)
            self._tell()

        bus = create_bus(self._broker_url, client_id="demo-reader", producer="plain")
        await bus.start()
        # A group of its own: it takes nothing away from anybody and begins at the earliest message.
        group = f"demo-reader-{uuid4().hex[:12]}"
        subscription = bus.subscribe([self._topic or RUN_STEPS_TOPIC], keep, group=group)
        running = asyncio.create_task(subscription.run())
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            subscription.stop()
            await asyncio.wait([running], timeout=STOP_SECONDS)
            await bus.stop()


def read_events(
    broker_url: str, enough: Callable[[list[ReadEvent]], bool], seconds: float = 20.0, topic: str | None = None
) -> list[ReadEvent]:
    """Read a topic from its beginning until ``enough`` is satisfied or the time is over."""
    with EventReader(broker_url, topic) as reader:
        return reader.wait(enough, seconds)
