"""File mounts when references and metadata are written."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.files.mounts import may_read_file, mounted_folders, split_folder
from store_support.app import StoreUnderTest
from store_support.rows import ALL_BITS


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("1:/a/", (1, "/a/")),
        ("1:a", (1, "/a/")),
        ("2:/", (2, "/")),
        ("2:", (2, "/")),
        ("x:/a/", None),
        ("/a/", None),
        ("", None),
    ],
)
def test_folders_of_mounts(identifier: str, expected: tuple[int, str] | None) -> None:
    assert split_folder(identifier) == expected


@pytest.mark.req("R-091")
@pytest.mark.parametrize(
    ("storage", "file", "readable"),
    [(1, "/a/x.pdf", True), (1, "/a/b/x.pdf", True), (1, "/ab/x.pdf", False), (2, "/a/x.pdf", False), (1, "/x", False)],
)
def test_a_file_lies_in_a_mounted_folder(storage: int, file: str, readable: bool) -> None:
    folders = mounted_folders([{"identifier": "1:/a/"}, {"identifier": "1:/", "hidden": 1}, {"identifier": "?"}])
    assert may_read_file(storage, file, folders) is readable


@pytest.fixture
async def site(store: StoreUnderTest) -> StoreUnderTest:
    rows = store.rows
    await rows.page(10, 0, everybody=ALL_BITS)
    await rows.content(100, 10, CType="text")
    for uid, folder, storage in ((1, "/mine/", 1), (2, "/other/", 1), (3, "/read/", 1), (4, "/nowhere/", 0)):
        await rows.add("sys_file", uid=uid, storage=storage, identifier=f"{folder}a.pdf", name="a.pdf")
        await rows.add("sys_file_metadata", uid=uid, file=uid)
    await rows.add("sys_filemounts", uid=1, title="m", identifier="1:/mine/")
    await rows.add("sys_filemounts", uid=2, title="r", identifier="1:/read/", read_only=1)
    await rows.add(
        "be_groups",
        uid=1,
        title="g",
        tables_modify="pages,tt_content,sys_file,sys_file_metadata,sys_file_reference",
        db_mountpoints="10",
        file_mountpoints="1,2",
        non_exclude_fields="sys_file_metadata:title",
    )
    await rows.user(1, "ed", "1")
    await rows.user(2, "root", admin=1)
    return store


async def status(store: StoreUnderTest, table: str, uid: str, user: int = 1, **fields: Any) -> str:
    body = {"datamap": {table: {uid: fields}}}
    response = await store.client.post("/v1/datamap", json=body, headers=await store.token(user))
    found: str = response.json()["entries"][0]["status"]
    return found


async def test_references_name_files_of_the_users_mounts(site: StoreUnderTest) -> None:
    reference: dict[str, Any] = {"pid": 10, "uid_foreign": 100, "tablenames": "tt_content", "fieldname": "image"}
    found = [await status(site, "sys_file_reference", "NEW1", **reference, uid_local=file) for file in (1, 2, 3, 4, 9)]
    assert found == ["written", "vetoed", "written", "vetoed", "vetoed"]
    assert await status(site, "sys_file_reference", "NEW1", 2, uid_local=2, **reference) == "written"
    assert await status(site, "sys_file_reference", "NEW1", 2, uid_local=4, **reference) == "vetoed"


@pytest.mark.req("R-091")
@pytest.mark.parametrize("user", [1, 2])
async def test_a_file_is_read_from_a_value_as_the_field_reads_it(site: StoreUnderTest, user: int) -> None:
    reference: dict[str, Any] = {"pid": 10, "uid_foreign": 100, "tablenames": "tt_content", "fieldname": "image"}
    values: list[Any] = [[4], "4,", "4,1", "1,4", "sys_file_4", ["sys_file_4"], "x", "\u00b2", {"uid": 1}, "NEW9"]
    if user == 1:
        values += [[2], "2,", "2,1", "1,2", ["sys_file_2"], " 2 "]
    for value in values:
        found = await status(site, "sys_file_reference", "NEW1", user, **reference, uid_local=value)
        assert (value, found) == (value, "vetoed")
    for value in (1, [1], "1,", ["sys_file_1"], 0):
        found = await status(site, "sys_file_reference", "NEW1", user, **reference, uid_local=value)
        assert (value, found) == (value, "written")


@pytest.mark.req("R-091")
async def test_metadata_is_not_given_another_file_by_a_list(site: StoreUnderTest) -> None:
    for value in (2, [2], "2,", ["sys_file_2"], "\u00b2"):
        assert await status(site, "sys_file_metadata", "1", file=value) == "vetoed"
    assert await site.owner.fetchval("SELECT file FROM sys_file_metadata WHERE uid = 1") == 1


async def test_metadata_needs_a_mount_that_may_be_written(site: StoreUnderTest) -> None:
    found = [await status(site, "sys_file_metadata", str(file), title="x") for file in (1, 2, 3)]
    assert found == ["written", "vetoed", "vetoed"]
    assert await status(site, "sys_file_metadata", "2", 2, title="x") == "written"
    assert await site.owner.fetchval("SELECT count(*) FROM sys_file_metadata WHERE title = 'x'") == 2


async def test_file_records_are_never_written(site: StoreUnderTest) -> None:
    assert [await status(site, "sys_file", "1", user, name="x") for user in (1, 2)] == ["vetoed", "vetoed"]
