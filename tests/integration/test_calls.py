"""The store's calls as the runtime makes them, sent by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from remit_harness.scenes import history_of, row_of, snapshot
from remit_harness.stacks import TestStack
from remit_local.clients import ApiClient, ApiError
from remit_local.services import RUNTIME, STORE
from service_kit.auth import AssertionSigner, SigningKey

Send = Callable[[str, dict[str, Any]], dict[str, Any]]


@pytest.fixture
def emma(stack: TestStack) -> int:
    return int(stack.rows(STORE, "SELECT uid FROM be_users WHERE username = 'emma'")[0]["uid"])


@pytest.fixture
def send(stack: TestStack, emma: int) -> Send:
    """POST to the store with the runtime's own signature, on behalf of emma."""
    plan = stack.stack.plan
    signer = AssertionSigner(RUNTIME, SigningKey.from_pem((plan.keys / f"{RUNTIME}.pem").read_text()))

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        with ApiClient(plan.url(STORE)) as store:
            headers = {"Authorization": f"Bearer {signer.sign(STORE, emma)}"}
            return store.send("POST", path, body, headers=headers, renew=False)

    return post


def _apply(user: int, run: str, page: int, title: str, **more: Any) -> dict[str, Any]:
    return {
        "runId": run,
        "leaseEpoch": 1,
        "actor": {"userUid": user, "workspaceId": 0, "locale": "en"},
        "tool": "update_page_metadata",
        "effect": "write",
        "writeTarget": {"table": "pages", "uid": page},
        "operations": [{"op": "datamap", "datamap": {"pages": {str(page): {"title": title}}}}],
        **more,
    }


@pytest.mark.req("T-23", "S-58")
def test_the_same_apply_twice_writes_once(stack: TestStack, emma: int, send: Send) -> None:
    page, call = stack.page("Buses"), str(uuid4())
    entries = history_of(stack, "pages", page)
    body = _apply(emma, str(uuid4()), page, "Coaches")
    first = send(f"/v1/calls/{call}/apply", body)
    second = send(f"/v1/calls/{call}/apply", body)
    assert first["outcome"] == "committed"
    assert second == first
    assert history_of(stack, "pages", page) == entries + 1
    with pytest.raises(ApiError) as other:
        send(f"/v1/calls/{call}/apply", _apply(emma, body["runId"], page, "Trains"))
    assert (other.value.status, other.value.code) == (409, "call_exists")
    assert row_of(stack, "pages", page)["title"] == "Coaches"


@pytest.mark.req("S-51", "S-75")
def test_a_write_outside_the_scope_is_rolled_back_and_named(stack: TestStack, emma: int, send: Send) -> None:
    page, outside = stack.page("Cycling"), stack.page("Roadworks")
    before = snapshot(stack)
    scope = {"pages": [{"page": page, "depth": 0}], "records": [], "tables": None, "languages": None}
    body = _apply(emma, str(uuid4()), outside, "Closed", scope=scope)
    result = send(f"/v1/calls/{uuid4()}/apply", body)
    assert snapshot(stack) == before
    assert result["changes"]["changes"] == []
    assert [(r["table"], r["uid"], r["reason"]) for r in result["changes"]["refused"]] == [
        ("pages", outside, "outside_scope")
    ]


@pytest.mark.req("T-22")
def test_a_call_of_a_worker_that_was_replaced_is_fenced(stack: TestStack, emma: int, send: Send) -> None:
    page, run, call = stack.page("Schools"), str(uuid4()), str(uuid4())
    before = row_of(stack, "pages", page)["title"]
    resolved = send(f"/v1/calls/{call}/resolve", {"runId": run, "leaseEpoch": 2})
    assert resolved["outcome"] == "rolled_back"
    with pytest.raises(ApiError) as late:
        send(f"/v1/calls/{call}/apply", _apply(emma, run, page, "Too late"))
    assert (late.value.status, late.value.code) in {(409, "fenced"), (410, "call_resolved")}
    assert row_of(stack, "pages", page)["title"] == before


def test_a_runtime_may_not_write_as_a_person_does(stack: TestStack, send: Send) -> None:
    before = snapshot(stack)
    with pytest.raises(ApiError) as refused:
        send("/v1/datamap", {"datamap": {"pages": {"1": {"title": "Mine"}}}})
    assert refused.value.status == 403
    assert snapshot(stack) == before
