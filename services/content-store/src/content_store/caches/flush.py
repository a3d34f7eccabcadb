"""Cache flushes of a call: a group waits for the commit, a tag goes with the transaction (S-59)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from content_store.schema.ddl import qualified_name


class CacheFlusher(Protocol):
    """What a flush reaches."""

    async def flush_tags(self, connection: Any, tags: Sequence[str]) -> None:
        """Remove entries with one of the tags, inside the transaction of the connection."""
        ...

    async def flush_group(self, group: str) -> None:
        """Remove every entry of a group; after the commit, on no connection of a call.

        Raises:
            CacheFlushFailed: the cache could not be reached.
        """
        ...


class CacheFlushFailed(Exception):
    """A cache could not be flushed; what was written stays."""


class NoCaches:
    """An installation that caches nothing."""

    async def flush_tags(self, connection: Any, tags: Sequence[str]) -> None:
        """Nothing to do."""

    async def flush_group(self, group: str) -> None:
        """Nothing to do."""


class TableCaches:
    """Entries in a table ``cache_entry(identifier, cache_group, tags text[])`` of the store's database.

    Args:
        pool: for the flush of a group, after the commit.
        table: of the entries.
        schema_name: it lies in.
    """

    def __init__(self, pool: Any, table: str = "cache_entry", schema_name: str = "public") -> None:
        self._pool = pool
        self._table = qualified_name(table, schema_name)

    async def flush_tags(self, connection: Any, tags: Sequence[str]) -> None:
        """Delete the rows; a rollback brings them back."""
        await connection.fetch(f"DELETE FROM {self._table} WHERE tags && $1::text[]", list(tags))

    async def flush_group(self, group: str) -> None:
        """Delete the rows of a group; ``all`` names every group."""
        try:
            await self._pool.execute(f"DELETE FROM {self._table} WHERE $1 = 'all' OR cache_group = $1", group)
        except OSError as error:
            raise CacheFlushFailed(str(error)) from error
