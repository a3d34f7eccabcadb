"""What a person reads on a card is in the language of the run's owner (T-30, P-02, S-24)."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import agent_runtime
import pytest
from agent_runtime.approvals.card import WITHHELD
from agent_runtime.approvals.preparation import NO_PREVIEW, PREVIEW_FAILED
from agent_runtime.approvals.turns import MORE_LINES
from agent_runtime.models.demo.model import find_language
from agent_runtime.questions.pending import GO_ON, READY, WAITS_FOR
from agent_runtime.tools.contracts import NOT_FOUND, PlanRefused, filled
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import StartStack
from service_kit.texts import Texts

NAME = re.compile(r"\{(\w+)\}")
SPOKEN = {"say", "PlanRefused"}


def messages_in(source_text: str) -> set[str]:
    """Texts given to ``say`` and ``PlanRefused``, and constants of the module those calls may name."""
    tree = ast.parse(source_text)
    named: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named[node.targets[0].id] = {text for text in _texts(node.value) if " " in text}
    found: set[str] = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args and _called(call) in SPOKEN:
            for part in ast.walk(call.args[0]):
                if isinstance(part, ast.Name):
                    found |= named.get(part.id, set())
            found |= _texts(call.args[0])
    for part in ast.walk(tree):  # counted = "…" if … else "…", said afterwards
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.IfExp):
            found |= {text for text in _texts(part.value) if NAME.search(text)}
    return found


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _texts(node: ast.AST) -> set[str]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)} - {
        "pages",
        "tt_content",
    }


def test_every_line_of_a_card_has_its_german_text() -> None:
    folder = Path(agent_runtime.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in sorted((folder / "tools" / "builtin").glob("*.py"))]
    messages = set().union(*(messages_in(text) for text in sources))
    messages |= {WITHHELD, NO_PREVIEW, PREVIEW_FAILED, MORE_LINES, GO_ON, READY, WAITS_FOR, NOT_FOUND}
    assert len(messages) > 45
    texts = Texts(["agent_runtime"])
    missing = {message for message in messages if texts.text(message, "de") == message}
    assert missing == set()
    wrong = {text for text in messages if set(NAME.findall(text)) != set(NAME.findall(texts.text(text, "de")))}
    assert wrong == set()


def test_a_brace_inside_a_value_is_the_value_s_own() -> None:
    assert filled("{a} and {b}, {c}", {"a": "{b}", "b": 2}) == "{b} and 2, {c}"
    assert PlanRefused("No {what}. Nothing was changed.", what="{luck}").text == "No {luck}. Nothing was changed."


CALLS: dict[str, dict[str, Any]] = {
    "update_page_metadata": {"uid": 3, "title": "Stadtmuseum"},
    "create_translation_draft": {"table": "tt_content", "uid": 5, "language": 1},
    "move_content_element": {"uid": 5, "targetPage": 4, "afterContentUid": 9},
    "delete_record": {"table": "pages", "uid": 1},
}


@pytest.mark.req("T-30", "P-02")
@pytest.mark.parametrize(
    ("locale", "lines"),
    [
        (
            "de",
            [
                "Seite [Museum] (pages:3): 1 Feld",
                "Das Inhaltselement [Opening hours] (tt_content:5) übersetzen",
                "Inhaltselement [Opening hours] (tt_content:5)",
                "Die Seite hat 2 Unterseiten; mit includeSubpages werden sie mitgelöscht. Es wurde nichts geändert.",
            ],
        ),
        (
            "en",
            [
                "Page [Museum] (pages:3): 1 field",
                "Translate the content element [Opening hours] (tt_content:5)",
                "Content element [Opening hours] (tt_content:5)",
                "The page has 2 subpages; say includeSubpages to delete them too. Nothing was changed.",
            ],
        ),
    ],
)
async def test_a_card_in_the_language_of_its_owner(start_stack: StartStack, locale: str, lines: list[str]) -> None:
    model = ScriptedModel([asks(*CALLS.items()), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("go", actor={"locale": locale})
        card = (await stack.run_to_pause(run_id))["pending"]
        assert [call["previewLines"][0] for call in card["calls"]] == lines
        # The same in a workspace: the lines stay prose, the new facts are fields of their own.
        draft = await stack.start("go", actor={"locale": locale, "workspaceId": 2})
        other = (await stack.run_to_pause(draft))["pending"]
        assert [call["previewLines"] for call in other["calls"]] == [call["previewLines"] for call in card["calls"]]
        assert [call["workspaceId"] for call in other["calls"]] == [2] * 4
        assert [call["language"] for call in other["calls"]] == [None, 1, None, None]
        # The approval plans in the same language, so the card is the same, and the model reads English.
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        await stack.run_to_pause(run_id)
        told = [message.content for message in model.requests[-1].messages if message.role == "tool"]
        assert told[0].startswith("Saved: title of")
        assert told[3].startswith("Error: The page has 2 subpages")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("German", 1),
        ("Deutsch", 1),
        ("de", 1),
        ("de-DE", 1),
        ("de_DE", 1),
        ("Amtssprache", 2),
        ("nl-BE", 2),
        ("fr", None),
    ],
)
def test_a_language_is_found_by_title_or_locale(word: str, found: int | None) -> None:
    languages = [
        {"languageId": 0, "title": "English", "locale": "en_GB.UTF-8"},
        {"languageId": 1, "title": "Bürgerseiten", "locale": "de_DE.UTF-8"},
        {"languageId": 2, "title": "Amtssprache", "locale": "nl-BE"},
        {"languageId": 3, "title": "Old", "fallbacks": []},
    ]
    assert find_language({"sites": [{"languages": languages}]}, word) == found
