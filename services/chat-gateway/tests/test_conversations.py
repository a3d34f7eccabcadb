from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import pytest
from gateway_support.runtime import BrokenError, NotWaitingError
from gateway_support.stack import EDITOR, STRANGER, Stack
from gateway_support.store import PASSWORD, visible
from service_kit.auth import SigningKey, UserTokenIssuer
from service_kit.ids import uuid7
from sqlalchemy import text

StartStack = Callable[..., AbstractAsyncContextManager[Stack]]
UNKNOWN = "0198c0de-0000-7000-8000-00000000dead"


def routes(conversation: object) -> list[tuple[str, str, Any]]:
    path = f"/conversations/{conversation}"
    return [
        ("GET", path, None),
        ("PATCH", path, {"title": "Mine now"}),
        ("DELETE", path, None),
        ("GET", f"{path}/messages", None),
        ("POST", f"{path}/messages", {"content": "hello"}),
        ("POST", f"{path}/decision", {"turnDigest": "d", "decision": "approve"}),
        ("POST", f"{path}/answer", {"turnDigest": "d", "answer": "yes"}),
        ("POST", f"{path}/cancel", None),
        ("GET", f"{path}/changes", None),
        ("GET", f"{path}/events", None),
    ]


async def rows(stack: Stack) -> dict[str, int]:
    """Rows of every table of the gateway."""
    async with stack.database.read() as session:
        names = list(await session.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")))
        return {name: int(await session.scalar(text(f'SELECT count(*) FROM "{name}"')) or 0) for name in names}


async def test_foreign_unknown_and_deleted_conversations_are_the_same_404(stack: Stack) -> None:
    mine = await stack.conversation(title="Secret plans")
    gone = await stack.conversation()
    assert (await stack.request("DELETE", f"/conversations/{gone}")).status_code == 204
    before = await rows(stack)
    for user, conversation in ((STRANGER, mine), (EDITOR, UNKNOWN), (EDITOR, gone)):
        bodies = set()
        for method, path, body in routes(conversation):
            answer = await stack.request(method, path, body, user=user)
            assert (answer.status_code, answer.json()["code"]) == (404, "conversation_not_found"), (method, path)
            assert "Secret" not in answer.text
            bodies.add((answer.json()["title"], tuple(sorted(answer.json()))))
        assert len(bodies) == 1
    assert await rows(stack) == before
    assert stack.runtime.calls["start"] == 0
    # The control: the owner is let in.
    assert (await stack.request("GET", f"/conversations/{mine}")).json()["title"] == "Secret plans"
    assert (await stack.request("GET", "/conversations", user=STRANGER)).json()["conversations"] == []


NONSENSE: list[tuple[str, str, bytes | None, int, str]] = [
    ("POST", "/conversations", b"{", 400, "unreadable_body"),
    ("POST", "/conversations", b"\xff\xfe", 400, "unreadable_body"),
    ("POST", "/conversations", b"[]", 422, "invalid_request"),
    ("POST", "/conversations", b'{"colour": "red"}', 422, "invalid_request"),
    ("POST", "/conversations", b'{"workspaceId": "3"}', 422, "invalid_request"),
    ("POST", "/conversations", b'{"workspaceId": 99}', 422, "workspace_unknown"),
    ("POST", "/conversations", b'{"configuration": "nobody"}', 422, "configuration_unknown"),
    ("POST", "/conversations", b'{"assignmentScope": {"pages": [{"page": 0}]}}', 422, "invalid_request"),
    ("POST", "/conversations", b'{"assignmentScope": "all"}', 422, "invalid_request"),
    ("POST", "/conversations/{id}/messages", b'{"content": ""}', 422, "invalid_request"),
    ("POST", "/conversations/{id}/messages", b'{"content": "x", "role": "system"}', 422, "invalid_request"),
    (
        "POST",
        "/conversations/{id}/messages",
        b'{"content": "x", "viewContext": {"pageId": -1}}',
        422,
        "invalid_request",
    ),
    ("POST", "/conversations/{id}/decision", b"{}", 422, "invalid_request"),
    ("POST", "/conversations/{id}/decision", b'{"turnDigest": "d", "decision": "maybe"}', 422, "invalid_request"),
    ("PATCH", "/conversations/{id}", b'{"title": ""}', 422, "invalid_request"),
    ("GET", "/conversations/not-an-id", None, 422, "invalid_request"),
    ("GET", "/conversations/{id}/messages?after=-1", None, 422, "invalid_request"),
    ("GET", "/conversations/{id}/changes?cursor=%00", None, 422, "cursor_invalid"),
    ("GET", "/conversations/{id}/changes?limit=0", None, 422, "invalid_request"),
    ("GET", "/conversations?cursor=nonsense", None, 422, "cursor_invalid"),
    ("PUT", "/conversations/{id}", b"{}", 405, "method_not_allowed"),
    ("GET", "/nothing", None, 404, "not_found"),
]


async def test_nonsense_is_a_problem_document_and_changes_nothing(stack: Stack) -> None:
    conversation = await stack.conversation()
    before = await rows(stack)
    for method, path, body, status, code in NONSENSE:
        answer = await stack.http.request(
            method,
            "/v1" + path.replace("{id}", str(conversation)),
            content=body,
            headers={**stack.headers(), "Content-Type": "application/json"},
        )
        assert (answer.status_code, answer.json()["code"]) == (status, code), (method, path, body, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in answer.text
    assert await rows(stack) == before


async def test_a_body_over_the_limit_is_refused(start_stack: StartStack) -> None:
    async with start_stack(max_body_bytes=2048) as stack:
        answer = await stack.request("POST", "/conversations", {"title": "x" * 3000})
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


async def test_tokens_that_are_missing_forged_expired_or_of_an_ended_login_let_nobody_in(stack: Stack) -> None:
    path = "/v1/conversations"
    session = uuid7()
    good = stack.store.token(EDITOR, session)
    forged = UserTokenIssuer(SigningKey.generate(), "remit", "remit").issue(EDITOR, session)[0]
    issuer = UserTokenIssuer(stack.store.key, "remit", "remit")
    expired = issuer.issue(EDITOR, session, now=datetime(2020, 1, 1, tzinfo=UTC))[0]

    async def code(token: str | None) -> tuple[int, str | None]:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        answer = await stack.http.get(path, headers=headers)
        return answer.status_code, answer.json().get("code")

    assert await code(good) == (200, None)
    assert await code(None) == (401, "token_missing")
    assert await code(forged) == (401, "token_invalid")
    assert await code("x.y.z") == (401, "token_invalid")
    assert await code(expired) == (401, "token_expired")
    stack.store.ended.add(session)
    assert await code(good) == (401, "token_invalid")


async def test_login_passes_through_to_the_store(stack: Stack) -> None:
    answer = await stack.http.post("/v1/auth/login", json={"username": "editor", "password": PASSWORD})
    assert answer.status_code == 200
    tokens = answer.json()
    listed = await stack.http.get("/v1/conversations", headers={"Authorization": f"Bearer {tokens['accessToken']}"})
    assert listed.status_code == 200
    wrong = await stack.http.post("/v1/auth/login", json={"username": "editor", "password": "wrong"})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "login_failed")
    missing = await stack.http.get("/v1/auth/me")
    assert (missing.status_code, missing.json()["code"]) == (401, "token_missing")


async def test_create_rename_list_and_page(stack: Stack) -> None:
    made = [await stack.conversation(title=f"No {number}") for number in range(3)]
    first = (await stack.request("GET", "/conversations?limit=2")).json()
    assert [item["id"] for item in first["conversations"]] == [str(made[2]), str(made[1])]
    second = (await stack.request("GET", f"/conversations?limit=2&cursor={first['nextCursor']}")).json()
    assert [item["id"] for item in second["conversations"]] == [str(made[0])]
    assert second["nextCursor"] is None
    renamed = await stack.request("PATCH", f"/conversations/{made[0]}", {"title": "  Other\n name "})
    assert renamed.json()["title"] == "Other name"


async def test_the_first_message_names_an_untitled_conversation(stack: Stack) -> None:
    conversation = await stack.conversation()
    await stack.say(conversation, "Translate the page about swimming pools " * 4)
    title = (await stack.request("GET", f"/conversations/{conversation}")).json()["title"]
    assert title.startswith("Translate the page about swimming pools")
    assert len(title) <= 60


async def test_the_same_key_posts_one_message_and_starts_one_run(stack: Stack) -> None:
    conversation = await stack.conversation()
    path, key = f"/conversations/{conversation}/messages", {"Idempotency-Key": "k1"}
    first = await stack.request("POST", path, {"content": "Hello"}, headers=key)
    again = await stack.request("POST", path, {"content": "Hello"}, headers=key)
    assert first.status_code == again.status_code == 202
    assert first.json()["message"]["id"] == again.json()["message"]["id"]
    other = await stack.request("POST", path, {"content": "Other"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert len((await stack.messages(conversation))["messages"]) == 1
    assert len(stack.runtime.runs) == 1


@pytest.mark.req("T-27")
async def test_a_start_whose_answer_is_lost_is_sent_again_and_makes_one_run(stack: Stack) -> None:
    stack.runtime.lose_answers = 1
    conversation = await stack.conversation()
    answer = await stack.request("POST", f"/conversations/{conversation}/messages", {"content": "Hello"})
    assert (answer.status_code, answer.json()["status"]) == (202, "starting")
    assert len(stack.runtime.runs) == 1
    await make_due(stack)
    assert await stack.services.starter.retry_due() == 1
    assert stack.runtime.calls["start"] == 2
    assert len(stack.runtime.runs) == 1
    poll = await stack.messages(conversation)
    assert poll["conversation"]["status"] == "running"
    assert poll["messages"][0]["run"] == str(stack.runtime.only()[0])


async def make_due(stack: Stack, ago: float = 0) -> None:
    async with stack.database.unit_of_work() as session:
        await session.execute(
            text("UPDATE run_start SET next_attempt = now(), created_at = created_at - make_interval(secs => :ago)"),
            {"ago": ago},
        )


async def test_a_runtime_that_stays_away_fails_the_turn_and_keeps_the_message(stack: Stack) -> None:
    stack.runtime.refuse["start"] = BrokenError()
    conversation = await stack.conversation()
    answer = await stack.request("POST", f"/conversations/{conversation}/messages", {"content": "Hello"})
    assert (answer.status_code, answer.json()["status"]) == (202, "starting")
    await make_due(stack, 3600)
    await stack.services.starter.retry_due()
    poll = await stack.messages(conversation)
    assert (poll["conversation"]["status"], poll["errorCode"]) == ("failed", "internal_error")
    assert [message["content"] for message in poll["messages"]] == ["Hello"]
    # The turn is over: the next message is taken, and its run is told that the outcome is not known.
    del stack.runtime.refuse["start"]
    _, run = await stack.say(conversation, "Again")
    told = [message.content for message in run.start.messages if message.role == "assistant"]
    assert len(told) == 1
    assert "It is not known how this step ended." in told[0]


async def test_a_run_whose_start_was_given_up_still_shows_what_it_writes(stack: Stack) -> None:
    stack.store.show(visible("pages", 3))
    stack.runtime.lose_answers = 9
    conversation = await stack.conversation()
    await stack.request("POST", f"/conversations/{conversation}/messages", {"content": "Hello"})
    await make_due(stack, 3600)
    await stack.services.starter.retry_due()
    assert (await stack.messages(conversation))["conversation"]["status"] == "failed"
    run_id, run = stack.runtime.only()
    run.steps.whole_write("update_page_metadata", "c1", "pages", 3)
    await stack.finish(run_id, "I have updated the page.")
    poll = await stack.messages(conversation)
    assert (poll["conversation"]["status"], poll["changesAvailable"]) == ("failed", True)
    assert [row["key"] for row in (await stack.changes(conversation))["rows"]] == ["pages:3"]


async def test_a_refused_start_fails_the_turn_at_once(stack: Stack) -> None:
    stack.runtime.refuse["start"] = NotWaitingError()
    conversation = await stack.conversation()
    answer = await stack.request("POST", f"/conversations/{conversation}/messages", {"content": "Hello"})
    assert (answer.status_code, answer.json()["status"]) == (202, "failed")
    assert answer.json()["errorCode"] == "run_not_waiting"


async def test_without_the_runtime_no_conversation_begins(stack: Stack) -> None:
    stack.runtime.refuse["configurations"] = BrokenError()
    answer = await stack.request("POST", "/conversations", {})
    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")


@pytest.mark.req("R-060", "R-062", "R-063", "R-064")
async def test_the_page_is_named_as_data_and_only_while_the_owner_may_see_it(stack: Stack) -> None:
    stack.store.show(visible("pages", 12, 'Pool "Nord"'))
    conversation = await stack.conversation()

    async def prompt(content: str, page: int) -> str:
        body = {"content": content, "viewContext": {"pageId": page, "languageId": 1}}
        answer = await stack.request("POST", f"/conversations/{conversation}/messages", body)
        assert answer.status_code == 202
        run_id, run = stack.runtime.only()
        await stack.finish(run_id)
        assert run.start.messages[0].role == "system"
        return run.start.messages[0].content

    selected = await prompt("one", 12)
    assert selected.startswith('The editor has selected page 12, titled "Pool \\"Nord\\""')
    last = await prompt("two", 0)
    assert last.startswith("No page is selected now. The page selected last in this conversation was page 12")
    assert await prompt("three", 0) == last
    stack.store.hide(EDITOR, "pages", 12)
    assert await prompt("four", 0) == "No page is selected."


async def test_messages_are_paged_by_sequence(stack: Stack) -> None:
    conversation = await stack.conversation()
    for number in range(3):
        run_id, _ = await stack.say(conversation, f"m{number}")
        await stack.finish(run_id, f"a{number}")
    first = await stack.messages(conversation, query="?limit=4")
    assert [m["sequence"] for m in first["messages"]] == [1, 2, 3, 4]
    rest = await stack.messages(conversation, query=f"?after={first['nextCursor']}")
    assert [m["content"] for m in rest["messages"]] == ["m2", "a2"]
    assert rest["nextCursor"] is None


async def test_a_full_conversation_takes_no_message(start_stack: StartStack) -> None:
    async with start_stack(max_messages=2) as stack:
        conversation = await stack.conversation()
        run_id, _ = await stack.say(conversation)
        await stack.finish(run_id)
        answer = await stack.request("POST", f"/conversations/{conversation}/messages", {"content": "More"})
        assert (answer.status_code, answer.json()["code"]) == (409, "conversation_full")


async def test_deleting_removes_everything_of_a_conversation_and_late_events_bring_nothing_back(stack: Stack) -> None:
    empty = await rows(stack)
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    busy = await stack.request("DELETE", f"/conversations/{conversation}")
    assert (busy.status_code, busy.json()["code"]) == (409, "turn_running")
    await stack.finish(run_id)
    assert (await stack.request("DELETE", f"/conversations/{conversation}")).status_code == 204
    run.steps.tool("update_page_metadata", "c1")
    await stack.publish(run_id)
    await stack.settle()
    left = await rows(stack)
    ignored = {"inbox", "inbox_stream", "idempotency_key"}
    assert {name: n for name, n in left.items() if name not in ignored} == {
        name: n for name, n in empty.items() if name not in ignored
    }


async def test_cancel_asks_the_runtime(stack: Stack) -> None:
    conversation = await stack.conversation()
    await stack.say(conversation)
    assert (await stack.request("POST", f"/conversations/{conversation}/cancel")).status_code == 202
    assert stack.runtime.calls["cancel"] == 1


async def test_operations_routes_and_documentation(stack: Stack) -> None:
    assert (await stack.http.get("/healthz")).status_code == 200
    assert (await stack.http.get("/readyz")).json()["checks"] == {"database": "ok"}
    assert "remit_http_requests_total" in (await stack.http.get("/metrics")).text
    document = (await stack.http.get("/openapi.json")).json()
    post = document["paths"]["/v1/conversations/{conversation_id}/messages"]["post"]
    assert {"202", "400", "401", "404", "409", "413", "422", "503"} <= set(post["responses"])
    assert "turn_running" in post["responses"]["409"]["description"]
