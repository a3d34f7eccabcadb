"""What several tests do: ask, see the card, decide, wait, and look at the store from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from remit_local.clients import ChatClient, card_or_end
from remit_local.services import STORE

from remit_harness.stacks import TestStack

WAIT_SECONDS = 90.0
WATCHED = ("pages", "tt_content", "sys_file_reference", "tx_remitdemo_journal", "sys_history")


@dataclass
class Scene:
    """A conversation of one editor.

    Attributes:
        chat: logged in.
        conversation: its id.
    """

    stack: TestStack
    chat: ChatClient
    conversation: str

    def ask(self, text: str) -> dict[str, Any]:
        """Say something and wait for a card or the end; the messages."""
        self.chat.say(self.conversation, text)
        return self.settle()

    def settle(self, decided: str = "") -> dict[str, Any]:
        """Wait for another card than the decided one, or the end."""
        return self.chat.wait(
            self.conversation, lambda view: card_or_end(view, decided), WAIT_SECONDS, "a card or the end"
        )

    def card(self, text: str) -> dict[str, Any]:
        """Ask for something that needs approval; the card."""
        pending: dict[str, Any] | None = self.ask(text)["pendingApproval"]
        assert pending is not None, self.answer()
        return pending

    def decide(self, pending: dict[str, Any], decision: str | dict[str, str] = "approve") -> dict[str, Any]:
        """Decide and wait for the end; the messages."""
        self.chat.decide(self.conversation, pending["turnDigest"], decision)
        return self.settle(pending["turnDigest"])

    def answer(self) -> str:
        """The assistant's last words."""
        messages = self.chat.messages(self.conversation)["messages"]
        return next((str(m["content"]) for m in reversed(messages) if m["role"] == "assistant"), "")

    def changes(self) -> dict[str, Any]:
        """The change list."""
        return self.chat.changes(self.conversation)

    def keys(self) -> list[tuple[str, str]]:
        """Key and action of every row of the change list."""
        return [(row["key"], row["action"]) for row in self.changes()["rows"]]


@contextmanager
def scene(stack: TestStack, who: str = "emma", **settings: Any) -> Iterator[Scene]:
    """A new conversation."""
    with stack.stack.chat(who) as chat:
        yield Scene(stack, chat, chat.converse(**settings))


def row_of(stack: TestStack, table: str, uid: int) -> dict[str, Any]:
    """A record as the database has it."""
    (row,) = stack.rows(STORE, f'SELECT * FROM "{table}" WHERE uid = $1', uid)
    return row


def snapshot(stack: TestStack) -> dict[str, str]:
    """A fingerprint of each watched table."""
    query = "SELECT md5(coalesce(string_agg(t::text, E'\\n' ORDER BY uid), '')) AS mark FROM \"{}\" t"
    return {table: str(stack.rows(STORE, query.format(table))[0]["mark"]) for table in WATCHED}


def history_of(stack: TestStack, table: str, uid: int) -> int:
    """How many history entries a record has."""
    query = "SELECT count(*) AS n FROM sys_history WHERE tablename = $1 AND recuid = $2"
    return int(stack.rows(STORE, query, table, uid)[0]["n"])


def eventually(condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)
