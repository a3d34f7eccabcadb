"""What every installation keeps to about files (SEMANTICS 20, shipped hooks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto
from content_store.datahandler.relations.csv import Reference, parse_reference, split_list

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

#: Tables that name a file, and the field that does.
FILE_POINTERS: Final = {"sys_file_reference": "uid_local", "sys_file_metadata": "file"}


class FileRecordsHook(DataHandlerHook):
    """``sys_file`` is written by the file storage only; nothing may refer to a file outside of a storage."""

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        """Refuses file records, and references to files of storage 0.

        Raises:
            HookVeto: the entry would break these rules.
        """
        if table == "sys_file":
            raise HookVeto("File records are not written here", ErrorCode.FILE_DENIED)
        for uid in named_files(run, table, row):
            await self._check_file(run, uid)
        return row

    async def _check_file(self, run: HandlerRun, uid: int) -> None:
        file = await run.ctx.reader.stored("sys_file", uid)
        if file is not None and not file.get("storage"):
            raise HookVeto("File {uid} lies in no storage", ErrorCode.FILE_DENIED, {"uid": uid})


def named_files(run: HandlerRun, table: str, row: Fields) -> list[int]:
    """Uids of the files an entry names, every part of the list as the field itself reads it.

    Raises:
        HookVeto: a part that names no stored file; 0 stands for none.
    """
    name = FILE_POINTERS.get(table)
    if name is None or name not in row or "sys_file" not in run.ctx.schema:
        return []
    column = run.ctx.table(table).columns.get(name)
    spec = column.relation if column is not None else None
    uids: list[int] = []
    try:
        parts = [part for part in split_list(row[name]) if part != "0"]
    except Refusal:
        raise HookVeto("The file cannot be read from {field}", ErrorCode.FILE_DENIED, {"field": name}) from None
    for part in parts:
        # Files are made by the storage only: there is none to wait for.
        reference = parse_reference(part, spec) if spec is not None else Reference("sys_file", part)
        if reference is None or reference.table != "sys_file" or not reference.uid:
            raise HookVeto("The file cannot be read from {field}", ErrorCode.FILE_DENIED, {"field": name})
        uids.append(reference.uid)
    return uids
