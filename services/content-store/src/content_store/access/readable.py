"""Rights as conditions of a statement: readers select only what may be read, nothing is filtered behind it.

A statement is put together from :meth:`ReadableRows.page_expressions` (its common table expressions) and
:meth:`ReadableRows.condition` (its WHERE). Both share a :class:`Parameters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from content_store.access.policy import BackendUser, PagePermission
from content_store.access.repository import page_by_uid
from content_store.access.rules import ignores_root_level
from content_store.files.mounts import file_in_mounts
from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import TableSchema
from content_store.workspaces.rules import Workspace

READABLE_PAGE: Final = "readable_page"
FILE_TABLES: Final = frozenset({"sys_file", "sys_file_metadata"})


class Parameters:
    """Arguments of a statement under construction."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def add(self, value: Any, cast: str = "") -> str:
        """Takes an argument and gives its mark, e.g. ``$3::bigint[]``."""
        self.values.append(value)
        return f"${len(self.values)}" + (f"::{cast}" if cast else "")


@dataclass(frozen=True)
class Viewer:
    """Who reads.

    Attributes:
        user: with merged rights.
        workspace_id: worked in, 0 for live.
        workspaces: those the user may use, by uid; the one worked in is among them.
        locale: language of labels.
    """

    user: BackendUser
    workspace_id: int = 0
    workspaces: Mapping[int, Workspace] = field(default_factory=dict)
    locale: str = "en"


class ReadableRows:
    """Conditions for rows one viewer may read.

    Args:
        viewer: who reads.
        parameters: of the statement.
        schema_name: database schema of the record tables.
        deleted_too: soft-deleted pages are judged like others (R-092); else they hide what lies on them.
    """

    def __init__(
        self, viewer: Viewer, parameters: Parameters, schema_name: str = "public", *, deleted_too: bool = False
    ) -> None:
        self._viewer = viewer
        self._parameters = parameters
        self._schema_name = schema_name
        self._deleted_too = deleted_too

    @property
    def unrestricted(self) -> bool:
        """Administrators read everything: there are no expressions, and the condition is ``TRUE``."""
        return self._viewer.user.admin

    def page_expressions(self, candidates: str) -> list[str]:
        """Expressions that end in ``readable_page(uid, workspace)``: the candidates that may be shown.

        A page may be shown when it and the pages above it, up to a mount, have the show right for the viewer.

        Args:
            candidates: SELECT of ``uid, workspace`` of the pages in question; NULL and 0 find nothing.
        """
        if self.unrestricted:
            return []
        shown = self.shown("p")
        mounts = self._parameters.add(sorted(self._viewer.user.webmounts), "bigint[]")
        narrowed = self._workspace_mounts()
        alive = "" if self._deleted_too else " AND p.deleted = 0"
        first, above = (page_by_uid(self._schema_name, name) for name in ("c", "l"))
        # The columns that could grow are flags, so UNION also ends a cycle of pages.
        line = (
            "line(start, workspace, uid, pid, met, met_workspace) AS ("
            f"SELECT c.uid, c.workspace, p.uid, p.pid, p.uid = ANY({mounts}), {narrowed.format(w='c.workspace')} "
            f"FROM (SELECT DISTINCT uid, workspace, uid AS next FROM candidate WHERE uid > 0) c "
            f"CROSS JOIN LATERAL {first} p WHERE {shown}{alive} "
            f"UNION SELECT l.start, l.workspace, p.uid, p.pid, l.met OR p.uid = ANY({mounts}), "
            f"l.met_workspace OR {narrowed.format(w='l.workspace')} "
            f"FROM (SELECT *, pid AS next FROM line WHERE pid > 0 AND NOT (met AND met_workspace)) l "
            f"CROSS JOIN LATERAL {above} p WHERE {shown}{alive})"
        )
        met = f"{READABLE_PAGE}(uid, workspace) AS (SELECT DISTINCT start, workspace FROM line WHERE met AND met_workspace)"
        return [f"candidate(uid, workspace) AS ({candidates})", line, met]

    def condition(self, table: TableSchema, row: str, workspace: str) -> str:
        """What a row has to fulfil besides the right to select its table.

        Args:
            table: of the row.
            row: alias of the row.
            workspace: expression of the workspace the row is read in.
        """
        if self.unrestricted:
            return "TRUE"
        page = "FALSE" if table.name in FILE_TABLES else self.page_readable(page_of_row(table, row), workspace)
        return f"{self.language(table, row)} AND ({self.apart(table, row)} OR {page})"

    def page_readable(self, page: str, workspace: str) -> str:
        """Whether a candidate page may be shown."""
        if self.unrestricted:
            return "TRUE"
        return f"({page}, {workspace}) IN (SELECT uid, workspace FROM {READABLE_PAGE})"

    def language(self, table: TableSchema, row: str) -> str:
        """Whether the viewer may use the language of the row."""
        languages = self._viewer.user.allowed_languages
        if self.unrestricted or table.language_field is None or not languages:
            return "TRUE"
        allowed = self._parameters.add(sorted({-1, *languages}), "bigint[]")
        return f"{row}.{quote_identifier(table.language_field)} = ANY({allowed})"

    def apart(self, table: TableSchema, row: str) -> str:
        """Whether the row is readable without a page: files by mounts (R-091), the rest where the table says so (A-20)."""
        if self.unrestricted:
            return "TRUE"
        if table.name in FILE_TABLES:
            return file_in_mounts(table.name, row, self._viewer.user, self._parameters, self._schema_name)
        return f"({row}.pid = 0)" if ignores_root_level(table) and table.name != "pages" else "FALSE"

    def shown(self, page: str) -> str:
        """Whether the page row has the show right for the viewer, whatever lies above it."""
        if self.unrestricted:
            return "TRUE"
        bit = int(PagePermission.SHOW)
        user = self._parameters.add(self._viewer.user.uid, "bigint")
        groups = self._parameters.add(list(self._viewer.user.groups), "bigint[]")
        return (
            f"({page}.perms_everybody & {bit} = {bit} OR ({page}.perms_userid = {user} "
            f"AND {page}.perms_user & {bit} = {bit}) OR ({page}.perms_groupid = ANY({groups}) "
            f"AND {page}.perms_group & {bit} = {bit}))"
        )

    def _workspace_mounts(self) -> str:
        """Whether page ``p`` is a mount of workspace ``{w}``, or that workspace has none."""
        pairs = [(w.uid, page) for w in self._viewer.workspaces.values() for page in w.mounts]
        if not pairs:
            return "TRUE"
        workspaces = self._parameters.add([w for w, _ in pairs], "bigint[]")
        pages = self._parameters.add([p for _, p in pairs], "bigint[]")
        return f"({{w}} <> ALL({workspaces}) OR ({{w}}, p.uid) IN (SELECT * FROM unnest({workspaces}, {pages})))"


def page_of_row(table: TableSchema, row: str) -> str:
    """Expression of the page a row is judged by: for a page itself, for its translation the page it translates."""
    if table.name != "pages":
        return f"{row}.pid"
    if table.language_field is None or table.parent_field is None:
        return f"{row}.uid"
    language, parent = quote_identifier(table.language_field), quote_identifier(table.parent_field)
    return f"CASE WHEN {row}.{language} > 0 THEN {row}.{parent} ELSE {row}.uid END"


def with_clause(expressions: list[str]) -> str:
    """``WITH RECURSIVE …`` of the expressions, empty for none."""
    return f"WITH RECURSIVE {', '.join(expressions)} " if expressions else ""


def record_table(table: str, schema_name: str = "public") -> str:
    """Qualified name for FROM."""
    return qualified_name(table, schema_name)
