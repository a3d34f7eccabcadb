from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from content_store.schema.provision import DatabaseUrls
from remit_harness.databases import Databases
from store_support.database import prepare_test_database

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]


@pytest.fixture
async def urls(databases: Databases, postgres: str) -> DatabaseUrls:
    """An empty database with the two roles."""
    return await prepare_test_database(await databases.create("migrate"), server_url=postgres)


@pytest.fixture
async def owner(urls: DatabaseUrls) -> AsyncIterator[Connection]:
    """A connection of the owner."""
    connection: Connection = await asyncpg.connect(urls.owner)
    yield connection
    await connection.close()


@pytest.fixture
async def service(urls: DatabaseUrls) -> AsyncIterator[Connection]:
    """A connection of the service's role."""
    connection: Connection = await asyncpg.connect(urls.service)
    yield connection
    await connection.close()
