"""Opens what the application works with, and starts what works beside the requests."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import asyncpg
from fastapi import FastAPI
from remit_contracts.events import RECORDS_TOPIC
from service_kit.bus import BusError, EventBus, Topic, connected, create_bus
from service_kit.database import Database
from service_kit.logging import get_logger
from service_kit.metrics import Metrics
from service_kit.outbox import Outbox, OutboxRelay, OutboxWaker, RelaySettings
from service_kit.pool import create_pool

from content_store.auth.hook import PasswordHook
from content_store.auth.passwords import hash_password
from content_store.auth.service import AuthService
from content_store.auth.settings import AuthSettings
from content_store.caches.flush import CacheFlusher, NoCaches
from content_store.caches.hook import CacheFlushHook
from content_store.caches.installed import load_caches
from content_store.calls.endpoints import Calls
from content_store.calls.environment import CallLimits, StoreEnvironment
from content_store.calls.interactive import OpenCalls
from content_store.calls.rehearsal import RehearsalService
from content_store.calls.service import CallService
from content_store.capture.sweeper import CaptureSweeper
from content_store.datahandler.files_hook import FileRecordsHook
from content_store.datahandler.hooks import DataHandlerHook
from content_store.datahandler.run import HandlerOptions
from content_store.datahandler.sites import Site, Sites
from content_store.deps import Services
from content_store.files.hook import FileMountHook
from content_store.identity import Identity
from content_store.schema.model import Schema
from content_store.schema.roles import refuse_privileged_role
from content_store.settings import StoreSettings

logger = get_logger(__name__)
SERVICE = "content-store"
EXPIRY_INTERVAL = 0.5
IDLE_GRACE = 5.0
#: Rules every installation keeps to, before the hooks of extensions.
BUILT_IN_HOOKS: tuple[DataHandlerHook, ...] = (FileRecordsHook(), FileMountHook(), PasswordHook())


@dataclass
class StoreParts:
    """What an application is made of; tests exchange single parts.

    Attributes:
        settings: of the service.
        auth: of logins.
        schema: read from the table files when not given.
        sites: read from the site files when not given.
        hooks: installed ones when not given.
        caches: installed ones when not given.
        background: run the relay and the sweeper in this process.
        bus: where the relay publishes to; made from the settings when not given.
    """

    settings: StoreSettings
    auth: AuthSettings = field(default_factory=AuthSettings)
    schema: Schema | None = None
    sites: Sequence[Site] | None = None
    hooks: Sequence[DataHandlerHook] | None = None
    caches: CacheFlusher | None = None
    background: bool = True
    bus: EventBus | None = None


async def open_services(
    stack: AsyncExitStack,
    app: FastAPI,
    parts: StoreParts,
    schema: Schema,
    sites: Sequence[Site],
    hooks: Sequence[DataHandlerHook],
    identity: Identity,
) -> Services:
    """Open pools and services and put them where the routes look for them.

    Raises:
        PrivilegedRoleError: the service's role could get around the capture.
    """
    services = await _services(stack, parts, schema, sites, hooks, identity)
    settings = parts.settings
    calls = CallService(services.environment, services.applies, services.reads)
    key = settings.call_token_key.get_secret_value().encode() if settings.call_token_key else secrets.token_bytes(32)
    open_calls = OpenCalls(
        services.environment,
        services.open_calls,
        calls,
        address=settings.public_url or f"http://{settings.host}:{settings.port}",
        key=key,
    )
    # Ends open calls before the pools they work on are closed.
    stack.push_async_callback(open_calls.close)
    _task(stack, _every(EXPIRY_INTERVAL, open_calls.sweep))
    rehearsing = await _pool(stack, settings, "rehearsals", settings.apply_pool_size, settings.rehearsal_lock_timeout)
    app.state.services = services
    app.state.calls = Calls(
        service=calls,
        open_calls=open_calls,
        rehearsals=RehearsalService(services.environment, rehearsing),
        env=services.environment,
        reads=services.reads,
    )
    app.state.authenticator = identity.authenticator(services.auth)
    return services


async def _services(
    stack: AsyncExitStack,
    parts: StoreParts,
    schema: Schema,
    sites: Sequence[Site],
    hooks: Sequence[DataHandlerHook],
    identity: Identity,
) -> Services:
    settings = parts.settings
    url = settings.database_url.get_secret_value()
    reads = await _pool(stack, settings, "reads", settings.read_pool_size, None)
    async with reads.acquire() as connection:
        await refuse_privileged_role(cast("asyncpg.Connection[Any]", connection))
    applies = await _pool(stack, settings, "applies", settings.apply_pool_size, settings.call_lock_timeout)
    open_calls = await _pool(
        stack,
        settings,
        "open-calls",
        settings.open_call_limit + 1,
        settings.call_lock_timeout,
        # The server's own end of a call that its process cannot end any more: after the sweeper's turn.
        idle_in_transaction_timeout=settings.open_call_idle_limit + IDLE_GRACE,
    )
    database = Database(url, application_name=f"{SERVICE}-auth", pool_size=settings.database_pool_size)
    stack.push_async_callback(database.close)
    waker = OutboxWaker(url)
    await waker.start()
    stack.push_async_callback(waker.stop)
    caches = parts.caches if parts.caches is not None else load_caches()
    built_in = BUILT_IN_HOOKS if isinstance(caches, NoCaches) else (*BUILT_IN_HOOKS, CacheFlushHook())
    environment = StoreEnvironment(
        schema=schema,
        sites=Sites(sites),
        hooks=lambda: (*built_in, *hooks),
        caches=caches,
        published=waker.ring,
        options=HandlerOptions(hash_password=hash_password),
        limits=_limits(settings),
    )
    return Services(
        settings=settings,
        schema=schema,
        sites=environment.sites,
        site_list=sites,
        signing_key=identity.key,
        auth=AuthService(database, identity.issuer, parts.auth),
        database=database,
        reads=reads,
        applies=applies,
        open_calls=open_calls,
        environment=environment,
        waker=waker,
    )


async def _pool(
    stack: AsyncExitStack,
    settings: StoreSettings,
    name: str,
    size: int,
    lock_timeout: float | None,
    *,
    idle_in_transaction_timeout: float | None = None,
) -> asyncpg.Pool[Any]:
    pool = await create_pool(
        settings.database_url.get_secret_value(),
        application_name=f"{SERVICE}-{name}",
        max_size=size,
        connect_timeout=settings.database_connect_timeout,
        statement_timeout=settings.call_statement_timeout,
        lock_timeout=lock_timeout,
        idle_in_transaction_timeout=idle_in_transaction_timeout,
    )
    stack.push_async_callback(pool.close)
    return pool


def _limits(settings: StoreSettings) -> CallLimits:
    return CallLimits(
        lock_timeout=settings.call_lock_timeout,
        rehearsal_lock_timeout=settings.rehearsal_lock_timeout,
        retries=settings.call_retries,
        max_rows=settings.judged_rows_limit,
        max_history=settings.history_rows_limit,
        max_changes=settings.change_list_limit,
        idle_seconds=settings.open_call_idle_limit,
        hard_seconds=settings.open_call_hard_limit,
        placing_seconds=settings.open_call_placing_limit,
        max_open=settings.open_call_limit,
    )


async def start_background(stack: AsyncExitStack, parts: StoreParts, services: Services, metrics: Metrics) -> None:
    """The relay of events and the sweeper of rows nobody took; any number of processes may run them."""
    settings = parts.settings
    bus = parts.bus
    if bus is None:
        bus = create_bus(
            settings.broker_url,
            client_id=SERVICE,
            producer=settings.broker_producer,
            transactional_id=f"{SERVICE}-relay" if settings.broker_producer == "transactional" else None,
        )
        stack.push_async_callback(_stopped, bus)
    relay = OutboxRelay(
        settings.database_url.get_secret_value(),
        service=SERVICE,
        bus=bus,
        settings=RelaySettings(
            poll_interval=settings.outbox_poll_interval,
            batch_size=settings.outbox_batch_size,
            retention=settings.outbox_retention,
        ),
        metrics=metrics,
    )
    sweeper = CaptureSweeper(
        services.reads,
        services.schema,
        Outbox(),
        age=settings.capture_sweep_age,
        batch=settings.capture_sweep_batch,
        published=services.waker.ring,
    )
    _task(stack, _published(bus, relay, own=parts.bus is None))
    _task(stack, sweeper.run(settings.capture_sweep_interval))


async def _published(bus: EventBus, relay: OutboxRelay, *, own: bool) -> None:
    """Publish until cancelled; the service works while the broker is away, and its events wait."""
    if own:
        await connected(bus, [Topic(RECORDS_TOPIC)])
    await relay.run()


async def _stopped(bus: EventBus) -> None:
    with contextlib.suppress(BusError):
        await bus.stop()


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            logger.warning("work in the background failed", exc_info=error)


def _task(stack: AsyncExitStack, work: Coroutine[Any, Any, Any]) -> None:
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)
