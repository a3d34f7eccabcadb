"""PostgreSQL through SQLAlchemy: sessions by purpose, and one place that commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from service_kit.logging import get_logger
from service_kit.statements import StatementCounter

logger = get_logger(__name__)
T = TypeVar("T")
AfterCommit = Callable[[], Awaitable[None]]


class CommitOutsideUnitOfWorkError(RuntimeError):
    """Code inside a unit of work tried to commit; only the unit's end does."""


class WriteNotAllowedError(RuntimeError):
    """Something was added to a session that only reads."""


class ReadSession(AsyncSession):
    """A session in a read-only transaction: the database itself refuses writes."""

    async def commit(self) -> None:
        """Not possible: there is nothing to commit."""
        raise CommitOutsideUnitOfWorkError("a ReadSession has nothing to commit")

    async def flush(self, objects: Any = None) -> None:
        """Refuse pending objects.

        Raises:
            WriteNotAllowedError: something was added, changed or deleted.
        """
        if self.new or self.dirty or self.deleted:
            raise WriteNotAllowedError("a ReadSession was given something to write")


class WriteSession(AsyncSession):
    """A session of a unit of work; ``commit`` belongs to the unit."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._after_commit: list[AfterCommit] = []

    async def commit(self) -> None:
        """Not possible here.

        Raises:
            CommitOutsideUnitOfWorkError: always.
        """
        raise CommitOutsideUnitOfWorkError("only the end of the unit of work commits")

    def after_commit(self, callback: AfterCommit) -> None:
        """Run the callback once the transaction is durable (a wake-up, never a write that must happen).

        A callback that fails is logged; what was committed stays committed.
        """
        self._after_commit.append(callback)

    async def _commit_unit(self) -> None:
        await super().commit()
        for callback in self._after_commit:
            try:
                await callback()
            except Exception as error:  # the commit is done; the caller must hear that, not this
                logger.warning("after-commit callback failed", exc_info=error)


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Finish the work even when the caller is cancelled meanwhile, then let the cancellation go on.

    A COMMIT cut off half-way leaves nobody knowing whether it happened.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # Also a second cancellation must not cut the commit off, so wait without awaiting the task itself.
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("work failed while its caller was being cancelled", exc_info=error)
        raise


class Database:
    """An engine with its sessions.

    Args:
        url: libpq URL, with or without the driver name.
        application_name: seen in ``pg_stat_activity``.
        pool_size: connections kept and allowed; no overflow, so a service's total is known.
        connect_timeout: seconds.
        statement_timeout: seconds for one statement, or ``None``.
        lock_timeout: seconds a statement waits for a lock, or ``None``.
        counter: counts every statement (tests).
    """

    def __init__(
        self,
        url: str,
        *,
        application_name: str,
        pool_size: int = 10,
        connect_timeout: float = 10.0,
        statement_timeout: float | None = None,
        lock_timeout: float | None = None,
        counter: StatementCounter | None = None,
    ) -> None:
        self.engine = create_engine(
            url,
            application_name=application_name,
            pool_size=pool_size,
            connect_timeout=connect_timeout,
            statement_timeout=statement_timeout,
            lock_timeout=lock_timeout,
            counter=counter,
        )
        self._read_engine = self.engine.execution_options(postgresql_readonly=True)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[ReadSession]:
        """A session that reads one consistent database, statement by statement; nothing is ever committed."""
        session = ReadSession(self._read_engine, expire_on_commit=False, autoflush=False)
        try:
            yield session
        finally:
            await shielded(session.close())

    @asynccontextmanager
    async def unit_of_work(self) -> AsyncIterator[WriteSession]:
        """One transaction: committed when the block ends, rolled back when it raises or is cancelled."""
        session = WriteSession(self.engine, expire_on_commit=False)
        try:
            yield session
            await shielded(session._commit_unit())
        finally:
            await shielded(session.close())

    async def ping(self) -> None:
        """One round trip, for readiness; raises when the database does not answer."""
        async with self.engine.connect() as connection:
            await connection.exec_driver_sql("SELECT 1")

    async def close(self) -> None:
        """Close all connections."""
        await self.engine.dispose()


def create_engine(
    url: str,
    *,
    application_name: str,
    pool_size: int = 10,
    connect_timeout: float = 10.0,
    statement_timeout: float | None = None,
    lock_timeout: float | None = None,
    counter: StatementCounter | None = None,
) -> AsyncEngine:
    """An asyncpg engine without overflow; arguments as in :class:`Database`."""
    engine = create_async_engine(
        make_url(url).set(drivername="postgresql+asyncpg"),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=connect_timeout,
        connect_args={
            "timeout": connect_timeout,
            "server_settings": server_settings(application_name, statement_timeout, lock_timeout),
        },
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    if counter is not None:
        counter.attach_engine(engine.sync_engine)
    return engine


def _refuse_closed(dbapi_connection: Any, _record: Any, _proxy: Any) -> None:
    """Take no connection whose socket has ended, e.g. by a restart of the server; the pool then opens another.

    asyncpg knows without asking. SQLAlchemy's own ping would cost three round trips each time.
    """
    if dbapi_connection.driver_connection.is_closed():
        raise DisconnectionError


def server_settings(
    application_name: str, statement_timeout: float | None = None, lock_timeout: float | None = None
) -> dict[str, str]:
    """Run-time parameters of a connection; timeouts in seconds become milliseconds.

    ``idle_in_transaction_session_timeout`` is left to the caller that knows how long its transactions may think.
    """
    settings = {"application_name": application_name[:63], "timezone": "UTC", "jit": "off"}
    if statement_timeout is not None:
        settings["statement_timeout"] = f"{round(statement_timeout * 1000)}ms"
    if lock_timeout is not None:
        settings["lock_timeout"] = f"{round(lock_timeout * 1000)}ms"
    return settings
