"""Titles of languages as one reader may know them, from the store's sites (R-122)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from service_kit.client import RemoteError
from service_kit.logging import get_logger

from chat_gateway.clients.ports import StorePort

logger = get_logger(__name__)
MAX_REMEMBERED = 1_000
WAIT = 2.0
"""Seconds a card waits for words it can do without."""
AGAIN = 5.0
"""Seconds a store that did not answer is not asked again."""


class LanguageTitles:
    """Language titles by reader, remembered for a while; a title only changes with a site's configuration.

    Args:
        store: knows the sites.
        remember: seconds an answer is used.
    """

    def __init__(self, store: StorePort, remember: float) -> None:
        self._store = store
        self._remember = remember
        self._known: dict[int, tuple[float, Mapping[int, str]]] = {}

    async def of(self, viewer_uid: int) -> Mapping[int, str]:
        """Titles by language id; what is not known is not in it, and its number is shown instead. Never raises."""
        now = time.monotonic()
        until, titles = self._known.get(viewer_uid, (0.0, {}))
        if now < until:
            return titles
        try:
            async with asyncio.timeout(WAIT):
                titles = await self._store.language_titles(viewer_uid)
            until = now + self._remember
        except (RemoteError, TimeoutError) as error:
            logger.warning("language titles not known", error=type(error).__name__)
            until = time.monotonic() + AGAIN
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[viewer_uid] = (until, titles)
        return titles
