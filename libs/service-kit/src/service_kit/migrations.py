"""Alembic without its command line: a service's revisions live in its package, the environment lives here.

A package ``content_store`` keeps its revisions in ``content_store/migrations/versions/*.py``.
"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from service_kit.logging import get_logger
from service_kit.problems import ProblemError
from service_kit.sqlnames import identifier

logger = get_logger(__name__)
_LOCK_KEY = 0x5E317_0001
_LOCK_NOT_AVAILABLE = "55P03"


class SchemaState(StrEnum):
    """How a database stands to the code."""

    CURRENT = "current"
    EMPTY = "empty"
    BEHIND = "behind"
    NEWER = "newer"


class DatabaseNewerError(ProblemError):
    """The database was migrated by a later version of the code; this version must not touch it."""

    code = "database_newer"
    status = 503
    title = "The database belongs to a newer version"
    detail_text = "The database is at revision {revision}, which this version does not know. Install the newer version."


class DatabaseBehindError(ProblemError):
    """The database has to be migrated before this version can work with it."""

    code = "database_behind"
    status = 503
    title = "The database has to be migrated"
    detail_text = "The database is at revision {revision}, this version needs {head}."


class MigrationLockedError(ProblemError):
    """Another migration is running, or a table is in use longer than we wait for it; nothing was changed."""

    code = "migration_locked"
    status = 503
    title = "The database is busy, the migration was not made"


@dataclass(frozen=True)
class MigrationState:
    """Where a database stands.

    Attributes:
        state: in one word.
        revision: of the database; ``None`` when it is empty.
        head: newest revision of the code; ``None`` when there is none.
    """

    state: SchemaState
    revision: str | None
    head: str | None


class Migrations:
    """The revisions of one service.

    Args:
        package: import name; its folder ``migrations/versions`` holds the revisions.
        schema: where Alembic keeps its version table, and first in the search path while migrating.
        lock_timeout: seconds a statement waits for a table; a migration that waits blocks everybody behind it.
        wait: seconds to wait for another migration to end.
    """

    def __init__(self, package: str, *, schema: str = "public", lock_timeout: float = 2.0, wait: float = 60.0) -> None:
        self._package = package
        self._schema = identifier(schema)
        self._lock_timeout = lock_timeout
        self._wait = wait
        self._config = Config()
        self._config.set_main_option("script_location", _escaped(Path(__file__).parent / "migration_env"))
        self._config.set_main_option("path_separator", "newline")
        self._config.set_main_option("version_locations", _escaped(_versions_folder(package)))

    def config(self) -> Config:
        """The configuration, for ``alembic.command`` (making a new revision)."""
        return self._config

    def head(self) -> str | None:
        """The newest revision of the code.

        Raises:
            RuntimeError: there are several; two branches were merged without a merge revision.
        """
        heads = self._revisions().heads
        if len(heads) > 1:
            raise RuntimeError(f"{self._package} has several newest revisions: {', '.join(heads)}")
        return heads[0] if heads else None

    def _revisions(self) -> _Revisions:
        folder = Path(str(self._config.get_main_option("version_locations")))
        files = sorted(folder.glob("*.py"))
        return _read_revisions(folder, tuple((file.name, file.stat().st_mtime_ns) for file in files))

    async def upgrade(self, engine: AsyncEngine) -> MigrationState:
        """Bring the database to the newest revision, each revision in a transaction of its own.

        Args:
            engine: connects as the owner.

        Raises:
            DatabaseNewerError: the database is ahead of the code; nothing was changed.
            MigrationLockedError: somebody else migrates, or a table is in use; try again.
        """
        async with engine.connect() as holder:
            await self._lock(holder)
            try:
                state = await self.state(engine)
                if state.state is SchemaState.NEWER:
                    raise DatabaseNewerError(revision=state.revision)
                if state.state is not SchemaState.CURRENT:
                    await self._run(engine)
                    logger.info("migrated", package=self._package, before=state.revision, now=state.head)
                return await self.state(engine)
            finally:
                # Lock and connection end together, whatever state the transaction is in.
                await holder.invalidate()

    async def state(self, engine: AsyncEngine) -> MigrationState:
        """How the database stands to the code; reads only."""
        head = self.head()
        current = await self._current(engine)
        if current is None:
            return MigrationState(SchemaState.EMPTY if head else SchemaState.CURRENT, None, head)
        if current == head:
            return MigrationState(SchemaState.CURRENT, current, head)
        known = current in self._revisions().known
        return MigrationState(SchemaState.BEHIND if known else SchemaState.NEWER, current, head)

    async def check(self, engine: AsyncEngine) -> None:
        """For readiness and start.

        Raises:
            DatabaseNewerError: the database is ahead of the code.
            DatabaseBehindError: it has to be migrated first.
        """
        state = await self.state(engine)
        if state.state is SchemaState.NEWER:
            raise DatabaseNewerError(revision=state.revision)
        if state.state is not SchemaState.CURRENT:
            raise DatabaseBehindError(revision=state.revision or "none", head=state.head)

    async def _lock(self, holder: AsyncConnection) -> None:
        await holder.execute(text(f"SET lock_timeout = '{round(self._wait * 1000)}ms'"))
        try:
            await holder.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK_KEY})
            await holder.commit()
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                raise MigrationLockedError from error
            raise

    async def _run(self, engine: AsyncEngine) -> None:
        async with engine.connect() as connection:
            await connection.execute(text(f"SET lock_timeout = '{round(self._lock_timeout * 1000)}ms'"))
            await connection.execute(text(f"SET search_path = {self._schema}, pg_catalog"))
            await connection.commit()
            try:
                await connection.run_sync(self._upgrade)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                    raise MigrationLockedError from error
                raise
            finally:
                await connection.invalidate()

    def _upgrade(self, connection: Connection) -> None:
        self._config.attributes.update(connection=connection, schema=self._schema)
        try:
            command.upgrade(self._config, "head")
        finally:
            self._config.attributes.clear()

    async def _current(self, engine: AsyncEngine) -> str | None:
        """The database's revision. Asked at every look at readiness, so without Alembic and its log lines."""
        table = f"{self._schema}.alembic_version"
        async with engine.connect() as connection:
            if (await connection.execute(text("SELECT to_regclass(:table)"), {"table": table})).scalar() is None:
                return None
            found: str | None = (await connection.execute(text(f"SELECT version_num FROM {table}"))).scalar()
            return found


@dataclass(frozen=True)
class _Revisions:
    """The revisions of a folder: those nothing follows, and all of them."""

    heads: tuple[str, ...]
    known: frozenset[str]


@lru_cache(maxsize=16)
def _read_revisions(folder: Path, _files: tuple[tuple[str, int], ...]) -> _Revisions:
    """Read a folder once as long as its files (names and times of change) stay the same."""
    script = ScriptDirectory(str(folder.parent), version_locations=[str(folder)])
    known = frozenset(revision.revision for revision in script.walk_revisions())
    return _Revisions(tuple(script.get_heads()), known)


def migrate(package: str, engine: AsyncEngine, **options: Any) -> MigrationState:
    """:meth:`Migrations.upgrade` for a command line, which has no event loop yet."""
    return asyncio.run(Migrations(package, **options).upgrade(engine))


def _versions_folder(package: str) -> Path:
    module = importlib.import_module(package)
    if module.__file__ is None:
        raise ValueError(f"{package} is no package with a folder")
    return Path(module.__file__).parent / "migrations" / "versions"


def _escaped(path: Path) -> str:
    # Alembic's configuration is a ConfigParser, which reads a percent sign as interpolation.
    return str(path).replace("%", "%%")
