"""Flushes that writing asks for itself: tags of what was written, and what page TSconfig says (S-69)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.records.gateway import Row

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

PAGES: Final = "pages"
#: Names a page's TSconfig may give; what else it says is no cache of ours and is left alone.
GROUPS: Final = frozenset({"pages", "all", "system"})
_TAG: Final = "cachetag:"


class CacheFlushHook(DataHandlerHook):
    """Asks for the caches of each record written; installed only where there are caches, as it reads pages.

    A record flushes the tags ``<table>``, ``<table>_<uid>`` and ``pageId_<page>``; its page's
    ``TCEMAIN.clearCacheCmd`` adds groups, pages and tags. All of it is wished for on the run: tags go with the
    transaction, groups wait for the commit, a rehearsal drops both.
    """

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        """An entry was carried out."""
        if fields:
            await self._written(run, table, uid)

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        """A command was carried out; where a record was moved from is asked for by :meth:`move_record`."""
        for known in dict.fromkeys((uid, *results)):
            await self._written(run, table, known)

    async def move_record(
        self, run: HandlerRun, table: str, uid: int, target: int, record: Row, page: int, handled: bool
    ) -> bool:
        """The page it leaves."""
        await self._page(run, int(record["pid"]))
        return handled

    async def delete_action(self, run: HandlerRun, table: str, uid: int, record: Row, handled: bool) -> bool:
        """The page it lies on; afterwards nobody finds it there."""
        await self._page(run, uid if table == PAGES else int(record["pid"]))
        return handled

    async def _written(self, run: HandlerRun, table: str, uid: int) -> None:
        run.ctx.request_cache_flush(tags=(table, f"{table}_{uid}"))
        row = await run.ctx.reader.stored(table, uid)
        if row is not None:
            await self._page(run, uid if table == PAGES else int(row["pid"]))

    @staticmethod
    async def _page(run: HandlerRun, page: int) -> None:
        if page <= 0:
            return
        run.ctx.request_cache_flush(tags=(f"pageId_{page}",))
        settings = await run.ctx.tsconfig(page)
        groups, tags = read_command(settings.get("TCEMAIN.clearCacheCmd", ""))
        for group in groups:
            run.ctx.request_cache_flush(group=group)
        run.ctx.request_cache_flush(tags=tags)


def read_command(value: str) -> tuple[list[str], list[str]]:
    """Groups and tags of a ``clearCacheCmd``: ``pages``, ``all``, ``system``, page uids, ``cacheTag:<tag>`` (pure)."""
    groups: list[str] = []
    tags: list[str] = []
    for part in filter(None, (part.strip() for part in value.split(","))):
        if part.lower() in GROUPS:
            groups.append(part.lower())
        elif part.isascii() and part.isdigit():
            tags.append(f"pageId_{int(part)}")
        elif part.lower().startswith(_TAG) and part[len(_TAG) :].strip():
            tags.append(part[len(_TAG) :].strip())
    return groups, tags
