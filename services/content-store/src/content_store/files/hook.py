"""File mounts when records are written: who may not read a file may not refer to it either (SEMANTICS 20)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.entries import read_uid
from content_store.datahandler.errors import ErrorCode
from content_store.datahandler.files_hook import FILE_POINTERS, named_files
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto
from content_store.datahandler.pointers import read_number
from content_store.files.mounts import may_read_file, mounted_folders

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

_METADATA: Final = "sys_file_metadata"


class FileMountHook(DataHandlerHook):
    """References name only files in the user's mounts; metadata is written only for files in one that is not read-only.

    Administrators are free of it.
    """

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        """Judges the file the entry names, and for metadata also the one the stored row belongs to.

        Raises:
            HookVeto: the file lies outside of the mounts, or cannot be read from the value.
        """
        if table not in FILE_POINTERS or run.ctx.policy.user.admin or "sys_file" not in run.ctx.schema:
            return row
        files = set(named_files(run, table, row))
        if table == _METADATA:
            files.add(await _stored_file(run, record_id))
        for uid in sorted(files - {0}):
            await _check(run, uid, writing=table == _METADATA)
        return row

    async def pre_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste_update: Fields | None
    ) -> Any:
        """Metadata is moved, copied or deleted only with a right on its file.

        Raises:
            HookVeto: the file lies outside of the mounts.
        """
        if table == _METADATA and not run.ctx.policy.user.admin:
            file = await _stored_file(run, str(uid))
            if file:
                await _check(run, file, writing=True)
        return value


async def _stored_file(run: HandlerRun, record_id: str) -> int:
    uid = read_uid(record_id)
    stored = await run.ctx.reader.stored(_METADATA, uid) if uid is not None else None
    return (read_number(stored.get(FILE_POINTERS[_METADATA])) or 0) if stored is not None else 0


async def _check(run: HandlerRun, uid: int, *, writing: bool) -> None:
    file = await run.ctx.reader.stored("sys_file", uid)
    mounts = await run.ctx.reader.stored_many("sys_filemounts", run.ctx.policy.user.filemounts)
    folders = mounted_folders(mounts.values(), writing=writing)
    if file is None or not may_read_file(int(file["storage"]), str(file["identifier"]), folders):
        raise HookVeto("The file {uid} lies outside of the user's file mounts", ErrorCode.FILE_DENIED, {"uid": uid})
