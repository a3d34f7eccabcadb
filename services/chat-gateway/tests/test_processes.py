"""The programs as processes, on a real broker: killed at any moment, nothing is lost and nothing counts twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from uuid import UUID

import pytest
from chat_gateway.consumer import run_steps_topics
from chat_gateway.settings import GatewaySettings
from gateway_support.runtime import BrokenError
from gateway_support.stack import Stack
from gateway_support.steps import message_of
from gateway_support.store import visible
from remit_contracts.runs import RunStatus
from remit_harness.databases import Databases
from remit_harness.servers import BrokerServer
from remit_local.processes import free_port
from service_kit.bus import create_bus
from service_kit.ids import uuid7
from sqlalchemy import text

StartStack = Callable[..., AbstractAsyncContextManager[Stack]]
WRITES = 30


def environment(settings: GatewaySettings) -> dict[str, str]:
    assert settings.signing_key is not None
    return {
        "PATH": os.environ["PATH"],
        "CHAT_GATEWAY_DATABASE_URL": settings.database_url.get_secret_value(),
        "CHAT_GATEWAY_BROKER_URL": settings.broker_url,
        "CHAT_GATEWAY_BROKER_PRODUCER": settings.broker_producer,
        "CHAT_GATEWAY_CONSUMER_GROUP": settings.consumer_group,
        "CHAT_GATEWAY_SIGNING_KEY": settings.signing_key.get_secret_value(),
        "CHAT_GATEWAY_AGENT_RUNTIME_URL": settings.agent_runtime_url,
        "CHAT_GATEWAY_CONTENT_STORE_URL": settings.content_store_url,
        "CHAT_GATEWAY_REFILL_INTERVAL": "1",
        **({"CHAT_GATEWAY_CONSUMER_PORT": str(settings.consumer_port)} if settings.consumer_port else {}),
    }


@asynccontextmanager
async def program(settings: GatewaySettings, *command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command of the gateway, killed at the end of the block unless it ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "chat_gateway.cli",
        *command,
        env=environment(settings),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def projected(stack: Stack, run_id: UUID) -> int:
    async with stack.database.read() as session:
        return int(
            await session.scalar(
                text("SELECT coalesce(max(last_sequence), 0) FROM chat_run WHERE id = :id"), {"id": run_id}
            )
            or 0
        )


@pytest.mark.chaos
@pytest.mark.req("R-001", "R-014")
async def test_a_consumer_that_is_killed_shows_every_change_exactly_once(
    start_stack: StartStack, broker: BrokerServer
) -> None:
    producer = "idempotent" if broker.transactional else "plain"
    async with start_stack(broker_url=broker.url, broker_producer=producer) as stack:
        stack.store.show(*(visible("pages", uid) for uid in range(1, WRITES + 1)))
        conversation = await stack.conversation()
        run_id, run = await stack.say(conversation)
        for uid in range(1, WRITES + 1):
            run.steps.whole_write("update_page_metadata", f"c{uid}", "pages", uid)
        run.status, run.final = RunStatus.COMPLETED, "Done."
        run.steps.status("completed")
        bus = create_bus(broker.url, client_id="test", producer="idempotent" if broker.transactional else "plain")
        await bus.start()
        try:
            await bus.ensure_topics(run_steps_topics())
            for step in run.steps.all:
                await bus.publish(message_of(step, conversation, run.owner))
        finally:
            await bus.stop()
        total = len(run.steps.all)
        # The events API is away, so that what arrives comes through the broker alone.
        stack.runtime.refuse["events"] = BrokenError()
        # Killed in the middle, then started again; that start gets everything from the beginning once more, as after
        # an offset that was never committed (and without waiting until the broker gives a dead member up).
        for until in (total // 3, total):
            own = {"consumer_group": f"gw-{uuid7()}", "consumer_port": free_port()}
            settings = stack.settings.model_copy(update=own)
            async with asyncio.timeout(100), program(settings, "consume") as process:
                while await projected(stack, run_id) < until:
                    assert process.returncode is None
                    await asyncio.sleep(0.02)
                health = f"http://{settings.host}:{settings.consumer_port}"
                ready = await stack.http.get(f"{health}/readyz")
                assert ready.json()["checks"] == {"database": "ok", "consumer": "ok"}
                assert "remit_consumer_partitions" in (await stack.http.get(f"{health}/metrics")).text
                process.send_signal(signal.SIGKILL)
        async with stack.database.read() as session:
            steps = list(await session.scalars(text("SELECT sequence FROM run_step ORDER BY sequence")))
            entries = int(await session.scalar(text("SELECT count(*) FROM run_record")) or 0)
        assert steps == list(range(1, total + 1))
        assert entries == 1
        found = await stack.changes(conversation)
        assert len(found["rows"]) == WRITES
        assert all(len(row["calls"]) == 1 for row in found["rows"])
        poll = await stack.messages(conversation)
        assert [m["content"] for m in poll["messages"]][1:] == ["Done."]


async def test_migrate_makes_a_database_the_service_can_work_with(
    databases: Databases, start_stack: StartStack
) -> None:
    empty = await databases.create("gw")
    async with start_stack() as stack:
        settings = stack.settings.model_copy(update={"database_url": type(stack.settings.database_url)(empty)})
        for _ in range(2):
            async with program(settings, "migrate") as process:
                assert await process.wait() == 0


async def test_settings_that_are_missing_are_named_one_per_line() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "chat_gateway.cli",
        "serve",
        env={"PATH": os.environ["PATH"], "CHAT_GATEWAY_PORT": "high"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == 2
    lines = errors.decode().splitlines()
    assert "CHAT_GATEWAY_DATABASE_URL: is not set" in lines
    assert any(line.startswith("CHAT_GATEWAY_PORT: ") for line in lines)
