"""What a DataHandler asks about rights (SEMANTICS section 21): the questions, and the answer of an administrator.

The rules themselves live in :mod:`content_store.access.rights`; the DataHandler only knows this protocol. Each method
answers with ``None`` when the operation is allowed, else with a :class:`Denial` that says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Protocol

Row = Mapping[str, Any]


class PagePermission(IntFlag):
    """Bits of ``perms_user``, ``perms_group`` and ``perms_everybody`` of a page."""

    SHOW = 1
    EDIT_PAGE = 2
    DELETE_PAGE = 4
    NEW_PAGE = 8
    EDIT_CONTENT = 16


@dataclass(frozen=True)
class BackendUser:
    """The user a DataHandler acts as, with the rights of the groups merged in.

    Attributes:
        uid: of the row in ``be_users``.
        admin: administrators skip everything but root level, page types and read-only tables.
        groups: uids of ``be_groups``, subgroups included, in order; the first one owns new pages.
        workspace_perms: bit 1 allows the live workspace.
        allowed_languages: empty means every language.
        tables_select: tables the user may read; ``tables_modify`` implies it.
        non_exclude_fields: ``table:field`` entries of fields with ``exclude`` the user may write.
        explicit_allow: ``table:field:value`` entries of fields with an authMode.
        page_types: values of ``pages.doktype`` the user may use.
        webmounts: uids of pages below which the user works.
        filemounts: uids of ``sys_filemounts``.
        uc: user settings, e.g. ``copyLevels``.
        tsconfig: dotted keys of user and groups, e.g. ``TCEMAIN.default.disableHideAtCopy``.
    """

    uid: int
    username: str = ""
    admin: bool = False
    groups: tuple[int, ...] = ()
    workspace_perms: int = 1
    allowed_languages: frozenset[int] = frozenset()
    tables_select: frozenset[str] = frozenset()
    tables_modify: frozenset[str] = frozenset()
    non_exclude_fields: frozenset[str] = frozenset()
    explicit_allow: frozenset[str] = frozenset()
    page_types: frozenset[str] = frozenset()
    webmounts: tuple[int, ...] = ()
    filemounts: tuple[int, ...] = ()
    uc: Mapping[str, Any] | None = None
    tsconfig: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Denial:
    """Why an operation is not allowed.

    Attributes:
        code: stable, e.g. ``page_permission``, ``table_modify``, ``language``, ``editlock``, ``root_level``.
        message: for the log, with ``{name}`` marks filled from ``data``.
    """

    code: str
    message: str
    data: Mapping[str, Any] | None = None


class AccessPolicy(Protocol):
    """The questions a DataHandler asks. Rows are as stored (overlaid where the operation works on a version)."""

    @property
    def user(self) -> BackendUser:
        """Whom it answers for."""
        ...

    async def modify_table(self, table: str) -> Denial | None:
        """May the user write this table at all (``tables_modify``, ``adminOnly``, read-only tables)?"""
        ...

    async def insert(self, table: str, pid: int, row: Row, *, with_pages: bool = False) -> Denial | None:
        """May a row be put on this page: root level, page type, page bits, mount, editlock?

        Args:
            table: of the new row.
            pid: resolved page, 0 for the root.
            row: submitted values; a page translation is judged on the page its parent pointer names.
            with_pages: the datamap holds ``pages`` too (sys_file_reference then counts as "edit page").
        """
        ...

    async def update(self, table: str, row: Row, *, with_pages: bool = False) -> Denial | None:
        """May this stored row be changed: page bits, mount, editlock of the page?"""
        ...

    async def delete(self, table: str, row: Row) -> Denial | None:
        """May this stored row be deleted (for a page: the delete bit on the page itself)?"""
        ...

    async def delete_branch(self, page: int, pages: list[int], tables: Mapping[str, set[int]]) -> Denial | None:
        """May the whole branch go?

        Args:
            page: root of the branch.
            pages: every page below it.
            tables: table -> languages of its records in the branch.
        """
        ...

    async def move_away(self, table: str, row: Row) -> Denial | None:
        """May this row leave its page (delete bit on a page, edit content on the old page)?"""
        ...

    async def edit_record(
        self, table: str, row: Row, *, new: bool = False, all_languages: bool = False
    ) -> Denial | None:
        """Record edit access: language, authMode values, ``editlock`` of the record, languages of its translations."""
        ...

    async def show_page(self, page: int) -> Denial | None:
        """May the user see this page (show bit and mount)?"""
        ...

    def may_use_language(self, language: int) -> bool:
        """Is the language among those of the user? -1 always is."""
        ...

    def may_write_field(self, table: str, field: str) -> bool:
        """Is the field free of ``exclude`` or among the user's ``non_exclude_fields``?"""
        ...

    def may_use_value(self, table: str, field: str, value: str) -> bool:
        """Is the value of an authMode field, or a ``doktype``, among the user's explicit values?"""
        ...
