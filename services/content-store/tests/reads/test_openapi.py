"""Generated requests against every route of the service: nothing breaks it, and every answer is one it announced."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import hypothesis
import pytest
import schemathesis
import uvicorn
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance
from store_support.app import StoreUnderTest
from store_support.rows import ALL_BITS, Rows, empty_tables

EXAMPLES = 6
#: Bodies are read strictly: 1.0 is a number of JSON Schema's integers, and none of ours.
NOT_ASKED = [positive_data_acceptance]


class Served:
    """The application on a port of its own, in a thread."""

    def __init__(self, store: StoreUnderTest) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(store.app, port=self.port, log_level="error", ws="none", lifespan="on", log_config=None)
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module")
def served(
    store_database: tuple[str, DatabaseUrls], schema: Schema, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StoreUnderTest, Served]]:
    admin_url, urls = store_database
    store = StoreUnderTest(urls, schema, tmp_path_factory.mktemp("keys"))
    asyncio.run(_fill(urls.owner, schema))
    served = Served(store)
    served.start()
    yield store, served
    served.stop()
    asyncio.run(_empty(admin_url))


async def _fill(owner_url: str, schema: Schema) -> None:
    owner = await asyncpg.connect(owner_url)
    rows = Rows(owner, schema)
    await rows.page(1, 0, everybody=ALL_BITS)
    await rows.content(1, 1)
    await rows.user(1, "root", admin=1)
    await owner.close()


async def _empty(admin_url: str) -> None:
    admin = await asyncpg.connect(admin_url)
    await empty_tables(admin)
    await admin.close()


@pytest.fixture(scope="module")
def api(served: tuple[StoreUnderTest, Served]) -> Any:
    store, server = served
    config = SchemathesisConfig.from_dict({"base-url": f"http://127.0.0.1:{server.port}"})
    return schemathesis.openapi.from_dict(store.app.openapi(), config=config)


def test_generated_requests(api: Any, served: tuple[StoreUnderTest, Served]) -> None:
    store, _ = served
    failed: list[str] = []
    for found in api.get_all_operations():
        operation = found.ok()

        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            case.call_and_validate(headers=store.assertion("agent-runtime", 1), timeout=20, excluded_checks=NOT_ASKED)

        try:
            ask()
        except (AssertionError, BaseExceptionGroup) as error:
            failed.append(f"{operation.label}: {error}")
    assert not failed, "\n\n".join(failed)


def test_every_route_is_described(served: tuple[StoreUnderTest, Served], tmp_path: Path) -> None:
    store, _ = served
    document = store.app.openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("summary") or operation.get("description"), (method, path)
            answers = set(operation["responses"])
            if "requestBody" in operation:
                assert {"400", "413", "422"} <= answers, (method, path)
