"""Every condition on every kind of record, held and not held (R-090 to R-097)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from content_store.access.readable import Viewer
from content_store.access.users import load_user
from content_store.datahandler.sites import Site, Sites
from content_store.schema.model import Schema
from content_store.visibility.links import LinkTemplates
from content_store.visibility.service import VisibilityService
from remit_contracts.visibility import RecordKey, VisibilityAnswer, VisibilityRequest
from store_support.rows import Connection, Rows

#: Kind -> the record asked for.
KINDS: dict[str, RecordKey] = {
    "page": RecordKey(table="pages", uid=11),
    "content": RecordKey(table="tt_content", uid=100),
    "outside of the tree": RecordKey(table="sys_redirect", uid=1),
    "file": RecordKey(table="sys_file", uid=1),
    "file metadata": RecordKey(table="sys_file_metadata", uid=1),
    "workspace version": RecordKey(table="tt_content", uid=103, live_uid=100),
    "page version": RecordKey(table="pages", uid=15, live_uid=11),
    "translation": RecordKey(table="tt_content", uid=101),
    "page translation": RecordKey(table="pages", uid=14),
    "soft-deleted": RecordKey(table="tt_content", uid=102),
    "soft-deleted page": RecordKey(table="pages", uid=16),
    "hard-deleted": RecordKey(table="tt_content", uid=999),
    "published version": RecordKey(table="tt_content", uid=998, live_uid=100),
}
EXISTING = set(KINDS) - {"hard-deleted"}
FILES = {"file", "file metadata"}
APART = {*FILES, "outside of the tree"}
DRAFTS = {"workspace version", "page version"}
PAGES = {"page", "page version", "page translation", "soft-deleted page"}
ELEMENTS = {"content", "workspace version", "translation", "soft-deleted", "published version"}
TABLES = "pages,tt_content,sys_redirect,sys_file,sys_file_metadata"

#: Condition that does not hold -> (group, everybody's bits of page 11, kinds withheld because of it).
WITHOUT: dict[str, tuple[dict[str, Any], int, set[str]]] = {
    "all hold": ({}, 1, set()),
    "select pages": ({"tables_select": TABLES.replace("pages,", "")}, 1, PAGES),
    "select content": ({"tables_select": TABLES.replace("tt_content,", "")}, 1, ELEMENTS),
    "select files": ({"tables_select": "pages,tt_content,sys_redirect"}, 1, FILES),
    "select redirects": ({"tables_select": TABLES.replace("sys_redirect,", "")}, 1, {"outside of the tree"}),
    "show bit": ({}, 30, EXISTING - APART),
    "mount": ({"db_mountpoints": "17"}, 1, EXISTING - APART),
    "file mount": ({"file_mountpoints": ""}, 1, FILES),
    "mount of another folder": ({"file_mountpoints": "2"}, 1, FILES),
    "mount of another storage": ({"file_mountpoints": "3"}, 1, FILES),
    "mount with a like name": ({"file_mountpoints": "4"}, 1, FILES),
    "language": ({"allowed_languages": "0"}, 1, {"translation", "page translation"}),
    "default language": ({"allowed_languages": "1"}, 1, EXISTING - {"translation", "page translation", "file", "outside of the tree"}),
    "workspace": ({"uid": 2}, 1, DRAFTS),
    "live workspace": ({"workspace_perms": 0}, 1, EXISTING - DRAFTS),
}  # fmt: skip


async def site(rows: Rows, group: dict[str, Any], bits: int) -> None:
    await rows.page(10, 0, "Town", everybody=1)
    await rows.page(11, 10, "News", everybody=bits)
    await rows.page(14, 10, "Neuigkeiten", sys_language_uid=1, l10n_parent=11)
    await rows.page(15, 10, "News draft", t3ver_oid=11, t3ver_wsid=5, everybody=bits)
    await rows.page(16, 11, "Gone", everybody=1, deleted=1)
    await rows.page(17, 0, "Elsewhere", everybody=1)
    await rows.content(100, 11, "Hello")
    await rows.content(101, 11, "Hallo", sys_language_uid=1, l18n_parent=100)
    await rows.content(102, 11, "Old", deleted=1)
    await rows.content(103, 11, "Hello draft", t3ver_oid=100, t3ver_wsid=5)
    await rows.add("sys_redirect", uid=1, source_path="/old")
    await rows.add("sys_file", uid=1, storage=1, identifier="/press/2026/a.pdf", name="a.pdf")
    await rows.add("sys_file_metadata", uid=1, file=1)
    for uid, folder in ((1, "1:/press/"), (2, "1:/other/"), (3, "2:/press/"), (4, "1:/press/2"), (5, "1:/")):
        await rows.add("sys_filemounts", uid=uid, title=folder, identifier=folder)
    rights = {"uid": 1, "tables_select": TABLES, "db_mountpoints": "10", "file_mountpoints": "1", "workspace_perms": 1}
    await rows.add("be_groups", title="editors", **{**rights, **group})
    await rows.add("sys_workspace", uid=5, title="Draft", members="be_groups_1")
    await rows.user(1, "ed", "1,2", workspace_perms=0)
    await rows.user(2, "admin", admin=1)


def service(connection: Connection, schema: Schema) -> VisibilityService:
    town = Site.from_data(
        {
            "identifier": "town",
            "rootPageId": 10,
            "languages": [{"languageId": 0, "title": "English"}, {"languageId": 1, "title": "Deutsch"}],
        }
    )
    other = Site.from_data(
        {"identifier": "other", "rootPageId": 17, "languages": [{"languageId": 1, "title": "Français"}]}
    )
    return VisibilityService(connection, schema, Sites([other, town]), LinkTemplates())


async def ask(
    connection: Connection, schema: Schema, keys: Sequence[RecordKey], user: int = 1, **more: Any
) -> VisibilityAnswer:
    loaded = await load_user(connection, user)
    assert loaded is not None
    viewer = Viewer(loaded.user, locale=loaded.locale)
    return await service(connection, schema).answer(VisibilityRequest(records=list(keys), **more), viewer)


@pytest.mark.req("R-090", "R-091", "R-092", "R-093", "R-097", "A-05", "A-20", "A-21", "A-23")
@pytest.mark.parametrize("missing", WITHOUT)
async def test_each_condition_with_each_kind_of_record(
    missing: str, connection: Connection, rows: Rows, schema: Schema
) -> None:
    group, bits, withheld = WITHOUT[missing]
    await site(rows, group, bits)
    seen: set[str] = set()
    for kind, key in KINDS.items():
        answer = await ask(connection, schema, [key])
        assert len(answer.records) + answer.withheld == 1
        seen |= {kind} if answer.records else set()
    assert seen == EXISTING - withheld
    # The same list in one request: the same records, in the order asked for, and a number.
    together = await ask(connection, schema, list(KINDS.values()))
    assert [(r.table, r.uid) for r in together.records] == [(KINDS[k].table, KINDS[k].uid) for k in KINDS if k in seen]
    assert together.withheld == len(KINDS) - len(seen)
    # An administrator sees what exists.
    admin = await ask(connection, schema, list(KINDS.values()), user=2)
    assert len(admin.records) == len(EXISTING)
    assert admin.withheld == 1


@pytest.mark.req("R-093")
async def test_nothing_of_a_withheld_record_is_in_the_answer(
    connection: Connection, rows: Rows, schema: Schema
) -> None:
    await site(rows, {}, 30)
    answer = await ask(connection, schema, [KINDS["content"], RecordKey(table="no_such_table", uid=1)])
    assert answer.model_dump(by_alias=False) == {"records": (), "withheld": 2, "workspace_titles": {}}


async def test_facts_of_a_visible_record(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, {"tables_modify": "tt_content"}, 1)
    keys = [KINDS["translation"], KINDS["workspace version"], KINDS["file metadata"], KINDS["page version"]]
    translation, draft, metadata, page = (await ask(connection, schema, keys, workspace_id=5)).records
    assert (translation.title, translation.page_id, translation.page_title) == ("Hallo", 11, "News")
    assert (translation.language, translation.language_title, translation.workspace_id) == (1, "Deutsch", 0)
    assert (translation.may_modify, translation.deleted, translation.workspace_title) == (True, False, "Live workspace")
    assert (draft.title, draft.page_title, draft.workspace_id) == ("Hello draft", "News draft", 5)
    assert draft.workspace_title == "Draft"
    assert (metadata.title, metadata.page_id, metadata.may_modify) == ("a.pdf", None, False)
    assert (page.title, page.page_id) == ("News draft", 11)


@pytest.mark.req("R-103")
async def test_links(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, {"tables_modify": "tt_content"}, 1)
    keys = [KINDS["content"], KINDS["page"], KINDS["soft-deleted"], KINDS["workspace version"]]
    content, page, deleted, draft = (await ask(connection, schema, keys, workspace_id=5)).records
    assert content.links.edit == "/records/tt_content/100/edit"
    assert content.links.workspace is None
    assert page.links.edit is None
    assert page.links.history is not None
    assert deleted.deleted
    assert deleted.links.history is None
    assert draft.links.workspace == "/workspaces/5"
    elsewhere = (await ask(connection, schema, [KINDS["workspace version"]], workspace_id=0)).records[0]
    assert elsewhere.links.workspace is None


@pytest.mark.req("R-094", "A-24")
async def test_titles_of_workspaces_only_for_who_may_use_them(
    connection: Connection, rows: Rows, schema: Schema
) -> None:
    await site(rows, {}, 1)
    await rows.add("sys_workspace", uid=6, title="Secret")
    answer = await ask(connection, schema, [], workspace_ids=[0, 5, 6, 7])
    assert answer.workspace_titles == {0: "Live workspace", 5: "Draft", 6: None, 7: None}
    admin = await ask(connection, schema, [], user=2, workspace_ids=[0, 5, 6, 7])
    assert admin.workspace_titles[6] == "Secret"


@pytest.mark.req("A-24")
async def test_a_row_of_a_workspace_that_is_gone(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, {}, 1)
    await connection.execute("UPDATE sys_workspace SET deleted = 1")
    assert (await ask(connection, schema, [KINDS["workspace version"]])).withheld == 1
    admin = (await ask(connection, schema, [KINDS["workspace version"]], user=2)).records[0]
    assert (admin.workspace_id, admin.workspace_title) == (5, None)


@pytest.mark.req("A-05")
async def test_a_published_draft_is_judged_by_its_live_row(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, {}, 1)
    record = (await ask(connection, schema, [KINDS["published version"]])).records[0]
    assert (record.uid, record.title, record.workspace_id) == (998, "Hello", 0)


async def test_a_translation_whose_parent_is_a_draft(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, {}, 1)
    # In a workspace the draft of a page translation may point to the draft of the page.
    await rows.page(18, 10, "Neu", sys_language_uid=1, l10n_parent=15, t3ver_oid=14, t3ver_wsid=5)
    record = (await ask(connection, schema, [RecordKey(table="pages", uid=18)])).records[0]
    assert (record.page_id, record.workspace_id) == (11, 5)


async def test_new_pages_of_a_workspace(connection: Connection, rows: Rows, schema: Schema) -> None:
    await site(rows, {}, 1)
    await rows.page(20, 11, "New", everybody=1, t3ver_wsid=5, t3ver_state=1)
    await rows.content(200, 20, "On new", t3ver_wsid=5, t3ver_state=1)
    await rows.page(21, 11, "New elsewhere", everybody=1, t3ver_wsid=6, t3ver_state=1)
    keys = [RecordKey(table="pages", uid=20), RecordKey(table="tt_content", uid=200), RecordKey(table="pages", uid=21)]
    answer = await ask(connection, schema, keys)
    assert [record.uid for record in answer.records] == [20, 200]
