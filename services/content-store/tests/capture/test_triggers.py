"""What the triggers record, statement kind by statement kind, on a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from content_store.capture.errors import TruncateRefusedError, capture_error
from content_store.capture.grouping import group_rows
from content_store.capture.model import CapturedRow, Identity, Relation, RowDelta
from content_store.capture.reader import take_capture
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from remit_harness.databases import database_url

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]

pytestmark = pytest.mark.req("S-53")


async def taken(connection: Connection) -> list[CapturedRow]:
    return await take_capture(connection, None)


async def deltas(connection: Connection) -> dict[tuple[str, int], RowDelta]:
    return {(delta.table, delta.uid): delta for delta in group_rows(await taken(connection))}


async def seed(connection: Connection, pages: int = 3) -> None:
    async with connection.transaction():
        await connection.execute(
            "INSERT INTO public.pages (uid, pid, title, sorting) SELECT n, 1, 'p' || n, n FROM generate_series(1, $1) AS n",
            pages,
        )
        await taken(connection)


async def test_insert_update_and_delete_are_told_with_their_places(service: Connection) -> None:
    await seed(service)
    async with service.transaction():
        uid = await service.fetchval(
            "INSERT INTO public.tt_content (pid, sys_language_uid, l18n_parent, l10n_source, t3ver_wsid, t3ver_oid, t3ver_state) "
            "VALUES (2, 1, 7, 8, 3, 9, 4) RETURNING uid"
        )
        await service.execute("UPDATE public.pages SET pid = 2, deleted = 1 WHERE uid = 3")
        await service.execute("DELETE FROM public.pages WHERE uid = 1")
        found = await deltas(service)
    assert found[("tt_content", uid)].after == Identity(2, 1, 7, 8, 3, 9, 4, False, {})
    assert found[("tt_content", uid)].before is None
    assert found[("pages", 3)].before == Identity(1, 0)
    assert found[("pages", 3)].after == Identity(2, 0, deleted=True)
    assert found[("pages", 1)].before == Identity(1, 0)
    assert found[("pages", 1)].after is None


async def test_a_table_without_language_has_none(service: Connection) -> None:
    async with service.transaction():
        uid = await service.fetchval("INSERT INTO public.sys_redirect (pid) VALUES (0) RETURNING uid")
        found = await deltas(service)
    after = found[("sys_redirect", uid)].after
    assert after is not None
    assert after.language is None


@pytest.mark.req("S-54")
async def test_sorting_and_tstamp_alone_are_a_renumbering(service: Connection) -> None:
    await seed(service)
    async with service.transaction():
        await service.execute("UPDATE public.pages SET sorting = sorting + 512, tstamp = 5")
        assert [delta.is_renumbering for delta in (await deltas(service)).values()] == [True, True, True]
        await service.execute("UPDATE public.pages SET sorting = 1, title = 'other' WHERE uid = 1")
        (control,) = (await deltas(service)).values()
    assert not control.is_renumbering
    assert control.sorting_changed


async def test_every_column_but_sorting_and_tstamp_counts(service: Connection, schema: Schema) -> None:
    await seed(service, 1)
    values = {"int": "-77", "string": "'x'", "text": "'long'", "blob": "'blob'"}
    for column in schema["pages"].db_columns.values():
        if column.name in ("uid", "sorting", "tstamp"):
            continue
        async with service.transaction():
            await service.execute(f'UPDATE public.pages SET "{column.name}" = {values[column.type]} WHERE uid = 1')
            (delta,) = (await deltas(service)).values()
        assert delta.other_changed, column.name


async def test_on_conflict_merge_and_several_writes_of_one_statement(service: Connection) -> None:
    await seed(service)
    async with service.transaction():
        await service.execute(
            "INSERT INTO public.pages (uid, pid, title) VALUES (1, 9, 'x'), (50, 9, 'y') "
            "ON CONFLICT (uid) DO UPDATE SET pid = excluded.pid"
        )
        found = await deltas(service)
        assert {uid: delta.is_new for (_, uid), delta in found.items()} == {1: False, 50: True}
        await service.execute(
            "MERGE INTO public.pages AS p USING (VALUES (2), (60)) AS v(uid) ON p.uid = v.uid "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (uid, pid) VALUES (v.uid, 4)"
        )
        found = await deltas(service)
        assert {uid: (delta.is_gone, delta.is_new) for (_, uid), delta in found.items()} == {
            2: (True, False),
            60: (False, True),
        }
        await service.execute(
            "WITH a AS (UPDATE public.pages SET pid = 5 WHERE uid = 1 RETURNING uid), "
            "b AS (INSERT INTO public.tt_content (uid, pid) VALUES (70, 1)), "
            "c AS (DELETE FROM public.pages WHERE uid = 3) SELECT * FROM a"
        )
        assert set(await deltas(service)) == {("pages", 1), ("tt_content", 70), ("pages", 3)}


async def test_copy_is_captured(service: Connection) -> None:
    async with service.transaction():
        await service.copy_records_to_table(
            "pages", schema_name="public", columns=["uid", "pid"], records=[(5, 1), (6, 1)]
        )
        assert set(await deltas(service)) == {("pages", 5), ("pages", 6)}


async def test_a_cascade_is_captured(own_urls: DatabaseUrls) -> None:
    owner: Connection = await asyncpg.connect(own_urls.owner)
    await seed(owner)
    await owner.execute(
        "ALTER TABLE public.tt_content ADD CONSTRAINT on_page FOREIGN KEY (pid) REFERENCES public.pages ON DELETE CASCADE"
    )
    async with owner.transaction():
        await owner.execute("INSERT INTO public.tt_content (uid, pid) VALUES (1, 2), (2, 2), (3, 1)")
        await taken(owner)
        await owner.execute("DELETE FROM public.pages WHERE uid = 2")
        assert set(await deltas(owner)) == {("pages", 2), ("tt_content", 1), ("tt_content", 2)}
    await owner.close()


async def test_a_savepoint_takes_its_rows_back(service: Connection) -> None:
    await seed(service)
    async with service.transaction():
        await service.execute("UPDATE public.pages SET title = 'kept' WHERE uid = 1")
        savepoint = service.transaction()
        await savepoint.start()
        await service.execute("UPDATE public.pages SET title = 'undone' WHERE uid = 2")
        await savepoint.rollback()
        assert [row.uid for row in await taken(service)] == [1]


async def test_a_statement_that_touches_no_row_leaves_none(service: Connection) -> None:
    async with service.transaction():
        await service.execute("UPDATE public.pages SET title = 'x' WHERE uid = 99999")
        assert await taken(service) == []


async def test_five_thousand_rows_are_joined_without_a_nested_loop(service: Connection) -> None:
    await seed(service, 5000)
    for _ in range(8):
        # From the sixth time on the server uses a generic plan: the one that once compared every row with every row.
        async with service.transaction():
            await service.execute("UPDATE public.pages SET title = title || '.' WHERE uid = 1")
            await taken(service)
    async with service.transaction():
        await service.execute("SET LOCAL statement_timeout = '20s'")
        await service.execute("UPDATE public.pages SET title = title || '.'")
        rows = await taken(service)
    assert len(rows) == 5000
    assert all(row.before == row.after and row.other_changed for row in rows)


async def test_child_rows_tell_their_parent(service: Connection) -> None:
    async with service.transaction():
        uid = await service.fetchval(
            "INSERT INTO public.sys_file_reference (pid, uid_local, uid_foreign, tablenames, fieldname) "
            "VALUES (1, 4, 7, 'tt_content', 'image') RETURNING uid"
        )
        await taken(service)
        await service.execute("UPDATE public.sys_file_reference SET uid_foreign = 8, tablenames = 'pages'")
        delta = (await deltas(service))[("sys_file_reference", uid)]
    assert delta.before is not None
    assert delta.after is not None
    assert delta.before.pointers == {"uid_foreign": 7, "tablenames": "tt_content", "fieldname": "image"}
    assert delta.after.pointers == {"uid_foreign": 8, "tablenames": "pages", "fieldname": "image"}
    assert delta.identity_changed


async def test_mm_rows_come_and_go(service: Connection) -> None:
    table = "public.sys_category_record_mm"
    async with service.transaction():
        await service.execute(
            f"INSERT INTO {table} (uid_local, uid_foreign, tablenames, fieldname, sorting) "
            "VALUES (1, 5, 'pages', 'categories', 1), (2, 5, 'pages', 'categories', 2)"
        )
        first, second = Relation(1, 5, "pages", "categories"), Relation(2, 5, "pages", "categories")
        assert {d.relation: d.relation_change for d in group_rows(await taken(service))} == {first: 1, second: 1}
        await service.execute(f"UPDATE {table} SET sorting = sorting + 1")
        reordered = group_rows(await taken(service))
        assert {d.relation: d.is_renumbering for d in reordered} == {first: True, second: True}
        await service.execute(f"UPDATE {table} SET uid_local = 3 WHERE uid_local = 2")
        assert {d.relation: d.relation_change for d in group_rows(await taken(service))} == {
            second: -1,
            Relation(3, 5, "pages", "categories"): 1,
        }
        await service.execute(f"DELETE FROM {table} WHERE uid_local = 1")
        await service.execute(
            f"INSERT INTO {table} (uid_local, uid_foreign, tablenames, fieldname) VALUES (1, 5, 'pages', 'categories')"
        )
        assert [d.relation_change for d in group_rows(await taken(service))] == [0]


@pytest.mark.parametrize("table", ["pages", "sys_category_record_mm"])
async def test_truncate_is_refused_even_to_the_owner(owner: Connection, table: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as refused:
        await owner.execute(f"TRUNCATE public.{table}")
    assert isinstance(capture_error(refused.value), TruncateRefusedError)


async def test_every_table_of_the_schema_has_its_triggers(owner: Connection, schema: Schema) -> None:
    enabled = await owner.fetch(
        "SELECT tgrelid::regclass::text AS name, count(*) AS n FROM pg_trigger "
        "WHERE tgname LIKE 'remit_capture_%' AND tgenabled = 'A' GROUP BY 1"
    )
    assert {row["name"]: row["n"] for row in enabled} == dict.fromkeys([*schema.tables, *schema.mm_tables], 4)


async def test_rows_of_another_transaction_are_not_taken(service: Connection, owner: Connection) -> None:
    await seed(service)
    await owner.execute("UPDATE public.pages SET title = 'by another' WHERE uid = 1")
    async with owner.transaction():
        await owner.execute("UPDATE public.pages SET title = 'own' WHERE uid = 2")
        assert [row.uid for row in await taken(owner)] == [2]


async def test_replication_mode_does_not_switch_the_triggers_off(own_urls: DatabaseUrls, postgres: str) -> None:
    superuser: Connection = await asyncpg.connect(database_url(postgres, own_urls.owner.rpartition("/")[2]))
    await superuser.execute("SET session_replication_role = replica")
    async with superuser.transaction():
        await superuser.execute("INSERT INTO public.pages (uid) VALUES (1)")
        assert [row.uid for row in await taken(superuser)] == [1]
    # The control: a trigger that is merely enabled would be off.
    await superuser.execute("ALTER TABLE public.pages ENABLE TRIGGER remit_capture_insert")
    async with superuser.transaction():
        await superuser.execute("INSERT INTO public.pages (uid) VALUES (2)")
        assert await taken(superuser) == []
    await superuser.close()
