"""A hook of a town: headings begin with a capital letter, nothing is published without a heading, and every change of a
content element is noted on its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from content_store.datahandler.handler import DataHandler
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto, Status

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

#: What left the process; stands for the town's search server.
SENT: list[int] = []


class TownHook(DataHandlerHook):
    """Found by its entry point."""

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        """Before the fields are checked: tidy what was submitted."""
        header = row.get("header")
        if table == "tt_content" and isinstance(header, str):
            row["header"] = header[:1].upper() + header[1:]
        return row

    async def post_process_field_array(
        self, run: HandlerRun, status: Status, table: str, record_id: str, fields: Fields
    ) -> None:
        """Right before the write: object. Nothing of this entry is stored then."""
        if table == "tt_content" and fields.get("header") == "":
            raise HookVeto("A content element needs a heading", "town_heading_missing")

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        """After the write: write more inside the transaction, and leave what is outside to the time after the commit."""
        if table != "tt_content" or "header" not in fields:
            return
        row = await run.ctx.reader.stored("tt_content", uid)
        if row is None:
            return
        note = {"pages": {str(row["pid"]): {"abstract": f"Newest: {fields['header']}"}}}
        await DataHandler.within(run).process(note)
        run.ctx.request_cache_flush(group="pages")

        async def tell_the_search_server() -> None:
            SENT.append(uid)

        run.ctx.defer(tell_the_search_server)
