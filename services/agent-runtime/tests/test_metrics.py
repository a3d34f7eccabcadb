"""What an operator reads of the events that wait (T-70)."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
import uvicorn
from agent_runtime import cli
from prometheus_client.parser import text_string_to_metric_families
from runtime_support.stack import STATE_KEY, RuntimeStack

SAMPLES = ("remit_outbox_published_total", "remit_outbox_unpublished", "remit_outbox_leader")


@pytest.mark.req("T-70")
async def test_the_command_shows_what_its_relay_does(
    stack: RuntimeStack, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await stack.start("list pages")
    await stack.run_to_pause(run_id)
    steps = await stack.steps(run_id)
    application = served(database_url, stack, monkeypatch)
    transport = httpx2.ASGITransport(app=application)
    async with (
        application.router.lifespan_context(application),
        httpx2.AsyncClient(transport=transport, base_url="http://runtime") as http,
    ):
        found: dict[str, float] = {}
        async with asyncio.timeout(30):
            while found.get("remit_outbox_published_total", 0) < len(steps):
                await asyncio.sleep(0.02)
                found = samples((await http.get("/metrics")).text)
    assert found == {
        "remit_outbox_published_total": len(steps),
        "remit_outbox_unpublished": 0,
        "remit_outbox_leader": 1,
    }


def served(database_url: str, stack: RuntimeStack, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The application ``agent-runtime serve`` would serve."""
    environment = {
        "DATABASE_URL": database_url,
        "STATE_KEY": STATE_KEY,
        "SIGNING_KEY": stack.private_pem,
        "CONTENT_STORE_URL": stack.store_url,
        "BROKER_URL": "memory://",
        "OUTBOX_POLL_INTERVAL": "0.05",
    }
    for name, value in environment.items():
        monkeypatch.setenv(f"AGENT_RUNTIME_{name}", value)
    served: list[Any] = []
    monkeypatch.setattr(uvicorn, "run", lambda application, **_: served.append(application))
    # It would bind the log to this test's captured output.
    monkeypatch.setattr(cli, "configure_logging", lambda *_: None)
    cli.serve(worker=False, relay=True)
    return served[0]


def samples(text: str) -> dict[str, float]:
    """The outbox's samples of a scrape."""
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name: sample.value for sample in found if sample.name in SAMPLES}
