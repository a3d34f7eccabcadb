from __future__ import annotations

import asyncio
import time

import pytest
from content_store.access.policy import BackendUser
from content_store.access.rules import GroupRow, ordered_groups
from content_store.access.users import load_user
from service_kit.statements import StatementCounter
from store_support.rows import Connection, Rows


async def loaded(connection: Connection, uid: int = 1) -> BackendUser:
    found = await load_user(connection, uid)
    assert found is not None
    return found.user


async def test_a_user_has_the_rights_of_groups_and_subgroups(connection: Connection, rows: Rows) -> None:
    await rows.add("be_groups", uid=1, title="a", subgroup="3", tables_modify="tt_content", db_mountpoints="10")
    await rows.add("be_groups", uid=2, title="b", tables_select="pages, sys_file", allowed_languages="0,1")
    await rows.add(
        "be_groups",
        uid=3,
        title="c",
        non_exclude_fields="tt_content:hidden",
        explicit_allowdeny="tt_content:CType:text",
        pagetypes_select="1,254",
        file_mountpoints="7",
        workspace_perms=1,
    )
    await rows.user(1, "ed", "2,1", db_mountpoints="11", allowed_languages="2", workspace_perms=0)
    user = await loaded(connection)
    assert user.groups == (2, 1, 3)
    assert user.tables_modify == {"tt_content"}
    assert user.tables_select == {"pages", "sys_file"}
    assert user.allowed_languages == {0, 1, 2}
    assert user.non_exclude_fields == {"tt_content:hidden"}
    assert user.explicit_allow == {"tt_content:CType:text"}
    assert user.page_types == {"1", "254"}
    assert set(user.webmounts) == {10, 11}
    assert user.filemounts == (7,)
    assert user.workspace_perms == 1
    assert not user.admin


async def test_mounts_of_groups_count_only_where_the_options_say_so(connection: Connection, rows: Rows) -> None:
    await rows.add("be_groups", uid=1, title="a", db_mountpoints="10", file_mountpoints="7")
    for options, mounts, files in ((0, (11,), ()), (1, (11, 10), ()), (2, (11,), (7,)), (3, (11, 10), (7,))):
        await rows.user(options + 1, f"ed{options}", "1", db_mountpoints="11", options=options)
        user = await loaded(connection, options + 1)
        assert (user.webmounts, user.filemounts) == (mounts, files)


async def test_groups_that_contain_each_other_come_to_an_end(connection: Connection, rows: Rows) -> None:
    await rows.add("be_groups", uid=1, title="a", subgroup="2")
    await rows.add("be_groups", uid=2, title="b", subgroup="1,2, x,99999999999999999999")
    await rows.user(1, "ed", "1")
    assert (await loaded(connection)).groups == (1, 2)


async def test_deleted_and_hidden_groups_give_nothing(connection: Connection, rows: Rows) -> None:
    await rows.add("be_groups", uid=1, title="a", tables_modify="pages", hidden=1)
    await rows.add("be_groups", uid=2, title="b", tables_modify="pages", deleted=1)
    await rows.user(1, "ed", "1,2")
    user = await loaded(connection)
    assert (user.groups, user.tables_modify) == ((), frozenset())


async def test_nobody_is_loaded_who_is_disabled_deleted_or_out_of_date(connection: Connection, rows: Rows) -> None:
    now = int(time.time())
    await rows.user(1, "a", disable=1)
    await rows.user(2, "b", deleted=1)
    await rows.user(3, "c", endtime=now - 10)
    await rows.user(4, "d", starttime=now + 1000)
    await rows.user(5, "e", starttime=now - 10, endtime=now + 1000)
    found = [await load_user(connection, uid) for uid in range(1, 7)]
    assert [user is not None for user in found] == [False, False, False, False, True, False]


async def test_loading_takes_one_statement_workspace_included(connection: Connection, rows: Rows) -> None:
    await rows.add("be_groups", uid=1, title="a", subgroup="2")
    await rows.add("be_groups", uid=2, title="b")
    await rows.add("sys_workspace", uid=5, title="Draft", members="be_users_1", db_mountpoints="3")
    await rows.user(1, "ed", "1", uc='{"copyLevels": 2}', TSconfig="a.b = 1\n# c = 2", lang="de", realName="Eda")
    counter = StatementCounter()
    counter.attach(connection)
    found = await load_user(connection, 1, 5)
    await asyncio.sleep(0)  # the driver tells its loggers in tasks
    assert len([statement for statement in counter.statements if "be_users" in statement]) == 1
    assert found is not None
    assert found.workspace is not None
    assert (found.workspace.title, found.workspace.mounts) == ("Draft", (3,))
    assert (found.name, found.locale) == ("Eda", "de")
    assert found.user.uc == {"copyLevels": 2}
    assert found.user.tsconfig == {"a.b": "1"}


async def test_a_right_taken_away_counts_at_once(connection: Connection, rows: Rows) -> None:
    await rows.add("be_groups", uid=1, title="a", tables_modify="pages")
    await rows.user(1, "ed", "1")
    assert (await loaded(connection)).tables_modify == {"pages"}
    await connection.execute("UPDATE be_groups SET tables_modify = ''")
    assert (await loaded(connection)).tables_modify == frozenset()


async def test_user_settings_speak_last(connection: Connection, rows: Rows) -> None:
    await rows.add("be_groups", uid=1, title="a", subgroup="2", TSconfig="x = group\ny = group")
    await rows.add("be_groups", uid=2, title="b", TSconfig="x = sub\ny = sub\nz = sub")
    await rows.user(1, "ed", "1", TSconfig="x = user")
    assert (await loaded(connection)).tsconfig == {"x": "user", "y": "group", "z": "sub"}


@pytest.mark.parametrize(("main", "expected"), [((1, 2), (1, 3, 2)), ((3, 1), (3, 1)), ((4,), ()), ((), ())])
def test_order_of_groups(main: tuple[int, ...], expected: tuple[int, ...]) -> None:
    groups = {1: GroupRow(1, {}, (3,)), 2: GroupRow(2, {}, (1, 3)), 3: GroupRow(3, {}, (1,))}
    assert ordered_groups(main, groups) == expected
