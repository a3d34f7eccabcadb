"""Writes of people over HTTP, and the rights of an editor driven through the DataHandler."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from store_support.app import StoreUnderTest
from store_support.rows import ALL_BITS

EDITOR = 1
ADMIN = 2
SHOW, EDIT, DELETE, NEW, CONTENT = 1, 2, 4, 8, 16


@pytest.fixture
async def site(store: StoreUnderTest) -> StoreUnderTest:
    rows = store.rows
    await rows.page(10, 0, "Town", everybody=ALL_BITS)
    await rows.page(11, 10, "News", everybody=ALL_BITS, sorting=256)
    await rows.page(12, 10, "About", everybody=ALL_BITS, sorting=512)
    await rows.page(13, 11, "Archive", everybody=ALL_BITS)
    await rows.content(100, 11, "First", CType="text", sorting=256)
    await rows.content(101, 11, "Second", CType="text", sorting=512)
    await rows.add(
        "be_groups",
        uid=1,
        title="editors",
        tables_select="pages,tt_content",
        tables_modify="pages,tt_content",
        db_mountpoints="10",
        explicit_allowdeny="tt_content:CType:text",
        pagetypes_select="1",
        non_exclude_fields="pages:hidden,tt_content:hidden",
    )
    await rows.user(EDITOR, "ed", "1", password="x")
    await rows.user(ADMIN, "root", admin=1)
    # Rows put there by hand are not what the tests ask about.
    await store.owner.execute("SELECT count(*) FROM capture_take(NULL)")
    return store


async def post(store: StoreUnderTest, path: str, body: Any, user: int = EDITOR, **query: Any) -> httpx2.Response:
    return await store.client.post(path, json=body, headers=await store.token(user), params=query)


async def entry(store: StoreUnderTest, path: str, body: Any, user: int = EDITOR) -> dict[str, Any]:
    response = await post(store, path, body, user)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["entries"][-1]
    return found


async def datamap(store: StoreUnderTest, table: str, uid: str, user: int = EDITOR, **fields: Any) -> dict[str, Any]:
    return await entry(store, "/v1/datamap", {"datamap": {table: {uid: fields}}}, user)


async def command(
    store: StoreUnderTest, table: str, uid: int, name: str, value: Any, user: int = EDITOR
) -> dict[str, Any]:
    return await entry(store, "/v1/cmdmap", {"cmdmap": {table: {str(uid): {name: value}}}}, user)


async def test_a_write_has_history_events_and_takes_its_capture_rows(site: StoreUnderTest) -> None:
    body = {
        "datamap": {"tt_content": {"NEW1": {"pid": 11, "header": "New", "CType": "text"}, "100": {"header": "1st"}}}
    }
    answer = (await post(site, "/v1/datamap", body)).json()
    assert [(e["operation"], e["status"]) for e in answer["entries"]] == [("new", "written"), ("update", "written")]
    uid = answer["placeholders"]["NEW1"]
    assert await site.owner.fetchval("SELECT header FROM tt_content WHERE uid = $1", uid) == "New"
    events = await site.owner.fetch("SELECT stream, data::jsonb AS data FROM outbox")
    actions = {row["stream"]: row["data"] for row in events}
    assert set(actions) == {f"tt_content:{uid}", "tt_content:100"}
    assert all('"userUid": 1' in data for data in actions.values())
    assert await site.owner.fetchval("SELECT count(*) FROM capture_take(NULL)") == 0
    moved = await command(site, "tt_content", 100, "move", -101)
    assert moved["status"] == "written"
    data = await site.owner.fetchval("SELECT data::jsonb FROM outbox WHERE stream = 'tt_content:100' ORDER BY seq DESC")
    assert '"moved"' in data


async def test_an_entry_that_is_refused_changes_nothing_and_the_others_stand(site: StoreUnderTest) -> None:
    body = {
        "datamap": {
            "tt_content": {"100": {"header": "1st"}, "999": {"header": "?"}},
            "sys_redirect": {"NEW2": {"pid": 0}},
        }
    }
    answer = (await post(site, "/v1/datamap", body)).json()
    assert [e["status"] for e in answer["entries"]] == ["written", "error", "refused"]
    assert await site.owner.fetchval("SELECT count(*) FROM sys_redirect") == 0


@pytest.mark.parametrize("path", ["/v1/datamap", "/v1/cmdmap", "/v1/records/tt_content/100/rollback"])
async def test_the_runtime_writes_through_calls_only(site: StoreUnderTest, path: str) -> None:
    body: dict[str, Any] = {"historyUid": 1} if "rollback" in path else {path.split("/")[2]: {}}
    for service, code in (("agent-runtime", "calls_only"), ("chat-gateway", "caller_not_allowed")):
        response = await site.client.post(path, json=body, headers=site.assertion(service, ADMIN))
        assert (response.status_code, response.json()["code"]) == (403, code)
    assert (await site.client.post(path, json=body)).json()["code"] == "token_missing"


#: Operation -> (path, body); each is possible with all rights.
OPERATIONS: dict[str, tuple[str, str, Any]] = {
    "update content": ("datamap", "tt_content", {"100": {"header": "x"}}),
    "insert content": ("datamap", "tt_content", {"NEW1": {"pid": 11, "header": "x", "CType": "text"}}),
    "update page": ("datamap", "pages", {"11": {"title": "x"}}),
    "insert page": ("datamap", "pages", {"NEW1": {"pid": 11, "title": "x", "doktype": 1}}),
    "move content": ("cmdmap", "tt_content", {"100": {"move": 12}}),
    "copy content": ("cmdmap", "tt_content", {"100": {"copy": 12}}),
    "delete content": ("cmdmap", "tt_content", {"100": {"delete": 1}}),
    "move page": ("cmdmap", "pages", {"11": {"move": 12}}),
    "delete page": ("cmdmap", "pages", {"11": {"delete": 1}}),
}
#: What is taken away -> (statement, operations that are refused then).
TAKEN: dict[str, tuple[str, set[str]]] = {
    "nothing": ("SELECT 1", set()),
    "table content": (
        "UPDATE be_groups SET tables_modify = 'pages'",
        {"update content", "insert content", "move content", "copy content", "delete content", "delete page"},
    ),
    "table pages": (
        "UPDATE be_groups SET tables_modify = 'tt_content'",
        {"update page", "insert page", "move page", "delete page"},
    ),
    "mount": ("UPDATE be_groups SET db_mountpoints = '12'", set(OPERATIONS)),
    "content bit": (
        f"UPDATE pages SET perms_everybody = {ALL_BITS & ~CONTENT} WHERE uid = 11",
        {"update content", "insert content", "move content", "delete content"},
    ),
    "edit bit": (f"UPDATE pages SET perms_everybody = {ALL_BITS & ~EDIT} WHERE uid = 11", {"update page"}),
    "new bit": (f"UPDATE pages SET perms_everybody = {ALL_BITS & ~NEW} WHERE uid = 11", {"insert page"}),
    "delete bit": (
        f"UPDATE pages SET perms_everybody = {ALL_BITS & ~DELETE} WHERE uid = 11",
        {"move page", "delete page"},
    ),
    "delete bit below": (f"UPDATE pages SET perms_everybody = {ALL_BITS & ~DELETE} WHERE uid = 13", {"delete page"}),
    "page lock": (
        "UPDATE pages SET editlock = 1 WHERE uid = 11",
        {"update content", "insert content", "move content", "delete content", "update page", "move page", "delete page"},
    ),
    "record lock": ("UPDATE tt_content SET editlock = 1 WHERE uid = 100", {"update content", "move content", "copy content", "delete content", "delete page"}),
    "language": ("UPDATE be_groups SET allowed_languages = '1'", set(OPERATIONS)),
    "value": (
        "UPDATE be_groups SET explicit_allowdeny = ''",
        {"update content", "insert content", "move content", "copy content", "delete content", "delete page"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("taken", TAKEN)
async def test_each_right_with_each_operation_through_the_datahandler(site: StoreUnderTest, taken: str) -> None:
    statement, refused = TAKEN[taken]
    await site.owner.execute(statement)
    for name, (kind, table, rows) in OPERATIONS.items():
        before = await state(site)
        found = await entry(site, f"/v1/{kind}", {kind: {table: rows}})
        if name in refused:
            assert (name, found["status"]) == (name, "refused")
            assert await state(site) == before
        else:
            assert (name, found["status"]) == (name, "written"), found
        await restore(site)


async def state(site: StoreUnderTest) -> list[Any]:
    return [await site.owner.fetch(f"SELECT * FROM {table} ORDER BY uid") for table in ("pages", "tt_content")]


async def restore(site: StoreUnderTest) -> None:
    """Back to the rows of the fixture, so that each operation begins with the same site."""
    await site.owner.execute(
        "DELETE FROM pages WHERE uid NOT IN (10, 11, 12, 13); DELETE FROM tt_content WHERE uid NOT IN (100, 101); "
        "UPDATE pages SET deleted = 0, title = 'News', pid = 10 WHERE uid = 11; UPDATE pages SET deleted = 0; "
        "UPDATE tt_content SET deleted = 0, pid = 11, header = 'First'"
    )


async def test_going_back_to_an_entry_of_the_history(site: StoreUnderTest) -> None:
    await datamap(site, "tt_content", "100", header="one", bodytext="a")
    await datamap(site, "tt_content", "100", header="two")
    await command(site, "tt_content", 100, "move", 12)
    await datamap(site, "tt_content", "100", header="three", bodytext="b")
    await command(site, "tt_content", 100, "delete", 1)
    headers = await site.token(EDITOR)
    query: dict[str, Any] = {"table": "tt_content", "uid": 100}
    body = (await site.client.get("/v1/history", params=query, headers=headers)).json()
    assert [e["action"] for e in body["entries"]] == ["delete", "modify", "move", "modify", "modify"]
    assert (body["entries"][1]["before"]["header"], body["entries"][1]["after"]["header"]) == ("two", "three")
    first = body["entries"][-1]["uid"]
    answer = await post(site, "/v1/records/tt_content/100/rollback", {"historyUid": first})
    assert answer.status_code == 200, answer.text
    row = await site.owner.fetchrow("SELECT header, bodytext, pid, deleted FROM tt_content WHERE uid = 100")
    assert row is not None
    assert tuple(row) == ("one", "a", 11, 0), answer.text
    # Going back is a change like any other.
    again = (await site.client.get("/v1/history", params=query, headers=headers)).json()
    assert len(again["entries"]) > len(body["entries"])
    paged = (await site.client.get("/v1/history", params={**query, "limit": 2}, headers=headers)).json()
    assert len(paged["entries"]) == 2
    more = {**query, "limit": 2, "cursor": paged["nextCursor"]}
    following = (await site.client.get("/v1/history", params=more, headers=headers)).json()
    assert following["entries"][0]["uid"] < paged["entries"][-1]["uid"]


async def test_a_rollback_needs_the_rights_and_an_entry_of_the_record(site: StoreUnderTest) -> None:
    await datamap(site, "tt_content", "100", ADMIN, header="one")
    await datamap(site, "tt_content", "101", ADMIN, header="other")
    entries = await site.owner.fetch("SELECT uid, recuid FROM sys_history ORDER BY uid")
    mine, other = (row["uid"] for row in entries)
    response = await post(site, "/v1/records/tt_content/100/rollback", {"historyUid": other})
    assert (response.status_code, response.json()["code"]) == (404, "history_entry_not_found")
    await datamap(site, "tt_content", "100", ADMIN, header="two")
    await site.owner.execute(f"UPDATE pages SET perms_everybody = {SHOW} WHERE uid = 11")
    response = await post(site, "/v1/records/tt_content/100/rollback", {"historyUid": mine})
    assert [e["status"] for e in response.json()["entries"]] == ["refused"]
    assert await site.owner.fetchval("SELECT header FROM tt_content WHERE uid = 100") == "two"
    await site.owner.execute("UPDATE pages SET perms_everybody = 0 WHERE uid = 11")
    response = await post(site, "/v1/records/tt_content/100/rollback", {"historyUid": mine})
    assert response.json()["code"] == "record_not_found"


async def test_history_keeps_back_what_the_reader_may_not_see(site: StoreUnderTest) -> None:
    await datamap(site, "be_users", str(EDITOR), ADMIN, password="new password", realName="Eda")
    query: dict[str, Any] = {"table": "be_users", "uid": EDITOR}
    body = (await site.client.get("/v1/history", params=query, headers=await site.token(ADMIN))).json()
    (changed,) = body["entries"]
    assert changed["fields"] == ["password"]
    assert changed["after"] == {"realName": "Eda"}
    assert "argon2" not in str(body)
    stored = await site.owner.fetchval("SELECT password FROM be_users WHERE uid = 1")
    assert stored.startswith("$argon2id$")
    assert (await site.client.get("/v1/history", params=query, headers=await site.token(EDITOR))).status_code == 404


async def test_history_of_a_draft_is_seen_in_its_workspace(site: StoreUnderTest) -> None:
    await site.rows.add("sys_workspace", uid=5, title="Draft", members="be_groups_1")
    await site.rows.content(105, 11, "Draft", t3ver_oid=100, t3ver_wsid=5)
    await site.owner.execute(
        "INSERT INTO sys_history (tstamp, actiontype, recuid, tablename, workspace, history_data) VALUES "
        """(1, 2, 100, 'tt_content', 0, '{"oldRecord": {"header": "a"}, "newRecord": {"header": "b"}}'), """
        """(2, 2, 105, 'tt_content', 5, '{"oldRecord": {"header": "b"}, "newRecord": {"header": "c"}}')"""
    )
    headers = await site.token(EDITOR)
    found = {}
    for workspace in (0, 5):
        query: dict[str, Any] = {"table": "tt_content", "uid": 100, "workspace": workspace}
        entries = (await site.client.get("/v1/history", params=query, headers=headers)).json()["entries"]
        found[workspace] = [entry["after"]["header"] for entry in entries]
    assert found == {0: ["b"], 5: ["c", "b"]}


NONSENSE: list[Any] = [
    {"datamap": {"no_such_table": {"1": {"a": 1}}}},
    {"datamap": {"tt_content": {"9223372036854775808": {"header": "x"}}}},
    {"datamap": {"tt_content": {"-1": {"header": "x"}}}},
    {"datamap": {"tt_content": {"1e3": {"header": "x"}}}},
    {"datamap": {"tt_content": {"100": ["header"]}}},
    {"datamap": {"tt_content": [1]}},
    {"datamap": {"tt_content": {"100": {"header": ["a"]}}}},
    {"datamap": {"tt_content": {"100": {"header": "a\u0000b"}}}},
    {"datamap": {"tt_content": {"100": {"sys_language_uid": 2**63}}}},
    {"datamap": {"tt_content": {"NEW1": {"pid": 2**63, "header": "x"}}}},
    {"datamap": {"pages\u0000": {"1": {"title": "x"}}}},
]


async def test_nonsense_is_an_entry_that_was_not_carried_out(site: StoreUnderTest) -> None:
    before = await state(site)
    for body in NONSENSE:
        response = await post(site, "/v1/datamap", body, ADMIN)
        assert response.status_code == 200, (body, response.text)
        assert not [e for e in response.json()["entries"] if e["status"] == "written"], (body, response.text)
    for commands in (
        {"tt_content": {"100": {"explode": 1}}},
        {"tt_content": {"100": {"move": 2**63}}},
        {"tt_content": {"100": {"move": "\u0000"}}},
        {"tt_content": {"999999": {"delete": 1}}},
        {"tt_content": {"100": 5}},
        {"tt_content": 5},
    ):
        response = await post(site, "/v1/cmdmap", {"cmdmap": commands}, ADMIN)
        assert response.status_code == 200, (commands, response.text)
        assert not [e for e in response.json()["entries"] if e["status"] == "written"], (commands, response.text)
    assert await state(site) == before


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"{", 400, "unreadable_body"),
        (b"\xff", 400, "unreadable_body"),
        (b"[]", 422, "invalid_request"),
        (b'{"datamap": 5}', 422, "invalid_request"),
        (b'{"datamap": {}, "more": 1}', 422, "invalid_request"),
        (b'{"datamap": {"a": NaN}}', 400, "unreadable_body"),
        (b'{"datamap": {"a": "' + b"x" * 9_000_000 + b'"}}', 413, "body_too_large"),
    ],
    ids=["cut off", "no utf-8", "a list", "a number", "more keys", "nan", "too long"],
)
async def test_bodies_that_are_none(site: StoreUnderTest, content: bytes, status: int, code: str) -> None:
    headers = {**await site.token(ADMIN), "Content-Type": "application/json"}
    response = await site.client.post("/v1/datamap", content=content, headers=headers)
    assert (response.status_code, response.json()["code"]) == (status, code)
