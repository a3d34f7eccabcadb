from __future__ import annotations

from typing import Any

import httpx2
import pytest
from content_store.records.hashing import record_hash
from content_store.schema.model import Schema
from store_support.app import StoreUnderTest

EDITOR = 1
ADMIN = 2


@pytest.fixture
async def site(store: StoreUnderTest) -> StoreUnderTest:
    rows = store.rows
    await rows.page(10, 0, "Town", everybody=1, sorting=256)
    await rows.page(11, 10, "News", everybody=1, sorting=512)
    await rows.page(12, 10, "About", everybody=1, sorting=256)
    await rows.page(13, 11, "Archive", everybody=1, hidden=1)
    await rows.page(14, 10, "Secret", everybody=0, sorting=768)
    await rows.page(15, 14, "Below a secret", everybody=1)
    await rows.page(16, 0, "Elsewhere", everybody=1, sorting=512)
    await rows.page(17, 10, "Neuigkeiten", sys_language_uid=1, l10n_parent=11, slug="/neues")
    await rows.page(18, 11, "New draft", everybody=1, t3ver_wsid=5, t3ver_state=1)
    await rows.page(19, 10, "News, draft", everybody=1, t3ver_wsid=5, t3ver_oid=11, sorting=512)
    await rows.content(100, 11, "First", CType="text", sorting=256)
    await rows.content(101, 11, "Erster", CType="text", sorting=384, sys_language_uid=1, l18n_parent=100)
    await rows.content(102, 11, "Second", CType="html", sorting=128)
    await rows.content(103, 11, "Gone", sorting=64, deleted=1)
    await rows.content(104, 14, "On a secret page")
    await rows.content(105, 11, "First, draft", t3ver_wsid=5, t3ver_oid=100, sorting=256, CType="text")
    await rows.content(106, 11, "Zweiter?", sys_language_uid=2, l18n_parent=100, sorting=512)
    await rows.add(
        "be_groups",
        uid=1,
        title="editors",
        tables_select="pages,tt_content,sys_category,be_users",
        tables_modify="tt_content",
        db_mountpoints="10",
        allowed_languages="0,1",
        explicit_allowdeny="tt_content:CType:text",
    )
    await rows.add("sys_workspace", uid=5, title="Draft", members="be_groups_1")
    await rows.add("sys_workspace", uid=6, title="Not yours")
    await rows.user(EDITOR, "ed", "1", lang="de", password="$argon2id$secret")
    await rows.user(ADMIN, "root", admin=1, password="$argon2id$secret")
    return store


async def get(store: StoreUnderTest, path: str, user: int = EDITOR, **query: Any) -> httpx2.Response:
    return await store.client.get(path, params=query, headers=store.assertion("agent-runtime", user))


async def uids(store: StoreUnderTest, path: str, user: int = EDITOR, **query: Any) -> list[int]:
    response = await get(store, path, user, **query)
    assert response.status_code == 200, response.text
    return [row["uid"] for row in response.json()["records"]]


async def test_records_of_a_page_in_their_order(site: StoreUnderTest) -> None:
    assert await uids(site, "/v1/records/tt_content", pid=11) == [102, 100, 101]
    assert await uids(site, "/v1/records/tt_content", pid=11, language=0) == [102, 100]
    assert await uids(site, "/v1/records/tt_content", ADMIN, pid=11) == [102, 100, 101, 106]
    assert await uids(site, "/v1/records/tt_content", pid=14) == []
    assert await uids(site, "/v1/records/tt_content", ADMIN, pid=14) == [104]
    assert await uids(site, "/v1/records/tt_content") == [100, 101, 102]
    assert await uids(site, "/v1/records/tt_content", filter=["CType:html"]) == [102]
    assert await uids(site, "/v1/records/tt_content", filter=["CType:html", "pid:12"]) == []
    assert await uids(site, "/v1/records/pages") == [10, 11, 12, 13, 17]


async def test_pages_of_a_list_join_without_gap_or_double(site: StoreUnderTest) -> None:
    found: list[int] = []
    cursor: str | None = None
    for _ in range(10):
        query: dict[str, Any] = {"pid": 11, "limit": 2} | ({"cursor": cursor} if cursor else {})
        body = (await get(site, "/v1/records/tt_content", ADMIN, **query)).json()
        found += [row["uid"] for row in body["records"]]
        cursor = body["nextCursor"]
        if cursor is None:
            break
    assert found == [102, 100, 101, 106]


async def test_drafts_are_seen_in_their_workspace_only(site: StoreUnderTest) -> None:
    body = (await get(site, "/v1/records/tt_content", pid=11, workspace=5, fields="header")).json()
    assert [(row["uid"], row["header"]) for row in body["records"]] == [
        (102, "Second"),
        (100, "First, draft"),
        (101, "Erster"),
    ]
    live = (await get(site, "/v1/records/tt_content/100")).json()
    draft = (await get(site, "/v1/records/tt_content/100", workspace=5)).json()
    assert (live["record"]["header"], draft["record"]["header"]) == ("First", "First, draft")
    assert live["hash"] != draft["hash"]
    # The draft's own uid is no record of its own.
    assert (await get(site, "/v1/records/tt_content/105", workspace=5)).status_code == 404


async def test_one_record_with_translations_page_and_hash(site: StoreUnderTest, schema: Schema) -> None:
    body = (await get(site, "/v1/records/tt_content/100")).json()
    assert [row["uid"] for row in body["translations"]] == [101]
    assert body["page"] == {"uid": 11, "title": "News"}
    stored = await site.owner.fetchrow("SELECT * FROM tt_content WHERE uid = 100")
    assert stored is not None
    assert body["hash"] == record_hash(schema.tables["tt_content"], dict(stored))
    await site.owner.execute("UPDATE tt_content SET sorting = 1 WHERE uid = 100")
    assert (await get(site, "/v1/records/tt_content/100")).json()["hash"] == body["hash"]
    await site.owner.execute("UPDATE tt_content SET bodytext = 'x' WHERE uid = 100")
    assert (await get(site, "/v1/records/tt_content/100")).json()["hash"] != body["hash"]
    page = (await get(site, "/v1/records/pages/11")).json()
    assert [row["uid"] for row in page["translations"]] == [17]
    assert page["page"] == {"uid": 11, "title": "News"}


NOT_READABLE = [
    ("/v1/records/tt_content/104", "record_not_found"),
    ("/v1/records/tt_content/106", "record_not_found"),
    ("/v1/records/tt_content/103", "record_not_found"),
    ("/v1/records/tt_content/99999", "record_not_found"),
    ("/v1/records/pages/14", "record_not_found"),
    ("/v1/records/pages/15", "record_not_found"),
    ("/v1/records/pages/16", "record_not_found"),
    ("/v1/records/be_users/2", "record_not_found"),
    ("/v1/records/sys_redirect/1", "table_not_found"),
    ("/v1/records/no_such_table/1", "table_not_found"),
]


async def test_not_readable_is_not_there(site: StoreUnderTest) -> None:
    found = []
    for path, _ in NOT_READABLE:
        response = await get(site, path)
        assert response.status_code == 404
        found.append((path, response.json()["code"]))
    assert found == NOT_READABLE


async def test_passwords_and_fields_that_are_kept_back(site: StoreUnderTest) -> None:
    body = (await get(site, "/v1/records/be_users/1", ADMIN)).json()
    assert "secret" not in str(body)
    assert "password" not in body["record"]
    assert "uc" not in body["record"]
    for user in (EDITOR, ADMIN):
        refused = await get(site, "/v1/records/be_users", user, fields="password")
        assert (refused.status_code, refused.json()["code"]) == (422, "field_unknown")
        refused = await get(site, "/v1/records/be_users", user, filter="password:x")
        assert (refused.status_code, refused.json()["code"]) == (422, "field_unknown")
    # "hidden" is a field with exclude: the editor has no right on it.
    assert "hidden" in (await get(site, "/v1/records/tt_content/100", ADMIN)).json()["record"]
    assert "hidden" not in (await get(site, "/v1/records/tt_content/100")).json()["record"]
    await site.owner.execute("UPDATE be_groups SET non_exclude_fields = 'tt_content:hidden'")
    assert "hidden" in (await get(site, "/v1/records/tt_content/100")).json()["record"]


async def tree(store: StoreUnderTest, user: int = EDITOR, **query: Any) -> list[tuple[int, int]]:
    response = await get(store, "/v1/pages/tree", user, **query)
    assert response.status_code == 200, response.text
    return [(page["uid"], page["level"]) for page in response.json()["pages"]]


async def test_the_page_tree(site: StoreUnderTest) -> None:
    assert await tree(site) == [(10, 0), (12, 1), (11, 1)]
    assert await tree(site, depth=9) == [(10, 0), (12, 1), (11, 1), (13, 2)]
    assert await tree(site, root=11, depth=9) == [(11, 0), (13, 1)]
    assert await tree(site, ADMIN, depth=9) == [
        (10, 0), (12, 1), (11, 1), (13, 2), (14, 1), (15, 2), (16, 0),
    ]  # fmt: skip
    assert await tree(site, root=11, depth=9, workspace=5) == [(11, 0), (13, 1), (18, 1)]
    body = (await get(site, "/v1/pages/tree", language=1, root=11, depth=0)).json()["pages"][0]
    assert (body["title"], body["slug"], body["translated"], body["hasChildren"]) == (
        "Neuigkeiten",
        "/neues",
        True,
        True,
    )
    draft = (await get(site, "/v1/pages/tree", root=11, depth=0, workspace=5)).json()["pages"][0]
    assert draft["title"] == "News, draft"
    leaf = (await get(site, "/v1/pages/tree", root=12)).json()["pages"][0]
    assert (leaf["hasChildren"], leaf["translated"]) == (False, True)


async def test_mounts_in_mounts_are_shown_once(site: StoreUnderTest) -> None:
    await site.owner.execute("UPDATE be_groups SET db_mountpoints = '13,10,16,14'")
    assert await tree(site, depth=9) == [(10, 0), (12, 1), (11, 1), (13, 2), (16, 0)]
    # Not reached from the other mount, it is a beginning of its own.
    assert await tree(site, depth=1) == [(13, 0), (10, 0), (12, 1), (11, 1), (16, 0)]


async def test_a_long_tree_is_cut_and_says_so(site: StoreUnderTest) -> None:
    body = (await get(site, "/v1/pages/tree", depth=9, limit=2)).json()
    assert (len(body["pages"]), body["truncated"]) == (2, True)
    body = (await get(site, "/v1/pages/tree", depth=9, limit=4)).json()
    assert (len(body["pages"]), body["truncated"]) == (4, False)


async def test_a_circle_of_pages_ends(site: StoreUnderTest) -> None:
    await site.owner.execute("UPDATE pages SET pid = 13 WHERE uid = 11")
    assert (await get(site, "/v1/pages/tree", ADMIN, root=11, depth=99)).status_code == 200
    assert (await get(site, "/v1/pages/tree", root=11)).json()["code"] == "page_not_found"
    assert (await get(site, "/v1/records/tt_content/100")).json()["code"] == "record_not_found"


async def test_schema_as_its_reader_may_use_it(site: StoreUnderTest) -> None:
    tables = {t["name"]: t for t in (await get(site, "/v1/schema")).json()["tables"]}
    assert set(tables) == {"pages", "tt_content", "sys_category"}
    assert (tables["tt_content"]["writable"], tables["pages"]["writable"]) == (True, False)
    body = (await get(site, "/v1/schema/tt_content")).json()
    fields = {field["name"]: field for field in body["fields"]}
    assert "hidden" not in fields
    assert fields["header"]["writable"] is True
    assert set(fields["CType"]["options"]) == {"text"}
    assert (await get(site, "/v1/schema/sys_redirect")).json()["code"] == "table_not_found"
    password = {f["name"]: f for f in (await get(site, "/v1/schema/be_users", ADMIN)).json()["fields"]}["password"]
    assert (password["readable"], password["writable"]) == (False, True)


async def test_workspaces_of_the_reader(site: StoreUnderTest) -> None:
    mine = (await get(site, "/v1/workspaces")).json()["workspaces"]
    assert [(w["uid"], w["title"], w["role"]) for w in mine] == [
        (0, "Live-Arbeitsbereich", "live"),
        (5, "Draft", "member"),
    ]
    assert [w["uid"] for w in (await get(site, "/v1/workspaces", ADMIN)).json()["workspaces"]] == [0, 5, 6]
    for workspace in (6, 7):
        response = await get(site, "/v1/records/tt_content", workspace=workspace)
        assert (response.status_code, response.json()["code"]) == (404, "workspace_not_found")


async def test_who_may_not_work_live_reads_in_a_workspace_only(site: StoreUnderTest) -> None:
    await site.owner.execute("UPDATE be_users SET workspace_perms = 0 WHERE uid = 1")
    assert (await get(site, "/v1/records/tt_content")).json()["code"] == "workspace_not_found"
    assert await uids(site, "/v1/records/tt_content", workspace=5, pid=11) == [102, 100, 101]


NONSENSE = [
    ("/v1/records/tt_content?pid=9223372036854775808", 422, "invalid_request"),
    ("/v1/records/tt_content?pid=-1", 422, "invalid_request"),
    ("/v1/records/tt_content?pid=x", 422, "invalid_request"),
    ("/v1/records/tt_content?limit=0", 422, "invalid_request"),
    ("/v1/records/tt_content?limit=99999999999", 422, "invalid_request"),
    ("/v1/records/tt_content?cursor=nonsense", 422, "cursor_invalid"),
    ("/v1/records/tt_content?cursor=WzEsMl0", 422, "cursor_invalid"),
    ("/v1/records/tt_content?cursor=WyJhIl0", 422, "cursor_invalid"),
    ("/v1/records/tt_content?cursor=%00", 422, "cursor_invalid"),
    ("/v1/records/tt_content?filter=header", 422, "filter_invalid"),
    ("/v1/records/tt_content?filter=header:%00", 422, "filter_invalid"),
    ("/v1/records/tt_content?filter=colPos:9223372036854775808", 422, "filter_invalid"),
    ("/v1/records/tt_content?filter=colPos:abc", 422, "filter_invalid"),
    ("/v1/records/tt_content?filter=no_field:1", 422, "field_unknown"),
    ("/v1/records/tt_content?fields=header,no_field", 422, "field_unknown"),
    ("/v1/records/tt_content?language=2", 404, "language_not_found"),
    ("/v1/records/tt_content?workspace=-1", 422, "invalid_request"),
    ("/v1/records/tt_content/9223372036854775808", 422, "invalid_request"),
    ("/v1/records/tt_content/0", 422, "invalid_request"),
    ("/v1/records/tt_content/-5", 422, "invalid_request"),
    ('/v1/records/tt";--/1', 422, "invalid_request"),
    ("/v1/records/pg_class", 404, "table_not_found"),
    ("/v1/records/sys_history", 404, "table_not_found"),
    ("/v1/pages/tree?root=99999", 404, "page_not_found"),
    ("/v1/pages/tree?root=14", 404, "page_not_found"),
    ("/v1/pages/tree?depth=100", 422, "invalid_request"),
    ("/v1/pages/tree?language=2", 404, "language_not_found"),
    ("/v1/history?table=tt_content&uid=104", 404, "record_not_found"),
    ("/v1/history?table=tt_content&uid=100&cursor=x", 422, "cursor_invalid"),
    ("/v1/history?table=nothing&uid=1", 404, "table_not_found"),
    ("/v1/record-events?after=x", 403, "caller_not_allowed"),
    ("/v1/nothing", 404, "not_found"),
]


async def test_nonsense_is_told_what_is_wrong(site: StoreUnderTest) -> None:
    found = []
    for path, _, _ in NONSENSE:
        response = await site.client.get(path, headers=site.assertion("agent-runtime", EDITOR))
        assert response.headers["content-type"].startswith("application/problem+json")
        found.append((path, response.status_code, response.json()["code"]))
    assert found == NONSENSE
