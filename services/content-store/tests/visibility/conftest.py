from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from remit_harness.databases import Databases, built
from remit_harness.run import TestRun
from store_support.rows import Connection, Rows, create_tables


@pytest.fixture(scope="session")
def schema() -> Schema:
    return load_schema()


@pytest.fixture(scope="session")
def visibility_url(postgres: str, test_run: TestRun, schema: Schema) -> Iterator[str]:
    async def build(made: Databases) -> str:
        url = await made.create("visibility")
        connection = await asyncpg.connect(url)
        try:
            await create_tables(connection, schema)
        finally:
            await connection.close()
        return url

    yield from built(postgres, test_run, build)


@pytest.fixture
async def connection(visibility_url: str) -> AsyncIterator[Connection]:
    """A connection in a transaction that is rolled back."""
    opened: Connection = await asyncpg.connect(visibility_url)
    transaction = opened.transaction()
    await transaction.start()
    yield opened
    await transaction.rollback()
    await opened.close()


@pytest.fixture
def rows(connection: Connection, schema: Schema) -> Rows:
    return Rows(connection, schema)
