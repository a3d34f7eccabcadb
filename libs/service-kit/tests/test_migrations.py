from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from remit_harness.databases import Databases
from service_kit.app import check_readiness
from service_kit.database import create_engine
from service_kit.migrations import (
    DatabaseBehindError,
    DatabaseNewerError,
    MigrationLockedError,
    Migrations,
    SchemaState,
)
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

REVISION = """
from alembic import op
revision = "{name}"
down_revision = {after!r}
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("{statement}")


def downgrade() -> None:
    raise NotImplementedError
"""


class Package:
    """A package with revisions, on disk."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.versions = folder / name / "migrations" / "versions"
        self.versions.mkdir(parents=True)
        (folder / name / "__init__.py").touch()

    def add(self, name: str, after: str | None, statement: str) -> None:
        (self.versions / f"{name}.py").write_text(REVISION.format(name=name, after=after, statement=statement))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Package]:
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"kit_migrated_{abs(hash(request.node.nodeid))}"
    made = Package(tmp_path, name)
    made.add("r1", None, "CREATE TABLE one (id int)")
    made.add("r2", "r1", "CREATE TABLE two (id int)")
    yield made
    sys.modules.pop(name, None)


@pytest.fixture
async def engine(databases: Databases) -> AsyncIterator[AsyncEngine]:
    made = create_engine(await databases.create("kit"), application_name="kit-migrate", pool_size=5)
    yield made
    await made.dispose()


async def tables(engine: AsyncEngine) -> set[str]:
    async with engine.connect() as connection:
        found = await connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
        return {row[0] for row in found} - {"alembic_version"}


async def test_a_database_is_brought_to_the_newest_revision(package: Package, engine: AsyncEngine) -> None:
    migrations = Migrations(package.name)
    assert (await migrations.state(engine)).state is SchemaState.EMPTY
    assert await check_readiness({"schema": lambda: migrations.check(engine)}) == {"schema": "database_behind"}
    state = await migrations.upgrade(engine)
    assert (state.state, state.revision) == (SchemaState.CURRENT, "r2")
    assert await tables(engine) == {"one", "two"}
    await migrations.upgrade(engine)
    await migrations.check(engine)
    package.add("r3", "r2", "CREATE TABLE three (id int)")
    later = Migrations(package.name)
    with pytest.raises(DatabaseBehindError):
        await later.check(engine)
    await later.upgrade(engine)
    assert await tables(engine) == {"one", "two", "three"}


async def test_a_newer_database_is_left_alone(package: Package, engine: AsyncEngine) -> None:
    migrations = Migrations(package.name)
    await migrations.upgrade(engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = 'r9'"))
    with pytest.raises(DatabaseNewerError) as error:
        await migrations.upgrade(engine)
    assert "r9" in str(error.value.document()["detail"])
    with pytest.raises(DatabaseNewerError):
        await migrations.check(engine)


async def test_a_failing_revision_leaves_those_before_it(package: Package, engine: AsyncEngine) -> None:
    package.add("r3", "r2", "SELECT 1 / 0")
    migrations = Migrations(package.name)
    with pytest.raises(DBAPIError, match="division by zero"):
        await migrations.upgrade(engine)
    assert await tables(engine) == {"one", "two"}
    assert (await migrations.state(engine)).revision == "r2"


async def test_two_at_once_migrate_once(package: Package, engine: AsyncEngine) -> None:
    other = create_engine(engine.url.render_as_string(hide_password=False), application_name="kit", pool_size=5)
    try:
        states = await asyncio.gather(Migrations(package.name).upgrade(engine), Migrations(package.name).upgrade(other))
    finally:
        await other.dispose()
    assert [state.revision for state in states] == ["r2", "r2"]


async def test_a_table_in_use_or_another_migration_ends_the_wait(package: Package, engine: AsyncEngine) -> None:
    await Migrations(package.name).upgrade(engine)
    package.add("r3", "r2", "ALTER TABLE one ADD COLUMN x int")
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    holder = await asyncpg.connect(url)
    try:
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("LOCK TABLE one")
        with pytest.raises(MigrationLockedError):
            await Migrations(package.name, lock_timeout=0.05).upgrade(engine)
        await transaction.rollback()
        await holder.execute("SELECT pg_advisory_lock($1)", 0x5E317_0001)
        with pytest.raises(MigrationLockedError):
            await Migrations(package.name, wait=0.05).upgrade(engine)
    finally:
        await holder.close()
    assert (await Migrations(package.name).upgrade(engine)).revision == "r3"


def test_two_newest_revisions_are_a_mistake(package: Package) -> None:
    package.add("r3a", "r2", "SELECT 1")
    package.add("r3b", "r2", "SELECT 1")
    with pytest.raises(RuntimeError, match="r3a"):
        Migrations(package.name).head()


async def test_a_look_at_readiness_leaves_no_log_lines(
    package: Package, engine: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """Orchestrators ask every few seconds."""
    migrations = Migrations(package.name)
    await migrations.upgrade(engine)
    caplog.clear()
    with caplog.at_level("DEBUG", logger="alembic"):
        await migrations.check(engine)
        assert caplog.records == []
        package.add("r3", "r2", "SELECT 1")
        with pytest.raises(DatabaseBehindError):
            await migrations.check(engine)
        # The control: a migration does speak.
        await migrations.upgrade(engine)
    assert any(record.name.startswith("alembic") for record in caplog.records)
