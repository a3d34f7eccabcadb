"""File mounts: which files a user may read (R-091). A mount is a folder of a storage; a storage as such is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from content_store.access.policy import BackendUser, Row
from content_store.schema.ddl import qualified_name

if TYPE_CHECKING:
    from content_store.access.readable import Parameters


def split_folder(identifier: str) -> tuple[int, str] | None:
    """Storage and folder of ``storage:/folder/``; the folder ends with a slash, so ``/a/`` is no part of ``/ab/``.

    Returns:
        ``None`` where the identifier cannot be read.
    """
    storage, separator, folder = identifier.partition(":")
    if not separator or not storage.isascii() or not storage.isdigit():
        return None
    return int(storage[:18]), "/" + f"{folder.strip('/')}/".lstrip("/")


def may_read_file(storage: int, identifier: str, folders: frozenset[tuple[int, str]]) -> bool:
    """Does the file lie in one of the mounted folders?"""
    return any(storage == mounted and identifier.startswith(folder) for mounted, folder in folders)


def mounted_folders(mounts: Iterable[Row], *, writing: bool = False) -> frozenset[tuple[int, str]]:
    """Folders of rows of ``sys_filemounts`` that are in use; for writing without those that are read-only."""
    folders = (
        split_folder(str(mount.get("identifier") or ""))
        for mount in mounts
        if not mount.get("deleted") and not mount.get("hidden") and not (writing and mount.get("read_only"))
    )
    return frozenset(folder for folder in folders if folder is not None)


def file_in_mounts(table: str, row: str, user: BackendUser, parameters: Parameters, schema_name: str = "public") -> str:
    """Condition of a statement: the file of the row lies in a mount of the user.

    Args:
        table: ``sys_file`` or ``sys_file_metadata``.
        row: alias of the row.
        user: whose mounts count.
        parameters: of the statement.
        schema_name: database schema of the record tables.
    """
    mounts = parameters.add(sorted(user.filemounts), "bigint[]")
    file = f"f.uid = {row}.uid" if table == "sys_file" else f"f.uid = {row}.file"
    folder = "'/' || ltrim(btrim(substr(m.identifier, strpos(m.identifier, ':') + 1), '/') || '/', '/')"
    return (
        f"EXISTS (SELECT 1 FROM {qualified_name('sys_file', schema_name)} f "
        f"JOIN {qualified_name('sys_filemounts', schema_name)} m ON m.uid = ANY({mounts}) "
        "AND m.deleted = 0 AND m.hidden = 0 AND split_part(m.identifier, ':', 1) = f.storage::text "
        f"AND starts_with(f.identifier, {folder}) WHERE {file})"
    )
