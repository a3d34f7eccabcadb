"""What one viewer may see of up to 500 records, in a fixed number of statements (R-090 to R-098)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remit_contracts.visibility import VisibilityAnswer, VisibilityRequest, VisibleRecord

from content_store.access.readable import Viewer
from content_store.access.repository import AccessRepository
from content_store.access.rules import PageRights, may_modify_table
from content_store.access.users import Queries
from content_store.datahandler.sites import Sites
from content_store.schema.labels import table_label
from content_store.schema.model import Schema
from content_store.visibility.links import LinkTemplates, links_of
from content_store.visibility.statement import visibility_statement
from content_store.workspaces.repository import all_workspaces
from content_store.workspaces.rules import LIVE, Workspace, may_use_live, role_in
from content_store.workspaces.titles import live_title


class VisibilityService:
    """Answers for the viewers of one store.

    Args:
        queries: connection or pool.
        schema: tables there are.
        sites: for the names of languages.
        links: where the CMS shows a record.
        schema_name: database schema of the record tables.
    """

    def __init__(
        self, queries: Queries, schema: Schema, sites: Sites, links: LinkTemplates, schema_name: str = "public"
    ) -> None:
        self._queries = queries
        self._schema = schema
        self._sites = sites
        self._links = links
        self._schema_name = schema_name

    async def answer(self, request: VisibilityRequest, viewer: Viewer) -> VisibilityAnswer:
        """Visible records in the order asked for; of the rest only the number. Takes three statements at most."""
        workspaces = await all_workspaces(self._queries, self._schema, self._schema_name)
        usable = {w.uid: w for w in workspaces if role_in(w, viewer.user) is not None}
        viewer = Viewer(viewer.user, request.workspace_id, usable, viewer.locale)
        rows = await self._rows(request, viewer)
        pages = await self._rootlines(rows)
        records = tuple(self._record(request, row, viewer, usable, pages) for row in rows)
        return VisibilityAnswer(
            records=records,
            withheld=len(request.records) - len(records),
            workspace_titles={uid: _title(uid, viewer, usable) for uid in request.workspace_ids},
        )

    async def _rows(self, request: VisibilityRequest, viewer: Viewer) -> Sequence[Mapping[str, Any]]:
        statement = visibility_statement(request.records, viewer, self._schema, self._schema_name)
        return await self._queries.fetch(statement.sql, *statement.args) if statement is not None else []

    async def _rootlines(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[int, PageRights]:
        """Pages of translated rows with their ancestors, to find the site that names the language."""
        pages = {row["page"] for row in rows if row["language"] is not None and row["page"]}
        return await AccessRepository(self._queries, self._schema_name).rootlines(pages)

    def _record(
        self,
        request: VisibilityRequest,
        row: Mapping[str, Any],
        viewer: Viewer,
        usable: Mapping[int, Workspace],
        pages: Mapping[int, PageRights],
    ) -> VisibleRecord:
        key = request.records[row["position"]]
        table = self._schema.tables[key.table]
        may_modify = may_modify_table(table, viewer.user) is None
        return VisibleRecord(
            table=key.table,
            table_label=table_label(self._schema, key.table, viewer.locale),
            uid=row["uid"],
            title=row["title"],
            page_id=row["page"] or None,
            page_title=row["page_title"],
            language=row["language"],
            language_title=self._language_title(row, pages),
            workspace_id=row["workspace"],
            workspace_title=_title(row["workspace"], viewer, usable),
            deleted=row["deleted"],
            may_modify=may_modify,
            links=links_of(
                self._links,
                key.table,
                row["uid"],
                row["workspace"],
                may_modify=may_modify,
                deleted=row["deleted"],
                working_in=request.workspace_id,
            ),
        )

    def _language_title(self, row: Mapping[str, Any], pages: Mapping[int, PageRights]) -> str | None:
        if row["language"] is None:
            return None
        site = self._sites.of_rootline(_rootline(row["page"], pages))
        language = self._sites.language(site, row["language"])
        return language.title if language is not None else None


def _rootline(page: int, pages: Mapping[int, PageRights]) -> list[dict[str, Any]]:
    line: list[dict[str, Any]] = []
    seen: set[int] = set()
    while page in pages and page not in seen:
        seen.add(page)
        line.append({"uid": page})
        page = pages[page].pid
    return line


def _title(workspace: int, viewer: Viewer, usable: Mapping[int, Workspace]) -> str | None:
    """Title of a workspace the viewer may use, else nothing (R-094)."""
    if workspace == LIVE:
        return live_title(viewer.locale) if may_use_live(viewer.user) else None
    return usable[workspace].title if workspace in usable else None
