"""The relay of this service's outbox: runs beside the API and in workers, one of them leads."""

from __future__ import annotations

from contextlib import suppress

from remit_contracts.events import RUN_STEPS_TOPIC
from service_kit.bus import BusError, EventBus, Topic, connected, create_bus
from service_kit.metrics import Metrics
from service_kit.outbox import OutboxRelay, RelaySettings

from agent_runtime.deps import Runtime
from agent_runtime.settings import SERVICE


async def run_relay(runtime: Runtime, metrics: Metrics | None = None, bus: EventBus | None = None) -> None:
    """Publish until cancelled; a broker that is away is waited for, the outbox keeps what it cannot take."""
    settings = runtime.settings
    made = bus or create_bus(
        settings.broker_url,
        client_id=SERVICE,
        producer=settings.broker_producer,
        transactional_id=f"{SERVICE}-relay",
    )
    try:
        await connected(made, [Topic(RUN_STEPS_TOPIC)])
        relay = OutboxRelay(
            settings.database_url.get_secret_value(),
            service=SERVICE,
            bus=made,
            settings=RelaySettings(
                poll_interval=settings.outbox_poll_interval,
                batch_size=settings.outbox_batch_size,
                retention=settings.outbox_retention,
            ),
            metrics=metrics,
        )
        await relay.run()
    finally:
        with suppress(BusError):
            await made.stop()
