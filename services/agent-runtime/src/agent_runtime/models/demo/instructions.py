"""Reading plain instructions in English and German. Pure: a text in, an instruction out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

QUOTE = "[\"'“”„‚‘’«»]"
PAGE = r"(?:page|seite|pages:)\s*#?\s*(?P<{0}>\d+)"
ELEMENT = r"(?:(?:content\s+)?element|inhaltselement|inhalt|content|tt_content:)\s*#?\s*(?P<{0}>\d+)"

PAGE_FIELDS = {
    "title": "title",
    "titel": "title",
    "subtitle": "subtitle",
    "untertitel": "subtitle",
    "description": "description",
    "beschreibung": "description",
    "keywords": "keywords",
    "abstract": "abstract",
    "zusammenfassung": "abstract",
    "navigation title": "nav_title",
    "navigationstitel": "nav_title",
}
ELEMENT_FIELDS = {
    "header": "header",
    "heading": "header",
    "headline": "header",
    "überschrift": "header",
    "subheader": "subheader",
    "text": "bodytext",
    "bodytext": "bodytext",
}
LANGUAGES = {
    "german": ("german", "deutsch", "de"),
    "deutsch": ("german", "deutsch", "de"),
    "deutsche": ("german", "deutsch", "de"),
    "english": ("english", "englisch", "en"),
    "englisch": ("english", "englisch", "en"),
    "englische": ("english", "englisch", "en"),
    "french": ("french", "français", "französisch", "fr"),
    "französisch": ("french", "français", "französisch", "fr"),
    "danish": ("danish", "dansk", "dänisch", "da"),
    "dänisch": ("danish", "dansk", "dänisch", "da"),
}


@dataclass(frozen=True)
class Instruction:
    """What was asked.

    Attributes:
        kind: ``translate``, ``set_page``, ``set_element``, ``add``, ``move_element``, ``move_page``, ``delete``,
            ``copy``, ``list_pages``, ``read_page``, ``clear_cache``, ``unknown``.
    """

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)
    german: bool = False


Reader = Callable[[str], "dict[str, Any] | None"]


def _pattern(*alternatives: str) -> list[re.Pattern[str]]:
    return [re.compile(text, re.IGNORECASE | re.DOTALL) for text in alternatives]


_PAGE_FIELD = "|".join(sorted(PAGE_FIELDS, key=len, reverse=True))
_ELEMENT_FIELD = "|".join(sorted(ELEMENT_FIELDS, key=len, reverse=True))
_VALUE = r"(?P<value>.+?)\s*$"
_ON = r"(?:\s+(?:of|on|in|von|der|des|auf|vom|für)(?:\s+(?:the|der|dem|des))?)\s+"

PATTERNS: list[tuple[str, list[re.Pattern[str]]]] = [
    (
        "translate",
        _pattern(
            rf"\btranslate\s+(?:the\s+)?{PAGE.format('page')}\s+(?:in)?to\s+(?P<language>\w+(?:-\w+)?)",
            rf"\b(?:übersetze|übersetz)\s+(?:bitte\s+)?(?:die\s+)?{PAGE.format('page')}\s+(?:ins?|nach|auf)\s+(?:das\s+)?"
            r"(?P<language>\w+(?:-\w+)?)",
        ),
    ),
    (
        "set_page",
        _pattern(
            rf"\b(?:set|change|update)\s+(?:the\s+)?(?P<field>{_PAGE_FIELD}){_ON}{PAGE.format('page')}\s+to\s*:?\s*{_VALUE}",
            rf"\b(?:setze|ändere)\s+(?:den|die|das)?\s*(?P<field>{_PAGE_FIELD}){_ON}{PAGE.format('page')}"
            rf"\s+(?:auf|zu|in)\s*:?\s*{_VALUE}",
        ),
    ),
    (
        "set_element",
        _pattern(
            rf"\b(?:set|change|update)\s+(?:the\s+)?(?P<field>{_ELEMENT_FIELD}){_ON}{ELEMENT.format('element')}"
            rf"\s+to\s*:?\s*{_VALUE}",
            rf"\b(?:setze|ändere)\s+(?:den|die|das)?\s*(?P<field>{_ELEMENT_FIELD}){_ON}{ELEMENT.format('element')}"
            rf"\s+(?:auf|zu|in)\s*:?\s*{_VALUE}",
        ),
    ),
    (
        "add",
        _pattern(
            rf"\b(?:add|create)\s+(?:a|an|the)?\s*(?:new\s+)?(?:text|element|content\s+element|paragraph)\s*"
            rf"(?P<quoted>{QUOTE}.+{QUOTE})\s+(?:to|on)\s+(?:the\s+)?{PAGE.format('page')}",
            rf"\b(?:füge|erstelle|lege)\s+(?:einen?|den|das|ein)?\s*(?:neuen?|neues)?\s*(?:text|element|inhaltselement|absatz)"
            rf"\s*(?P<quoted>{QUOTE}.+{QUOTE})\s+(?:zu|auf|zur|in)\s+(?:der\s+)?{PAGE.format('page')}",
        ),
    ),
    (
        "move_element",
        _pattern(
            rf"\bmove\s+(?:the\s+)?{ELEMENT.format('element')}\s+(?:after|behind|below)\s+(?:{ELEMENT.format('after')}|"
            r"#?(?P<bare>\d+))",
            rf"\bmove\s+(?:the\s+)?{ELEMENT.format('element')}\s+(?:on)?to\s+(?:the\s+)?{PAGE.format('page')}",
            rf"\b(?:verschiebe|bewege)\s+(?:das\s+)?{ELEMENT.format('element')}\s+(?:hinter|nach|unter)\s+"
            rf"(?:(?:das\s+)?{ELEMENT.format('after')}|#?(?P<bare>\d+))",
            rf"\b(?:verschiebe|bewege)\s+(?:das\s+)?{ELEMENT.format('element')}\s+(?:auf|zu|zur|nach)\s+(?:die\s+)?"
            rf"{PAGE.format('page')}",
        ),
    ),
    (
        "move_page",
        _pattern(
            rf"\bmove\s+(?:the\s+)?{PAGE.format('uid')}\s+(?:below|under|to|into)\s+(?:the\s+)?{PAGE.format('page')}",
            rf"\b(?:verschiebe|bewege)\s+(?:die\s+)?{PAGE.format('uid')}\s+(?:unter|zu|nach)\s+(?:die\s+)?"
            rf"{PAGE.format('page')}",
        ),
    ),
    (
        "copy",
        _pattern(
            rf"\bcopy\s+(?:the\s+)?(?:{ELEMENT.format('element')}|{PAGE.format('uid')})\s+(?:on)?to\s+(?:the\s+)?"
            rf"{PAGE.format('page')}",
            rf"\bkopiere\s+(?:die|das)?\s*(?:{ELEMENT.format('element')}|{PAGE.format('uid')})\s+(?:auf|zu|nach|unter)\s+"
            rf"(?:die\s+)?{PAGE.format('page')}",
        ),
    ),
    (
        "delete",
        _pattern(
            rf"\b(?:delete|remove|lösche|entferne)\s+(?:the\s+|die\s+|das\s+)?(?:{ELEMENT.format('element')}|"
            rf"{PAGE.format('uid')})(?P<branch>\s+(?:with|mit)\s+\w*(?:subpages|unterseiten))?"
        ),
    ),
    (
        "read_page",
        _pattern(
            rf"\b(?:what\s+is\s+on|what's\s+on|show|read|open)\s+(?:me\s+)?(?:the\s+)?{PAGE.format('page')}",
            rf"\b(?:was\s+(?:ist|steht)\s+auf|zeige?|lies)\s+(?:mir\s+)?(?:die\s+|der\s+)?{PAGE.format('page')}",
        ),
    ),
    (
        "list_pages",
        _pattern(
            r"\b(?:show|list)\s+(?:me\s+)?(?:all\s+|the\s+)*(?:pages|page\s*tree)",
            r"\b(?:zeige?|liste)\s+(?:mir\s+)?(?:alle\s+|die\s+|den\s+)*(?:seiten|seitenbaum)",
        ),
    ),
    ("clear_cache", _pattern(r"\b(?:clear|flush|empty|leere|lösche)\s+(?:the\s+|den\s+|alle\s+)*caches?")),
]

_GERMAN = re.compile(
    r"\b(seite|setze|ändere|übersetze?|füge|erstelle|verschiebe|bewege|lösche|entferne|kopiere|zeige?|liste|was|lies|leere|bitte)\b",
    re.IGNORECASE,
)


def read_instruction(text: str) -> Instruction:
    """The first instruction the text holds; ``unknown`` where none is recognised."""
    german = bool(_GERMAN.search(text))
    stripped = text.strip()
    for kind, patterns in PATTERNS:
        for pattern in patterns:
            match = pattern.search(stripped)
            if match is not None:
                facts = {name: value for name, value in match.groupdict().items() if value is not None}
                return Instruction(kind, _typed(kind, facts), german)
    return Instruction("unknown", {}, german)


def _typed(kind: str, facts: dict[str, str]) -> dict[str, Any]:
    typed: dict[str, Any] = {}
    for name, value in facts.items():
        if name in {"page", "element", "uid", "after", "bare"}:
            typed["after" if name == "bare" else name] = int(value)
        elif name == "field":
            names = PAGE_FIELDS if kind == "set_page" else ELEMENT_FIELDS
            typed[name] = names[value.lower()]
        elif name in {"value", "quoted"}:
            typed["value"] = unquoted(value)
        elif name == "branch":
            typed[name] = True
        else:
            typed[name] = value
    return typed


def unquoted(value: str) -> str:
    """The value without the quotation marks around it."""
    text = value.strip()
    if len(text) >= 2 and re.match(QUOTE, text[0]) and re.match(QUOTE, text[-1]):
        return text[1:-1].strip()
    return text.rstrip(".") if text.endswith(".") and not text.endswith("..") else text


def language_names(word: str) -> tuple[str, ...]:
    """Names and codes a language may have in a site's settings."""
    lowered = word.lower().replace("_", "-")
    return LANGUAGES.get(lowered, (lowered,))
