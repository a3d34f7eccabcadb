"""Health and metrics of the consuming program, over HTTP like those of the API."""

from __future__ import annotations

import time
from collections.abc import Callable

from fastapi import FastAPI
from service_kit.app import create_app
from service_kit.bus.policy import SubscriptionStatus
from service_kit.database import Database
from service_kit.metrics import Metrics
from service_kit.migrations import Migrations
from sqlalchemy import text

from chat_gateway.settings import PACKAGE, SERVICE, GatewaySettings

QUIET_SECONDS = 120.0
"""Twice the watchdog's patience: without progress for so long the program is not following the topic."""
Status = Callable[[], SubscriptionStatus | None]
"""State of the subscription, none before there is one."""


class NotFollowingError(Exception):
    """The program does not read the topic now; it goes on trying."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


async def database_ready(database: Database) -> None:
    """The database answers and has this program's tables."""
    async with database.engine.connect() as connection:
        await connection.execute(text("SELECT 1"))
    await Migrations(PACKAGE).check(database.engine)


def check_following(status: SubscriptionStatus | None, now: float) -> None:
    """The topic is being read. A share of no partition is fine: others of the group have them all.

    Raises:
        NotFollowingError: there is no consumer, or it does not poll.
    """
    if status is None or not status.running or not status.connected:
        raise NotFollowingError("broker_not_connected")
    quiet = status.quiet(now)
    if quiet is not None and quiet > QUIET_SECONDS:
        raise NotFollowingError("consumer_stuck")


def health_app(settings: GatewaySettings, database: Database, status: Status) -> FastAPI:
    """The application with ``/healthz``, ``/readyz`` and ``/metrics``."""

    async def database_check() -> None:
        await database_ready(database)

    async def consumer_check() -> None:
        check_following(status(), time.monotonic())

    return create_app(
        SERVICE,
        settings,
        [],
        readiness={"database": database_check, "consumer": consumer_check},
        metrics=consumer_metrics(status),
        text_packages=[PACKAGE],
    )


def consumer_metrics(status: Status) -> Metrics:
    """What the watchdog knows, as numbers."""
    metrics = Metrics(f"{SERVICE}-consumer")
    connected = metrics.gauge("remit_consumer_connected", "1 while a consumer is open")
    partitions = metrics.gauge("remit_consumer_partitions", "Partitions of this process's share")
    quiet = metrics.gauge("remit_consumer_quiet_seconds", "Seconds since a poll returned or a message was tried")
    totals = {
        "handled": metrics.gauge("remit_consumer_handled", "Messages projected since the start"),
        "failures": metrics.gauge("remit_consumer_failures", "Failed attempts since the start"),
        "dead": metrics.gauge("remit_consumer_dead", "Messages sent to the dead letters since the start"),
        "restarts": metrics.gauge("remit_consumer_restarts", "Consumers the watchdog replaced since the start"),
    }

    async def refresh() -> None:
        now = status() or SubscriptionStatus()
        connected.set(1 if now.connected else 0)
        partitions.set(len(now.assignment))
        quiet.set(now.quiet(time.monotonic()) or 0.0)
        for name, gauge in totals.items():
            gauge.set(getattr(now, name))

    metrics.on_scrape(refresh)
    return metrics
