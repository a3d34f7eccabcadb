"""Cache flushes: a group waits for the commit, a tag goes with the transaction (S-59)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

from service_kit.logging import get_logger

from content_store.datahandler.run import FlushRequest
from content_store.records.gateway import RecordGateway

logger = get_logger(__name__)
FLUSH_FAILED = "flush_failed"


@runtime_checkable
class CacheFlusher(Protocol):
    """What a flush reaches; an installation brings its own (see ``caches.installed``)."""

    async def flush_tags(self, gateway: RecordGateway, tags: Sequence[str]) -> None:
        """Remove entries with one of the tags, with statements of the gateway only: a rollback brings them back.

        Raises:
            CacheFlushFailed: the entries are still there.
        """
        ...

    async def flush_group(self, group: str) -> None:
        """Remove every entry of a group; called after the commit, with no connection of a call.

        Raises:
            CacheFlushFailed: the cache could not be reached.
        """
        ...


class CacheFlushFailed(Exception):
    """A cache could not be flushed; what was written stays."""

    code = FLUSH_FAILED


class NoCaches:
    """An installation that caches nothing."""

    async def flush_tags(self, gateway: RecordGateway, tags: Sequence[str]) -> None:
        """Nothing to do."""

    async def flush_group(self, group: str) -> None:
        """Nothing to do."""


def requested(flushes: Iterable[FlushRequest], kind: Literal["group", "tags"]) -> list[str]:
    """Names of one kind that DataHandlers asked for, each once (pure)."""
    return list(dict.fromkeys(name for flush in flushes if flush.kind == kind for name in flush.names))


async def flush_groups(caches: CacheFlusher, groups: Iterable[str]) -> list[str]:
    """Flush each group once, after a commit; what fails is a warning and never an error of what was written.

    Returns:
        Warnings, none when everything was flushed.
    """
    failed = False
    for group in dict.fromkeys(groups):
        try:
            await caches.flush_group(group)
        except Exception as error:
            logger.warning("a cache was not flushed", group=group, exc_info=error)
            failed = True
    return [FLUSH_FAILED] if failed else []
