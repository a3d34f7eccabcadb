"""How a subscription retries and waits, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Place = tuple[str, int]


def _nothing_transient(_error: Exception) -> bool:
    return False


@dataclass(frozen=True)
class RetryPolicy:
    """What happens when a handler raises.

    Attributes:
        max_attempts: after so many the message goes to ``<topic>.dlq`` and the partition goes on.
        backoff: seconds before the second attempt, doubled for each further one.
        max_backoff: longest pause in seconds.
        is_transient: errors that say nothing about the message (a database that is down): tried without end.
    """

    max_attempts: int = 5
    backoff: float = 0.1
    max_backoff: float = 5.0
    is_transient: Callable[[Exception], bool] = _nothing_transient

    def pause(self, attempts: int) -> float:
        """Seconds to wait after so many failed attempts."""
        return min(self.backoff * 2.0 ** (min(attempts, 32) - 1), self.max_backoff)


@dataclass
class SubscriptionStatus:
    """What operators see of a subscription.

    Attributes:
        running: inside ``run()``.
        assignment: topics and partitions of our share.
        handled: messages the handler took.
        dead: messages sent to a dead-letter topic.
        failures: failed attempts.
        restarts: consumers given up and opened anew.
        connected: a consumer is open, as far as is known.
        progress_at: when a poll returned or a message was tried last, on the monotonic clock.
    """

    running: bool = False
    assignment: frozenset[Place] = frozenset()
    handled: int = 0
    dead: int = 0
    failures: int = 0
    restarts: int = 0
    connected: bool = False
    progress_at: float | None = None

    def quiet(self, now: float) -> float | None:
        """Seconds without progress, none before the first poll."""
        return None if self.progress_at is None else max(0.0, now - self.progress_at)


@dataclass(frozen=True)
class Timing:
    """Seconds a subscription waits for things.

    Attributes:
        poll: for messages, per call.
        stop: for the handler in flight, when asked to stop.
        stuck: without a returned poll, or with waiting messages and none read, until the consumer is replaced.
        reopen: before a failed consumer is opened again.
    """

    poll: float = 0.5
    stop: float = 10.0
    stuck: float = 60.0
    reopen: float = 1.0
