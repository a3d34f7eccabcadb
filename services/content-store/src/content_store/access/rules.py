"""The rules of rights, free of I/O (SEMANTICS 21): page bits, mounts, root level, page types, values, groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from content_store.access.policy import BackendUser, PagePermission, Row
from content_store.schema.model import Schema, TableSchema

ADMIN_CONDITION: Final = "HIDE_FOR_NON_ADMINS"
#: Record types every page takes whatever its type, besides those the table description adds.
ALWAYS_ALLOWED_ON_PAGES: Final = frozenset({"pages", "sys_category", "sys_file_reference", "sys_file_collection"})
#: Bits an ``editlock`` of the page takes from everybody but administrators.
LOCKED_BITS: Final = PagePermission.EDIT_PAGE | PagePermission.DELETE_PAGE | PagePermission.EDIT_CONTENT
ALL_LANGUAGES: Final = -1


@dataclass(frozen=True, slots=True)
class PageRights:
    """What rights need to know of a page, as its workspace sees it.

    Attributes:
        uid: of the page, a default-language row.
        pid: parent page in the workspace, 0 for the root.
        doktype: page type.
        deleted: soft-deleted, or marked for deletion in the workspace.
        editlock: locked for editors.
        owner: ``perms_userid``.
        group: ``perms_groupid``.
        owner_bits: ``perms_user``.
        group_bits: ``perms_group``.
        everybody_bits: ``perms_everybody``.
    """

    uid: int
    pid: int
    doktype: int = 1
    deleted: bool = False
    editlock: bool = False
    owner: int = 0
    group: int = 0
    owner_bits: int = 0
    group_bits: int = 0
    everybody_bits: int = 0


def grants(page: PageRights, user: BackendUser, bits: PagePermission) -> bool:
    """Does one of everybody, owner or group have the whole set of bits? Alternatives are not added up."""
    return user.admin or any(held & bits == bits for held in _alternatives(page, user))


def grants_added_up(page: PageRights, user: BackendUser, bits: PagePermission) -> bool:
    """As :func:`grants`, but the alternatives together may hold the set: the rule for pages below a deleted one."""
    together = 0
    for held in _alternatives(page, user):
        together |= held
    return user.admin or together & bits == bits


def _alternatives(page: PageRights, user: BackendUser) -> Iterator[int]:
    yield page.everybody_bits
    if page.owner == user.uid:
        yield page.owner_bits
    if page.group in user.groups:
        yield page.group_bits


def locked(page: PageRights, user: BackendUser, bits: PagePermission) -> bool:
    """Does the page's ``editlock`` keep the user from using these bits?"""
    return page.editlock and not user.admin and bool(bits & LOCKED_BITS)


def in_mount(page: int, pages: Mapping[int, PageRights], user: BackendUser, mounts: Collection[int]) -> bool:
    """Does the rootline of the page meet a mount before it meets a page the user may not see, or one that is deleted?

    Args:
        page: to judge; whether it is deleted itself does not matter, whether it can be seen does.
        pages: the page and all its ancestors.
        mounts: uids of the user's mounts in the workspace.
    """
    if user.admin:
        return True
    seen: set[int] = set()
    current = pages.get(page)
    while current is not None and current.uid not in seen:
        if (current.deleted and seen) or not grants(current, user, PagePermission.SHOW):
            return False
        if current.uid in mounts:
            return True
        seen.add(current.uid)
        current = pages.get(current.pid)
    return False


def fits_root_level(table: TableSchema, pid: int) -> bool:
    """May rows of the table lie on this page as far as ``rootLevel`` goes? Holds for administrators too."""
    if table.name == "pages" or table.root_level == -1:
        return True
    return (table.root_level == 1) == (pid == 0)


def ignores_root_level(table: TableSchema) -> bool:
    """May users who are no administrators work with rows of the table outside of the page tree?"""
    return bool(table.security.get("ignoreRootLevelRestriction"))


def page_type_takes(schema: Schema, doktype: int, table: TableSchema) -> bool:
    """Do pages of this type take records of the table? Holds for administrators too."""
    if table.security.get("ignorePageTypeRestriction"):
        return True
    pages = schema.tables.get("pages")
    if pages is None:
        return True
    own = pages.allowed_record_types_by_doktype.get(str(doktype))
    if own is not None:
        return "*" in own or table.name in own
    default = pages.ctrl.get("defaultAllowedRecordTypes") or ()
    return table.name in ALWAYS_ALLOWED_ON_PAGES or table.name in default


def may_modify_table(table: TableSchema, user: BackendUser) -> str | None:
    """``None`` when the user may write the table, else the code of the reason."""
    if table.ctrl.get("readOnly"):
        return "table_read_only"
    if user.admin:
        return None
    if table.ctrl.get("adminOnly"):
        return "admin_only"
    return None if table.name in user.tables_modify else "table_modify"


def may_select_table(table: str, user: BackendUser) -> bool:
    """May the user read the table? The right to write implies it."""
    return user.admin or table in user.tables_select or table in user.tables_modify


def may_use_language(language: int, user: BackendUser) -> bool:
    """Is the language among those of the user? No list means all, -1 (all languages) is always allowed."""
    return user.admin or language == ALL_LANGUAGES or not user.allowed_languages or language in user.allowed_languages


def may_use_field(table: TableSchema, name: str, user: BackendUser) -> bool:
    """May the user read and write the field (``exclude``, fields for administrators)?"""
    column = table.columns.get(name)
    if column is None or user.admin:
        return True
    if column.display_cond == ADMIN_CONDITION:
        return False
    return not column.exclude or f"{table.name}:{name}" in user.non_exclude_fields


def may_use_value(table: TableSchema, name: str, value: str, user: BackendUser) -> bool:
    """Is the value of an ``authMode`` field, or a page type, among the explicit values of the user?"""
    if user.admin:
        return True
    if table.name == "pages" and name == "doktype":
        return value in user.page_types
    column = table.columns.get(name)
    if column is None or not column.config.get("authMode") or value == "":
        return True
    return f"{table.name}:{name}:{value}" in user.explicit_allow


def refused_value(table: TableSchema, row: Row, user: BackendUser) -> tuple[str, str] | None:
    """Field and value of the first ``authMode`` field of the row the user may not use."""
    if user.admin:
        return None
    for name, column in table.columns.items():
        value = row.get(name)
        if column.config.get("authMode") and value is not None and not may_use_value(table, name, str(value), user):
            return name, str(value)
    return None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A row of ``be_groups`` with its parts read.

    Attributes:
        values: the row.
        subgroups: uids of ``subgroup`` in order.
    """

    uid: int
    values: Row = field(repr=False)
    subgroups: tuple[int, ...] = ()


def ordered_groups(main: Iterable[int], groups: Mapping[int, GroupRow]) -> tuple[int, ...]:
    """Uids of the user's groups: each main group, then its subgroups, no group twice; unknown ones are left out."""
    found: dict[int, None] = {}

    def visit(uid: int) -> None:
        group = groups.get(uid)
        if group is None or uid in found:
            return
        found[uid] = None
        for sub in group.subgroups:
            visit(sub)

    for uid in main:
        visit(uid)
    return tuple(found)


def int_list(value: Any) -> tuple[int, ...]:
    """Uids of a comma separated list, in order, each once; parts that are no number are left out."""
    parts = (part.strip() for part in str(value or "").split(","))
    return tuple(dict.fromkeys(int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 19))


def text_set(value: Any) -> frozenset[str]:
    """Entries of a comma separated list."""
    return frozenset(part.strip() for part in str(value or "").split(",") if part.strip())


def language_set(value: Any) -> frozenset[int]:
    """Language ids of a comma separated list."""
    return frozenset(int_list(value))
