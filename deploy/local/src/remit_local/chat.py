"""``remit chat``: a demo editor asks, sees the card, decides per call and reads the list, in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape

from remit_local.clients import ApiError, ChatClient, card_or_end
from remit_local.demo import render

WAIT_SECONDS = 120.0
HELP = """\
Type a request, for example:
  show the pages            what is on page 14
  set the title of page 17 to What it costs
  translate page 16 to German
Words of the chat itself:
  /changes   the change list        /card   the card that waits
  /new       a new conversation     /as emma|jonas|admin   somebody else
  /help      this text              /quit   leave"""


class TerminalChat:
    """One conversation at a time, over the chat API and nothing else.

    Args:
        console: to print on.
        login: makes a logged-in client for a user name.
        ask: reads one line from the person.
    """

    def __init__(self, console: Console, login: Callable[[str], ChatClient], ask: Callable[[str], str]) -> None:
        self._console = console
        self._login = login
        self._ask = ask
        self._name = "emma"
        self._chat = login(self._name)
        self._conversation: str | None = None

    def run(self) -> None:
        """Talk until the person leaves (``/quit``, end of input)."""
        self._console.print(f"[dim]{escape(HELP)}[/]")
        while True:
            try:
                line = self._ask(f"{self._name}> ").strip()
            except EOFError:
                break
            if line in {"/quit", "/exit"}:
                break
            if line:
                self._guarded(line)
        self._chat.close()

    def _guarded(self, line: str) -> None:
        """Handle a line; what a service refuses is shown and loses nothing."""
        try:
            self._handle(line)
        except ApiError as error:
            self._console.print(f"[red]{escape(str(error))}[/]")
        except TimeoutError as error:
            self._console.print(f"[yellow]{escape(str(error))}[/] Ask again later: the run goes on.")

    def _handle(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "/help":
            self._console.print(HELP)
        elif word == "/new":
            self._conversation = None
        elif word == "/as":
            self._become(rest.strip())
        elif word == "/changes":
            self._show_changes()
        elif word == "/card":
            self._settle()
        elif word.startswith("/"):
            self._console.print(f"[red]There is no {escape(word)}; /help lists the words.[/]")
        else:
            self._say(line)

    def _become(self, name: str) -> None:
        client = self._login(name)
        self._chat.close()
        self._chat, self._name, self._conversation = client, name, None

    def _say(self, text: str) -> None:
        if self._conversation is None:
            self._conversation = self._chat.converse(title=text[:80])
        self._chat.say(self._conversation, text)
        self._settle()

    def _settle(self) -> None:
        """Follow the run until it ends; put each card before the person."""
        if self._conversation is None:
            self._console.print("[dim]Nothing was asked yet.[/]")
            return
        decided = ""
        while True:
            view = self._chat.wait(self._conversation, partial(card_or_end, decided=decided), WAIT_SECONDS, "an answer")
            pending = view["pendingApproval"]
            if pending is None:
                break
            render.card(self._console, pending)
            decisions = self._decisions(pending)
            if decisions is None:
                self._console.print("[dim]Left open; /card brings it back.[/]")
                return
            decided = self._decide(self._conversation, pending["turnDigest"], decisions)
        answers = [message for message in view["messages"] if message["role"] == "assistant"]
        if answers:
            render.said(self._console, "Assistant", answers[-1]["content"])
        if view["changesAvailable"]:
            self._show_changes()

    def _decide(self, conversation: str, digest: str, decisions: dict[str, str]) -> str:
        """Send the decision; the answer is the digest of the card that is settled by it."""
        try:
            self._chat.decide(conversation, digest, decisions)
        except ApiError as error:
            if error.code != "turn_stale":
                raise
            self._console.print("[yellow]What the calls would do changed meanwhile; here is the fresh card.[/]")
            return ""
        return digest

    def _decisions(self, pending: dict[str, Any]) -> dict[str, str] | None:
        """Ask per call: y, n, a (this and all following), d (decline this and all following), l (later)."""
        decisions: dict[str, str] = {}
        calls = pending["calls"]
        for number, call in enumerate(calls, 1):
            blocked = bool(pending["approveBlocked"])
            question = f"call {number} of {len(calls)}: " + (
                "[n]o, [l]ater? " if blocked else "[y]es, [n]o, [a]ll, [d]ecline all, [l]ater? "
            )
            answer = self._answer(question, "nl" if blocked else "ynadl")
            if answer == "l":
                return None
            word = "approve" if answer in "ya" else "decline"
            decisions[call["callId"]] = word
            if answer in "ad":
                return decisions | {later["callId"]: word for later in calls[number:]}
        return decisions

    def _answer(self, question: str, letters: str) -> str:
        while True:
            try:
                given = self._ask(question).strip().lower()[:1]
            except EOFError:
                return "l"
            if given and given in letters:
                return given

    def _show_changes(self) -> None:
        if self._conversation is None:
            self._console.print("[dim]Nothing was asked yet.[/]")
        else:
            render.changes(self._console, self._chat.changes(self._conversation))
