"""Rights of a user, answered for a DataHandler (SEMANTICS 21). The rules are in ``rules``, reading in ``repository``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from content_store.access import rules
from content_store.access.denials import denial
from content_store.access.policy import BackendUser, Denial, PagePermission, Row
from content_store.access.repository import AccessRepository
from content_store.access.rules import PageRights
from content_store.access.users import Queries
from content_store.datahandler.pointers import read_number, translated_uid
from content_store.schema.model import Schema, TableSchema
from content_store.workspaces.rules import Workspace, narrowing_mounts

SYSTEM_USER = BackendUser(uid=0, username="_system_", admin=True)


class BackendAccess:
    """The :class:`~content_store.access.policy.AccessPolicy` of one user in one workspace.

    Pages are read once and kept for the life of the instance; one instance serves one call. Whoever writes ``pages``
    says so with :meth:`forget_pages`. A page that was not found is looked for again the next time.

    Args:
        user: with merged rights.
        schema: tables and their rules.
        queries: the connection of the call, or a gateway.
        workspace_id: the workspace worked in, 0 for live.
        workspace: its row, for its mounts.
        schema_name: database schema of the record tables.
    """

    def __init__(
        self,
        user: BackendUser,
        schema: Schema,
        queries: Queries,
        *,
        workspace_id: int = 0,
        workspace: Workspace | None = None,
        schema_name: str = "public",
    ) -> None:
        self._user = user
        self._schema = schema
        self._repository = AccessRepository(queries, schema_name, workspace_id)
        self._mounts = frozenset(user.webmounts)
        self._workspace_mounts = None if user.admin else narrowing_mounts(workspace)
        self._pages: dict[int, PageRights] = {}

    @property
    def user(self) -> BackendUser:
        """Whom it answers for."""
        return self._user

    def forget_pages(self) -> None:
        """Pages were written: read them again when they are asked for."""
        self._pages.clear()

    async def prefetch_pages(self, pages: Iterable[int]) -> None:
        """Read pages that will be asked for, in one statement."""
        missing = {uid for uid in pages if uid > 0 and uid not in self._pages}
        if missing:
            self._pages.update(await self._repository.rootlines(missing))

    async def modify_table(self, table: str) -> Denial | None:
        """May the user write this table at all?"""
        described = self._schema.tables.get(table)
        if described is None:
            return denial("unknown_table", table=table)
        code = rules.may_modify_table(described, self._user)
        return denial(code, table=table) if code else None

    async def insert(self, table: str, pid: int, row: Row, *, with_pages: bool = False) -> Denial | None:
        """May a row be put on this page? A page translation is judged on the page it translates."""
        described = self._schema.tables.get(table)
        if described is None:
            return denial("unknown_table", table=table)
        if table == "pages" and (translated := translated_uid(described, row)):
            return await self._page_bits(translated, PagePermission.EDIT_PAGE)
        if not rules.fits_root_level(described, pid):
            return denial("root_level", table=table, page=pid)
        if pid == 0:
            return self._outside_of_tree(described)
        page = await self._page(pid)
        if page is None or page.deleted:
            return denial("page_missing", page=pid)
        if not rules.page_type_takes(self._schema, page.doktype, described):
            return denial("page_type", table=table, page=pid)
        bits = PagePermission.NEW_PAGE if table == "pages" else _content_bits(table, with_pages)
        return self._judge(page, bits)

    async def update(self, table: str, row: Row, *, with_pages: bool = False) -> Denial | None:
        """May this stored row be changed?"""
        return await self._change(table, row, PagePermission.EDIT_PAGE, with_pages)

    async def delete(self, table: str, row: Row) -> Denial | None:
        """May this stored row be deleted (for a page: the delete bit on the page itself)?"""
        return await self._change(table, row, PagePermission.DELETE_PAGE, False)

    async def move_away(self, table: str, row: Row) -> Denial | None:
        """May this row leave its page (delete bit on a page, edit content on the old page)?"""
        return await self._change(table, row, PagePermission.DELETE_PAGE, False)

    async def delete_branch(self, page: int, pages: list[int], tables: Mapping[str, set[int]]) -> Denial | None:
        """May the whole branch go? One missing right on any page, table or language stops everything."""
        for table, languages in tables.items():
            if refused := await self.modify_table(table):
                return refused
            for language in sorted(languages):
                if not self.may_use_language(language):
                    return denial("language", language=language, page=page)
        if self._user.admin:
            return None
        await self.prefetch_pages(pages)
        for uid in pages:
            below = self._pages.get(uid)
            if below is None or not rules.grants_added_up(below, self._user, PagePermission.DELETE_PAGE):
                return denial("branch_permission", page=uid)
            if rules.locked(below, self._user, PagePermission.DELETE_PAGE):
                return denial("page_editlock", page=uid)
        return None

    async def edit_record(
        self, table: str, row: Row, *, new: bool = False, all_languages: bool = False
    ) -> Denial | None:
        """Record edit access: language, authMode values, ``editlock`` of the record, languages of its translations."""
        described = self._schema.tables.get(table)
        if described is None:
            return denial("unknown_table", table=table)
        if self._user.admin:
            return None
        language = read_number(row.get(described.language_field)) if described.language_field else 0
        if language is None or (described.language_field and not self.may_use_language(language)):
            return denial("language", language=language)
        if refused := rules.refused_value(described, row, self._user):
            return denial("auth_mode", table=table, field=refused[0], value=refused[1])
        uid = _int(row.get("uid"))
        if not new and described.editlock_field and _int(row.get(described.editlock_field)):
            return denial("editlock", table=table, uid=uid)
        if all_languages and not new and language == 0 and self._user.allowed_languages:
            return await self._all_languages(described, _int(row.get("t3ver_oid")) or uid)
        return None

    async def show_page(self, page: int) -> Denial | None:
        """May the user see this page (show bit and mount)?"""
        return await self._page_bits(page, PagePermission.SHOW)

    def may_use_language(self, language: int) -> bool:
        """Is the language among those of the user? -1 always is."""
        return rules.may_use_language(language, self._user)

    def may_write_field(self, table: str, field: str) -> bool:
        """Is the field free of ``exclude`` or among the user's ``non_exclude_fields``?"""
        described = self._schema.tables.get(table)
        return described is not None and rules.may_use_field(described, field, self._user)

    def may_use_value(self, table: str, field: str, value: str) -> bool:
        """Is the value of an authMode field, or a ``doktype``, among the user's explicit values?"""
        described = self._schema.tables.get(table)
        return described is not None and rules.may_use_value(described, field, value, self._user)

    async def _change(self, table: str, row: Row, page_bits: PagePermission, with_pages: bool) -> Denial | None:
        described = self._schema.tables.get(table)
        if described is None:
            return denial("unknown_table", table=table)
        if self._user.admin:
            return None
        if table == "pages":
            page = translated_uid(described, row) or _int(row.get("t3ver_oid")) or _int(row.get("uid"))
            return await self._page_bits(page, page_bits, may_be_deleted=True)
        pid = _int(row.get("pid"))
        if pid == 0:
            return self._outside_of_tree(described)
        return await self._page_bits(pid, _content_bits(table, with_pages))

    async def _all_languages(self, table: TableSchema, uid: int) -> Denial | None:
        for language in sorted(await self._repository.translation_languages(table, uid)):
            if not self.may_use_language(language):
                return denial("language", language=language)
        return None

    def _outside_of_tree(self, table: TableSchema) -> Denial | None:
        if self._user.admin or rules.ignores_root_level(table):
            return None
        return denial("root_level_rights", table=table.name)

    async def _page(self, uid: int) -> PageRights | None:
        await self.prefetch_pages([uid])
        return self._pages.get(uid)

    async def _page_bits(self, uid: int, bits: PagePermission, *, may_be_deleted: bool = False) -> Denial | None:
        page = await self._page(uid)
        if page is None or (page.deleted and not may_be_deleted):
            return denial("page_missing", page=uid)
        return self._judge(page, bits)

    def _judge(self, page: PageRights, bits: PagePermission) -> Denial | None:
        if not rules.grants(page, self._user, bits):
            return denial("page_permission", page=page.uid)
        for mounts in (self._mounts, self._workspace_mounts):
            if mounts is not None and not rules.in_mount(page.uid, self._pages, self._user, mounts):
                return denial("page_mount", page=page.uid)
        if rules.locked(page, self._user, bits):
            return denial("page_editlock", page=page.uid)
        return None


class AdministratorPolicy(BackendAccess):
    """Rights of an administrator who is no stored user: root level, page types and read-only tables still hold."""

    def __init__(
        self,
        schema: Schema,
        queries: Queries,
        user: BackendUser = SYSTEM_USER,
        *,
        workspace_id: int = 0,
        schema_name: str = "public",
    ) -> None:
        if not user.admin:
            raise ValueError("the user is no administrator")
        super().__init__(user, schema, queries, workspace_id=workspace_id, schema_name=schema_name)


def _content_bits(table: str, with_pages: bool) -> PagePermission:
    """A file reference written together with pages belongs to a page's own fields."""
    if table == "sys_file_reference" and with_pages:
        return PagePermission.EDIT_PAGE
    return PagePermission.EDIT_CONTENT


def _int(value: object) -> int:
    return read_number(value) or 0
