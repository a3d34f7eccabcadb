"""Keys that are fetched: cached, and fetched again when a key id is not known, but not more often than allowed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from service_kit.auth.keys import KeyMaterialError, KeySet
from service_kit.logging import get_logger

logger = get_logger(__name__)


class RemoteKeySource:
    """A :data:`~service_kit.auth.tokens.KeySource` over a fetch function.

    Args:
        fetch: gets the present keys.
        failures: what it raises when it cannot.
        min_interval: seconds between two fetches, so that invented key ids cannot make us ask without end.
        max_age: seconds after which keys are fetched again, so that withdrawn keys stop to count.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[KeySet]],
        failures: tuple[type[Exception], ...],
        *,
        min_interval: float = 30.0,
        max_age: float = 3600.0,
    ) -> None:
        self._fetch = fetch
        self._failures: tuple[type[Exception], ...] = (*failures, KeyMaterialError)
        self._min_interval = min_interval
        self._max_age = max_age
        self._keys = KeySet()
        self._tried_at = float("-inf")
        self._fetched_at = float("-inf")
        self._lock = asyncio.Lock()

    async def __call__(self, kid: str) -> KeySet:
        """The keys, fetched anew when this one is not among them or they are old."""
        async with self._lock:
            now = time.monotonic()
            wanted = self._keys.get(kid) is None or now - self._fetched_at > self._max_age
            if wanted and now - self._tried_at >= self._min_interval:
                self._tried_at = now
                try:
                    self._keys = await self._fetch()
                    self._fetched_at = now
                except self._failures as error:
                    logger.warning("keys of the issuer not fetched", error=type(error).__name__)
            return self._keys
