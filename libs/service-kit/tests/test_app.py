from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pytest
import structlog
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from service_kit.app import create_app
from service_kit.context import current_request_id, propagation_headers
from service_kit.logging import configure_logging, get_logger, log_context
from service_kit.metrics import Metrics
from service_kit.problem_handlers import _FIELD_TEXTS
from service_kit.problems import NotFoundError, ProblemError, problem_responses
from service_kit.routing import Router
from service_kit.settings import ServiceSettings
from service_kit.texts import Texts
from starlette.responses import StreamingResponse


class NoteMissingError(ProblemError):
    code = "note_missing"
    status = 404
    title = "The note {name} is not there"


class Note(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    body: str
    size: int = 0


def build() -> FastAPI:
    router = Router(prefix="/v1")

    @router.post("/notes", responses=problem_responses(NoteMissingError, body=True))
    async def write(note: Note) -> Note:
        return note

    @router.get("/missing/{name}")
    async def missing(name: str) -> None:
        raise NoteMissingError(name=name, members={"hint": 1}, headers={"Retry-After": "3"})

    @router.get("/broken")
    async def broken() -> None:
        raise RuntimeError("secret detail")

    @router.get("/half")
    async def half() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"a"
            raise RuntimeError("secret detail")

        return StreamingResponse(parts())

    @router.get("/ids")
    async def ids() -> dict[str, Any]:
        with log_context(run_id="run-1", call_id=None):
            get_logger("kit").info("inside")
        return {"request": current_request_id(), "headers": propagation_headers()}

    async def down() -> None:
        if app.state.down:
            raise ConnectionError("password in the text")

    async def fine() -> None:
        return

    settings = ServiceSettings(database_url="postgresql://nowhere/x", max_body_bytes=1024)
    app = create_app("notes", settings, [router], readiness={"database": down, "broker": fine}, state={"down": False})
    return app


APP = build()


@pytest.fixture
async def http() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(transport=ASGITransport(APP), base_url="http://test") as client:
        yield client


@pytest.fixture
def logs() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    root = logging.getLogger()
    before, config = (root.handlers, root.level), structlog.get_config()
    configure_logging("notes", "INFO", "json", stream)
    yield stream
    root.handlers, level = before
    root.setLevel(level)
    structlog.configure(**config)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_a_problem_is_a_problem_document(http: AsyncClient) -> None:
    response = await http.get("/v1/missing/a%20b", headers={"X-Request-Id": "abc"})
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["retry-after"] == "3"
    assert response.json() == {
        "type": "urn:remit:problem:note_missing",
        "title": "The note a b is not there",
        "status": 404,
        "code": "note_missing",
        "instance": "/v1/missing/a b",
        "requestId": "abc",
        "hint": 1,
    }


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"body": "a"}', 200, None),
        (b"", 422, "invalid_request"),
        (b"{", 400, "unreadable_body"),
        (b'{"body": "\xff"}', 400, "unreadable_body"),
        (b'{"body": "a", "size": NaN}', 400, "unreadable_body"),
        (b'{"body": "\\ud800"}', 400, "unreadable_body"),
        (b"[" * 1000, 400, "unreadable_body"),
        (b"[" * 101 + b"]" * 101, 400, "unreadable_body"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, 400, "unreadable_body"),
        (b'{"size": 1}', 422, "invalid_request"),
        (b'{"body": 1}', 422, "invalid_request"),
        (b'{"body": "a", "size": "+5"}', 422, "invalid_request"),
        (b'{"body": "a", "other": 1}', 422, "invalid_request"),
        (b"null", 422, "invalid_request"),
        (b'{"body": "' + b"x" * 2000 + b'"}', 413, "body_too_large"),
    ],
)
async def test_what_a_body_may_be(http: AsyncClient, body: bytes, status: int, code: str | None) -> None:
    response = await http.post("/v1/notes", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == status
    if code is not None:
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["code"] == code
        assert response.json()["requestId"] == response.headers["x-request-id"]


async def test_a_body_without_an_announced_length_is_limited_too(http: AsyncClient) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    response = await http.post("/v1/notes", content=parts(), headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
    assert "1024" in response.json()["detail"]


@given(st.binary(max_size=1000))
async def test_nonsense_never_breaks_the_service(body: bytes) -> None:
    async with AsyncClient(transport=ASGITransport(APP), base_url="http://test") as client:
        response = await client.post("/v1/notes", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (200, 400, 422)
    assert response.json()["code"] in ("unreadable_body", "invalid_request")


async def test_errors_point_at_the_value_and_do_not_repeat_it(http: AsyncClient) -> None:
    response = await http.post("/v1/notes", json={"body": 1234567, "a/b": "hunter2"})
    errors = {error["pointer"]: error["code"] for error in response.json()["errors"]}
    assert errors == {"/body/body": "string_type", "/body/a~1b": "extra_forbidden"}
    assert "hunter2" not in response.text
    assert "1234567" not in response.text


async def test_addresses_and_methods_that_are_not_there(http: AsyncClient) -> None:
    assert (await http.get("/nowhere")).json()["code"] == "not_found"
    refused = await http.delete("/v1/notes")
    assert (refused.status_code, refused.json()["code"]) == (405, "method_not_allowed")
    assert refused.headers["allow"] == "POST"


async def test_an_unexpected_error_is_logged_and_not_told(http: AsyncClient, logs: io.StringIO) -> None:
    response = await http.get("/v1/broken", headers={"X-Request-Id": "req-1"})
    assert response.status_code == 500
    assert response.json()["code"] == "internal_error"
    assert "secret" not in response.text
    assert "Traceback" not in response.text
    line = next(line for line in lines(logs) if line["event"] == "unexpected error")
    assert line["request_id"] == "req-1"
    assert line["exception"][0]["exc_value"] == "secret detail"


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_log_shows_local_variables(log_format: Literal["json", "console"], logs: io.StringIO) -> None:
    configure_logging("notes", "INFO", log_format, logs)

    def fail(password: str) -> None:
        raise RuntimeError("failed", len(password))

    try:
        fail("hunter" + "2")
    except RuntimeError as error:
        get_logger("kit").error("it failed", exc_info=error)
    assert "RuntimeError" in logs.getvalue()
    assert "hunter2" not in logs.getvalue()


async def test_an_answer_that_breaks_off_does_not_look_whole(http: AsyncClient) -> None:
    with pytest.raises(RuntimeError):
        await http.get("/v1/half")


async def test_logs_carry_the_ids_of_request_and_run(http: AsyncClient, logs: io.StringIO) -> None:
    given = {"X-Request-Id": "req-2", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    response = await http.get("/v1/ids", headers=given)
    assert response.json() == {"request": "req-2", "headers": given}
    line = next(line for line in lines(logs) if line["event"] == "inside")
    assert (line["request_id"], line["run_id"], line["service"]) == ("req-2", "run-1", "notes")
    assert "call_id" not in line
    assert line["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    after = (await http.get("/v1/ids")).json()
    assert "traceparent" not in after["headers"]


@pytest.mark.parametrize("given_id", ["", "a b", "x" * 200, "a\tb", "é"])
async def test_a_request_id_that_is_no_plain_token_is_replaced(http: AsyncClient, given_id: str) -> None:
    response = await http.get("/healthz", headers={b"X-Request-Id": given_id.encode("latin-1")})
    assert len(response.headers["x-request-id"]) == 36


async def test_readiness_names_what_fails(http: AsyncClient) -> None:
    assert (await http.get("/healthz")).json() == {"status": "ok"}
    assert (await http.get("/readyz")).status_code == 200
    APP.state.down = True
    try:
        response = await http.get("/readyz")
        assert response.status_code == 503
        assert response.json()["checks"] == {"database": "ConnectionError", "broker": "ok"}
        assert "password" not in response.text
        assert (await http.get("/healthz")).status_code == 200
    finally:
        APP.state.down = False


async def test_metrics_count_routes_and_not_paths(http: AsyncClient) -> None:
    for name in ("a", "b", "c"):
        await http.get(f"/v1/missing/{name}")
        await http.get(f"/nowhere/{name}")
    text = (await http.get("/metrics")).text
    assert 'route="/v1/missing/{name}",status="404"' in text
    assert "/nowhere" not in text
    assert "remit_http_request_duration_seconds_bucket" in text


async def test_a_gauge_that_fails_hides_no_other() -> None:
    metrics = Metrics("notes")
    gauge = metrics.gauge("good", "good")

    async def bad() -> None:
        raise OSError

    async def good() -> None:
        gauge.set(4)

    metrics.on_scrape(bad)
    metrics.on_scrape(good)
    assert b"good 4.0" in await metrics.render()


async def test_the_documentation_needs_no_other_server(http: AsyncClient) -> None:
    for path in ("/docs", "/redoc"):
        page = await http.get(path)
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "://" not in page.text
    for name in ("docs.js", "docs.css"):
        assert f"docs/{name}" in page.text
        file = await http.get(f"/docs/{name}")
        assert file.status_code == 200
        assert "://" not in file.text
    assert (await http.get("/docs/../app.py")).status_code == 404
    assert (await http.get("/docs/other.js")).json()["code"] == "not_found"


async def test_routes_document_their_problems(http: AsyncClient) -> None:
    description = (await http.get("/openapi.json")).json()
    responses = description["paths"]["/v1/notes"]["post"]["responses"]
    assert {"400", "404", "413", "422"} <= set(responses)
    for status, code in (("400", "unreadable_body"), ("404", "note_missing"), ("422", "invalid_request")):
        content = responses[status]["content"]["application/problem+json"]
        assert content["examples"][code]["value"]["code"] == code
    assert "requestId" in description["components"]["schemas"]["ProblemDocument"]["properties"]
    assert not any(path.startswith(("/docs", "/metrics", "/healthz")) for path in description["paths"])


@pytest.mark.parametrize(
    ("header", "user", "language"),
    [
        (None, None, "en"),
        ("de", None, "de"),
        ("de-AT,de;q=0.9,en;q=0.8", None, "de"),
        ("en;q=0.4, de;q=0.5", None, "de"),
        ("fr", "de", "de"),
        ("fr", None, "en"),
        ("de;q=0", None, "en"),
        ("en", "de", "en"),
        (";;q=x,,", None, "en"),
        (None, "de-CH", "de"),
    ],
)
def test_the_language_of_an_answer(header: str | None, user: str | None, language: str) -> None:
    assert Texts().negotiate(header, user) == language


@given(st.text())
def test_any_header_gives_a_language(header: str) -> None:
    assert Texts().negotiate(header) in {"en", "de"}


async def test_titles_are_in_the_readers_language_and_codes_are_not(http: AsyncClient) -> None:
    response = await http.get("/nowhere", headers={"Accept-Language": "de"})
    assert response.headers["content-language"] == "de"
    assert (response.json()["title"], response.json()["code"]) == ("Hier ist nichts", "not_found")
    invalid = await http.post("/v1/notes", json={}, headers={"Accept-Language": "de"})
    assert invalid.json()["errors"][0]["detail"] == "Dieser Wert wird gebraucht."


def test_every_text_of_the_kit_is_translated() -> None:
    def kinds(base: type[ProblemError]) -> Iterator[type[ProblemError]]:
        for kind in base.__subclasses__():
            yield kind
            yield from kinds(kind)

    ours = [kind for kind in kinds(ProblemError) if kind.__module__.startswith("service_kit")]
    named = [kind for kind in ours if kind.__qualname__ == kind.__name__]
    assert NotFoundError in named
    texts = Texts()
    wanted = {text for kind in named for text in (kind.title, kind.detail_text) if text} | set(_FIELD_TEXTS.values())
    assert {text for text in wanted if texts.text(text, "de") == text} == set()


def test_a_text_reaches_into_nothing() -> None:
    assert Texts().text("{a} {b.__class__} {c}", "en", a="{c}", c=1) == "1 {b.__class__} 1"
