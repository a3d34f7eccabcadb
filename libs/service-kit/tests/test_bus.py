"""One behaviour, every broker: the memory twin must not promise more or less than Kafka's protocol."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
from remit_harness.servers import BrokerServer
from service_kit.bus import (
    EventBus,
    Message,
    MessageTooLargeError,
    PoisonMessageError,
    PublisherFencedError,
    ReceivedMessage,
    RetryPolicy,
    Subscription,
    Topic,
    create_bus,
)
from service_kit.bus.kafka_consumer import KafkaPoller
from service_kit.bus.memory import MemoryBus
from service_kit.bus.port import PipeliningBus
from service_kit.bus.subscription import with_timing
from service_kit.ids import uuid7
from service_kit.settings import ProducerMode

Until = Callable[[Callable[[], bool | Awaitable[bool]]], Awaitable[None]]
QUICK = RetryPolicy(max_attempts=3, backoff=0.01, max_backoff=0.05)


@pytest.fixture(params=["memory", "kafka"])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[EventBus]:
    made: EventBus
    if request.param == "memory":
        made = MemoryBus()
    else:
        server: BrokerServer = request.getfixturevalue("broker")
        mode: ProducerMode = "idempotent" if server.kind == "kafka" else "plain"
        made = create_bus(f"kafka://{server.address}", client_id="kit-test", producer=mode)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def topic(bus: EventBus) -> str:
    name = f"kit.{uuid7().hex[-12:]}"
    await bus.ensure_topics([Topic(name, partitions=2), Topic(f"{name}.dlq", partitions=1)])
    return name


class Recorder:
    """A handler that remembers, and fails as it is told."""

    def __init__(self) -> None:
        self.messages: list[ReceivedMessage] = []
        self.attempts: dict[str, int] = defaultdict(int)
        self.fail: Callable[[str, int], Exception | None] = lambda _text, _attempt: None

    async def __call__(self, message: ReceivedMessage) -> None:
        text = message.value.decode()
        self.attempts[text] += 1
        if (error := self.fail(text, self.attempts[text])) is not None:
            raise error
        self.messages.append(message)

    def texts(self) -> list[str]:
        return [message.value.decode() for message in self.messages]


@asynccontextmanager
async def running(*subscriptions: Subscription) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(with_timing(one, poll=0.1, reopen=0.05).run()) for one in subscriptions]
    try:
        yield tasks
    finally:
        for one in subscriptions:
            one.stop()
        await asyncio.gather(*tasks, return_exceptions=True)


def group() -> str:
    return f"kit-{uuid7().hex[-12:]}"


async def test_messages_keep_key_value_headers_and_order_per_key(bus: EventBus, topic: str, until: Until) -> None:
    sent = [Message(topic, f"k{n % 3}", f"{n}".encode(), (("ce_id", f"ü{n}"), ("ce_id", "twice"))) for n in range(12)]
    for message in sent:
        await bus.publish(message)
    recorder = Recorder()
    async with running(bus.subscribe([topic], recorder, group=group())):
        await until(lambda: len(recorder.messages) == 12)
    for key in ("k0", "k1", "k2"):
        received = [(m.value, m.headers) for m in recorder.messages if m.key == key]
        assert received == [(m.value, m.headers) for m in sent if m.key == key]


async def test_a_message_without_key_arrives(bus: EventBus, topic: str, until: Until) -> None:
    await bus.publish(Message(topic, None, b""))
    recorder = Recorder()
    async with running(bus.subscribe([topic], recorder, group=group())):
        await until(lambda: len(recorder.messages) == 1)
    assert (recorder.messages[0].key, recorder.messages[0].value, recorder.messages[0].headers) == (None, b"", ())


async def test_a_group_begins_at_the_earliest_and_goes_on_where_it_was(bus: EventBus, topic: str, until: Until) -> None:
    name = group()
    await bus.publish(Message(topic, "k", b"before"))
    first, second, other = Recorder(), Recorder(), Recorder()
    async with running(bus.subscribe([topic], first, group=name)):
        await until(lambda: first.texts() == ["before"])
    await bus.publish(Message(topic, "k", b"between"))
    async with running(bus.subscribe([topic], second, group=name)):
        await until(lambda: second.texts() == ["between"])
    async with running(bus.subscribe([topic], other, group=group())):
        await until(lambda: other.texts() == ["before", "between"])


async def test_without_a_group_only_what_comes_from_now_on(bus: EventBus, topic: str, until: Until) -> None:
    await bus.publish(Message(topic, "k", b"old"))
    recorders = [Recorder(), Recorder()]
    joined: list[int] = []

    async def note() -> None:
        joined.append(1)

    subscriptions = [bus.subscribe([topic], one, group=None, on_join=note) for one in recorders]
    async with running(*subscriptions):
        await until(lambda: len(joined) == 2)
        await bus.publish(Message(topic, "k", b"new"))
        await until(lambda: all(one.texts() == ["new"] for one in recorders))


async def test_a_message_whose_handler_failed_comes_again_before_the_next(
    bus: EventBus, topic: str, until: Until
) -> None:
    for text in ("a", "b", "c"):
        await bus.publish(Message(topic, "k", text.encode()))
    recorder = Recorder()
    recorder.fail = lambda text, attempt: RuntimeError("once") if text == "b" and attempt == 1 else None
    subscription = bus.subscribe([topic], recorder, group=group(), retry=QUICK)
    async with running(subscription):
        await until(lambda: recorder.texts() == ["a", "b", "c"])
    assert recorder.attempts["b"] == 2
    assert subscription.status.dead == 0


@pytest.mark.parametrize("kind", ["poison", "failing"])
async def test_a_message_that_cannot_be_handled_goes_to_the_dead_letters(
    bus: EventBus, topic: str, until: Until, kind: str
) -> None:
    error = PoisonMessageError("no such thing") if kind == "poison" else RuntimeError("always")
    for text in ("a", "bad", "c"):
        await bus.publish(Message(topic, "k", text.encode(), (("ce_id", text),)))
    recorder, letters = Recorder(), Recorder()
    recorder.fail = lambda text, _attempt: error if text == "bad" else None
    subscription = bus.subscribe([topic], recorder, group=group(), retry=QUICK)
    async with running(subscription, bus.subscribe([f"{topic}.dlq"], letters, group=group())):
        await until(lambda: recorder.texts() == ["a", "c"] and len(letters.messages) == 1)
    letter = letters.messages[0]
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["ce_id"]) == ("k", b"bad", "bad")
    assert headers["dlq-reason"].startswith(type(error).__name__)
    assert headers["dlq-attempts"] == ("1" if kind == "poison" else "3")
    assert headers["dlq-topic"] == topic
    assert subscription.status.dead == 1


async def test_errors_of_the_surroundings_never_make_a_dead_letter(bus: EventBus, topic: str, until: Until) -> None:
    await bus.publish(Message(topic, "k", b"a"))
    recorder = Recorder()
    recorder.fail = lambda _text, attempt: ConnectionError() if attempt < 8 else None
    policy = RetryPolicy(
        max_attempts=2, backoff=0.001, max_backoff=0.01, is_transient=lambda error: isinstance(error, OSError)
    )
    subscription = bus.subscribe([topic], recorder, group=group(), retry=policy)
    async with running(subscription):
        await until(lambda: recorder.texts() == ["a"])
    assert subscription.status.dead == 0
    assert recorder.attempts["a"] == 8


async def test_a_handler_cut_off_by_the_shutdown_gets_its_message_again(
    bus: EventBus, topic: str, until: Until
) -> None:
    name = group()
    await bus.publish(Message(topic, "k", b"a"))
    begun = asyncio.Event()

    async def hang(_message: ReceivedMessage) -> None:
        begun.set()
        await asyncio.Event().wait()

    hanging = with_timing(bus.subscribe([topic], hang, group=name), poll=0.1, stop=0.05)
    task = asyncio.create_task(hanging.run())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    recorder = Recorder()
    async with running(bus.subscribe([topic], recorder, group=name)):
        await until(lambda: recorder.texts() == ["a"])


async def test_members_of_a_group_share_the_work(bus: EventBus, topic: str, until: Until) -> None:
    name = group()
    recorders = [Recorder(), Recorder()]
    subscriptions = [bus.subscribe([topic], one, group=name) for one in recorders]
    async with running(*subscriptions):
        await until(lambda: [len(one.status.assignment) for one in subscriptions] == [1, 1])
        for number in range(40):
            await bus.publish(Message(topic, f"k{number}", f"{number}".encode()))
        await until(lambda: len({text for one in recorders for text in one.texts()}) == 40)
    assert all(one.messages for one in recorders)


async def test_a_message_over_the_limit_is_refused(bus: EventBus, topic: str) -> None:
    with pytest.raises(MessageTooLargeError):
        await bus.publish(Message(topic, "k", b"x" * 1_100_000))
    await bus.publish(Message(topic, "k", b"x" * 990_000))


async def test_messages_sent_without_waiting_keep_their_order_and_end_at_the_first_that_cannot_go(
    broker: BrokerServer, until: Until
) -> None:
    if broker.kind != "kafka":
        pytest.skip("needs a broker with idempotent producers (Apache Kafka)")
    address, topic = f"kafka://{broker.address}", f"kit.{uuid7().hex[-12:]}"
    plain = create_bus(address, client_id="kit", producer="plain")
    # Nothing guards the order of a plain producer, so it sends one after the other.
    assert isinstance(plain, PipeliningBus)
    assert not plain.pipelines
    bus = create_bus(address, client_id="kit", producer="idempotent")
    assert isinstance(bus, PipeliningBus)
    assert bus.pipelines
    await bus.start()
    try:
        await bus.ensure_topics([Topic(topic, partitions=2)])
        many = [Message(topic, "k", f"{number:05}".encode() * 100) for number in range(100)]
        assert await bus.publish_all(many) == (100, None)
        arrived, error = await bus.publish_all(
            [Message(topic, "k", b"a"), Message(topic, "k", b"x" * 1_100_000), Message(topic, "k", b"never")]
        )
        assert arrived == 1
        assert isinstance(error, MessageTooLargeError)
        await bus.publish(Message(topic, "k", b"end"))
        recorder = Recorder()
        async with running(bus.subscribe([topic], recorder, group=group())):
            await until(lambda: recorder.texts()[-1:] == ["end"])
        assert recorder.texts() == [*(message.value.decode() for message in many), "a", "end"]
    finally:
        await bus.stop()


async def test_topics_can_be_ensured_again(bus: EventBus, topic: str) -> None:
    await bus.ensure_topics([Topic(topic, partitions=2)])
    await bus.ping()


async def everything_is_read(address: str, topic: str) -> bool:
    """A consumer that read all sees no lag, although the marks of transactions take places in the log."""
    poller = await KafkaPoller.open(
        address,
        topics=(topic,),
        group=group(),
        client_id="kit",
        stop_timeout=5.0,
        read_committed=True,
    )
    try:
        seen = 0
        for _ in range(100):
            seen += len(await poller.poll(0.05))
            if seen == 2 and await poller.lag() == 0:
                return True
        return False
    finally:
        await poller.close()


async def test_a_transaction_is_visible_as_a_whole(broker: BrokerServer, until: Until) -> None:
    if broker.kind != "kafka":
        pytest.skip("needs a broker with transactions (Apache Kafka)")
    identity = f"kit-{uuid7().hex[-12:]}"
    address = f"kafka://{broker.address}"
    first = create_bus(address, client_id="kit-1", producer="transactional", transactional_id=identity)
    second = create_bus(address, client_id="kit-2", producer="transactional", transactional_id=identity)
    topic = f"kit.{uuid7().hex[-12:]}"
    try:
        await first.start()
        await first.ensure_topics([Topic(topic, partitions=2)])

        async def fail() -> None:
            async with first.transaction():
                await first.publish(Message(topic, "k", b"undone"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with first.transaction():
            await first.publish(Message(topic, "k", b"a"))
            await first.publish(Message(topic, "k", b"b"))
        recorder = Recorder()
        subscription = first.subscribe([topic], recorder, group=group())
        async with running(subscription):
            await until(lambda: recorder.texts() == ["a", "b"])
            await until(partial(everything_is_read, broker.address, topic))
            # A second publisher with the same identity fences the first one.
            await second.start()
            with pytest.raises(PublisherFencedError):
                await first.publish(Message(topic, "k", b"late"))
            await second.publish(Message(topic, "k", b"c"))
            await until(lambda: recorder.texts() == ["a", "b", "c"])
    finally:
        await first.stop()
        await second.stop()
