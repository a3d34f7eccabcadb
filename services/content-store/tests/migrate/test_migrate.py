from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from content_store.capture.grouping import group_rows
from content_store.capture.reader import take_capture
from content_store.schema.live import read_live_tables
from content_store.schema.loader import RESERVED_TABLES, build_schema, load_schema
from content_store.schema.migrate import (
    DestructiveChangeError,
    MigrationReport,
    TableChangeError,
    TableNameTakenError,
    migrate_database,
)
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from content_store.schema.state import SchemaDiffersError, check_schema
from service_kit.migrations import DatabaseNewerError, MigrationLockedError
from store_support.database import SERVICE

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]

TITLE = {"config": {"type": "input", "max": 40}}


def schema(*extra: tuple[str, Any], **columns: Any) -> Schema:
    described = {"table": "tx_a", "ctrl": {"sortby": "sorting"}, "columns": {"title": TITLE, **columns}}
    return build_schema([("a", described), *extra])


async def migrate(urls: DatabaseUrls, wanted: Schema, **options: Any) -> MigrationReport:
    return await migrate_database(urls.owner, wanted, SERVICE, **options)


async def columns(connection: Connection, table: str = "tx_a") -> dict[str, str]:
    return {c.name: c.type for c in (await read_live_tables(connection))[table].columns.values()}


async def changed(connection: Connection, statement: str) -> Sequence[tuple[str, int, bool]]:
    async with connection.transaction():
        await connection.execute(statement)
        found = group_rows(await take_capture(connection, None))
    return [(delta.table, delta.uid, delta.other_changed) for delta in found]


async def test_the_built_in_tables_are_made_once(urls: DatabaseUrls, service: Connection) -> None:
    built_in = load_schema()
    first = await migrate(urls, built_in)
    assert set(first.created) == {*built_in.tables, *built_in.mm_tables}
    second = await migrate(urls, built_in)
    assert (second.created, second.changed, second.dropped) == ((), (), ())
    await check_schema(service, built_in)


async def test_the_service_is_not_ready_with_another_schema(urls: DatabaseUrls, service: Connection) -> None:
    with pytest.raises(SchemaDiffersError, match="never migrated"):
        await check_schema(service, schema())
    await migrate(urls, schema())
    await check_schema(service, schema())
    with pytest.raises(SchemaDiffersError, match="differ"):
        await check_schema(service, schema(more=TITLE))


async def test_a_new_field_becomes_a_column_that_is_captured(urls: DatabaseUrls, service: Connection) -> None:
    await migrate(urls, schema())
    assert await changed(service, "INSERT INTO public.tx_a (title) VALUES ('x')") == [("tx_a", 1, True)]
    report = await migrate(urls, schema(price={"config": {"type": "number"}}))
    assert report.changed == ("tx_a",)
    assert await service.fetchval("SELECT price FROM public.tx_a") == 0
    assert await changed(service, "UPDATE public.tx_a SET price = 5") == [("tx_a", 1, True)]
    # The control: the sorting column alone is still no change.
    assert await changed(service, "UPDATE public.tx_a SET sorting = 5") == [("tx_a", 1, False)]


async def test_filling_a_new_column_is_nobodys_change(urls: DatabaseUrls, owner: Connection) -> None:
    nullable = {"config": {"type": "number", "nullable": True, "default": None}}
    await migrate(urls, schema(n=nullable))
    await owner.execute("INSERT INTO public.tx_a (title) VALUES ('x')")
    await owner.execute("DELETE FROM capture.captured_row")
    await migrate(urls, schema(n={"config": {"type": "number"}}), allow_destructive=True)
    assert await owner.fetchval("SELECT n FROM public.tx_a") == 0
    assert await owner.fetchval("SELECT count(*) FROM capture.captured_row") == 0


async def test_a_column_that_would_be_lost_is_refused_and_nothing_is_changed(
    urls: DatabaseUrls, owner: Connection
) -> None:
    await migrate(urls, schema(old=TITLE))
    with pytest.raises(DestructiveChangeError) as refused:
        await migrate(urls, schema(new=TITLE))
    assert refused.value.changes == ["tx_a.old: the column and its values would be dropped"]
    assert "old" in await columns(owner)
    assert "new" not in await columns(owner)
    await migrate(urls, schema(new=TITLE), allow_destructive=True)
    assert "old" not in await columns(owner)
    assert "new" in await columns(owner)


async def test_narrowing_and_another_type_are_refused(urls: DatabaseUrls, owner: Connection) -> None:
    def sized(length: int) -> Schema:
        config = {"type": "select", "renderType": "selectSingle", "dbFieldLength": length}
        return schema(code={"config": config})

    await migrate(urls, sized(20))
    await migrate(urls, sized(30))
    assert (await columns(owner))["code"] == "character varying(30)"
    for narrower in (sized(10), schema(code={"config": {"type": "number"}})):
        with pytest.raises(DestructiveChangeError, match=r"tx_a\.code"):
            await migrate(urls, narrower)
    await migrate(urls, sized(10), allow_destructive=True)
    assert (await columns(owner))["code"] == "character varying(10)"


async def test_values_in_the_way_of_a_change_are_told(urls: DatabaseUrls, owner: Connection) -> None:
    await migrate(urls, schema())
    await owner.execute("INSERT INTO public.tx_a (title) VALUES ('no number')")
    described = {"table": "tx_a", "columns": {"title": {"config": {"type": "number"}}}}
    with pytest.raises(TableChangeError, match="tx_a: invalid input"):
        await migrate(urls, build_schema([("a", described)]), allow_destructive=True)
    assert (await columns(owner))["title"] == "character varying(255)"


async def test_a_table_without_a_file_is_dropped_only_when_asked(urls: DatabaseUrls, owner: Connection) -> None:
    more = {"table": "tx_b", "columns": {"title": TITLE}}
    await migrate(urls, schema(("b", more)))
    with pytest.raises(DestructiveChangeError, match="tx_b: the table"):
        await migrate(urls, schema())
    report = await migrate(urls, schema(), allow_destructive=True)
    assert report.dropped == ("tx_b",)
    assert "tx_b" not in await read_live_tables(owner)
    assert not await owner.fetchval("SELECT EXISTS (SELECT FROM pg_proc WHERE proname LIKE 'tx_b%')")


async def test_a_table_of_somebody_else_is_left_alone(urls: DatabaseUrls, owner: Connection) -> None:
    await migrate(urls, schema())
    await owner.execute("CREATE TABLE public.tx_b (anything text)")
    with pytest.raises(TableNameTakenError, match="tx_b"):
        await migrate(urls, schema(("b", {"table": "tx_b", "columns": {"title": TITLE}})))
    assert await columns(owner, "tx_b") == {"anything": "text"}


async def test_damaged_triggers_are_made_whole(urls: DatabaseUrls, owner: Connection) -> None:
    await migrate(urls, schema())
    for damage in (
        "DROP TRIGGER remit_capture_update ON public.tx_a",
        "ALTER TABLE public.tx_a DISABLE TRIGGER remit_capture_delete",
        "ALTER TABLE public.tx_a ENABLE TRIGGER remit_capture_insert",
    ):
        await owner.execute(damage)
        assert (await migrate(urls, schema())).changed == ("tx_a",)
        assert (await migrate(urls, schema())).changed == ()


async def test_long_table_names_do_not_share_functions(urls: DatabaseUrls, service: Connection) -> None:
    names = ["tx_" + "n" * 46 + end for end in "ab"]
    await migrate(urls, build_schema([(name, {"table": name, "columns": {"title": TITLE}}) for name in names]))
    for name in names:
        assert await changed(service, f"INSERT INTO public.{name} (title) VALUES ('x')") == [(name, 1, True)]


async def test_a_table_in_use_ends_the_migration_with_a_message(urls: DatabaseUrls, owner: Connection) -> None:
    await migrate(urls, schema())
    async with owner.transaction():
        await owner.execute("LOCK TABLE public.tx_a IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(MigrationLockedError):
            await migrate(urls, schema(more=TITLE), lock_timeout=0.2)
    await migrate(urls, schema(more=TITLE))
    assert "more" in await columns(owner)


async def test_two_migrations_at_once_make_one(urls: DatabaseUrls) -> None:
    reports = await asyncio.gather(*(migrate(urls, schema()) for _ in range(3)))
    assert sorted(report.created for report in reports) == [(), (), ("tx_a",)]


async def test_a_newer_database_is_refused(urls: DatabaseUrls, owner: Connection) -> None:
    await migrate(urls, schema())
    await owner.execute("UPDATE public.alembic_version SET version_num = 'from_the_future'")
    with pytest.raises(DatabaseNewerError):
        await migrate(urls, schema(more=TITLE))
    assert "more" not in await columns(owner)


async def test_every_table_of_the_store_has_a_reserved_name(urls: DatabaseUrls, owner: Connection) -> None:
    await migrate(urls, schema())
    assert set(await read_live_tables(owner)) - {"tx_a"} == RESERVED_TABLES
