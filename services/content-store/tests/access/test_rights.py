"""Each right with each operation, allowed and denied (SEMANTICS 21)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from content_store.access.policy import AccessPolicy, BackendUser, Denial, PagePermission
from content_store.access.rights import AdministratorPolicy, BackendAccess
from content_store.access.rules import PageRights, grants, grants_added_up
from content_store.access.users import load_user
from content_store.schema.model import Schema
from content_store.workspaces.rules import Workspace
from service_kit.statements import StatementCounter
from store_support.rows import ALL_BITS, Connection, Rows

SHOW, EDIT, DELETE, NEW, CONTENT = 1, 2, 4, 8, 16
Question = Callable[[AccessPolicy], Awaitable[Denial | None]]
PAGE = {"uid": 11, "pid": 10, "sys_language_uid": 0, "l10n_parent": 0, "t3ver_oid": 0, "editlock": 0, "doktype": 1}
ELEMENT = {"uid": 100, "pid": 11, "sys_language_uid": 0, "CType": "text", "editlock": 0, "t3ver_oid": 0}
GERMAN = {**ELEMENT, "uid": 101, "sys_language_uid": 1, "l18n_parent": 100}


async def first(*answers: Awaitable[Denial | None]) -> Denial | None:
    found = [await answer for answer in answers]
    return next((denial for denial in found if denial is not None), None)


def questions() -> dict[str, Question]:
    """What a DataHandler asks for each operation."""
    return {
        "update content": lambda p: first(
            p.modify_table("tt_content"), p.update("tt_content", ELEMENT), p.edit_record("tt_content", ELEMENT)
        ),
        "insert content": lambda p: first(
            p.modify_table("tt_content"),
            p.insert("tt_content", 11, {"CType": "text"}),
            p.edit_record("tt_content", {"CType": "text"}, new=True),
        ),
        "delete content": lambda p: first(
            p.modify_table("tt_content"),
            p.delete("tt_content", ELEMENT),
            p.edit_record("tt_content", ELEMENT, all_languages=True),
        ),
        "move content": lambda p: first(
            p.modify_table("tt_content"),
            p.move_away("tt_content", ELEMENT),
            p.insert("tt_content", 12, ELEMENT),
            p.edit_record("tt_content", ELEMENT, all_languages=True),
        ),
        "copy content": lambda p: first(
            p.modify_table("tt_content"),
            p.show_page(11),
            p.insert("tt_content", 12, ELEMENT),
            p.edit_record("tt_content", ELEMENT, new=True, all_languages=True),
        ),
        "localize content": lambda p: first(
            p.modify_table("tt_content"),
            p.insert("tt_content", 11, {**GERMAN, "uid": 0}),
            p.edit_record("tt_content", {**GERMAN, "uid": 0}, new=True),
        ),
        "update page": lambda p: first(p.modify_table("pages"), p.update("pages", PAGE), p.edit_record("pages", PAGE)),
        "insert page": lambda p: first(p.modify_table("pages"), p.insert("pages", 11, {"doktype": 1})),
        "delete page": lambda p: first(
            p.modify_table("pages"), p.delete("pages", PAGE), p.delete_branch(11, [13], {"tt_content": {0, 1}})
        ),
        "move page": lambda p: first(p.modify_table("pages"), p.move_away("pages", PAGE), p.insert("pages", 12, PAGE)),
        "localize page": lambda p: first(
            p.modify_table("pages"), p.insert("pages", 10, {"sys_language_uid": 1, "l10n_parent": 11})
        ),
    }


OPERATIONS = list(questions())
CONTENT_OPERATIONS = {name for name in OPERATIONS if name.endswith("content")}
PAGE_OPERATIONS = {name for name in OPERATIONS if name.endswith("page")}


async def site(rows: Rows, *, page: dict[str, Any], group: dict[str, Any], user: dict[str, Any], below: int) -> None:
    """10 is the mount; 11 holds an element with a translation, and page 13; 12 is a place to go."""
    await rows.page(10, 0, everybody=ALL_BITS)
    await rows.page(11, 10, **{"everybody": ALL_BITS, **page})
    await rows.page(12, 10, everybody=ALL_BITS)
    await rows.page(13, 11, everybody=below)
    await rows.content(100, 11, CType="text")
    await rows.content(101, 11, CType="text", sys_language_uid=1, l18n_parent=100)
    rights = {
        "tables_modify": "pages,tt_content",
        "db_mountpoints": "10",
        "explicit_allowdeny": "tt_content:CType:text",
        "pagetypes_select": "1",
    }
    await rows.add("be_groups", uid=1, title="editors", **{**rights, **group})
    await rows.user(1, "ed", "1", **user)


#: Name of what is missing -> (page 11, group, user, bits of page 13, operations that are denied by it, code).
MISSING: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], int, set[str], str]] = {
    "nothing": ({}, {}, {}, ALL_BITS, set(), ""),
    "table content": ({}, {"tables_modify": "pages"}, {}, ALL_BITS, CONTENT_OPERATIONS | {"delete page"}, "table_modify"),
    "table pages": ({}, {"tables_modify": "tt_content"}, {}, ALL_BITS, PAGE_OPERATIONS, "table_modify"),
    "bit show": (
        {"everybody": ALL_BITS & ~SHOW}, {}, {}, ALL_BITS, set(OPERATIONS), "page_mount,page_permission",
    ),
    "bit edit page": (
        {"everybody": ALL_BITS & ~EDIT}, {}, {}, ALL_BITS, {"update page", "localize page"}, "page_permission",
    ),
    "bit delete page": (
        {"everybody": ALL_BITS & ~DELETE}, {}, {}, ALL_BITS, {"delete page", "move page"}, "page_permission",
    ),
    "bit delete below": ({}, {}, {}, ALL_BITS & ~DELETE, {"delete page"}, "branch_permission"),
    "bit new pages": ({"everybody": ALL_BITS & ~NEW}, {}, {}, ALL_BITS, {"insert page"}, "page_permission"),
    "bit content": (
        {"everybody": ALL_BITS & ~CONTENT}, {}, {}, ALL_BITS,
        {"update content", "insert content", "delete content", "move content", "localize content"}, "page_permission",
    ),
    "mount": ({}, {"db_mountpoints": "12"}, {}, ALL_BITS, set(OPERATIONS), "page_mount"),
    "no mount": ({}, {"db_mountpoints": ""}, {}, ALL_BITS, set(OPERATIONS), "page_mount"),
    "page without lock": (
        {"editlock": 1}, {}, {}, ALL_BITS, set(OPERATIONS) - {"insert page", "copy content"}, "page_editlock",
    ),
    "page type": (
        {"doktype": 254}, {}, {}, ALL_BITS, set(), "",
    ),
    "language": (
        {}, {"allowed_languages": "0"}, {}, ALL_BITS,
        {"delete content", "move content", "localize content", "delete page"}, "language",
    ),
    "default language": (
        {}, {"allowed_languages": "1"}, {}, ALL_BITS,
        (CONTENT_OPERATIONS - {"localize content"}) | {"update page", "delete page"}, "language",
    ),
    "value": ({}, {"explicit_allowdeny": ""}, {}, ALL_BITS, CONTENT_OPERATIONS, "auth_mode"),
}  # fmt: skip


@pytest.mark.parametrize("missing", MISSING)
async def test_each_right_with_each_operation(missing: str, connection: Connection, rows: Rows, schema: Schema) -> None:
    page, group, user, below, denied, code = MISSING[missing]
    page = {**page}
    doktype = page.pop("doktype", None)
    await site(rows, page=page, group=group, user=user, below=below)
    if doktype is not None:
        await connection.execute("UPDATE pages SET doktype = $1 WHERE uid = 11", doktype)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    found: dict[str, str] = {}
    for name, question in questions().items():
        # A policy of its own for each question: none may lean on pages another has read.
        answer = await question(BackendAccess(loaded.user, schema, connection))
        if answer is not None:
            found[name] = answer.code
    assert set(found) == denied
    assert set(found.values()) <= set(code.split(","))
    administrator = BackendAccess(BackendUser(uid=9, admin=True), schema, connection)
    assert [name for name, question in questions().items() if await question(administrator)] == []


@pytest.mark.parametrize(
    ("owner", "group", "everybody", "allowed"),
    [
        ((1, 31), (9, 31), 0, True),
        ((9, 31), (1, 31), 0, True),
        ((9, 31), (9, 31), 31, True),
        ((9, 31), (9, 31), 0, False),
        ((1, 1), (1, 15), 16, True),
        ((1, 1), (9, 31), 14, False),
    ],
)
async def test_owner_group_and_everybody(
    owner: tuple[int, int],
    group: tuple[int, int],
    everybody: int,
    allowed: bool,
    connection: Connection,
    rows: Rows,
    schema: Schema,
) -> None:
    await site(rows, page={}, group={}, user={}, below=0)
    await connection.execute(
        "UPDATE pages SET perms_userid=$1, perms_user=$2, perms_groupid=$3, perms_group=$4, perms_everybody=$5 "
        "WHERE uid = 11",
        *owner,
        *group,
        everybody,
    )
    loaded = await load_user(connection, 1)
    assert loaded is not None
    policy = BackendAccess(loaded.user, schema, connection)
    assert (await policy.update("tt_content", ELEMENT) is None) is allowed


@pytest.mark.parametrize(
    ("bits", "whole", "together"),
    [((1, 2, 16), False, True), ((19, 0, 0), True, True), ((0, 19, 0), True, True), ((1, 2, 8), False, False)],
)
def test_an_alternative_must_hold_the_whole_set(bits: tuple[int, int, int], whole: bool, together: bool) -> None:
    page = PageRights(1, 0, owner=1, group=1, owner_bits=bits[0], group_bits=bits[1], everybody_bits=bits[2])
    user = BackendUser(uid=1, groups=(1,))
    wanted = PagePermission.SHOW | PagePermission.EDIT_PAGE | PagePermission.EDIT_CONTENT
    assert (grants(page, user, wanted), grants_added_up(page, user, wanted)) == (whole, together)


async def test_below_a_deleted_page_alternatives_add_up(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, page={}, group={}, user={}, below=SHOW)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    assert await BackendAccess(loaded.user, schema, connection).delete_branch(11, [13], {}) is not None
    await connection.execute("UPDATE pages SET perms_groupid=1, perms_group=4 WHERE uid = 13")
    assert await BackendAccess(loaded.user, schema, connection).delete_branch(11, [13], {}) is None


@pytest.mark.parametrize(
    ("table", "pid", "code"),
    [
        ("tt_content", 0, "root_level"),
        ("be_groups", 11, "root_level"),
        ("be_groups", 0, None),
        ("pages", 0, None),
        ("sys_category", 0, None),
        ("sys_category", 11, None),
        ("tt_content", 999, "page_missing"),
        ("tt_content", 14, "page_missing"),
        ("no_table", 11, "unknown_table"),
    ],
)
async def test_rules_that_hold_for_administrators(
    table: str, pid: int, code: str | None, connection: Connection, rows: Rows, schema: Schema
) -> None:
    await site(rows, page={}, group={}, user={}, below=0)
    await rows.page(14, 10, deleted=1)
    answer = await AdministratorPolicy(schema, connection).insert(table, pid, {})
    assert (answer.code if answer else None) == code


async def test_page_types_and_read_only_tables_hold_for_administrators(
    connection: Connection, rows: Rows, schema: Schema
) -> None:
    await site(rows, page={}, group={}, user={}, below=0)
    narrowed = schema.with_change(["pages", "allowed_record_types_by_doktype"], {"1": ["pages"], "254": ["*"]})
    narrowed = narrowed.with_change(["tt_content", "ctrl", "security"], {})
    narrowed = narrowed.with_change(["sys_category", "ctrl", "readOnly"], True)
    policy = AdministratorPolicy(narrowed, connection)
    refused = await policy.insert("tt_content", 11, {})
    assert refused is not None
    assert refused.code == "page_type"
    assert await policy.insert("pages", 11, {}) is None
    await connection.execute("UPDATE pages SET doktype = 254 WHERE uid = 12")
    assert await policy.insert("tt_content", 12, {}) is None
    read_only = await policy.modify_table("sys_category")
    assert read_only is not None
    assert read_only.code == "table_read_only"


@pytest.mark.parametrize(("table", "allowed"), [("sys_category", True), ("be_users", False), ("sys_filemounts", False)])
async def test_outside_of_the_page_tree_editors_need_the_tables_leave(
    table: str, allowed: bool, connection: Connection, rows: Rows, schema: Schema
) -> None:
    await site(rows, page={}, group={"tables_modify": "sys_category,be_users,sys_filemounts"}, user={}, below=0)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    policy = BackendAccess(loaded.user, schema, connection)
    row = {"uid": 5, "pid": 0}
    answers = [
        await first(policy.modify_table(table), policy.insert(table, 0, row)),
        await first(policy.modify_table(table), policy.update(table, row)),
        await first(policy.modify_table(table), policy.delete(table, row)),
    ]
    assert [answer is None for answer in answers] == [allowed] * 3


async def test_a_locked_record_is_no_record_for_editors(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, page={}, group={}, user={}, below=0)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    policy = BackendAccess(loaded.user, schema, connection)
    locked = {**ELEMENT, "editlock": 1}
    refused = await policy.edit_record("tt_content", locked)
    assert refused is not None
    assert refused.code == "editlock"
    assert await policy.edit_record("tt_content", locked, new=True) is None
    assert await AdministratorPolicy(schema, connection).edit_record("tt_content", locked) is None


async def test_file_references_written_with_pages_are_part_of_the_page(
    connection: Connection, rows: Rows, schema: Schema
) -> None:
    await site(rows, page={"everybody": SHOW | EDIT}, group={}, user={}, below=0)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    policy = BackendAccess(loaded.user, schema, connection)
    reference = {"uid": 1, "pid": 11}
    assert await policy.insert("sys_file_reference", 11, reference, with_pages=True) is None
    assert await policy.update("sys_file_reference", reference, with_pages=True) is None
    assert await policy.insert("sys_file_reference", 11, reference) is not None
    assert await policy.update("sys_file_reference", reference) is not None


async def test_fields_and_values(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, page={}, group={"non_exclude_fields": "tt_content:starttime"}, user={}, below=0)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    narrowed = schema.with_change(["tt_content", "columns", "header", "displayCond"], "HIDE_FOR_NON_ADMINS")
    for field in ("starttime", "endtime"):
        narrowed = narrowed.with_change(["tt_content", "columns", field, "exclude"], True)
    policy = BackendAccess(loaded.user, narrowed, connection)
    administrator = AdministratorPolicy(narrowed, connection)
    written = {name: policy.may_write_field("tt_content", name) for name in ("starttime", "endtime", "header", "CType")}
    assert written == {"starttime": True, "endtime": False, "header": False, "CType": True}
    assert administrator.may_write_field("tt_content", "endtime")
    assert policy.may_use_value("pages", "doktype", "1")
    assert not policy.may_use_value("pages", "doktype", "254")
    assert policy.may_use_value("tt_content", "CType", "text")
    assert not policy.may_use_value("tt_content", "CType", "html")
    assert administrator.may_use_value("pages", "doktype", "254")


async def test_a_hidden_page_above_ends_the_rootline(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, page={"everybody": 0}, group={}, user={}, below=ALL_BITS)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    # 13 itself may be seen, but the page between it and the mount may not.
    assert await BackendAccess(loaded.user, schema, connection).show_page(13) is not None
    await connection.execute("UPDATE pages SET perms_everybody = 1 WHERE uid = 11")
    assert await BackendAccess(loaded.user, schema, connection).show_page(13) is None
    await connection.execute("UPDATE pages SET deleted = 1 WHERE uid = 11")
    assert await BackendAccess(loaded.user, schema, connection).show_page(13) is not None


async def test_a_cycle_of_pages_ends_and_lies_in_no_mount(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, page={}, group={}, user={}, below=ALL_BITS)
    await connection.execute("UPDATE pages SET pid = 13 WHERE uid = 11")
    loaded = await load_user(connection, 1)
    assert loaded is not None
    refused = await BackendAccess(loaded.user, schema, connection).show_page(13)
    assert refused is not None
    assert refused.code == "page_mount"


async def test_pages_are_read_once_in_one_statement_and_again_when_written(
    connection: Connection, rows: Rows, schema: Schema
) -> None:
    await site(rows, page={}, group={}, user={}, below=ALL_BITS)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    policy = BackendAccess(loaded.user, schema, connection)
    counter = StatementCounter()
    counter.attach(connection)
    await policy.prefetch_pages([11, 12, 13])
    for _ in range(3):
        assert await policy.update("tt_content", ELEMENT) is None
        assert await policy.insert("pages", 13, {}) is None
    await asyncio.sleep(0)
    # The driver asks for types it has not met once per connection.
    assert len([statement for statement in counter.statements if '"pages"' in statement]) == 1
    await connection.execute("UPDATE pages SET perms_everybody = 0 WHERE uid = 11")
    assert await policy.update("tt_content", ELEMENT) is None
    policy.forget_pages()
    assert await policy.update("tt_content", ELEMENT) is not None


async def test_a_page_that_was_made_meanwhile_is_found(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, page={}, group={}, user={}, below=ALL_BITS)
    policy = AdministratorPolicy(schema, connection)
    assert await policy.insert("tt_content", 20, {}) is not None
    await rows.page(20, 10)
    assert await policy.insert("tt_content", 20, {}) is None


async def test_rights_in_a_workspace_follow_its_page_tree(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, page={}, group={}, user={}, below=ALL_BITS)
    await rows.page(30, 0, everybody=ALL_BITS)
    await rows.page(31, 10, everybody=ALL_BITS, t3ver_wsid=5, t3ver_state=1)
    # In workspace 5 page 13 was moved out of the mount, and 12 is marked for deletion.
    await rows.add("pages", uid=32, pid=30, t3ver_oid=13, t3ver_wsid=5, t3ver_state=4, perms_everybody=ALL_BITS)
    await rows.add("pages", uid=33, pid=10, t3ver_oid=12, t3ver_wsid=5, t3ver_state=2, perms_everybody=ALL_BITS)
    loaded = await load_user(connection, 1)
    assert loaded is not None
    live = BackendAccess(loaded.user, schema, connection)
    draft = BackendAccess(loaded.user, schema, connection, workspace_id=5)
    other = BackendAccess(loaded.user, schema, connection, workspace_id=6)
    pages = (11, 12, 13, 31)
    assert [await live.show_page(page) is None for page in pages] == [True, True, True, False]
    assert [await draft.show_page(page) is None for page in pages] == [True, False, False, True]
    assert [await other.show_page(page) is None for page in pages] == [True, True, True, False]
    narrowed = BackendAccess(loaded.user, schema, connection, workspace_id=5, workspace=Workspace(uid=5, mounts=(31,)))
    assert [await narrowed.show_page(page) is None for page in pages] == [False, False, False, True]
