from __future__ import annotations

import asyncio

import asyncpg
import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from service_kit.app import create_app
from service_kit.database import (
    CommitOutsideUnitOfWorkError,
    Database,
    ReadSession,
    WriteNotAllowedError,
    shielded,
)
from service_kit.dependencies import ReadSessionDependency, WriteSessionDependency
from service_kit.pool import create_pool
from service_kit.problems import ProblemError
from service_kit.routing import Router
from service_kit.settings import ServiceSettings
from service_kit.statements import StatementCounter
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

INSERT = text("INSERT INTO note (body) VALUES (:body)")
COUNT = text("SELECT count(*) FROM note")


async def count(database: Database) -> int:
    async with database.read() as session:
        return int((await session.execute(COUNT)).scalar_one())


async def test_a_unit_of_work_commits_at_its_end(database: Database) -> None:
    async with database.unit_of_work() as session:
        await session.execute(INSERT, {"body": "a"})
        assert await count(database) == 0
    assert await count(database) == 1


async def test_an_error_undoes_the_unit_and_skips_its_callbacks(database: Database) -> None:
    called: list[str] = []

    async def callback() -> None:
        called.append("called")

    async def fail() -> None:
        async with database.unit_of_work() as session:
            session.after_commit(callback)
            await session.execute(INSERT, {"body": "a"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await count(database) == 0
    assert called == []
    async with database.unit_of_work() as session:
        session.after_commit(callback)
        await session.execute(INSERT, {"body": "a"})
        assert called == []
    assert called == ["called"]


async def test_a_failing_callback_does_not_unsay_the_commit(database: Database) -> None:
    async def callback() -> None:
        raise ZeroDivisionError

    async with database.unit_of_work() as session:
        session.after_commit(callback)
        await session.execute(INSERT, {"body": "a"})
    assert await count(database) == 1


async def test_nothing_else_commits(database: Database) -> None:
    async def meddle() -> None:
        async with database.unit_of_work() as session:
            await session.execute(INSERT, {"body": "a"})
            await session.commit()

    with pytest.raises(CommitOutsideUnitOfWorkError):
        await meddle()
    assert await count(database) == 0
    async with database.read() as reader:
        with pytest.raises(CommitOutsideUnitOfWorkError):
            await reader.commit()


async def test_the_database_refuses_writes_of_a_read_session(database: Database) -> None:
    with pytest.raises(DBAPIError) as refused:
        async with database.read() as session:
            await session.execute(INSERT, {"body": "a"})
    assert getattr(refused.value.orig, "sqlstate", None) == "25006"
    # The same connection must write again afterwards.
    async with database.unit_of_work() as session:
        await session.execute(INSERT, {"body": "a"})
    assert await count(database) == 1


async def test_a_read_session_refuses_pending_objects(database: Database) -> None:
    class Pretends(ReadSession):
        new = frozenset({object()})  # type: ignore[assignment]

    async with Pretends(database.engine) as session:
        with pytest.raises(WriteNotAllowedError):
            await session.flush()


async def test_a_cancelled_unit_is_rolled_back(database: Database) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with database.unit_of_work() as session:
            await session.execute(INSERT, {"body": "a"})
            inside.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await count(database) == 0


async def test_a_commit_under_way_is_not_cut_off() -> None:
    begun, go, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def commit() -> None:
        begun.set()
        await go.wait()
        finished.set()

    task = asyncio.create_task(shielded(commit()))
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished.is_set()


async def test_statements_are_counted_with_transaction_control(database: Database, counter: StatementCounter) -> None:
    async with database.unit_of_work() as session:
        await session.execute(INSERT, {"body": "warm up"})
    with counter.measure():
        async with database.unit_of_work() as session:
            await session.execute(INSERT, {"body": "a"})
            await session.execute(INSERT, {"body": "b"})
    assert [statement.split()[0] for statement in counter.statements] == ["BEGIN", "INSERT", "INSERT", "COMMIT"]


async def test_connections_cut_by_the_server_are_replaced(database: Database, url: str) -> None:
    assert await count(database) == 0
    admin = await asyncpg.connect(url)
    try:
        cut = await admin.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'kit-test'"
        )
        assert cut == 1
        # The socket's end has to arrive before the pool can know of it.
        await asyncio.sleep(0.05)
        assert await count(database) == 0
    finally:
        await admin.close()


async def test_a_raw_pool_gives_connections_back_without_a_round_trip(url: str) -> None:
    counter = StatementCounter()
    pool = await create_pool(url, application_name="kit-raw", max_size=1, counter=counter)
    try:
        async with pool.acquire() as connection:
            assert await connection.fetchval("SHOW application_name") == "kit-raw"
        async with pool.acquire() as connection:
            assert await connection.fetchval("SELECT 1") == 1
        assert counter.statements == ["SHOW application_name", "SELECT 1"]
    finally:
        await pool.close()


async def test_a_raw_pool_never_passes_an_open_transaction_on(url: str) -> None:
    pool = await create_pool(url, application_name="kit-raw", max_size=1)
    try:
        async with pool.acquire() as connection:
            await connection.execute("BEGIN")
            await connection.execute("INSERT INTO note (body) VALUES ('left open')")
        async with pool.acquire() as connection:
            assert not connection.is_in_transaction()
            assert await connection.fetchval("SELECT count(*) FROM note") == 0
    finally:
        await pool.close()


async def test_timeouts_reach_the_server(url: str) -> None:
    pool = await create_pool(url, application_name="kit-raw", max_size=2, lock_timeout=0.05, statement_timeout=20)
    try:
        async with pool.acquire() as first, pool.acquire() as second:
            await first.execute("BEGIN; LOCK TABLE note")
            with pytest.raises(asyncpg.LockNotAvailableError):
                await second.execute("SELECT * FROM note")
            await first.execute("ROLLBACK")
            assert await second.fetchval("SHOW statement_timeout") == "20s"
    finally:
        await pool.close()


class DeclinedError(ProblemError):
    code = "declined"
    status = 409
    title = "Declined"


def api(database: Database, url: str) -> FastAPI:
    router = Router(prefix="/v1")

    @router.post("/notes")
    async def write(body: str, session: WriteSessionDependency, decline: bool = False) -> dict[str, str]:
        await session.execute(INSERT, {"body": body})
        if decline:
            raise DeclinedError
        return {"saved": body}

    @router.get("/notes")
    async def read(session: ReadSessionDependency) -> dict[str, int]:
        return {"count": int((await session.execute(COUNT)).scalar_one())}

    return create_app("notes", ServiceSettings(database_url=url), [router], state={"database": database})


async def test_a_success_is_answered_only_after_the_commit(database: Database, url: str) -> None:
    app = api(database, url)
    async with database.unit_of_work() as session:
        await session.execute(text("ALTER TABLE note DROP CONSTRAINT note_body_key"))
        await session.execute(text("ALTER TABLE note ADD UNIQUE (body) DEFERRABLE INITIALLY DEFERRED"))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as http:
        assert (await http.post("/v1/notes", params={"body": "a"})).status_code == 200
        # This one fails at COMMIT, not before.
        refused = await http.post("/v1/notes", params={"body": "a"})
        assert refused.status_code == 500
        assert refused.json()["code"] == "internal_error"
        declined = await http.post("/v1/notes", params={"body": "b", "decline": True})
        assert declined.json()["code"] == "declined"
        assert (await http.get("/v1/notes")).json() == {"count": 1}
