"""A store of two page trees: put back to its seed for each test, or a database of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from remit_harness.databases import Databases
from remit_harness.run import TestRun
from store_support.calls import TestStore, reset
from store_support.templates import open_copy, open_shared, until_the_end

StoreFactory = Callable[..., Awaitable[TestStore]]


@pytest.fixture(scope="session")
def templates(postgres: str, test_run: TestRun) -> Iterator[None]:
    """Whatever is copied is dropped in the end."""
    yield from until_the_end(postgres, test_run)


@pytest.fixture
async def new_store(databases: Databases, templates: None) -> AsyncIterator[StoreFactory]:
    """Makes a store on a database of its own; arguments as of ``open_test_store``."""
    made: list[TestStore] = []

    async def factory(**options: object) -> TestStore:
        store = await open_copy(databases, **options)
        made.append(store)
        return store

    yield factory
    for store in made:
        await store.close()


@pytest.fixture
async def shared_store(databases: Databases, templates: None) -> AsyncIterator[TestStore]:
    """For tests that commit nothing."""
    store = await open_shared(databases)
    yield store
    await store.close()


@pytest.fixture
async def store(shared_store: TestStore) -> AsyncIterator[TestStore]:
    """For tests that commit: the seed is back afterwards."""
    yield shared_store
    await reset(shared_store.owner_url, shared_store.env.schema)
