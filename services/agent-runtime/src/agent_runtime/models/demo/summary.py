"""What the demo model says at the end: only what the results say."""

from __future__ import annotations

import json
from typing import Any

from agent_runtime.models.demo.instructions import Instruction
from agent_runtime.models.port import Message, RequestedCall

HELP = {
    "en": (
        "I am the demo model: a planner without any AI. I understand plain sentences like these: "
        "“translate page 12 to German”, “set the title of page 3 to …”, “change the header of element 5 to …”, "
        "“add a text '…' to page 4”, “move element 7 to page 3”, “move element 7 after 9”, “move page 8 below page 3”, "
        "“copy element 7 to page 3”, “delete element 7”, “list pages”, “what is on page 4”, “clear the cache”."
    ),
    "de": (
        "Ich bin das Demo-Modell: ein Planer ganz ohne KI. Ich verstehe einfache Sätze wie diese: "
        "„übersetze Seite 12 ins Deutsche“, „setze den Titel von Seite 3 auf …“, „ändere die Überschrift von Element 5 in …“, "
        "„füge einen Text '…' zu Seite 4“, „verschiebe Element 7 auf Seite 3“, „verschiebe Element 7 hinter 9“, "
        "„verschiebe Seite 8 unter Seite 3“, „kopiere Element 7 auf Seite 3“, „lösche Element 7“, „zeige die Seiten“, "
        "„was ist auf Seite 4“, „leere den Cache“."
    ),
}
MAX_LINES = 60
WORDS: dict[str, dict[str, str]] = {
    "en": {
        "done": "{ok} of {all} steps were carried out.",
        "error": "Not carried out: {text}",
        "pages": "You can see these pages:",
        "content": "Page {uid} “{title}” has {count} content elements:",
        "nothing": "There is nothing to do.",
        "language": "I do not find that language in any of the sites.",
        "declined": "declined: {name}",
        "hidden": " (hidden)",
    },
    "de": {
        "done": "{ok} von {all} Schritten wurden ausgeführt.",
        "error": "Nicht ausgeführt: {text}",
        "pages": "Diese Seiten sind für Sie sichtbar:",
        "content": "Seite {uid} „{title}“ hat {count} Inhaltselemente:",
        "nothing": "Es gibt nichts zu tun.",
        "language": "Diese Sprache finde ich in keiner der Websites.",
        "declined": "abgelehnt: {name}",
        "hidden": " (verborgen)",
    },
}
READERS = frozenset({"get_pagetree", "get_page_content", "list_languages", "read_record"})


def summary(instruction: Instruction, results: list[tuple[RequestedCall, Message]]) -> str:
    """A text for the person: what was carried out, each error named."""
    words = WORDS["de" if instruction.german else "en"]
    written = [(call, message) for call, message in results if call.name not in READERS]
    if written:
        return _written(written, words)
    failed = [message for _, message in results if message.is_error]
    if failed:
        return "\n".join(words["error"].format(text=_plain(message)) for message in failed)
    if not results:
        return words["nothing"]
    if instruction.kind == "translate":
        found_page = any(call.name == "get_page_content" for call, _ in results)
        return words["language"] if found_page else words["nothing"]
    call, message = results[-1]
    return _read(call, message, words)


def _written(written: list[tuple[RequestedCall, Message]], words: dict[str, str]) -> str:
    done = [message for _, message in written if not message.is_error]
    lines = [words["done"].format(ok=len(done), all=len(written))]
    for call, message in written:
        if not message.is_error:
            lines.append(f"- {message.content}")
        elif "approval_denied" in message.content:
            lines.append("- " + words["declined"].format(name=_call_words(call)))
        else:
            lines.append("- " + words["error"].format(text=_plain(message)))
    return "\n".join(lines)


def _call_words(call: RequestedCall) -> str:
    arguments: dict[str, Any] = call.arguments if isinstance(call.arguments, dict) else {}
    record = (
        f"{arguments['table']}:{arguments['uid']}" if {"table", "uid"} <= arguments.keys() else arguments.get("uid", "")
    )
    return f"{call.name} {record}".strip()


def _plain(message: Message) -> str:
    return message.content.removeprefix("Error: ")


def _read(call: RequestedCall, message: Message, words: dict[str, str]) -> str:
    try:
        value = json.loads(message.content)
    except ValueError:
        return message.content
    if call.name == "get_pagetree":
        lines = [words["pages"]]
        for page in value.get("pages", [])[:MAX_LINES]:
            mark = words["hidden"] if page.get("hidden") else ""
            lines.append(f"{'  ' * int(page.get('level') or 0)}- {page.get('uid')}: {page.get('title')}{mark}")
        return "\n".join(lines)
    if call.name == "get_page_content" and "page" in value:
        elements = value.get("elements", [])
        page = value["page"]
        lines = [words["content"].format(uid=page.get("uid"), title=page.get("title"), count=len(elements))]
        for element in elements[:MAX_LINES]:
            mark = words["hidden"] if element.get("hidden") else ""
            lines.append(f"- {element.get('uid')}: {element.get('header') or element.get('CType')}{mark}")
        return "\n".join(lines)
    return message.content
