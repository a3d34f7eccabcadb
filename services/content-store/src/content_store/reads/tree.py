"""The page tree a viewer sees, in one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from content_store.access.readable import Parameters, ReadableRows, Viewer, with_clause
from content_store.access.users import Queries
from content_store.reads.rows import row_source
from content_store.schema.ddl import quote_identifier
from content_store.schema.model import TableSchema

Rows = Sequence[Mapping[str, Any]]


class TreeReader:
    """Reads a branch of the page tree as a workspace sees it.

    Args:
        queries: connection or pool.
        viewer: who reads.
        pages: the table ``pages``.
        schema_name: database schema of the record tables.
    """

    def __init__(self, queries: Queries, viewer: Viewer, pages: TableSchema, schema_name: str = "public") -> None:
        self._queries = queries
        self._viewer = viewer
        self._pages = pages
        self._schema_name = schema_name

    async def branch(self, root: int, depth: int, language: int, limit: int) -> Rows:
        """Pages in the order of the tree, parents first; one more than ``limit`` where there are more.

        Args:
            root: the page to begin with at level 0; 0 begins with the mounts of the viewer, for administrators with
                the pages of the first level.
            depth: levels below the first.
            language: whose titles and slugs are wanted; untranslated pages keep their own.
            limit: rows at most.

        Returns:
            Rows with uid, pid, title, hidden, doktype, slug, level, has_children, translated.
        """
        parameters = Parameters()
        readable = ReadableRows(self._viewer, parameters, self._schema_name)
        workspace = f"{int(self._viewer.workspace_id)}::bigint"
        starts, start_ids = self._starts(root, parameters)
        expressions = readable.page_expressions(f"SELECT uid, {workspace} FROM ({start_ids}) AS start(uid)")
        may_start = readable.page_readable("p.uid", workspace)
        # Below a page that may be shown every page with the show right may be shown too: its rootline meets the mount.
        shown = readable.shown("p")
        source = self._source()
        order = "ARRAY[p.sorting, p.uid]"
        tree = (
            f"tree AS (SELECT p.*, 0 AS level, {order} AS place FROM {source} p WHERE {starts} AND {may_start} "
            f"UNION ALL SELECT p.*, t.level + 1, t.place || {order} FROM tree t JOIN {source} p ON p.pid = t.uid "
            f"WHERE t.level < {int(depth)} AND {shown}) CYCLE uid SET circle USING path"
        )
        children = f"EXISTS (SELECT 1 FROM {source} p WHERE p.pid = t.uid AND {shown})"
        title, slug, translated, join = self._translation(language, parameters)
        sql = (
            f"{with_clause([*expressions, tree])}SELECT t.uid, t.pid, {title} AS title, t.hidden, t.doktype, "
            f"{slug} AS slug, t.level, {children} AS has_children, {translated} AS translated FROM tree t {join} "
            # A mount inside of another one is shown where it lies, not a second time.
            "WHERE NOT t.circle AND NOT EXISTS (SELECT 1 FROM tree o WHERE o.level > 0 "
            "AND o.uid = t.place[2] AND o.place[2] <> t.place[2]) "
            f"ORDER BY t.place LIMIT {int(limit) + 1}"
        )
        return await self._queries.fetch(sql, *parameters.values)

    def _starts(self, root: int, parameters: Parameters) -> tuple[str, str]:
        """Condition of the pages to begin with, and a SELECT of the uids whose right to be shown has to be known."""
        if root:
            mark = parameters.add(root, "bigint")
            return f"p.uid = {mark}", f"SELECT {mark}"
        if self._viewer.user.admin:
            return "p.pid = 0", "SELECT 0"
        mounts = parameters.add(sorted(self._viewer.user.webmounts), "bigint[]")
        return f"p.uid = ANY({mounts})", f"SELECT * FROM unnest({mounts})"

    def _source(self) -> str:
        source = row_source(self._pages, self._viewer.workspace_id, self._schema_name)
        language = self._pages.language_field
        default = f" WHERE q.{quote_identifier(language)} = 0" if language else ""
        names = ("uid", "pid", "title", "hidden", "doktype", "slug", "sorting", "deleted",
                 "perms_userid", "perms_groupid", "perms_user", "perms_group", "perms_everybody")  # fmt: skip
        return f"(SELECT {', '.join(f'q.{name}' for name in names)} FROM {source} q{default})"

    def _translation(self, language: int, parameters: Parameters) -> tuple[str, str, str, str]:
        pages = self._pages
        if language <= 0 or pages.language_field is None or pages.parent_field is None:
            return "t.title", "t.slug", "TRUE", ""
        mark = parameters.add(language, "bigint")
        source = row_source(pages, self._viewer.workspace_id, self._schema_name)
        join = (
            f"LEFT JOIN LATERAL (SELECT o.title, o.slug FROM {source} o "
            f"WHERE o.{quote_identifier(pages.parent_field)} = t.uid "
            f"AND o.{quote_identifier(pages.language_field)} = {mark} ORDER BY o.uid LIMIT 1) l ON TRUE"
        )
        return "COALESCE(l.title, t.title)", "COALESCE(l.slug, t.slug)", "(l.title IS NOT NULL)", join
