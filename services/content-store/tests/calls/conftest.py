"""A store of two page trees: put back to its seed for each test, or a database of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from content_store.calls.testing import TestStore, build_template, open_test_store, reset
from remit_harness.databases import Databases, database_url

StoreFactory = Callable[..., Awaitable[TestStore]]


async def _shared(databases: Databases) -> TestStore:
    name = await databases.template(f"dcalls_{os.environ.get('PYTEST_XDIST_WORKER', 'only')}", build_template)
    return await open_test_store(database_url(databases.admin_url, name), server_url=databases.admin_url)


@pytest.fixture
async def new_store(databases: Databases) -> AsyncIterator[StoreFactory]:
    """Makes a store on a database of its own; arguments as of ``open_test_store``."""
    made: list[TestStore] = []

    async def factory(**options: object) -> TestStore:
        template = await databases.template("dcalls_store", build_template)
        url = await databases.create("dcalls", template=template)
        store = await open_test_store(url, server_url=databases.admin_url, **options)  # type: ignore[arg-type]
        made.append(store)
        return store

    yield factory
    for store in made:
        await store.close()


@pytest.fixture
async def shared_store(databases: Databases) -> AsyncIterator[TestStore]:
    """For tests that commit nothing."""
    store = await _shared(databases)
    yield store
    await store.close()


@pytest.fixture
async def store(shared_store: TestStore) -> AsyncIterator[TestStore]:
    """For tests that commit: the seed is back afterwards."""
    yield shared_store
    await reset(shared_store.owner_url, shared_store.env.schema)
