"""What every installation keeps to about files (SEMANTICS 20, shipped hooks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.errors import ErrorCode
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

# Tables that name a file, and the field that does.
_POINTERS: Final = {"sys_file_reference": "uid_local", "sys_file_metadata": "file"}


class FileRecordsHook(DataHandlerHook):
    """``sys_file`` is written by the file storage only; nothing may refer to a file outside of a storage."""

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        """Refuses file records, and references to files of storage 0.

        Raises:
            HookVeto: the entry would break these rules.
        """
        if table == "sys_file":
            raise HookVeto("File records are not written here", ErrorCode.FILE_DENIED)
        name = _POINTERS.get(table)
        if name is not None and name in row:
            await self._check_file(run, row[name])
        return row

    async def _check_file(self, run: HandlerRun, value: Any) -> None:
        text = str(value).removeprefix("sys_file_").strip()
        if not text.isascii() or not text.isdigit() or len(text) > 18 or "sys_file" not in run.ctx.schema:
            return
        file = await run.ctx.reader.stored("sys_file", int(text))
        if file is not None and not file.get("storage"):
            raise HookVeto("File {uid} lies in no storage", ErrorCode.FILE_DENIED, {"uid": int(text)})
