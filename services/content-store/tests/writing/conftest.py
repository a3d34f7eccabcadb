from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from remit_harness.databases import Databases, built
from remit_harness.run import TestRun
from store_support.app import StoreUnderTest
from store_support.database import prepare_test_database
from store_support.rows import empty_tables


@pytest.fixture(scope="session")
def schema() -> Schema:
    return load_schema()


@pytest.fixture(scope="session")
def store_database(postgres: str, test_run: TestRun, schema: Schema) -> Iterator[tuple[str, DatabaseUrls]]:
    """An administrator's URL and those of the roles: one database for all tests of a process, emptied after each."""

    async def build(made: Databases) -> tuple[str, DatabaseUrls]:
        url = await made.create("store")
        return url, await prepare_test_database(url, schema, server_url=postgres)

    yield from built(postgres, test_run, build)


@pytest.fixture
async def store(
    store_database: tuple[str, DatabaseUrls], schema: Schema, tmp_path: Path
) -> AsyncIterator[StoreUnderTest]:
    admin_url, urls = store_database
    try:
        async with StoreUnderTest(urls, schema, tmp_path).run() as started:
            yield started
    finally:
        admin = await asyncpg.connect(admin_url)
        await empty_tables(admin)
        await admin.close()
