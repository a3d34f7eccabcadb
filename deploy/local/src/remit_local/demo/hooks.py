"""A hook of the demo installation: a journal line about the latest translation.

It shows what an installation's own code does to a change list: the record it writes lies where editors see nothing,
so their list only counts it. Where the journal's table is not part of the schema the hook does nothing. Under an
assignment scope a translation is undone because of it: the journal lies outside every scope an editor works with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from content_store.datahandler.hooks import DataHandlerHook

if TYPE_CHECKING:
    from content_store.datahandler.hooks import Fields
    from content_store.datahandler.run import HandlerRun

JOURNAL = "tx_remitdemo_journal"
WATCHED = frozenset({"pages", "tt_content"})


class TranslationJournalHook(DataHandlerHook):
    """Counts translations of pages and elements in one record."""

    async def post_process_command(
        self,
        run: HandlerRun,
        command: str,
        table: str,
        uid: int,
        value: Any,
        paste: Fields | None,
        results: list[int],
    ) -> None:
        """Per command of the outermost handler: what it makes along belongs to the same translation."""
        if command == "localize" and results and run.outermost and table in WATCHED:
            await self._note(run, f"{table}:{uid}, language {value}")

    async def _note(self, run: HandlerRun, latest: str) -> None:
        if JOURNAL not in run.ctx.schema.tables:
            return
        rows = await run.ctx.gateway.fetch(
            f"SELECT uid, entries FROM {run.ctx.gateway.table(JOURNAL)} ORDER BY uid LIMIT 1 FOR UPDATE"
        )
        if rows:
            entry = {"entries": rows[0]["entries"] + 1, "latest": latest[:255], "tstamp": run.ctx.now}
            await run.ctx.gateway.update(JOURNAL, rows[0]["uid"], entry)
