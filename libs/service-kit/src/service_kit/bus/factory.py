"""The bus a broker address stands for."""

from __future__ import annotations

from service_kit.bus.memory import MemoryBus
from service_kit.bus.port import EventBus
from service_kit.settings import ProducerMode


def create_bus(
    url: str, *, client_id: str, producer: ProducerMode = "idempotent", transactional_id: str | None = None
) -> EventBus:
    """A bus, not started.

    Args:
        url: ``kafka://host:port[,host:port]``, or ``memory://`` for one process alone.
        client_id: seen in the broker's logs.
        producer: ``plain`` for brokers without idempotent producers, ``idempotent``, or ``transactional``.
        transactional_id: of the one publisher that may be active; needed for ``transactional``.

    Raises:
        ValueError: another scheme, or a transactional producer without an id.
    """
    scheme, _, servers = url.partition("://")
    if scheme == "memory":
        return MemoryBus()
    if scheme != "kafka" or not servers:
        raise ValueError("the broker's address must start with kafka:// or memory://")
    from service_kit.bus.kafka import KafkaBus

    return KafkaBus(servers, client_id=client_id, producer=producer, transactional_id=transactional_id)
