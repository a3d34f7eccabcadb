from __future__ import annotations

import asyncio
import socket

import httpx2
import pytest
from chat_gateway.clients.transport import http_transport
from chat_gateway.health import QUIET_SECONDS, NotFollowingError, check_following, health_app
from gateway_support.stack import Stack
from service_kit.bus.policy import SubscriptionStatus
from service_kit.serving import ServerFailedError, serving

HOST = "127.0.0.1"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (None, "broker_not_connected"),
        (SubscriptionStatus(), "broker_not_connected"),
        (SubscriptionStatus(running=True), "broker_not_connected"),
        (SubscriptionStatus(running=True, connected=True, progress_at=1.0), "consumer_stuck"),
    ],
)
def test_a_consumer_that_does_not_read_says_why(status: SubscriptionStatus | None, code: str) -> None:
    with pytest.raises(NotFollowingError) as caught:
        check_following(status, 1.0 + QUIET_SECONDS + 0.1)
    assert caught.value.code == code


def test_a_consumer_without_a_share_is_ready() -> None:
    check_following(SubscriptionStatus(running=True, connected=True), 5.0)
    check_following(SubscriptionStatus(running=True, connected=True, progress_at=1.0), 5.0)


async def one_handled(status: SubscriptionStatus) -> None:
    while True:
        if status.handled:
            return
        await asyncio.sleep(0.01)


async def test_health_and_metrics_of_the_consumer_are_served(stack: Stack) -> None:
    subscription = stack.consumer.subscription
    app = health_app(stack.settings, stack.database, lambda: subscription.status)
    async with (
        serving(app, HOST, 0) as port,
        httpx2.AsyncClient(base_url=f"http://{HOST}:{port}", transport=http_transport()) as http,
    ):
        assert (await http.get("/healthz")).status_code == 200
        before = await http.get("/readyz")
        assert (before.status_code, before.json()["code"]) == (503, "not_ready")
        assert before.json()["checks"] == {"database": "ok", "consumer": "broker_not_connected"}
        conversation = await stack.conversation()
        run_id, run = await stack.say(conversation)
        run.steps.llm()
        await stack.publish(run_id)
        running = asyncio.create_task(subscription.run())
        try:
            async with asyncio.timeout(10):
                await one_handled(subscription.status)
            assert (await http.get("/readyz")).json()["checks"] == {"database": "ok", "consumer": "ok"}
            numbers = (await http.get("/metrics")).text
        finally:
            subscription.stop()
            await running
    assert "remit_consumer_handled 1.0" in numbers
    assert "remit_consumer_connected 1.0" in numbers
    assert "remit_consumer_restarts 0.0" in numbers


async def test_a_port_that_is_taken_is_an_error_of_the_program_and_not_its_end(stack: Stack) -> None:
    app = health_app(stack.settings, stack.database, lambda: None)
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(ServerFailedError):
            async with serving(app, HOST, taken.getsockname()[1]):
                raise AssertionError("the port was free")
