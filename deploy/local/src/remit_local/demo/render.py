"""What an editor sees, as text on a terminal: card, answer, change list, event."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

Json = Mapping[str, Any]
LIVE = "live"


def heading(console: Console, number: int, text: str) -> None:
    """A numbered step of the story."""
    console.print()
    console.print(f"[bold cyan]{number}[/] [bold]{escape(text)}[/]")


def said(console: Console, who: str, text: str) -> None:
    """A message of a person or the assistant."""
    console.print(Panel(Text(text), title=escape(who), title_align="left", border_style="dim"))


def card(console: Console, pending: Json) -> None:
    """The approval card: every call with its preview and what it will change."""
    parts: list[RenderableType] = []
    for number, call in enumerate(pending["calls"], 1):
        parts.append(call_lines(number, call))
    if pending.get("scopeSummary"):
        parts.append(Text(f"Limited to: {pending['scopeSummary']}", style="dim"))
    if pending.get("approveBlocked"):
        reasons = pending.get("approveBlockedTexts") or pending["approveBlockedReasons"]
        parts.append(Text(f"Cannot be approved: {' '.join(reasons)}", style="red"))
    elif pending.get("approveLabel"):
        parts.append(Text(pending["approveLabel"], style="bold"))
    console.print(Panel(Group(*parts), title="The assistant asks before it writes", border_style="yellow"))


def call_lines(number: int, call: Json) -> Text:
    """One call of a card."""
    text = Text()
    text.append(f"{number}. {call.get('actionLabel') or call['tool']}", style="bold")
    text.append(f"  ({call['tool']})\n", style="dim")
    for line in call.get("previewLines", ()):
        text.append(f"   {line}\n")
    for field in call.get("structured", ()):
        text.append(f"   {field['field']}: ", style="dim")
        text.append(f"{_short(field.get('current'))} → {_short(field.get('proposed'))}\n")
    for sentence in (call.get("workspaceSentence"), call.get("languageSentence"), *call.get("notices", ())):
        if sentence:
            text.append(f"   {sentence}\n", style="dim")
    for line in call.get("rehearsalLines", ()):
        text.append(f"   • {line}\n", style="green")
    return text


def changes(console: Console, listed: Json) -> None:
    """The change list with its refused writes and notes."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("", "record", "title", "page", "language", "facts"):
        table.add_column(column, overflow="fold")
    for row in listed["rows"]:
        table.add_row(
            str(row.get("action") or "written"),
            escape(f"{row['tableLabel']} {row['uid']}"),
            escape(row["title"]),
            escape(str(row.get("pageTitle") or "")),
            escape(_title(row.get("language"))),
            escape(", ".join(_facts(row))),
        )
    notes = Text()
    for refused in listed.get("refused", ()):
        notes.append(f"\nrefused: {refused['operation']} {refused['table']} ({refused['reason']})", style="red")
    for note in listed["notes"]:
        notes.append(f"\n{note['text'] or note['code']}", style="dim")
    console.print(Panel(Group(table, notes), title="What changed", border_style="green"))


def _facts(row: Json) -> Iterable[str]:
    workspace = row.get("workspace")
    if workspace:
        yield LIVE if not workspace["id"] else f"workspace {workspace.get('title') or workspace['id']}"
    if row.get("hidden") is not None:
        yield "hidden" if row["hidden"] else "not hidden"
    yield "named by the tool" if row.get("target") else "changed along"
    for name, words in (("failed", "its call failed"), ("partial", "partly written"), ("relation", "only a relation")):
        if row.get(name):
            yield words


def _title(value: Any) -> str:
    return "" if not value else str(value.get("title") or value.get("id"))


def _short(value: Any, limit: int = 90) -> str:
    text = "—" if value is None else str(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def history_line(entry: Json) -> str:
    """One entry of a record's history."""
    after = entry.get("after") or {}
    told = [f"{name} = {_short(after[name], 50)!r}" for name in ("title", "header", "hidden") if name in after]
    return f"{entry['at']}  {entry['action']}  by user {entry['userUid']}  {', '.join(told)}".rstrip()


def event(console: Console, headers: Mapping[str, str], payload: Json, place: str) -> None:
    """One event as an independent consumer read it."""
    lines = [f"{name}: {value}" for name, value in sorted(headers.items())]
    body = json.dumps(payload, indent=2, ensure_ascii=False)
    console.print(Panel(Text("\n".join(lines) + "\n\n" + _cut(body)), title=escape(place), border_style="magenta"))


def _cut(text: str, lines: int = 24) -> str:
    every = text.splitlines()
    rest = len(every) - lines
    return "\n".join(every[:lines] + ([f"… {rest} more lines"] if rest > 0 else []))
