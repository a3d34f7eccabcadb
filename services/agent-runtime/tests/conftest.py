from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from agent_runtime.app import migrations
from remit_harness.databases import Databases
from runtime_support.stack import RuntimeStack, StartStack, running_stack
from service_kit.database import create_engine


async def _migrated(url: str) -> None:
    engine = create_engine(url, application_name="rt-template", pool_size=4)
    try:
        await migrations().upgrade(engine)
    finally:
        await engine.dispose()


@pytest.fixture
async def database_url(databases: Databases) -> str:
    """A migrated database of this test."""
    return await databases.create("rt", template=await databases.template("rt_template", _migrated))


@pytest.fixture
def start_stack(database_url: str) -> StartStack:
    """Starts store and runtime with settings of the test's own."""

    def start(**values: Any) -> AbstractAsyncContextManager[RuntimeStack]:
        return running_stack(database_url, **values)

    return start


@pytest.fixture
async def stack(start_stack: StartStack) -> AsyncIterator[RuntimeStack]:
    async with start_stack() as made:
        yield made
