"""File records of the demo's pictures: written by the file storage's owner, never through a datamap.

The store has no upload yet, so the loader does what a storage does: it registers its files as the database's owner and
takes what the capture saw of it in the same transaction.
"""

from __future__ import annotations

import asyncpg

from remit_local.demo.maps import file_key
from remit_local.demo.pictures import pictures

_INSERT = """
INSERT INTO sys_file (pid, storage, identifier, name, type, mime_type, sha1, size)
VALUES (0, $1, $2, $3, $4, $5, $6, $7) RETURNING uid
"""
_PICTURE_TYPE = 2


async def register_pictures(owner_url: str, storage: int) -> dict[str, int]:
    """Make a file record per picture; placeholder -> uid.

    Args:
        owner_url: of the role that owns the store's database.
        storage: uid of the storage they lie in.
    """
    connection = await asyncpg.connect(owner_url)
    try:
        async with connection.transaction():
            made = {
                file_key(picture.name): int(
                    await connection.fetchval(
                        _INSERT, storage, f"/pictures/{picture.name}", picture.name, _PICTURE_TYPE, "image/svg+xml",
                        picture.sha1, len(picture.content),
                    )
                )
                for picture in pictures()
            }  # fmt: skip
            await connection.execute("SELECT * FROM capture_take(NULL)")
    finally:
        await connection.close()
    return made
