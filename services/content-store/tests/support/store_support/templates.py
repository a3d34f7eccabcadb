"""Databases the tests of calls and scope copy: one test store per process, dropped when the process is done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from remit_harness.databases import Databases, database_url
from remit_harness.run import TestRun

from store_support.calls import TestStore, build_template, open_test_store

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "only")
#: Used as it is, one test after the other; and the one that is copied, to which nobody is ever connected.
SHARED, COPIED = f"dcalls_shared_{_WORKER}", f"dcalls_store_{_WORKER}"


async def open_shared(databases: Databases) -> TestStore:
    """The store all tests of this process take turns on."""
    name = await databases.template(SHARED, build_template)
    return await open_test_store(database_url(databases.admin_url, name), server_url=databases.admin_url)


async def open_copy(databases: Databases, **options: object) -> TestStore:
    """A store on a database of its own; options as of ``open_test_store``."""
    url = await databases.create("dcalls", template=await databases.template(COPIED, build_template))
    return await open_test_store(url, server_url=databases.admin_url, **options)  # type: ignore[arg-type]


def until_the_end(admin_url: str, run: TestRun) -> Iterator[None]:
    """For a fixture of the session: drops both at its end, so that a server of the environment keeps nothing."""
    yield

    async def drop() -> None:
        for name in (SHARED, COPIED):
            await Databases(admin_url, run).drop_template(name)

    asyncio.run(drop())
