from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from chat_gateway.settings import PACKAGE
from gateway_support.stack import Stack, running_stack
from remit_harness.databases import Databases
from service_kit.database import create_engine
from service_kit.migrations import Migrations

StartStack = Callable[..., AbstractAsyncContextManager[Stack]]


async def _migrated(url: str) -> None:
    engine = create_engine(url, application_name="gw-template", pool_size=4)
    try:
        await Migrations(PACKAGE).upgrade(engine)
    finally:
        await engine.dispose()


@pytest.fixture
async def database_url(databases: Databases) -> str:
    """A migrated database of this test."""
    return await databases.create("gw", template=await databases.template("gw_template", _migrated))


@pytest.fixture
def start_stack(database_url: str) -> StartStack:
    """Starts the gateway with its neighbours, with settings of the test's own."""

    def start(**values: Any) -> AbstractAsyncContextManager[Stack]:
        return running_stack(database_url, **values)

    return start


@pytest.fixture
async def stack(start_stack: StartStack) -> AsyncIterator[Stack]:
    """The gateway with its neighbours."""
    async with start_stack() as made:
        yield made
