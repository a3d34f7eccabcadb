"""The consuming program: projects the run-steps topic, refills what it lost, sends starts again, tidies up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta

from remit_contracts.events import RUN_STEPS_TOPIC, dead_letter_topic
from service_kit.bus import BusUnavailableError, EventBus, RetryPolicy, Subscription, Topic, create_bus
from service_kit.client import RemoteError
from service_kit.clock import utc_now
from service_kit.idempotency import Idempotency
from service_kit.inbox import Inbox
from service_kit.logging import get_logger
from service_kit.migrations import Migrations
from service_kit.serving import serving
from sqlalchemy.exc import DBAPIError

from chat_gateway.health import health_app
from chat_gateway.projection.delivery import CONSUMER
from chat_gateway.projection.handler import StepHandler
from chat_gateway.projection.refill import Refill
from chat_gateway.projection.transient import is_transient
from chat_gateway.services import Services, build_services, open_database, open_remotes
from chat_gateway.settings import PACKAGE, SERVICE, GatewaySettings
from chat_gateway.stream.repository import purge_events

logger = get_logger(__name__)
BUS_RETRY = 1.0
TIDY_INTERVAL = 600.0


class Consumer:
    """The parts of the program, for its command and for tests.

    Args:
        services: of the gateway.
        bus: started.
    """

    def __init__(self, services: Services, bus: EventBus) -> None:
        settings = services.settings
        self._services = services
        self._settings = settings
        self.refill = Refill(services.database, services.remotes.runtime, services.delivery)
        self.subscription: Subscription = bus.subscribe(
            [RUN_STEPS_TOPIC],
            StepHandler(services.delivery),
            group=settings.consumer_group,
            retry=RetryPolicy(max_attempts=settings.consumer_attempts, is_transient=is_transient),
            on_join=self._joined,
        )

    async def _joined(self) -> None:
        await self.refill.check()

    async def run(self) -> None:
        """Work until cancelled or stopped."""
        settings = self._settings
        async with asyncio.TaskGroup() as tasks:
            side = [
                tasks.create_task(_repeat("refill", self.refill.check, settings.refill_interval)),
                tasks.create_task(_repeat("starts", self._services.starter.retry_due, settings.start_pause)),
                tasks.create_task(_repeat("tidy", self._tidy, TIDY_INTERVAL)),
            ]
            try:
                await self.subscription.run()
            finally:
                for task in side:
                    task.cancel()

    async def _tidy(self) -> None:
        """Forget what is older than its retention."""
        settings = self._settings
        async with self._services.database.unit_of_work() as session:
            events = await purge_events(session, utc_now() - timedelta(seconds=settings.stream_retention))
            keys = await Idempotency().purge(session, settings.idempotency_retention)
            ids = await Inbox(CONSUMER).purge(session, settings.inbox_retention)
        logger.info("tidied", stream_events=events, idempotency_keys=keys, inbox=ids)


async def _repeat(name: str, work: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Do the work again and again; a database or service that is away is waited for."""
    while True:
        try:
            await work()
        except (DBAPIError, RemoteError, OSError, TimeoutError) as error:
            logger.warning("will be tried again", work=name, error=type(error).__name__)
        await asyncio.sleep(seconds)


def run_steps_topics() -> list[Topic]:
    """The topic that is read, and where its dead letters go."""
    return [Topic(RUN_STEPS_TOPIC), Topic(dead_letter_topic(RUN_STEPS_TOPIC), partitions=1)]


async def start_bus(settings: GatewaySettings) -> EventBus:
    """A started bus with its topics; waits for a broker that is not there yet."""
    bus = create_bus(settings.broker_url, client_id=SERVICE, producer=settings.broker_producer)
    while True:
        try:
            await bus.start()
            await bus.ensure_topics(run_steps_topics())
        except BusUnavailableError as error:
            logger.warning("broker not reachable, trying again", error=str(error))
            await bus.stop()
            await asyncio.sleep(BUS_RETRY)
            bus = create_bus(settings.broker_url, client_id=SERVICE, producer=settings.broker_producer)
            continue
        return bus


async def consume(settings: GatewaySettings) -> None:
    """Open everything and work until cancelled."""
    async with AsyncExitStack() as stack:
        database = open_database(settings)
        stack.push_async_callback(database.close)
        await Migrations(PACKAGE).check(database.engine)
        remotes = await stack.enter_async_context(open_remotes(settings))
        services = build_services(settings, database, remotes)
        consumer: Consumer | None = None
        if settings.consumer_port is not None:
            # Before the broker is there: whoever watches must hear that it is waited for.
            health = health_app(settings, database, lambda: consumer.subscription.status if consumer else None)
            port = await stack.enter_async_context(serving(health, settings.host, settings.consumer_port))
            logger.info("health is served", port=port)
        bus = await start_bus(settings)
        stack.push_async_callback(bus.stop)
        consumer = Consumer(services, bus)
        logger.info("consuming", topic=RUN_STEPS_TOPIC, group=settings.consumer_group)
        await consumer.run()
