"""Caches of an installation: packages announce them, as they announce hooks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Final

from content_store.caches.flush import CacheFlusher, CacheFlushFailed, NoCaches
from content_store.records.gateway import RecordGateway

CACHE_GROUP: Final = "content_store.caches"


class InstalledCaches:
    """Several caches as one: each is flushed, also after another one failed.

    Args:
        caches: in the order they are flushed.
    """

    def __init__(self, caches: Sequence[CacheFlusher]) -> None:
        self._caches = tuple(caches)

    async def flush_tags(self, gateway: RecordGateway, tags: Sequence[str]) -> None:
        """In each cache; the first error ends it, as the transaction may not be usable any more."""
        for cache in self._caches:
            await cache.flush_tags(gateway, tags)

    async def flush_group(self, group: str) -> None:
        """In each cache.

        Raises:
            CacheFlushFailed: at least one of them could not be flushed.
        """
        errors: list[Exception] = []
        for cache in self._caches:
            try:
                await cache.flush_group(group)
            except Exception as error:  # noqa: BLE001 - code of an installation; raised below
                errors.append(error)
        if errors:
            raise CacheFlushFailed("; ".join(str(error) or type(error).__name__ for error in errors)) from errors[0]


def load_caches() -> CacheFlusher:
    """What installed packages announce under ``content_store.caches``: factories, called without arguments.

    Raises:
        TypeError: an entry point does not make a :class:`CacheFlusher`.
    """
    found: list[CacheFlusher] = []
    for entry in sorted(entry_points(group=CACHE_GROUP), key=lambda e: e.name):
        cache = entry.load()()
        if not isinstance(cache, CacheFlusher):
            raise TypeError(f"{CACHE_GROUP}: {entry.name} makes no CacheFlusher")
        found.append(cache)
    return InstalledCaches(found) if found else NoCaches()
