"""The gateway with its neighbours, in one process over real sockets and a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx2
from chat_gateway.app import build_app
from chat_gateway.clients.transport import http_transport
from chat_gateway.consumer import Consumer
from chat_gateway.services import Services, build_services, open_database, open_remotes
from chat_gateway.settings import GatewaySettings
from remit_contracts.runs import PendingTurn, RunStatus
from service_kit.auth import KeySet, SigningKey
from service_kit.bus.memory import MemoryBroker, MemoryBus
from service_kit.bus.subscription import with_timing
from service_kit.database import Database
from service_kit.settings import ServiceSettings

from gateway_support.runtime import FakeRun, FakeRuntime, runtime_app
from gateway_support.server import serving
from gateway_support.steps import message_of
from gateway_support.store import FakeStore, store_app

EDITOR = 7
STRANGER = 8


def expect(answer: httpx2.Response, status: int) -> None:
    """Fail the test with the answer's text where its status is another one."""
    if answer.status_code != status:
        raise AssertionError(f"{answer.status_code} instead of {status}: {answer.text}")


@dataclass
class Stack:
    """Everything a test works with.

    Attributes:
        http: a client of the gateway, without a token.
        services: of a consumer beside the gateway's process.
    """

    settings: GatewaySettings
    runtime: FakeRuntime
    store: FakeStore
    http: httpx2.AsyncClient
    services: Services
    bus: MemoryBus
    consumer: Consumer
    published: dict[UUID, int] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        """The gateway's database."""
        return self.services.database

    def headers(self, user: int = EDITOR) -> dict[str, str]:
        """Headers of a user's request."""
        return {"Authorization": f"Bearer {self.store.token(user)}"}

    async def request(
        self, method: str, path: str, json: Any = None, *, user: int = EDITOR, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """One request of a user."""
        return await self.http.request(
            method, f"/v1{path}", json=json, headers={**self.headers(user), **(headers or {})}
        )

    async def conversation(self, **body: Any) -> UUID:
        """A new conversation of the editor."""
        answer = await self.request("POST", "/conversations", body)
        expect(answer, 201)
        return UUID(answer.json()["id"])

    async def say(self, conversation: UUID, text: str = "Set the title of page 3 to News") -> tuple[UUID, FakeRun]:
        """Post a message; the run it started."""
        answer = await self.request("POST", f"/conversations/{conversation}/messages", {"content": text})
        expect(answer, 202)
        return self.runtime.only()

    async def publish(self, run_id: UUID, *, skip: tuple[int, ...] = ()) -> None:
        """Put the run's new steps on the topic, without those that shall be lost."""
        run = self.runtime.runs[run_id]
        for step in run.steps.all[self.published.get(run_id, 0) :]:
            if step.sequence not in skip:
                await self.bus.publish(message_of(step, run.start.conversation_id, run.owner))
        self.published[run_id] = len(run.steps.all)

    async def settle(self) -> None:
        """Let the consumer take everything that lies on the topic."""
        running = asyncio.create_task(self.consumer.subscription.run())
        broker = self.bus.broker
        try:
            async with asyncio.timeout(30):
                while True:
                    waiting = sum(
                        len(log) - broker.committed.get((self.settings.consumer_group, place), 0)
                        for place, log in broker.logs.items()
                        if not place[0].endswith(".dlq")
                    )
                    if waiting == 0:
                        return
                    if running.done():
                        await running
                    await asyncio.sleep(0.005)
        finally:
            self.consumer.subscription.stop()
            await running
            self.consumer = quick_consumer(self.services, self.bus)

    async def wait_with(self, run_id: UUID, card: PendingTurn) -> None:
        """Suspend a run with a card, and project it."""
        run = self.runtime.runs[run_id]
        run.pending = card
        run.status = RunStatus.WAITING_FOR_INPUT if card.kind == "input" else RunStatus.WAITING_FOR_APPROVAL
        run.steps.status(run.status.value)
        await self.publish(run_id)
        await self.settle()

    async def finish(self, run_id: UUID, text: str | None = "Done.", status: RunStatus = RunStatus.COMPLETED) -> None:
        """End a run, and project it."""
        run = self.runtime.runs[run_id]
        run.pending, run.status, run.final = None, status, text
        run.steps.status(status.value)
        await self.publish(run_id)
        await self.settle()

    async def messages(self, conversation: UUID, *, user: int = EDITOR, query: str = "") -> dict[str, Any]:
        """The poll's answer."""
        answer = await self.request("GET", f"/conversations/{conversation}/messages{query}", user=user)
        expect(answer, 200)
        found: dict[str, Any] = answer.json()
        return found

    async def changes(self, conversation: UUID) -> dict[str, Any]:
        """The change list."""
        answer = await self.request("GET", f"/conversations/{conversation}/changes")
        expect(answer, 200)
        found: dict[str, Any] = answer.json()
        return found


def quick_consumer(services: Services, bus: MemoryBus) -> Consumer:
    """A consumer that notices a stop at once."""
    consumer = Consumer(services, bus)
    with_timing(consumer.subscription, poll=0.02)
    return consumer


def gateway_settings(database_url: str, **values: Any) -> GatewaySettings:
    """Settings for tests; a key is made where none is given."""
    given = {"signing_key": SigningKey.generate().private_pem(), "broker_url": "memory://", **values}
    return GatewaySettings(database_url=database_url, **given)


@asynccontextmanager
async def running_stack(database_url: str, **values: Any) -> AsyncIterator[Stack]:
    """Start everything; ``values`` are settings of the gateway."""
    pem = SigningKey.generate().private_pem()
    keys = KeySet.of(SigningKey.from_pem(pem))
    neighbour = ServiceSettings(database_url=database_url)
    runtime, store = FakeRuntime(), FakeStore()
    async with AsyncExitStack() as stack:
        runtime_url = await stack.enter_async_context(serving(runtime_app(neighbour, runtime, keys)))
        store_url = await stack.enter_async_context(serving(store_app(neighbour, store, keys)))
        settings = gateway_settings(
            database_url,
            signing_key=pem,
            agent_runtime_url=runtime_url,
            content_store_url=store_url,
            **{"session_cache": 0.0, **values},
        )
        gateway_url = await stack.enter_async_context(serving(build_app(settings)))
        http = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=gateway_url, timeout=20.0, transport=http_transport())
        )
        database = open_database(settings)
        stack.push_async_callback(database.close)
        remotes = await stack.enter_async_context(open_remotes(settings))
        services = build_services(settings, database, remotes)
        bus = MemoryBus(MemoryBroker())
        yield Stack(settings, runtime, store, http, services, bus, quick_consumer(services, bus))
