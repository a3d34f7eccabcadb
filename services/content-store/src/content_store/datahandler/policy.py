"""What an administrator may do (SEMANTICS 21): everything but the root level rule, page types and read-only tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from content_store.access.policy import BackendUser, Denial, Row

if TYPE_CHECKING:
    from content_store.records.overlay import OverlayReader
    from content_store.schema.model import Schema

# Tables every page type takes unless it says otherwise; the schema may name more in ``defaultAllowedRecordTypes``.
_ALWAYS_ALLOWED = frozenset({"pages", "sys_category", "sys_file_reference", "sys_file_collection"})


class AdministratorPolicy:
    """Answers for an administrator."""

    def __init__(self, user: BackendUser, schema: Schema, reader: OverlayReader) -> None:
        self._user = user
        self._schema = schema
        self._reader = reader

    @property
    def user(self) -> BackendUser:
        """Whom it answers for."""
        return self._user

    async def modify_table(self, table: str) -> Denial | None:
        """Read-only tables stay read-only."""
        if self._schema[table].ctrl.get("readOnly"):
            return Denial("table_modify", "Table {table} is read-only", {"table": table})
        return None

    async def insert(self, table: str, pid: int, row: Row, *, with_pages: bool = False) -> Denial | None:
        """Root level rule and page type."""
        schema = self._schema[table]
        if table != "pages" and schema.root_level != -1 and (pid == 0) != (schema.root_level == 1):
            where = "root level" if pid == 0 else "page {pid}"
            return Denial("root_level", "Table {table} may not lie on the " + where, {"table": table, "pid": pid})
        page = await self._reader.stored("pages", pid) if pid > 0 else None
        if page is None:
            return None
        if not self._allowed_on(str(page.get("doktype", "1")), table):
            return Denial("page_type", "Page {pid} does not take records of {table}", {"table": table, "pid": pid})
        return None

    def _allowed_on(self, doktype: str, table: str) -> bool:
        pages, schema = self._schema["pages"], self._schema[table]
        specific = pages.allowed_record_types_by_doktype.get(doktype)
        if specific is not None:
            return "*" in specific or table in specific
        allowed = pages.ctrl.get("defaultAllowedRecordTypes") or ()
        return table in _ALWAYS_ALLOWED or table in allowed or bool(schema.security.get("ignorePageTypeRestriction"))

    async def update(self, table: str, row: Row, *, with_pages: bool = False) -> Denial | None:
        """Always."""
        return None

    async def delete(self, table: str, row: Row) -> Denial | None:
        """Always."""
        return None

    async def delete_branch(self, page: int, pages: list[int], tables: Mapping[str, set[int]]) -> Denial | None:
        """Always."""
        return None

    async def move_away(self, table: str, row: Row) -> Denial | None:
        """Always."""
        return None

    async def edit_record(
        self, table: str, row: Row, *, new: bool = False, all_languages: bool = False
    ) -> Denial | None:
        """Always."""
        return None

    async def show_page(self, page: int) -> Denial | None:
        """Always."""
        return None

    def may_use_language(self, language: int) -> bool:
        """Always."""
        return True

    def may_write_field(self, table: str, field: str) -> bool:
        """Always."""
        return True

    def may_use_value(self, table: str, field: str, value: str) -> bool:
        """Always."""
        return True
