"""The port, the demo planner, and the adapter of real providers (DESIGN 7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_runtime.configurations.models import Configuration
from agent_runtime.configurations.registry import ConfigurationFileError, ConfigurationRegistry, read_file
from agent_runtime.deps import check_models
from agent_runtime.models.demo.instructions import read_instruction
from agent_runtime.models.demo.model import DemoModel, find_language
from agent_runtime.models.factory import build_model
from agent_runtime.models.port import (
    Message,
    ModelFailed,
    ModelNotConfigured,
    ModelRequest,
    RequestedCall,
    ToolSpec,
    unique_calls,
)
from agent_runtime.models.pydantic_ai import from_provider, to_provider
from agent_runtime.tools.builtin import builtin_tools
from fastapi import FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelRequest as ProviderRequest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart, ToolReturnPart
from runtime_support.stack import RuntimeStack, StartStack, serving
from starlette.responses import JSONResponse

SENTENCES = [
    ("translate page 12 to German", "translate", {"page": 12, "language": "German"}),
    ("Please translate the page 12 into Deutsch.", "translate", {"page": 12, "language": "Deutsch"}),
    ("Übersetze Seite 12 ins Deutsche", "translate", {"page": 12, "language": "Deutsche"}),
    ("set the title of page 3 to City museum", "set_page", {"page": 3, "field": "title", "value": "City museum"}),
    ("Set the title of page 3 to 'A: B'", "set_page", {"page": 3, "field": "title", "value": "A: B"}),
    (
        "Setze den Titel von Seite 3 auf „Stadtmuseum“",
        "set_page",
        {"page": 3, "field": "title", "value": "Stadtmuseum"},
    ),
    ("change the header of element 5 to Hi", "set_element", {"element": 5, "field": "header", "value": "Hi"}),
    ("set the text of content element 5 to Hi there", "set_element", {"element": 5, "field": "bodytext"}),
    (
        "Ändere die Überschrift von Element 5 in Hallo",
        "set_element",
        {"element": 5, "field": "header", "value": "Hallo"},
    ),
    ("add a text 'Open on Sunday' to page 4", "add", {"page": 4, "value": "Open on Sunday"}),
    ("Füge einen Text 'Sonntags offen' zu Seite 4", "add", {"page": 4, "value": "Sonntags offen"}),
    ("move element 7 to page 3", "move_element", {"element": 7, "page": 3}),
    ("move element 7 after 9", "move_element", {"element": 7, "after": 9}),
    ("move element 7 after element 9", "move_element", {"element": 7, "after": 9}),
    ("verschiebe Element 7 hinter 9", "move_element", {"element": 7, "after": 9}),
    ("verschiebe Element 7 auf Seite 3", "move_element", {"element": 7, "page": 3}),
    ("move page 8 below page 3", "move_page", {"uid": 8, "page": 3}),
    ("delete element 7", "delete", {"element": 7}),
    ("lösche Seite 3", "delete", {"uid": 3}),
    ("delete page 3 with subpages", "delete", {"uid": 3, "branch": True}),
    ("copy element 7 to page 3", "copy", {"element": 7, "page": 3}),
    ("list pages", "list_pages", {}),
    ("zeige die Seiten", "list_pages", {}),
    ("what is on page 4?", "read_page", {"page": 4}),
    ("Was steht auf Seite 4?", "read_page", {"page": 4}),
    ("clear the cache", "clear_cache", {}),
    ("write me a poem", "unknown", {}),
]
TOOLS = tuple(ToolSpec(name=tool.name, description="", parameters={}) for tool in builtin_tools())


@pytest.mark.parametrize(("sentence", "kind", "facts"), SENTENCES)
def test_plain_instructions_are_understood(sentence: str, kind: str, facts: dict[str, Any]) -> None:
    found = read_instruction(sentence)
    assert found.kind == kind
    assert facts.items() <= found.facts.items()


@given(st.text(max_size=300))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    read_instruction(text)


async def test_the_demo_model_says_what_it_understands() -> None:
    for text, word in (("write a poem", "without any AI"), ("schreibe bitte ein Gedicht", "ohne KI")):
        reply = await DemoModel().complete(ModelRequest(messages=(Message(role="user", content=text),), tools=TOOLS))
        assert word in reply.content
        assert not reply.calls
    missing = await DemoModel().complete(
        ModelRequest(messages=(Message(role="user", content="delete element 7"),), tools=TOOLS[:1])
    )
    assert "delete_record" in missing.content


def test_languages_are_found_by_name_title_or_locale() -> None:
    for entry in ({"languageId": 1, "title": "Deutsch"}, {"languageId": 1, "title": "x", "locale": "de_DE.UTF-8"}):
        sites = {"sites": [{"languages": [{"languageId": 0, "title": "English", "locale": "en"}, entry]}]}
        assert find_language(sites, "German") == 1
        assert find_language(sites, "Englisch") == 0
        assert find_language(sites, "Klingon") is None


@pytest.mark.req("P-01")
async def test_the_demo_translates_a_page_with_its_elements(stack: RuntimeStack) -> None:
    run_id = await stack.start("translate page 3 to German")
    card = (await stack.run_to_pause(run_id))["pending"]
    assert [(call["arguments"]["table"], call["arguments"]["uid"]) for call in card["calls"]] == [
        ("pages", 3),
        ("tt_content", 5),
        ("tt_content", 6),
    ]
    assert {call["language"] for call in card["calls"]} == {1}
    decisions = {call["callId"]: "approve" for call in card["calls"]}
    decisions[card["calls"][2]["callId"]] = "decline"
    assert (await stack.decide(run_id, decisions=decisions)).status_code == 202
    run = await stack.run_to_pause(run_id)
    assert run["status"] == "completed"
    assert "2 of 3 steps" in run["finalContent"]
    assert "declined: create_translation_draft tt_content:6" in run["finalContent"]
    again = await stack.start("translate page 3 to German")
    card = (await stack.run_to_pause(again))["pending"]
    # The page has its translation by now; of the elements, one asks for what cannot be done twice.
    assert [call["arguments"]["uid"] for call in card["calls"]] == [5, 6]


async def test_the_demo_moves_behind_an_element_it_has_to_look_up(stack: RuntimeStack) -> None:
    run_id = await stack.start("move element 5 after 9")
    await stack.run_to_pause(run_id)
    await stack.decide(run_id, decision="approve")
    run = await stack.run_to_pause(run_id)
    assert "Moved" in run["finalContent"]
    assert stack.store.rows.tables["tt_content"][5]["pid"] == 4


def test_call_ids_are_unique_within_a_turn() -> None:
    calls = unique_calls(tuple(RequestedCall(call_id=name, name="t") for name in ("a", "a", "", "a-2")))
    assert len({call.call_id for call in calls}) == 4
    assert calls[1].provider_id == "a"


def test_what_a_provider_sent_goes_back_unchanged() -> None:
    response = ModelResponse(
        parts=[
            ThinkingPart(content="hm", signature="opaque-signature"),
            TextPart(content="I will"),
            ToolCallPart(tool_name="get_pagetree", args='{"depth": 2}', tool_call_id="x1"),
            ToolCallPart(tool_name="get_pagetree", args="not json", tool_call_id="x2"),
        ],
        model_name="m",
    )
    reply = from_provider(response)
    assert [call.arguments for call in reply.calls] == [{"depth": 2}, "not json"]
    stored = Message.model_validate_json(
        Message(role="assistant", content=reply.content, calls=reply.calls, opaque=reply.opaque).model_dump_json()
    )
    told = Message(role="tool", content="pages", call_id="x1", name="get_pagetree")
    back = to_provider((Message(role="system", content="s"), Message(role="user", content="u"), stored, told))
    assert back[1] == response
    assert isinstance(back[0], ProviderRequest)
    assert len(back[0].parts) == 2
    assert isinstance(back[2], ProviderRequest)
    part = back[2].parts[0]
    assert isinstance(part, ToolReturnPart)
    assert (part.tool_call_id, part.content) == ("x1", "pages")


def completions(answers: list[tuple[int, dict[str, Any]]], seen: list[dict[str, Any]]) -> FastAPI:
    """A server of the OpenAI kind that answers what it is told to."""
    application = FastAPI()

    @application.post("/v1/chat/completions")
    async def complete(request: Request) -> JSONResponse:
        seen.append(await request.json())
        status, answer = answers[min(len(seen), len(answers)) - 1]
        return JSONResponse(answer, status_code=status)

    return application


def completion(message: dict[str, Any], reason: str = "stop") -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


async def test_a_server_of_the_openai_kind_by_its_address(
    start_stack: StartStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    call = {"id": "k1", "type": "function", "function": {"name": "get_pagetree", "arguments": "{}"}}
    seen: list[dict[str, Any]] = []
    answers = [
        (200, completion({"content": None, "tool_calls": [call]}, "tool_calls")),
        (200, completion({"content": "ok"})),
    ]
    async with serving(completions(answers, seen)) as address:
        path = tmp_path / "c.toml"
        path.write_text(f"[configurations.local]\nmodel = 'openai:local'\nbase_url = '{address}/v1'\n")
        async with start_stack(configurations=path) as stack:
            run = await stack.run_to_pause(await stack.start("list pages", configuration="local"))
            assert (run["status"], run["finalContent"]) == ("completed", "ok")
            assert run["usage"] == {"rounds": 2, "inputTokens": 22, "outputTokens": 6}
    assert seen[1]["messages"][-1]["tool_call_id"] == "k1"
    assert "Town" in seen[1]["messages"][-1]["content"]
    assert {tool["function"]["name"] for tool in seen[0]["tools"]} >= {"get_pagetree", "move_page"}


@pytest.mark.req("T-24")
@pytest.mark.parametrize(("status", "passing"), [(401, False), (400, False), (429, True), (503, True)])
async def test_failures_of_a_provider_are_told_apart(
    status: int, passing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    seen: list[dict[str, Any]] = []
    async with serving(completions([(status, {"error": {"message": "no"}})], seen)) as address:
        model = build_model("openai:local", f"{address}/v1")
        with pytest.raises(ModelFailed) as failed:
            await model.complete(ModelRequest(messages=(Message(role="user", content="hi"),)))
        await model.close()
    assert failed.value.passing is passing


async def test_a_provider_that_is_not_there_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model = build_model("openai:local", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelFailed) as failed:
        await model.complete(ModelRequest(messages=(Message(role="user", content="hi"),)))
    await model.close()
    assert failed.value.passing


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("nobody:x", "nobody"),
        ("x", "provider"),
    ],
)
def test_a_model_that_cannot_be_used_stops_the_start(name: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelNotConfigured) as refused:
        build_model(name)
    assert word in str(refused.value)
    assert "model_not_configured" in str(refused.value)


async def test_the_start_checks_every_configuration(
    start_stack: StartStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    path = tmp_path / "c.toml"
    path.write_text("[configurations.real]\nmodel = 'anthropic:claude'\n")
    async with start_stack(configurations=path) as stack:
        with pytest.raises(ModelNotConfigured):
            check_models(stack.runtime)


def test_a_configuration_file_is_read_or_says_where_it_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"configurations": {"a": {"label": "A", "maxRounds": 7}}}))
    assert read_file(path)["a"] == Configuration(name="a", label="A", max_rounds=7)
    for text in ("{", "[]", '{"configurations": {"a": {"max_rounds": 21}}}', '{"configurations": {"a": {"other": 1}}}'):
        path.write_text(text)
        with pytest.raises(ConfigurationFileError) as refused:
            ConfigurationRegistry(path)
        assert str(path) in str(refused.value)
