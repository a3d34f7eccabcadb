from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from service_kit.bus.memory import MemoryBroker, MemoryBus
from service_kit.bus.port import Message, PublishError
from service_kit.cloudevents import from_message
from service_kit.database import Database
from service_kit.metrics import Metrics
from service_kit.outbox import Outbox, OutboxEvent, OutboxRelay, OutboxWaker, RelaySettings
from service_kit.pool import create_pool

Until = Callable[[Callable[[], bool | Awaitable[bool]]], Awaitable[None]]
TOPIC = "kit"
FAST = RelaySettings(poll_interval=0.02, backoff=0.005, max_backoff=0.05, measure_interval=0.01)


def event(stream: str, number: int = 0, key: str | None = None) -> OutboxEvent:
    return OutboxEvent(topic=TOPIC, stream=stream, key=key, type="kit.t.v1", source="/kit", data={"n": number})


async def put(url: str, *batches: Sequence[OutboxEvent]) -> None:
    connection = await asyncpg.connect(url)
    try:
        for batch in batches:
            async with connection.transaction():
                await Outbox().append_raw(connection, batch)
    finally:
        await connection.close()


class Bus(MemoryBus):
    """A memory bus that can be told what to do before and after a message is on the broker."""

    def __init__(self, broker: MemoryBroker | None = None) -> None:
        super().__init__(broker)
        self.before: Callable[[Message], Any] | None = None
        self.after: Callable[[Message], Any] | None = None

    async def publish(self, message: Message) -> None:
        if self.before is not None and (work := self.before(message)) is not None:
            await work
        await super().publish(message)
        if self.after is not None and (work := self.after(message)) is not None:
            await work

    def sent(self) -> dict[str, list[int]]:
        """Sequences on the broker, by stream, in the order of the log."""
        found: dict[str, list[int]] = defaultdict(list)
        for (topic, _), log in self.broker.logs.items():
            for message in log if topic == TOPIC else ():
                one = from_message(message)
                assert one.stream is not None
                assert one.sequence is not None
                found[one.stream].append(one.sequence)
        return found


def seen_once(sequences: Sequence[int]) -> list[int]:
    """What a consumer that drops ``seq <= last`` is left with."""
    kept: list[int] = []
    for number in sequences:
        if not kept or number > kept[-1]:
            kept.append(number)
    return kept


@asynccontextmanager
async def running(relay: OutboxRelay) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(relay.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ask(url: str, query: str) -> list[Any]:
    """The first column of a query."""
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def _marked(url: str) -> bool:
    """What is on the broker is known to be there, too: nothing of it is sent again."""
    return not await waiting(url)


async def waiting(url: str) -> list[Any]:
    return await ask(url, "SELECT seq FROM outbox WHERE published_at IS NULL ORDER BY stream, seq")


@pytest.mark.req("T-70")
async def test_events_arrive_as_cloudevents_in_order(url: str, until: Until) -> None:
    bus = Bus()
    await put(url, [event("run-1", 1, "conversation"), event("run-2", 1, "conversation")], [event("run-1", 2)])
    async with running(OutboxRelay(url, service="kit", bus=bus, settings=FAST)):
        await until(lambda: sum(map(len, bus.sent().values())) == 3)
    assert bus.sent() == {"run-1": [1, 2], "run-2": [1]}
    first = next(m for log in bus.broker.logs.values() for m in log if m.key == "conversation")
    received = from_message(first)
    assert (received.type, received.source, received.key) == ("kit.t.v1", "/kit", "conversation")
    assert dict(first.headers)["content-type"] == "application/json"
    assert dict(first.headers)["ce_specversion"] == "1.0"


@pytest.mark.req("T-70", "T-71")
async def test_writers_at_work_lose_nothing_and_order_stays(url: str, until: Until) -> None:
    bus = Bus()
    pool = await create_pool(url, application_name="kit", max_size=6)
    outbox = Outbox()

    async def write(number: int) -> None:
        async with pool.acquire() as connection, connection.transaction():
            await outbox.append_raw(
                connection, [event(f"s{number % 5}", number), event(f"s{(number + 1) % 5}", number)]
            )
            # Transactions that stay open while younger ones commit: a cursor on an id would jump over them.
            await asyncio.sleep(0.001 * (number % 7))

    try:
        async with running(OutboxRelay(url, service="kit", bus=bus, settings=FAST)):
            await asyncio.gather(*(write(number) for number in range(150)))
            await until(lambda: sum(map(len, bus.sent().values())) >= 300)
    finally:
        await pool.close()
    assert bus.sent() == {f"s{number}": list(range(1, 61)) for number in range(5)}


async def test_an_open_transaction_elsewhere_does_not_hold_events_back(url: str, until: Until) -> None:
    bus = Bus()
    blocker = await asyncpg.connect(url)
    try:
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("INSERT INTO note (body) VALUES ('open')")
        await Outbox().append_raw(blocker, [event("slow")])
        await put(url, [event("quick")])
        async with running(OutboxRelay(url, service="kit", bus=bus, settings=FAST)):
            await until(lambda: bus.sent() == {"quick": [1]})
            await transaction.commit()
            await until(lambda: bus.sent() == {"quick": [1], "slow": [1]})
    finally:
        await blocker.close()


@pytest.mark.req("T-71")
@pytest.mark.chaos
@pytest.mark.parametrize("cut", ["cancelled", "connection"])
async def test_a_relay_that_dies_between_publish_and_mark_loses_nothing(url: str, until: Until, cut: str) -> None:
    bus = Bus()
    await put(url, [event("a", 1), event("a", 2), event("b", 1)], [event("a", 3), event("b", 2)])
    died = asyncio.Event()

    async def stop_after_second(message: Message) -> None:
        if from_message(message).stream == "a" and from_message(message).sequence == 2 and not died.is_set():
            died.set()
            await asyncio.Event().wait()

    bus.after = stop_after_second
    relay = OutboxRelay(url, service="kit", bus=bus, settings=FAST)
    async with running(relay) as task:
        await died.wait()
        assert len(await waiting(url)) == 5
        if cut == "cancelled":
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            admin = await asyncpg.connect(url)
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kit-relay'"
            )
            await admin.close()
            # The same relay comes back by itself.
            await until(lambda: bus.sent()["a"][-1] == 3)
    async with running(OutboxRelay(url, service="kit", bus=bus, settings=FAST)):
        await until(lambda: bus.sent()["a"][-1] == 3 and bus.sent()["b"][-1] == 2)

        async def all_marked() -> bool:
            return await waiting(url) == []

        await until(all_marked)
    sent = bus.sent()
    assert sent["a"][:2] == [1, 2]
    assert len(sent["a"]) > 3, "the control: the events published before the end were repeated"
    assert seen_once(sent["a"]) == [1, 2, 3]
    assert seen_once(sent["b"]) == [1, 2]


@pytest.mark.req("T-71")
async def test_a_stream_stops_at_its_first_failure_and_others_go_on(url: str, until: Until) -> None:
    bus = Bus()
    failing = True

    def refuse(message: Message) -> None:
        if failing and from_message(message).stream == "bad" and from_message(message).sequence == 2:
            raise PublishError("not today")

    bus.before = refuse
    await put(url, [event("bad", 1), event("bad", 2), event("bad", 3), event("good", 1), event("good", 2)])
    async with running(OutboxRelay(url, service="kit", bus=bus, settings=FAST)):
        await until(lambda: bus.sent() == {"bad": [1], "good": [1, 2]})
        await put(url, [event("good", 3)])
        await until(lambda: bus.sent() == {"bad": [1], "good": [1, 2, 3]})

        async def noted() -> bool:
            return bool(await ask(url, "SELECT seq FROM outbox WHERE attempts > 0"))

        await until(noted)
        assert await ask(url, "SELECT seq FROM outbox WHERE attempts > 0") == [2]
        assert "not today" in (await ask(url, "SELECT last_error FROM outbox WHERE attempts > 0"))[0]
        failing = False
        await until(lambda: bus.sent() == {"bad": [1, 2, 3], "good": [1, 2, 3]})


@pytest.mark.req("T-71")
async def test_a_broker_that_is_away_delays_and_loses_nothing(url: str, until: Until) -> None:
    bus = Bus()
    bus.broker.available = False
    metrics = Metrics("kit")
    await put(url, *[[event(f"s{number}", 1), event(f"s{number}", 2)] for number in range(20)])
    relay = OutboxRelay(url, service="kit", bus=bus, settings=FAST, metrics=metrics)
    async with running(relay):
        await until(lambda: (metrics.registry.get_sample_value("remit_outbox_failed_total") or 0) > 20)
        assert bus.sent() == {}
        assert (metrics.registry.get_sample_value("remit_outbox_unpublished") or 0) == 40
        assert (metrics.registry.get_sample_value("remit_outbox_oldest_unpublished_seconds") or 0) > 0
        bus.broker.available = True
        await until(lambda: bus.sent() == {f"s{number}": [1, 2] for number in range(20)})


@pytest.mark.req("T-71")
async def test_an_error_nobody_thought_of_does_not_end_the_relay(url: str, until: Until) -> None:
    bus = Bus()
    raised: list[int] = []

    def explode(_message: Message) -> None:
        if len(raised) < 3:
            raised.append(1)
            raise ZeroDivisionError

    bus.before = explode
    await put(url, [event("s", 1), event("s", 2)])
    async with running(OutboxRelay(url, service="kit", bus=bus, settings=FAST)):
        await until(lambda: bus.sent() == {"s": [1, 2]})
    assert len(raised) == 3


async def test_only_one_leader_publishes_and_the_next_takes_over(url: str, until: Until) -> None:
    buses = [Bus(MemoryBroker()), Bus(MemoryBroker())]
    relays = [OutboxRelay(url, service="kit", bus=bus, settings=FAST) for bus in buses]
    other_service = Bus()
    async with running(relays[0]) as first:
        await until(lambda: relays[0].leading)
        async with running(relays[1]):
            await put(url, *[[event("s", number)] for number in range(20)])
            await until(lambda: len(buses[0].sent()["s"]) == 20)
            await until(lambda: _marked(url))
            assert not relays[1].leading
            assert buses[1].sent() == {}
            async with running(OutboxRelay(url, service="other", bus=other_service, settings=FAST)):
                pass
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await until(lambda: relays[1].leading)
            await put(url, [event("s", 20)])
            await until(lambda: buses[1].sent()["s"] == [21])
    assert buses[0].sent() == {"s": list(range(1, 21))}


async def test_a_ring_after_the_commit_wakes_the_relay(url: str, database: Database, until: Until) -> None:
    bus = Bus()
    waker = OutboxWaker(url)
    # Without the wake-up nothing would happen within this test.
    relay = OutboxRelay(url, service="kit", bus=bus, settings=RelaySettings(poll_interval=3600))
    await waker.start()
    try:
        async with running(relay):
            await until(lambda: relay.leading)
            for number in range(1, 4):
                async with database.unit_of_work() as session:
                    await Outbox().append(session, [event("s", number)])
                    session.after_commit(waker.ring_later)
                await until(lambda wanted=number: bus.sent()["s"] == list(range(1, wanted + 1)))  # type: ignore[misc]
    finally:
        await waker.stop()


async def test_published_rows_are_purged_and_waiting_ones_kept(url: str, until: Until) -> None:
    bus = Bus()
    await put(url, [event("s", 1), event("s", 2)])
    settings = RelaySettings(poll_interval=0.02, retention=0.0, purge_interval=0.01, backoff=0.005)

    def refuse(message: Message) -> None:
        if from_message(message).sequence == 2:
            raise PublishError("not today")

    bus.before = refuse

    async def first_is_purged() -> bool:
        return await ask(url, "SELECT seq FROM outbox") == [2]

    async with running(OutboxRelay(url, service="kit", bus=bus, settings=settings)):
        await until(first_is_purged)
        bus.before = None
        await until(lambda: bus.sent()["s"] == [1, 2])
    await put(url, [event("s", 3)])
    # A stream goes on where it was, also when all its rows are gone.
    assert (await waiting(url))[-1] == 3
