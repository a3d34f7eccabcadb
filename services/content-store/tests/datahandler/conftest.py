from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from content_store.schema.model import Schema
from remit_harness.databases import Databases, built
from remit_harness.run import TestRun
from store_support.adapter import Connection
from store_support.site import make_site, site_data


@pytest.fixture(scope="session")
def site_database(postgres: str, test_run: TestRun) -> Iterator[str]:
    """A database of this process with the tables and two pages of the test site."""

    async def build(databases: Databases) -> str:
        url = await databases.create("dh_site")
        connection = await asyncpg.connect(url)
        await make_site(connection)
        await connection.close()
        return url

    yield from built(postgres, test_run, build)


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema.from_data(site_data())


@pytest.fixture
async def connection(site_database: str) -> AsyncIterator[Connection]:
    """A connection in a transaction that is rolled back at the end of the test."""
    found = await asyncpg.connect(site_database)
    transaction = found.transaction()
    await transaction.start()
    try:
        yield found
    finally:
        if found.is_in_transaction():
            await transaction.rollback()
        await found.close()
