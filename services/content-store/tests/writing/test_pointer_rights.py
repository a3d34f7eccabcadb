"""Language and pointers of translations: rights and the write see the same value, on insert and on update."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from store_support.app import StoreUnderTest
from store_support.rows import ALL_BITS

EDITOR, ADMIN, TRANSLATOR = 1, 2, 3
Entry = dict[str, Any]


@pytest.fixture
async def site(store: StoreUnderTest) -> StoreUnderTest:
    """The editor's pages 10 to 12, a page 20 nobody may see, content on both."""
    rows = store.rows
    await rows.page(10, 0, "Town", everybody=ALL_BITS, slug="/")
    await rows.page(11, 10, "News", everybody=ALL_BITS, sorting=256, slug="/news")
    await rows.page(12, 10, "About", everybody=ALL_BITS, sorting=512, slug="/about")
    await rows.page(20, 0, "Secret", everybody=0, sorting=512, slug="/")
    await rows.content(100, 11, "First", CType="text", sorting=256)
    await rows.content(101, 11, "Second", CType="text", sorting=512)
    await rows.content(200, 20, "Secret content", CType="text", colPos=77, sorting=256, starttime=12345)
    await rows.add(
        "be_groups",
        uid=1,
        title="editors",
        tables_modify="pages,tt_content",
        db_mountpoints="10",
        explicit_allowdeny="tt_content:CType:text",
        pagetypes_select="1",
        non_exclude_fields="pages:hidden,tt_content:starttime,tt_content:colPos",
    )
    for table in ("pages", "tt_content"):
        # New records keep clear of the uids given here.
        await store.owner.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'uid'), 1000)")
    await rows.user(EDITOR, "ed", "1")
    await rows.user(ADMIN, "root", admin=1)
    await rows.user(TRANSLATOR, "tr", "1", allowed_languages="0")
    return store


async def write(store: StoreUnderTest, table: str, uid: int | str, user: int = EDITOR, /, **fields: Any) -> Entry:
    body = {"datamap": {table: {str(uid): fields}}}
    response = await store.client.post("/v1/datamap", json=body, headers=await store.token(user))
    assert response.status_code == 200, response.text
    found: Entry = response.json()["entries"][0]
    return found


async def raw(store: StoreUnderTest, text: str, user: int = ADMIN) -> Entry:
    headers = {**await store.token(user), "content-type": "application/json"}
    response = await store.client.post("/v1/datamap", content=f'{{"datamap":{text}}}', headers=headers)
    assert response.status_code == 200, (text, response.text)
    found: Entry = response.json()["entries"][0]
    return found


async def stored(store: StoreUnderTest, table: str, uid: int) -> Entry:
    row = await store.owner.fetchrow(f"SELECT * FROM {table} WHERE uid = $1", uid)
    assert row is not None
    return dict(row)


async def test_a_new_page_lies_only_where_its_rights_were_asked(site: StoreUnderTest) -> None:
    languages: list[Any] = [1, "1 ", " 1", "01", "+1", True, 1.0, "1.0", "1e0", "\u00b2", [1], {"a": 1}, ""]
    for language, pid in itertools.product(languages, (20, 0)):
        new = {"title": "x", "doktype": 1, "sys_language_uid": language, "l10n_parent": 11}
        entry = await write(site, "pages", "NEW1", pid=pid, **new)
        elsewhere = "SELECT count(*) FROM pages WHERE pid = $1 AND uid NOT IN (10, 20)"
        assert (language, await site.owner.fetchval(elsewhere, pid)) == (language, 0)
        if entry["status"] == "written":
            page = await stored(site, "pages", entry["uid"])
            assert (page["pid"], page["sys_language_uid"], page["l10n_parent"]) == (10, 1, 11)
        else:
            assert entry["code"] in ("invalid_value", "page_permission", "root_level_rights")
    assert await site.owner.fetchval("SELECT count(*) FROM pages WHERE l10n_parent = 11") == 4


async def test_a_page_that_may_not_be_edited_is_not_translated(site: StoreUnderTest) -> None:
    parents: list[Any] = [20, "20", "20 ", " 20", "020", "pages_20", 20.0, [20], "20,", "+20"]
    for language, parent in itertools.product((1, 1.0, "1", "1.0"), parents):
        new = {"pid": 11, "title": "x", "doktype": 1, "sys_language_uid": language, "l10n_parent": parent}
        assert (await write(site, "pages", "NEW1", **new))["code"] in ("page_permission", "invalid_value")
    assert await site.owner.fetchval("SELECT count(*) FROM pages") == 4


async def test_a_language_that_is_filled_in_makes_no_page_elsewhere(site: StoreUnderTest) -> None:
    await site.owner.execute("UPDATE be_users SET allowed_languages = '1' WHERE uid = $1", EDITOR)
    await write(site, "pages", "NEW1", pid=20, title="x", doktype=1, l10n_parent=11)
    assert await site.owner.fetchval("SELECT count(*) FROM pages WHERE pid = 20") == 0


async def test_a_page_becomes_no_translation_of_a_page_the_user_may_not_edit(site: StoreUnderTest) -> None:
    entry = await write(site, "pages", 12, sys_language_uid=1, l10n_parent=20)
    assert (entry["status"], entry["code"]) == ("refused", "page_permission")
    page = await stored(site, "pages", 12)
    assert (page["sys_language_uid"], page["l10n_parent"]) == (0, 0)
    # One of the pages beside it may be named, but not one elsewhere.
    assert (await write(site, "pages", 12, sys_language_uid=1, l10n_parent=10))["code"] == "invalid_value"
    assert (await write(site, "pages", 12, sys_language_uid=1, l10n_parent=12))["code"] == "invalid_value"
    assert (await write(site, "pages", 12, sys_language_uid=1, l10n_parent="NEW7"))["code"] == "unknown_placeholder"
    assert (await write(site, "pages", 12, sys_language_uid=1, l10n_parent=11))["status"] == "written"


@pytest.mark.parametrize(
    "fields", [{"sys_language_uid": 0, "l10n_parent": 0}, {"sys_language_uid": 0}, {"l10n_parent": 0}]
)
async def test_the_translation_of_a_mount_becomes_no_page_at_the_root(
    site: StoreUnderTest, fields: dict[str, Any]
) -> None:
    made = await write(site, "pages", "NEW1", pid=0, title="x", doktype=1, sys_language_uid=1, l10n_parent=10)
    assert made["status"] == "written", made
    entry = await write(site, "pages", made["uid"], **fields)
    assert (entry["status"], entry["code"]) == ("refused", "root_level_rights")
    page = await stored(site, "pages", made["uid"])
    assert (page["sys_language_uid"], page["l10n_parent"]) == (1, 10)
    entry = await write(site, "pages", made["uid"], title="y")
    assert entry["status"] == "written", entry
    entry = await write(site, "pages", made["uid"], ADMIN, **fields)
    assert entry["status"] == "written", entry


@pytest.mark.parametrize("field", ["l18n_parent", "l10n_source"])
async def test_nothing_is_read_through_a_translation_of_hidden_content(site: StoreUnderTest, field: str) -> None:
    new = {"pid": 11, "CType": "text", "sys_language_uid": 1, "l18n_parent": 100}
    entry = await write(site, "tt_content", "NEW1", **{**new, field: 200})
    assert (entry["status"], entry["code"]) == ("refused", "page_permission")
    assert await site.owner.fetchval("SELECT count(*) FROM tt_content") == 3
    entry = await write(site, "tt_content", 101, **{"sys_language_uid": 1, "l18n_parent": 100, field: 200})
    assert (entry["status"], entry["code"]) == ("refused", "page_permission")
    # Also not first as a record of the default language that becomes a translation later.
    assert (await write(site, "tt_content", 101, **{field: 200}))["status"] == "refused"
    assert (await write(site, "tt_content", "NEW1", **{**new, field: 9999}))["code"] == "record_not_found"
    assert (await write(site, "tt_content", "NEW1", **new))["status"] == "written"


async def test_a_translation_of_hidden_content_that_exists_takes_nothing_more(site: StoreUnderTest) -> None:
    await site.rows.content(102, 11, "T", CType="text", sys_language_uid=1, l18n_parent=200, sorting=257)
    assert (await write(site, "tt_content", 102, header="changed"))["status"] == "written"
    row = await stored(site, "tt_content", 102)
    assert (row["header"], row["colPos"], row["starttime"]) == ("changed", 0, 0)
    assert (await write(site, "tt_content", 102, ADMIN, header="again"))["status"] == "written"
    row = await stored(site, "tt_content", 102)
    assert (row["colPos"], row["starttime"]) == (77, 12345)


@pytest.mark.req("S-42")
async def test_a_language_that_may_not_be_used_is_never_another_one(site: StoreUnderTest) -> None:
    languages: list[Any] = [1, "1", "1 ", 1.0, "1.0", "1e0", "1.9", 0.9, True, "+1", [1]]
    for language in languages:
        new = {"pid": 11, "CType": "text", "header": "x", "sys_language_uid": language}
        entry = await write(site, "tt_content", "NEW1", TRANSLATOR, **new)
        assert (language, entry["status"]) in ((language, "refused"), (language, "error"))
        assert entry["code"] in ("language", "invalid_value")
    assert await site.owner.fetchval("SELECT count(*) FROM tt_content") == 3
    entry = await write(site, "tt_content", 100, TRANSLATOR, header="new", sys_language_uid=1)
    assert entry["dropped"] == [{"field": "sys_language_uid", "code": "field_not_allowed"}]


async def test_a_default_has_to_be_an_allowed_value(site: StoreUnderTest) -> None:
    await site.owner.execute("UPDATE be_groups SET explicit_allowdeny = 'tt_content:CType:html'")
    assert (await write(site, "tt_content", "NEW1", pid=11, header="x"))["code"] == "auth_mode"
    assert (await write(site, "tt_content", "NEW1", pid=11, header="x", CType=""))["code"] == "explicit_value"
    assert (await write(site, "tt_content", "NEW1", pid=11, header="x", CType="html"))["status"] == "written"


@pytest.mark.req("S-42")
@pytest.mark.parametrize("number", ["1e999", "-1e999", '"\u00b2"', '"' + "9" * 5000 + '"'])
async def test_no_number_is_an_error_of_the_store(site: StoreUnderTest, number: str) -> None:
    await site.rows.content(102, 11, "T", CType="text", sys_language_uid=1, l18n_parent=100, sorting=257)
    tables = {"tt_content": ("l18n_parent", 11, (100, 102)), "pages": ("l10n_parent", 10, (11,))}
    for table, (parent, pid, uids) in tables.items():
        for name in ("sys_language_uid", parent, "l10n_source", "uid", "starttime", "colPos", "media", "title"):
            for key, place in (*((str(uid), "") for uid in uids), ("NEW1", f'"pid":{pid},')):
                await raw(site, f'{{"{table}":{{"{key}":{{{place}"{name}":{number}}}}}}}')
    found = "SELECT count(*) FROM sys_history WHERE history_data::text ILIKE '%infinity%'"
    assert await site.owner.fetchval(found) == 0


@pytest.mark.req("S-42")
async def test_a_number_without_end_is_no_value(site: StoreUnderTest) -> None:
    names = ("header", "l10n_source", "bodytext", "colPos", "starttime", "image", "pi_flexform")
    for name, value in itertools.product(names, ("1e999", "-1e999", "[1e999]")):
        entry = await raw(site, f'{{"tt_content":{{"100":{{"{name}":{value}}}}}}}')
        assert (entry["status"], entry["code"]) == ("error", "invalid_value")
