from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest
from remit_harness.databases import Databases
from service_kit.database import Database
from service_kit.idempotency import idempotency_ddl
from service_kit.inbox import inbox_ddl
from service_kit.outbox import outbox_ddl
from service_kit.statements import StatementCounter

Fact = Callable[[], bool | Awaitable[bool]]
Until = Callable[[Fact], Awaitable[None]]


@pytest.fixture
async def url(databases: Databases) -> str:
    """A database with the kit's tables."""
    address = await databases.create("kit")
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(outbox_ddl() + inbox_ddl() + idempotency_ddl())
        await connection.execute("CREATE TABLE note (id bigserial PRIMARY KEY, body text NOT NULL UNIQUE)")
    finally:
        await connection.close()
    return address


@pytest.fixture
def counter() -> StatementCounter:
    return StatementCounter()


@pytest.fixture
async def database(url: str, counter: StatementCounter) -> AsyncIterator[Database]:
    made = Database(url, application_name="kit-test", pool_size=8, counter=counter)
    yield made
    await made.close()


@pytest.fixture
def until() -> Until:
    """Wait for a fact; a minute without it fails the test."""

    async def holds(fact: Fact) -> bool:
        found = fact()
        return found if isinstance(found, bool) else await found

    async def wait(fact: Fact) -> None:
        async with asyncio.timeout(60):
            while not await holds(fact):  # noqa: ASYNC110 - facts of other processes set no event
                await asyncio.sleep(0.005)

    return wait
