from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import httpx2
import pytest
import stamina
from service_kit.app import create_app
from service_kit.auth import (
    AssertionSigner,
    AssertionVerifier,
    Authenticator,
    CallerTable,
    KeySet,
    ServiceAssertion,
    SigningKey,
    TokenMissingError,
    require_service,
)
from service_kit.client import RemoteProblem, RemoteUnavailable, ServiceClient, remote_keys
from service_kit.routing import Router
from service_kit.settings import ServiceSettings

KEY = SigningKey.generate()


@pytest.fixture(autouse=True)
def no_waits() -> Any:
    stamina.set_testing(True, attempts=3, cap=True)
    yield
    stamina.set_testing(False)


def client(handler: Callable[[httpx2.Request], httpx2.Response]) -> ServiceClient:
    return ServiceClient("store", "http://store/", None, transport=httpx2.MockTransport(handler))


async def test_one_service_calls_another() -> None:
    router = Router(prefix="/v1")

    @router.post("/echo")
    async def echo(body: dict[str, Any], caller: Annotated[ServiceAssertion, require_service("echo")]) -> Any:
        return {"body": body, "service": caller.service, "user": caller.user_uid}

    @router.get("/closed")
    async def closed(caller: Annotated[ServiceAssertion, require_service("closed")]) -> None:
        raise AssertionError("never reached")

    authenticator = Authenticator(
        services=AssertionVerifier("store", {"runtime": KeySet.of(KEY)}), callers=CallerTable({"runtime": {"echo"}})
    )
    app = create_app(
        "store",
        ServiceSettings(database_url="postgresql://nowhere/x"),
        [router],
        state={"authenticator": authenticator},
    )
    http = ServiceClient("store", "http://store", AssertionSigner("runtime", KEY), transport=httpx2.ASGITransport(app))
    try:
        answer = await http.post_json("/v1/echo", {"liveUid": 1}, user_uid=7)
        assert answer == {"body": {"liveUid": 1}, "service": "runtime", "user": 7}
        with pytest.raises(RemoteProblem) as refused:
            await http.get_json("/v1/closed")
        assert (refused.value.code, refused.value.status) == ("caller_not_allowed", 403)
        await http.ping()
    finally:
        await http.close()
    unsigned = ServiceClient("store", "http://store", None, transport=httpx2.ASGITransport(app))
    with pytest.raises(RemoteProblem) as nobody:
        await unsigned.post_json("/v1/echo", {})
    assert nobody.value.code == TokenMissingError.code


@pytest.mark.parametrize(("method", "times"), [("GET", 3), ("POST", 1), ("DELETE", 1), ("PUT", 1)])
@pytest.mark.parametrize("failure", ["cut", 503])
async def test_only_safe_requests_are_sent_again(method: str, times: int, failure: str | int) -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.method)
        if failure == "cut":
            raise httpx2.ReadError("cut")
        return httpx2.Response(503)

    with pytest.raises(RemoteUnavailable if failure == "cut" else RemoteProblem):
        await client(answer).request(method, "/v1/x", json={} if method != "GET" else None)
    assert seen == [method] * times


async def test_an_error_that_will_not_change_is_not_tried_again() -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.method)
        return httpx2.Response(404, json={"code": "x"}, headers={"Content-Type": "application/problem+json"})

    with pytest.raises(RemoteProblem) as error:
        await client(answer).get_json("/v1/x")
    assert error.value.code == "x"
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (httpx2.ConnectError("x"), False),
        (httpx2.ConnectTimeout("x"), False),
        (httpx2.ReadTimeout("x"), True),
        (httpx2.ReadError("x"), True),
        (httpx2.RemoteProtocolError("x"), True),
    ],
)
async def test_it_is_known_whether_the_request_can_have_arrived(error: Exception, sent: bool) -> None:
    def answer(_request: httpx2.Request) -> httpx2.Response:
        raise error

    with pytest.raises(RemoteUnavailable) as unavailable:
        await client(answer).post_json("/v1/x")
    assert unavailable.value.sent is sent


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"code": 7}', b"\xff"])
async def test_an_answer_that_is_no_problem_document_is_still_typed(body: bytes) -> None:
    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(502, content=body, headers={"Content-Type": "application/problem+json"})

    with pytest.raises(RemoteProblem) as error:
        await client(answer).post_json("/v1/x")
    assert (error.value.code, error.value.status) == ("unknown_problem", 502)


async def test_bytes_go_out_unchanged_with_their_key() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(204)

    await client(answer).request(
        "POST", "/v1/x", content=b'{ "a":1}', idempotency_key="k", params={"a": True, "b": None}, base_url="http://two"
    )
    request = seen[0]
    assert (request.content, request.headers["idempotency-key"]) == (b'{ "a":1}', "k")
    assert request.headers["content-type"] == "application/json"
    assert str(request.url) == "http://two/v1/x?a=true"


async def test_a_stream_is_read_while_it_arrives() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/refused":
            return httpx2.Response(409, json={"code": "x"}, headers={"Content-Type": "application/problem+json"})
        return httpx2.Response(200, text="data: 1\n\n")

    async with client(answer).stream("GET", "/events") as response:
        assert [line async for line in response.aiter_lines()] == ["data: 1", ""]

    async def refused() -> None:
        async with client(answer).stream("GET", "/refused"):
            raise AssertionError("never reached")

    with pytest.raises(RemoteProblem) as error:
        await refused()
    assert error.value.code == "x"


async def test_keys_of_an_issuer_that_is_not_there_are_none() -> None:
    assert len(await remote_keys("http://127.0.0.1:9/jwks", timeout=1)("k")) == 0
    assert json.loads(json.dumps(KEY.public_jwk()))["crv"] == "Ed25519"
