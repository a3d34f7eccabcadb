"""What rights read from the database: pages with their ancestors, languages of translations, file mounts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from content_store.access.rules import PageRights
from content_store.access.users import Queries
from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import TableSchema

_MARKED_FOR_DELETION: Final = 2
_MOVED: Final = 4
_PERMISSIONS: Final = ("perms_userid", "perms_groupid", "perms_user", "perms_group", "perms_everybody")
_LIVE_COLUMNS: Final = ("uid", "pid", "doktype", "deleted", "editlock", *_PERMISSIONS)


def page_by_uid(schema_name: str, wanted: str) -> str:
    """A FROM item for LATERAL: the page ``wanted.next`` as the workspace ``wanted.workspace`` sees it.

    Columns: uid, pid, doktype, deleted, editlock and ``perms_*``. The uid is that of the live row; a page new in the
    workspace is found, drafts of other workspaces are not; one marked for deletion in the workspace counts as deleted.
    Page translations are not left out: callers name pages of the default language.
    """
    pages = qualified_name("pages", schema_name)
    overlaid = ", ".join(f"COALESCE(v.{name}, p.{name}) AS {name}" for name in ("doktype", "editlock", *_PERMISSIONS))
    return (
        f"(SELECT p.uid, CASE WHEN v.t3ver_state = {_MOVED} THEN v.pid ELSE p.pid END AS pid, "
        f"CASE WHEN v.t3ver_state = {_MARKED_FOR_DELETION} THEN 1 ELSE p.deleted END AS deleted, {overlaid} "
        f"FROM {pages} p LEFT JOIN {pages} v ON {wanted}.workspace > 0 AND v.t3ver_oid = p.uid AND v.t3ver_oid <> 0 "
        f"AND v.t3ver_wsid = {wanted}.workspace AND v.deleted = 0 "
        f"WHERE p.uid = {wanted}.next AND p.t3ver_oid = 0 AND p.t3ver_wsid IN (0, {wanted}.workspace) LIMIT 1)"
    )


def _rootlines_statement(schema_name: str, workspace: int) -> str:
    # UNION drops pages found before: ancestors the pages share are read once, and a cycle comes to an end.
    if not workspace:
        columns = ", ".join(f"p.{name}" for name in _LIVE_COLUMNS)
        live = f"SELECT {columns} FROM {qualified_name('pages', schema_name)} p WHERE p.t3ver_wsid = 0"
        # LIMIT keeps the planner from joining the whole table for a handful of ancestors.
        return (
            f"WITH RECURSIVE line AS ({live} AND p.uid = ANY($1::bigint[]) UNION SELECT a.* FROM line "
            f"CROSS JOIN LATERAL ({live} AND p.uid = line.pid LIMIT 1) a) SELECT * FROM line"
        )
    page = page_by_uid(schema_name, "w")
    number = int(workspace)
    return (
        f"WITH RECURSIVE line AS (SELECT p.* FROM (SELECT uid AS next, {number}::bigint AS workspace "
        f"FROM unnest($1::bigint[]) uid) w CROSS JOIN LATERAL {page} p "
        f"UNION SELECT p.* FROM (SELECT pid AS next, {number}::bigint AS workspace FROM line) w "
        f"CROSS JOIN LATERAL {page} p) SELECT * FROM line"
    )


class AccessRepository:
    """Statements of the rights, on whatever the caller reads with: the connection of a call, or a pool.

    Args:
        queries: connection, gateway or pool.
        schema_name: database schema of the record tables.
        workspace: whose view of the page tree counts.
    """

    def __init__(self, queries: Queries, schema_name: str = "public", workspace: int = 0) -> None:
        self._queries = queries
        self._schema_name = schema_name
        self._rootlines = _rootlines_statement(schema_name, workspace)

    async def rootlines(self, pages: Iterable[int]) -> dict[int, PageRights]:
        """The pages and all their ancestors by uid, in one statement; missing pages are missing in the answer."""
        wanted = sorted({uid for uid in pages if uid > 0})
        if not wanted:
            return {}
        return {
            row["uid"]: PageRights(
                uid=row["uid"],
                pid=row["pid"],
                doktype=row["doktype"],
                deleted=bool(row["deleted"]),
                editlock=bool(row["editlock"]),
                owner=row["perms_userid"],
                group=row["perms_groupid"],
                owner_bits=row["perms_user"],
                group_bits=row["perms_group"],
                everybody_bits=row["perms_everybody"],
            )
            for row in await self._queries.fetch(self._rootlines, wanted)
        }

    async def translation_languages(self, table: TableSchema, uid: int) -> set[int]:
        """Languages of the record's translations that are not deleted, drafts of any workspace included."""
        if table.language_field is None or table.parent_field is None:
            return set()
        language, parent = quote_identifier(table.language_field), quote_identifier(table.parent_field)
        alive = f" AND {quote_identifier(table.delete_field)} = 0" if table.delete_field else ""
        rows = await self._queries.fetch(
            f"SELECT DISTINCT {language} AS language FROM {qualified_name(table.name, self._schema_name)} "
            f"WHERE {parent} = $1 AND {parent} <> 0 AND {language} > 0{alive}",
            uid,
        )
        return {row["language"] for row in rows}
