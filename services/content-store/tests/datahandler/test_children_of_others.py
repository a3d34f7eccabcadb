"""What comes along with a record is asked for like the record itself, however the parent names it (SEMANTICS 12, 13, 21)."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import asyncpg
import pytest
from content_store.access.policy import BackendUser, Denial, Row
from content_store.datahandler.policy import AdministratorPolicy
from content_store.datahandler.refindex import check, rebuild
from content_store.datahandler.result import EntryOutcome
from content_store.records.gateway import RecordGateway
from content_store.records.overlay import OverlayReader
from content_store.schema.ddl import create_schema_statements
from content_store.schema.model import Schema
from remit_harness.databases import Databases, built
from remit_harness.run import TestRun
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler, site_data

_TABLES = ("pages", "tt_content", "tx_child", "tx_kid", "sys_category", "sys_category_record_mm", "sys_refindex")
EDITOR = BackendUser(2, "ed", tables_modify=frozenset({"pages", "tt_content", "tx_child", "tx_kid"}))
#: A page the editor has no rights on.
_SECRET = 90


def _data() -> dict[str, Any]:
    """The test site with children kept as a list, a relation without a field on its other side, and a form."""
    data = site_data()
    tables = data["tables"]
    content = tables["tt_content"]["columns"]
    content["kids"] = {"config": {"type": "inline", "foreign_table": "tx_kid"}}
    content["named"] = {"config": {"type": "group", "allowed": "tx_values", "MM": "tx_named_mm"}}
    kid = copy.deepcopy(tables["tx_child"])
    kid["columns"] = {"title": {"config": {"type": "input"}}, "hidden": {"config": {"type": "check"}}}
    kid["ctrl"] = {name: kid["ctrl"][name] for name in ("label", "delete", "tstamp", "enablecolumns", "security")}
    # Children come before their parents in the order of tables.
    data["tables"] = {"tx_kid": kid, "tx_child": tables.pop("tx_child"), **tables}
    return data


class _Rights(AdministratorPolicy):
    """No right on what lies on the secret page, nor on what is named: ``operation table``."""

    def __init__(self, schema: Schema, gateway: RecordGateway, *denied: str) -> None:
        super().__init__(EDITOR, schema, OverlayReader(gateway))
        self._denied = denied

    def _judge(self, operation: str, table: str, page: int) -> Denial | None:
        if page == _SECRET or f"{operation} {table}" in self._denied:
            return Denial("page_permission", "No")
        return None

    async def insert(self, table: str, pid: int, row: Row, *, with_pages: bool = False) -> Denial | None:
        return self._judge("insert", table, pid)

    async def update(self, table: str, row: Row, *, with_pages: bool = False) -> Denial | None:
        return self._judge("update", table, row["pid"])

    async def delete(self, table: str, row: Row) -> Denial | None:
        return self._judge("delete", table, row["pid"])

    async def show_page(self, page: int) -> Denial | None:
        return self._judge("show", "pages", page)

    async def edit_record(
        self, table: str, row: Row, *, new: bool = False, all_languages: bool = False
    ) -> Denial | None:
        # As in the real rules: language, type and lock of the record, never its page.
        return self._judge("edit", table, 0)

    def may_write_field(self, table: str, field: str) -> bool:
        return f"write {table}:{field}" not in self._denied


@pytest.fixture(scope="module")
def kids_schema() -> Schema:
    return Schema.from_data(_data())


@pytest.fixture(scope="module")
def kids_database(postgres: str, test_run: TestRun, kids_schema: Schema) -> Iterator[str]:
    async def build(databases: Databases) -> str:
        url = await databases.create("dh_kids")
        connection = await asyncpg.connect(url)
        await connection.execute(";".join(create_schema_statements(kids_schema)))
        gateway = RecordGateway(connection, kids_schema)
        async with connection.transaction():
            await gateway.insert("pages", {"uid": 1, "pid": 0, "title": "Root", "slug": "/", "is_siteroot": 1})
            await gateway.insert("pages", {"uid": 2, "pid": 1, "title": "Page", "slug": "/page", "sorting": 256})
            await gateway.insert("pages", {"uid": _SECRET, "pid": 1, "title": "Secret", "slug": "/s", "sorting": 512})
        await connection.execute("SELECT setval(pg_get_serial_sequence('public.pages', 'uid'), 100)")
        await connection.close()
        return url

    yield from built(postgres, test_run, build)


class _Site:
    """A page with content of the editor, and what lies on the secret page."""

    def __init__(self, connection: Connection, schema: Schema) -> None:
        self.connection = connection
        self.schema = schema

    async def admin(
        self, datamap: dict[str, dict[str, dict[str, Any]]] | None = None, cmdmap: Any = None
    ) -> dict[str, int]:
        result = await open_handler(self.connection, self.schema).process(datamap, cmdmap)
        assert not result.failed, result.errorLog
        return result.substNEWwithIDs

    async def editor(self, datamap: Any, cmdmap: Any = None, *denied: str) -> EntryOutcome:
        policy = _Rights(self.schema, RecordGateway(self.connection, self.schema), *denied)
        handler = open_handler(self.connection, self.schema, user=EDITOR, policy=policy)
        outcome = (await handler.process(datamap, cmdmap)).outcomes[0]
        assert (await check(open_handler(self.connection, self.schema).ctx)).clean
        return outcome

    async def rows(self, table: str, **where: Any) -> list[Mapping[str, Any]]:
        return await all_rows(self.connection, table, **where)

    async def state(self) -> list[list[Mapping[str, Any]]]:
        return [sorted(await self.rows(table), key=str) for table in _TABLES]


@pytest.fixture
async def site(kids_database: str, kids_schema: Schema) -> AsyncIterator[_Site]:
    found = await asyncpg.connect(kids_database)
    transaction = found.transaction()
    await transaction.start()
    try:
        yield _Site(found, kids_schema)
    finally:
        if found.is_in_transaction():
            await transaction.rollback()
        await found.close()


# --- taking a child -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", ["NEW1", "stored"])
async def test_a_child_nobody_has_is_not_taken_from_a_foreign_page(site: _Site, record: str) -> None:
    uids = await site.admin(
        {"tx_child": {"NEWc": {"pid": _SECRET, "title": "orphan"}}, "tt_content": {"NEWe": {"pid": 2, "title": "mine"}}}
    )
    child = uids["NEWc"]
    await site.admin({"tx_child": {str(child): {"parenttable": "tt_content"}}})
    before = await site.state()
    name = str(uids["NEWe"]) if record == "stored" else record
    outcome = await site.editor({"tt_content": {name: {"pid": 2, "title": "thief", "children": str(child)}}})
    assert (outcome.status, outcome.code) == ("refused", "page_permission")
    assert await site.state() == before
    # One that lies where the editor has rights may be taken.
    await site.connection.execute("UPDATE public.tx_child SET pid = 2")
    outcome = await site.editor({"tt_content": {name: {"pid": 2, "title": "owner", "children": str(child)}}})
    assert outcome.status == "written"
    assert [row["parentid"] for row in await site.rows("tx_child")] == [outcome.uid]


async def test_a_child_kept_as_a_list_is_not_taken_from_a_foreign_page(site: _Site) -> None:
    uids = await site.admin(
        {
            "tx_kid": {"NEWk": {"pid": _SECRET, "title": "secret"}, "NEWo": {"pid": 2, "title": "open"}},
            "tt_content": {"NEWe": {"pid": 2, "title": "mine"}},
        }
    )
    secret, own, record = uids["NEWk"], uids["NEWo"], str(uids["NEWe"])
    before = await site.state()
    outcome = await site.editor({"tt_content": {record: {"kids": f"{own},{secret}"}}})
    assert (outcome.status, outcome.code) == ("refused", "page_permission")
    assert await site.state() == before
    outcome = await site.editor({"tt_content": {record: {"kids": str(own)}}})
    assert outcome.status == "written"
    # What an administrator has listed stays listed while the editor saves the field.
    await site.admin({"tt_content": {record: {"kids": f"{own},{secret}"}}})
    outcome = await site.editor({"tt_content": {record: {"kids": f"{secret},{own}"}}})
    assert outcome.status == "written"


# --- children that go along ---------------------------------------------------------------------------------------


async def _listed(site: _Site, field: str) -> tuple[str, str, int]:
    """Content of the editor with a child on the secret page: uid, table of the child, its uid."""
    table = "tx_kid" if field == "kids" else "tx_child"
    child = {"pid": _SECRET, "title": "secret"}
    uids = await site.admin(
        {"tt_content": {"NEWe": {"pid": 2, "title": "mine", field: "NEWk"}}, table: {"NEWk": child}}
    )
    return str(uids["NEWe"]), table, uids["NEWk"]


@pytest.mark.parametrize("field", ["kids", "children"])
async def test_a_child_on_a_foreign_page_is_not_copied_along(site: _Site, field: str) -> None:
    record, table, child = await _listed(site, field)
    outcome = await site.editor(None, {"tt_content": {record: {"copy": 2}}})
    assert outcome.status == "written"
    assert [row["uid"] for row in await site.rows(table)] == [child]
    await site.admin(None, {"tt_content": {record: {"copy": 2}}})
    assert len(await site.rows(table)) == 2


@pytest.mark.parametrize("field", ["kids", "children"])
@pytest.mark.parametrize("denied", ["", "edit"])
async def test_a_child_the_user_may_not_delete_keeps_its_parent(site: _Site, field: str, denied: str) -> None:
    record, table, _ = await _listed(site, field)
    if denied:
        await site.connection.execute(f"UPDATE public.{table} SET pid = 2")
    before = await site.state()
    outcome = await site.editor(None, {"tt_content": {record: {"delete": 1}}}, f"{denied} {table}")
    assert (outcome.status, outcome.code) == ("refused", "page_permission")
    assert await site.state() == before
    await site.admin(None, {"tt_content": {record: {"delete": 1}}})
    assert [row["deleted"] for row in await site.rows(table)] == [1]


@pytest.mark.parametrize("field", ["kids", "children"])
async def test_a_child_on_a_foreign_page_is_not_restored_along(site: _Site, field: str) -> None:
    record, table, _ = await _listed(site, field)
    await site.admin(None, {"tt_content": {record: {"delete": 1}}})
    before = await site.state()
    outcome = await site.editor(None, {"tt_content": {record: {"undelete": 1}}})
    assert (outcome.status, outcome.code) == ("refused", "page_permission")
    assert await site.state() == before
    await site.admin(None, {"tt_content": {record: {"undelete": 1}}})
    assert [row["deleted"] for row in await site.rows(table)] == [0]


async def test_a_child_comes_once_with_each_copy_of_its_page(site: _Site) -> None:
    await site.admin(
        {
            "tt_content": {"NEWe": {"pid": 2, "title": "parent", "children": "NEWc", "kids": "NEWk"}},
            "tx_child": {"NEWc": {"pid": 2, "title": "child"}},
            "tx_kid": {"NEWk": {"pid": 2, "title": "kid"}},
        }
    )
    page = 2
    for generation in range(2, 4):
        await site.admin(None, {"pages": {str(page): {"copy": 1}}})
        page = max(row["uid"] for row in await site.rows("pages"))
        content = await site.rows("tt_content")
        assert sorted(row["parentid"] for row in await site.rows("tx_child")) == [row["uid"] for row in content]
        assert sorted(int(row["kids"]) for row in content) == [row["uid"] for row in await site.rows("tx_kid")]
        assert len(content) == generation


# --- children of translations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("denied", ["edit tt_content", "write tt_content:children"])
async def test_children_are_not_localized_for_a_translation_that_may_not_be_changed(site: _Site, denied: str) -> None:
    record = str((await site.admin({"tt_content": {"NEWe": {"pid": 2, "title": "one"}}}))["NEWe"])
    await site.admin(None, {"pages": {"2": {"localize": 1}}})
    await site.admin(None, {"tt_content": {record: {"localize": 1}}})
    await site.admin({"tt_content": {record: {"children": "NEWc"}}, "tx_child": {"NEWc": {"pid": 2, "title": "c"}}})
    translation = (await site.rows("tt_content", sys_language_uid=1))[0]["uid"]
    value = {"field": "children", "language": 1, "action": "localize"}
    request = {"tt_content": {str(translation): {"inlineLocalizeSynchronize": value}}}
    before = await site.state()
    outcome = await site.editor(None, request, denied)
    assert outcome.status == "refused"
    assert await site.state() == before
    assert (await site.editor(None, request)).status == "written"
    assert [row["parentid"] for row in await site.rows("tx_child", sys_language_uid=1)] == [translation]


# --- relation tables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a" * 300, "nowhere"])
async def test_a_target_in_no_table_refuses_its_entry_alone(site: _Site, name: str) -> None:
    uids = await site.admin(
        {"sys_category": {"NEWk": {"pid": 0, "title": "k"}}, "tt_content": {"NEWe": {"pid": 2, "title": "before"}}}
    )
    category, record = str(uids["NEWk"]), str(uids["NEWe"])
    handler = open_handler(site.connection, site.schema)
    result = await handler.process(
        {
            "sys_category": {category: {"items": f"tt_content_{record},{name}_1"}},
            "tt_content": {record: {"title": "after"}},
        }
    )
    assert [(o.status, o.code) for o in result.outcomes] == [("error", "invalid_value"), ("written", None)]
    assert await site.rows("sys_category_record_mm") == []
    assert [row["title"] for row in await site.rows("tt_content")] == ["after"]
    await site.admin({"sys_category": {category: {"items": f"tt_content_{record}"}}})
    assert len(await site.rows("sys_category_record_mm")) == 1


@pytest.mark.parametrize("form", ["named", "items"])
async def test_a_record_that_comes_back_is_in_the_reference_index_again(site: _Site, form: str) -> None:
    uids = await site.admin({"tx_values": {"NEWv": {"pid": 2, "needed": "v"}}})
    target = uids["NEWv"]
    if form == "named":
        await site.admin({"tt_content": {"NEWe": {"pid": 2, "title": "e", "named": str(target)}}})
    else:
        await site.admin({"sys_category": {"NEWk": {"pid": 0, "title": "k", "items": f"tx_values_{target}"}}})
    index = await site.rows("sys_refindex")
    assert [row["ref_table"] for row in index] == ["tx_values"]
    for command, expected in (("delete", []), ("undelete", index)):
        await site.admin(None, {"tx_values": {str(target): {command: 1}}})
        assert (await check(open_handler(site.connection, site.schema).ctx)).clean
        assert await site.rows("sys_refindex") == expected


async def test_a_hidden_child_that_comes_back_is_hidden_in_the_reference_index(site: _Site) -> None:
    record, table, child = await _listed(site, "kids")
    await site.admin({table: {str(child): {"hidden": 1}}})
    await rebuild(open_handler(site.connection, site.schema).ctx)
    for command in ("delete", "undelete"):
        await site.admin(None, {table: {str(child): {command: 1}}})
        assert (await check(open_handler(site.connection, site.schema).ctx)).clean
    assert [row["ref_hidden"] for row in await site.rows("sys_refindex", recuid=int(record))] == [1]
