from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from remit_harness.databases import Databases, built
from remit_harness.run import TestRun
from store_support.database import prepare_test_database

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]

EMPTIED = (
    "public.pages",
    "public.tt_content",
    "public.sys_redirect",
    "public.sys_file_reference",
    "public.sys_category_record_mm",
    "public.call_outcome",
    "public.outbox",
    "public.outbox_stream",
)


@pytest.fixture(scope="session")
def schema() -> Schema:
    return load_schema()


@pytest.fixture(scope="session")
def template(postgres: str, test_run: TestRun, schema: Schema) -> Iterator[str]:
    """Name of a migrated store database nobody is connected to."""

    async def build(made: Databases) -> str:
        url = await made.create("capture_template")
        await prepare_test_database(url, schema, server_url=postgres)
        return urlsplit(url).path.lstrip("/")

    yield from built(postgres, test_run, build)


@pytest.fixture(scope="session")
def shared_urls(postgres: str, test_run: TestRun, template: str) -> Iterator[DatabaseUrls]:
    """The store database most tests share; only those that change its tables need one of their own."""

    async def build(made: Databases) -> DatabaseUrls:
        return await prepare_test_database(await made.create("capture", template=template), server_url=postgres)

    yield from built(postgres, test_run, build)


@pytest.fixture
async def own_urls(databases: Databases, postgres: str, template: str) -> DatabaseUrls:
    """A store database of its own."""
    return await prepare_test_database(await databases.create("capture", template=template), server_url=postgres)


@pytest.fixture
async def urls(shared_urls: DatabaseUrls) -> DatabaseUrls:
    """The shared store database, emptied."""
    connection: Connection = await asyncpg.connect(shared_urls.owner)
    for table in EMPTIED:
        await connection.execute(f"DELETE FROM {table}")
    await connection.execute("DELETE FROM capture.captured_row")
    await connection.close()
    return shared_urls


@pytest.fixture
async def service(urls: DatabaseUrls) -> AsyncIterator[Connection]:
    """A connection of the service's role."""
    connection: Connection = await asyncpg.connect(urls.service)
    yield connection
    await connection.close()


@pytest.fixture
async def owner(urls: DatabaseUrls) -> AsyncIterator[Connection]:
    """A connection of the owner."""
    connection: Connection = await asyncpg.connect(urls.owner)
    yield connection
    await connection.close()
