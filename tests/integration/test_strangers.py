"""Bad input and other people's things: a problem document with a code, nothing revealed, nothing written."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from remit_harness.scenes import scene, snapshot
from remit_harness.stacks import TestStack
from remit_local.clients import ApiClient, ApiError
from remit_local.services import GATEWAY, RUNTIME, STORE

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.mark.req("T-20", "T-54")
def test_another_persons_conversation_and_run_look_like_none(stack: TestStack) -> None:
    with scene(stack, "emma") as emma, stack.stack.chat("jonas") as jonas:
        pending = emma.card(f"Set the title of page {stack.page('Health')} to Care")
        for path in ("", "/messages", "/changes"):
            assert _refusal(jonas, "GET", f"/v1/conversations/{emma.conversation}{path}") == (
                _refusal(jonas, "GET", f"/v1/conversations/{NOWHERE}{path}")
            )
        decision = {"turnDigest": pending["turnDigest"], "decision": "approve"}
        assert _refusal(jonas, "POST", f"/v1/conversations/{emma.conversation}/decision", decision) == (
            404,
            "conversation_not_found",
        )
        emma.decide(pending, "decline")


NONSENSE: list[tuple[str, str, str, Any]] = [
    (GATEWAY, "POST", "/v1/conversations", {"configuration": "nobody-knows-it"}),
    (GATEWAY, "POST", "/v1/conversations", {"surprise": 1}),
    (GATEWAY, "POST", "/v1/conversations", {"assignmentScope": {"pages": [{"page": -3}]}}),
    (GATEWAY, "POST", "/v1/conversations", {"workspaceId": 987654}),
    (GATEWAY, "POST", f"/v1/conversations/{NOWHERE}/messages", {"content": "hello"}),
    (GATEWAY, "GET", "/v1/conversations/not-a-uuid", None),
    (GATEWAY, "GET", "/v1/conversations?cursor=%00nonsense", None),
    (STORE, "GET", "/v1/records/no_such_table", None),
    (STORE, "GET", "/v1/records/pages/9223372036854775808", None),
    (STORE, "GET", "/v1/records/pages/999999", None),
    (STORE, "GET", "/v1/pages/tree?root=-1", None),
    (STORE, "POST", "/v1/datamap", {"datamap": "no map"}),
    (STORE, "POST", "/v1/visibility", {"records": [{"table": "pages", "uid": 0}]}),
    (STORE, "POST", f"/v1/calls/{NOWHERE}/apply", {}),
    (RUNTIME, "GET", f"/v1/runs/{NOWHERE}", None),
    (RUNTIME, "POST", "/v1/runs", {}),
]


@pytest.mark.parametrize(("service", "method", "path", "body"), NONSENSE)
def test_nonsense_gets_a_problem_with_a_code_and_writes_nothing(
    stack: TestStack, service: str, method: str, path: str, body: Any
) -> None:
    before = snapshot(stack)
    with stack.stack.store("emma") as known, ApiClient(stack.stack.plan.url(service)) as client:
        headers = {"Authorization": f"Bearer {known.token}", "Idempotency-Key": str(uuid4())}
        with pytest.raises(ApiError) as refused:
            client.send(method, path, body, headers=headers, renew=False)
    assert 400 <= refused.value.status < 500
    assert refused.value.code != "unknown"
    assert "Traceback" not in str(refused.value.problem)
    assert snapshot(stack) == before


@pytest.mark.parametrize("service", [GATEWAY, STORE, RUNTIME])
@pytest.mark.parametrize("token", ["x", "nonsense.with.dots", "e30.e30.e30"])
def test_a_forged_token_is_no_token(stack: TestStack, service: str, token: str) -> None:
    path = {GATEWAY: "/v1/conversations", STORE: "/v1/sites", RUNTIME: f"/v1/runs/{NOWHERE}"}[service]
    with ApiClient(stack.stack.plan.url(service)) as client:
        assert _refusal(client, "GET", path, headers={"Authorization": f"Bearer {token}"})[0] == 401


def test_a_body_over_the_limit_is_refused(stack: TestStack) -> None:
    with scene(stack) as editor:
        path = f"/v1/conversations/{editor.conversation}/messages"
        assert _refusal(editor.chat, "POST", path, {"content": "x" * 9_000_000}) == (413, "body_too_large")


def test_after_logging_out_the_token_is_worth_nothing(stack: TestStack) -> None:
    with stack.stack.chat("jonas") as jonas:
        jonas.get("/v1/auth/me")
        jonas.send("POST", "/v1/auth/logout", {})
        assert _refusal(jonas, "GET", "/v1/auth/me", renew=False)[0] == 401


def _refusal(client: ApiClient, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        client.send(method, path, body, **more)
    return refused.value.status, refused.value.code
