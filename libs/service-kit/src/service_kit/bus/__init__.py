"""The event bus: a port, and its two sides, Kafka's protocol and memory."""

from __future__ import annotations

from service_kit.bus.connecting import connected
from service_kit.bus.factory import create_bus
from service_kit.bus.policy import RetryPolicy, SubscriptionStatus
from service_kit.bus.port import (
    BusError,
    BusUnavailableError,
    EventBus,
    Handler,
    Message,
    MessageTooLargeError,
    PoisonMessageError,
    PublisherFencedError,
    PublishError,
    ReceivedMessage,
    Topic,
)
from service_kit.bus.subscription import Subscription

__all__ = [
    "BusError",
    "BusUnavailableError",
    "EventBus",
    "Handler",
    "Message",
    "MessageTooLargeError",
    "PoisonMessageError",
    "PublishError",
    "PublisherFencedError",
    "ReceivedMessage",
    "RetryPolicy",
    "Subscription",
    "SubscriptionStatus",
    "Topic",
    "connected",
    "create_bus",
]
