"""The runtime with the small store on real sockets, and a client that speaks as the chat does. Tests only."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import uvicorn
from agent_runtime.app import build_app
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.deps import Runtime, build_runtime
from agent_runtime.settings import SERVICE, RuntimeSettings
from agent_runtime.worker import Worker
from fastapi import FastAPI
from service_kit.auth import AssertionSigner, KeySet, SigningKey

from runtime_support.store import SmallStore

STATE_KEY = base64.b64encode(b"k" * 32).decode()


@asynccontextmanager
async def serving(application: FastAPI) -> AsyncIterator[str]:
    """The application on a free port of this machine; gives its address."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, log_config=None, access_log=False, lifespan="off", ws="none"))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started:  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listening.close()


def expect(response: httpx2.Response, status: int) -> None:
    """Fail with the answer's text where the status is another one."""
    if response.status_code != status:
        raise AssertionError(f"{response.status_code}: {response.text}")


@dataclass
class RuntimeStack:
    """A runtime under test.

    Attributes:
        chat: signs as the chat's service.
        private_pem: key of the runtime, for a process of its own.
    """

    store: SmallStore
    runtime: Runtime
    application: FastAPI
    http: httpx2.AsyncClient
    chat: AssertionSigner
    store_url: str
    private_pem: str

    def worker(self) -> Worker:
        """A worker of this process; nothing runs before it is asked to."""
        return Worker(self.runtime)

    async def request(self, method: str, path: str, user_uid: int = 7, **options: Any) -> httpx2.Response:
        """A request on behalf of a user."""
        headers = {"Authorization": f"Bearer {self.chat.sign(SERVICE, user_uid)}", **options.pop("headers", {})}
        return await self.http.request(method, path, headers=headers, **options)

    async def start(self, text: str, user_uid: int = 7, **values: Any) -> UUID:
        """Start a run with one message; gives its id."""
        actor = {"userUid": user_uid, "workspaceId": 0, "locale": "en", **values.pop("actor", {})}
        body = {
            "actor": actor,
            "configuration": "default",
            "messages": [{"role": "user", "content": text}],
            **values,
        }
        response = await self.request("POST", "/v1/runs", user_uid, json=body)
        expect(response, 201)
        return UUID(response.json()["id"])

    async def view(self, run_id: UUID, user_uid: int = 7) -> dict[str, Any]:
        """The run as a user sees it."""
        response = await self.request("GET", f"/v1/runs/{run_id}", user_uid)
        expect(response, 200)
        found: dict[str, Any] = response.json()
        return found

    async def steps(self, run_id: UUID, *kinds: str, user_uid: int = 7) -> list[dict[str, Any]]:
        """The stored steps of a run, of some kinds or all."""
        response = await self.request("GET", f"/v1/runs/{run_id}/events", user_uid)
        expect(response, 200)
        return [step for step in response.json()["steps"] if not kinds or step["kind"] in kinds]

    async def run_to_pause(self, run_id: UUID, user_uid: int = 7) -> dict[str, Any]:
        """Execute what is queued, then the run as its owner sees it."""
        await self.worker().run_until_idle()
        return await self.view(run_id, user_uid)

    async def decide(self, run_id: UUID, user_uid: int = 7, **decision: Any) -> httpx2.Response:
        """A decision on the card as it is now."""
        digest = (await self.view(run_id, user_uid))["pending"]["turnDigest"]
        body = {"turnDigest": digest, **decision}
        return await self.request("POST", f"/v1/runs/{run_id}/decision", user_uid, json=body)


StartStack = Callable[..., AbstractAsyncContextManager[RuntimeStack]]
"""Starts a stack on the test's database; keyword arguments as in :func:`running_stack`."""


def fill(store: SmallStore) -> None:
    """A small site: page 3 with two elements, page 4 with one."""
    rows = store.rows
    rows.add("pages", 1, title="Town")
    rows.add("pages", 3, pid=1, title="Museum")
    rows.add("pages", 4, pid=1, title="Library")
    rows.add("tt_content", 5, pid=3, header="Opening hours", CType="text", bodytext="Nine to five", colPos=0)
    rows.add("tt_content", 6, pid=3, header="Prices", CType="text", bodytext="Free", colPos=0)
    rows.add("tt_content", 9, pid=4, header="Books", CType="text", bodytext="Many", colPos=0)


@asynccontextmanager
async def running_stack(
    database_url: str, configurations: Path | None = None, parts: dict[str, Any] | None = None, **values: Any
) -> AsyncIterator[RuntimeStack]:
    """Store and runtime; ``values`` are settings, ``parts`` go to :func:`build_runtime`."""
    store = SmallStore()
    fill(store)
    own, chat = SigningKey.generate(), SigningKey.generate()
    async with serving(store.application) as store_url:
        settings = RuntimeSettings(
            **{
                "database_url": database_url,
                "state_key": STATE_KEY,
                "signing_key": own.private_pem(),
                "content_store_url": store_url,
                "configurations_file": configurations,
                "store_patience": 5.0,
                "database_pool_size": 6,
                **values,
            }
        )
        registry = ConfigurationRegistry(configurations)
        runtime = build_runtime(settings, configurations=registry, **(parts or {}))
        application = build_app(runtime, trusted={"chat-gateway": KeySet.of(chat)})
        transport = httpx2.ASGITransport(app=application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://runtime") as http:
            signer = AssertionSigner("chat-gateway", chat)
            yield RuntimeStack(store, runtime, application, http, signer, store_url, own.private_pem())
        await runtime.stop()
