"""Calls over HTTP: who may, what is answered, and what bad input gets (CALLS 1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from content_store.caches.flush import NoCaches
from content_store.deps import Services
from content_store.schema.loader import load_schema
from remit_harness.databases import Databases
from service_kit.ids import uuid7
from service_kit.outbox.wake import DEFAULT_CHANNEL
from store_support.app import StoreUnderTest
from store_support.calls import build_template
from store_support.database import prepare_test_database
from store_support.templates import COPIED

HEADER = "SELECT header FROM tt_content WHERE uid = 9"


@pytest.fixture
async def api(databases: Databases, templates: None, tmp_path: Path) -> AsyncIterator[StoreUnderTest]:
    async with (await _api(databases, tmp_path)).run() as started:
        yield started


async def _api(databases: Databases, folder: Path, **parts: Any) -> StoreUnderTest:
    url = await databases.create("dcalls", template=await databases.template(COPIED, build_template))
    return StoreUnderTest(
        await prepare_test_database(url, server_url=databases.admin_url), load_schema(), folder, **parts
    )


def body(**values: Any) -> dict[str, Any]:
    return {
        "runId": str(uuid7()),
        "leaseEpoch": 1,
        "actor": {"userUid": 1, "workspaceId": 0, "locale": "en"},
        "tool": "update_content_element",
        "operations": [{"op": "datamap", "datamap": {"tt_content": {"9": {"header": "in"}}}}],
        **values,
    }


async def test_a_call_its_repetition_and_its_resolution(api: StoreUnderTest) -> None:
    headers, call_id, request = api.assertion("agent-runtime", 1), uuid7(), body()
    first = await api.client.post(f"/v1/calls/{call_id}/apply", json=request, headers=headers)
    assert (first.status_code, first.json()["outcome"]) == (200, "committed")
    assert first.json()["changes"]["changes"][0]["action"] == "updated"
    again = await api.client.post(f"/v1/calls/{call_id}/apply", json=request, headers=headers)
    assert again.json() == first.json()
    known = await api.client.get(f"/v1/calls/{call_id}", headers=headers)
    assert known.json()["outcome"] == "committed"
    resolve = {"runId": request["runId"], "leaseEpoch": 2}
    resolved = await api.client.post(f"/v1/calls/{call_id}/resolve", json=resolve, headers=headers)
    assert resolved.json()["result"] == first.json()
    other = await api.client.post(f"/v1/calls/{call_id}/apply", json=body(runId=request["runId"]), headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "fenced")


@pytest.mark.req("S-16")
async def test_only_the_runtime_for_the_user_it_acts_for(api: StoreUnderTest) -> None:
    url = f"/v1/calls/{uuid7()}/apply"
    expected: tuple[tuple[dict[str, str], int, str], ...] = (
        ({}, 401, "token_missing"),
        (api.assertion("agent-runtime", 2), 403, "actor_mismatch"),
        (api.assertion("agent-runtime"), 403, "actor_mismatch"),
        (api.assertion("chat-gateway", 1), 403, "caller_not_allowed"),
        (await api.token(1), 401, "token_invalid"),
    )
    for headers, status, code in expected:
        answer = await api.client.post(url, json=body(), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert await api.owner.fetchval(HEADER) == "Hours"


async def test_an_unknown_user_or_workspace_writes_nothing(api: StoreUnderTest) -> None:
    cases = (
        ({"userUid": 77, "workspaceId": 0}, "actor_unknown"),
        ({"userUid": 1, "workspaceId": 9}, "workspace_denied"),
    )
    for actor, code in cases:
        headers = api.assertion("agent-runtime", actor["userUid"])
        answer = await api.client.post(f"/v1/calls/{uuid7()}/apply", json=body(actor=actor), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, code)


@pytest.mark.req("S-42")
@pytest.mark.parametrize(
    "changed",
    [
        {"leaseEpoch": 0},
        {"leaseEpoch": "1"},
        {"runId": "x"},
        {"operations": []},
        {"operations": [{"op": "sql", "sql": "DELETE"}]},
        {"operations": [{"op": "datamap", "datamap": []}]},
        {"operations": [{"op": "expect", "table": "tt_content", "uid": 2**63, "hash": "x"}]},
        {"operations": [{"op": "read", "table": "no such", "uids": [1]}]},
        {"unknown": 1},
        {"actor": None},
    ],
)
async def test_nonsense_is_a_problem_with_a_code(api: StoreUnderTest, changed: dict[str, Any]) -> None:
    headers = api.assertion("agent-runtime", 1)
    answer = await api.client.post(f"/v1/calls/{uuid7()}/apply", json=body(**changed), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert await api.owner.fetchval("SELECT count(*) FROM call_outcome") == 0


async def test_an_open_call_over_http(api: StoreUnderTest) -> None:
    headers, call_id = api.assertion("agent-runtime", 1), uuid7()
    request = {key: value for key, value in body().items() if key != "operations"}
    opened = await api.client.post(f"/v1/calls/{call_id}/open", json=request, headers=headers)
    assert (opened.status_code, opened.json()["sequence"]) == (201, 1)
    turn = {**headers, "Call-Token": opened.json()["token"], "Call-Seq": "1"}
    operations = {"operations": body()["operations"]}
    done = await api.client.post(f"/v1/calls/{call_id}/operations", json=operations, headers=turn)
    assert done.status_code == 200
    assert (await api.client.get(f"/v1/calls/{call_id}", headers=headers)).json()["outcome"] == "open"
    turn = {**headers, "Call-Token": done.json()["token"], "Call-Seq": "2"}
    committed = await api.client.post(f"/v1/calls/{call_id}/commit", headers=turn)
    assert committed.json()["outcome"] == "committed"
    assert await api.owner.fetchval(HEADER) == "in"
    gone = await api.client.delete(f"/v1/calls/{uuid7()}", headers=turn)
    assert (gone.status_code, gone.json()["code"]) == (404, "call_not_found")


async def test_a_rehearsal_and_claims_over_http(api: StoreUnderTest) -> None:
    headers = api.assertion("agent-runtime", 1)
    request = body(scope={"pages": [{"page": 10, "depth": 0}]})
    calls = [{"key": "a", "tool": request.pop("tool"), "operations": request.pop("operations")}]
    rehearsed = await api.client.post(f"/v1/rehearsals/{uuid7()}", json={**request, "calls": calls}, headers=headers)
    assert rehearsed.status_code == 200
    assert rehearsed.json()["calls"][0]["shown"][0]["record"] == "9"
    assert await api.owner.fetchval(HEADER) == "Hours"
    claim = {
        "key": "a",
        "tool": "t",
        "operation": "update",
        "records": [{"table": "tt_content", "uid": 7}],
        "pages": [],
    }
    judged = await api.client.post(
        "/v1/claims", json={"scope": request["scope"], "workspaceId": 0, "claims": [claim]}, headers=headers
    )
    assert judged.json()["answers"][0]["refusals"][0]["reason"] == "outside_scope"


@pytest.mark.req("S-55", "C-07", "S-64", "S-59")
async def test_limits_caches_and_the_waker_reach_the_calls_of_the_service(
    databases: Databases, templates: None, tmp_path: Path
) -> None:
    settings = {
        "history_rows_limit": 7,
        "judged_rows_limit": 8,
        "change_list_limit": 3,
        "open_call_idle_limit": 4.0,
        "rehearsal_lock_timeout": 0.7,
    }
    caches = NoCaches()
    store = await _api(databases, tmp_path, settings=settings, caches=caches)
    async with store.run() as started:
        services: Services = started.app.state.services
        limits = services.environment.limits
        assert (limits.max_history, limits.max_rows, limits.max_changes, limits.idle_seconds) == (7, 8, 3, 4.0)
        assert services.environment.caches is caches
        assert services.environment.published == services.waker.ring
        # The server itself ends an open call that its process cannot end any more; other calls have no such limit.
        setting = "SELECT current_setting('idle_in_transaction_session_timeout')"
        assert await services.open_calls.fetchval(setting) == "9s"
        assert await services.applies.fetchval(setting) == "0"


async def test_after_a_call_the_relay_is_woken(api: StoreUnderTest) -> None:
    services: Services = api.app.state.services
    listener = await asyncpg.connect(services.settings.database_url.get_secret_value())
    heard: asyncio.Queue[str] = asyncio.Queue()
    try:
        await listener.add_listener(DEFAULT_CHANNEL, lambda *args: heard.put_nowait(str(args[2])))
        headers = api.assertion("agent-runtime", 1)
        answer = await api.client.post(f"/v1/calls/{uuid7()}/apply", json=body(), headers=headers)
        assert answer.status_code == 200
        assert await asyncio.wait_for(heard.get(), 10) == DEFAULT_CHANNEL
    finally:
        await listener.close()
