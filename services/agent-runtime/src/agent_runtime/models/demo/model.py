"""The demo model behind the port: asks for the right tools, then sums up what came back."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from agent_runtime.models.demo.instructions import Instruction, language_names, read_instruction
from agent_runtime.models.demo.summary import HELP, summary
from agent_runtime.models.port import Message, ModelReply, ModelRequest, RequestedCall

Call = tuple[str, dict[str, Any]]


class DemoModel:
    """Deterministic: the same transcript gives the same reply. It invents no text and understands a few sentences."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Plan, or sum up."""
        asked, results = current_turn(request.messages)
        instruction = read_instruction(asked)
        offered = {tool.name for tool in request.tools}
        calls = plan_calls(instruction, results) if offered else []
        missing = sorted({name for name, _ in calls} - offered)
        if missing:
            return _reply(request, _missing_tools(missing, instruction.german))
        if calls:
            return _reply(request, "", calls)
        if instruction.kind == "unknown":
            return _reply(request, HELP["de" if instruction.german else "en"])
        return _reply(request, summary(instruction, results))

    async def close(self) -> None:
        """Holds nothing."""


def current_turn(messages: tuple[Message, ...]) -> tuple[str, list[tuple[RequestedCall, Message]]]:
    """The last thing a person said, and every call since with its result, in order."""
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    if last < 0:
        return "", []
    results: list[tuple[RequestedCall, Message]] = []
    pending: dict[str, RequestedCall] = {}
    for message in messages[last + 1 :]:
        if message.role == "assistant":
            pending = {call.call_id: call for call in message.calls}
        elif message.role == "tool" and message.call_id in pending:
            results.append((pending[message.call_id], message))
    return messages[last].content, results


def plan_calls(instruction: Instruction, results: list[tuple[RequestedCall, Message]]) -> list[Call]:
    """The calls still to be made for an instruction; empty when there is nothing left to ask for."""
    facts = instruction.facts
    if instruction.kind == "translate":
        return _translate(facts, results)
    if instruction.kind == "move_element" and "after" in facts:
        return _moved_after(facts, results)
    if results:
        return []
    single: dict[str, Any] = {
        "set_page": lambda: ("update_page_metadata", {"uid": facts["page"], facts["field"]: facts["value"]}),
        "set_element": lambda: (
            "update_content_element",
            {"uid": facts["element"], "fields": {facts["field"]: facts["value"]}},
        ),
        "add": lambda: ("create_content_element_draft", {"page": facts["page"], "bodytext": facts["value"]}),
        "move_page": lambda: ("move_page", {"uid": facts["uid"], "parent": facts["page"]}),
        "copy": lambda: ("copy_record", {**_named(facts), "targetPage": facts["page"]}),
        "delete": lambda: ("delete_record", _deleted(facts)),
        "list_pages": lambda: ("get_pagetree", {"rootUid": 0, "depth": 5}),
        "read_page": lambda: ("get_page_content", {"uid": facts["page"]}),
        "clear_cache": lambda: ("clear_cache", {}),
        "move_element": lambda: (
            "move_content_element",
            {"uid": facts["element"], "targetPage": facts["page"]},
        ),
    }
    make = single.get(instruction.kind)
    return [make()] if make is not None else []


def _named(facts: dict[str, Any]) -> dict[str, Any]:
    if "element" in facts:
        return {"table": "tt_content", "uid": facts["element"]}
    return {"table": "pages", "uid": facts["uid"]}


def _deleted(facts: dict[str, Any]) -> dict[str, Any]:
    named = _named(facts)
    return {**named, "includeSubpages": True} if facts.get("branch") else named


def _moved_after(facts: dict[str, Any], results: list[tuple[RequestedCall, Message]]) -> list[Call]:
    """The sentence names no page, so the anchor is read first."""
    if not results:
        return [("read_record", {"table": "tt_content", "uid": facts["after"]})]
    anchor = next((_json(message) for call, message in results if call.name == "read_record"), {}).get("record", {})
    if len(results) > 1 or not anchor.get("pid"):
        return []
    arguments = {"uid": facts["element"], "targetPage": anchor["pid"], "afterContentUid": facts["after"]}
    return [("move_content_element", arguments)]


def _translate(facts: dict[str, Any], results: list[tuple[RequestedCall, Message]]) -> list[Call]:
    if not results:
        return [("list_languages", {}), ("get_page_content", {"uid": facts["page"]})]
    if any(call.name == "create_translation_draft" for call, _ in results):
        return []
    read = {call.name: _json(message) for call, message in results if not message.is_error}
    language = find_language(read.get("list_languages", {}), facts["language"])
    content = read.get("get_page_content", {})
    if language is None or "page" not in content:
        return []
    calls: list[Call] = []
    if not any(row.get("sys_language_uid") == language for row in content.get("translations", [])):
        calls.append(("create_translation_draft", {"table": "pages", "uid": facts["page"], "language": language}))
    calls += [
        ("create_translation_draft", {"table": "tt_content", "uid": element["uid"], "language": language})
        for element in content.get("elements", [])
        if element.get("sys_language_uid", 0) == 0
    ]
    return calls


def find_language(sites: dict[str, Any], word: str) -> int | None:
    """The id of a language by its name in either tongue, its own title or its locale (``de``, ``de-DE``)."""
    names = language_names(word)
    for site in sites.get("sites", []):
        for entry in site.get("languages", []):
            title = str(entry.get("title", "")).lower()
            locale = str(entry.get("locale", "")).lower()
            tag = locale.partition(".")[0].replace("_", "-")
            if title in names or tag in names or tag.split("-")[0] in names:
                number = entry.get("languageId", entry.get("id"))
                return int(number) if number is not None else None
    return None


def _json(message: Message) -> dict[str, Any]:
    try:
        value = json.loads(message.content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _reply(request: ModelRequest, content: str, calls: list[Call] | None = None) -> ModelReply:
    seed = str(len(request.messages))
    made = tuple(
        RequestedCall(call_id=_call_id(seed, position, name), name=name, arguments=arguments)
        for position, (name, arguments) in enumerate(calls or [])
    )
    read = sum(len(message.content) for message in request.messages) // 4
    return ModelReply(
        content=content,
        calls=made,
        finish_reason="tool_call" if made else "stop",
        input_tokens=read,
        output_tokens=len(content) // 4 + 20 * len(made),
    )


def _call_id(seed: str, position: int, name: str) -> str:
    return "demo_" + hashlib.sha256(f"{seed}:{position}:{name}".encode()).hexdigest()[:16]


def _missing_tools(names: list[str], german: bool) -> str:
    listed = ", ".join(names)
    if german:
        return f"Dafür bräuchte ich ein Werkzeug, das mir hier nicht zur Verfügung steht: {listed}."
    return f"I would need a tool that is not available to me here: {listed}."
