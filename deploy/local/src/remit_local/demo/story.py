"""The demo's conversation: a page is translated, six of seven calls are approved, the list is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from remit_local.clients import ApiClient, ApiError, ChatClient, card_or_end
from remit_local.demo import render
from remit_local.demo.reader import EventReader, ReadEvent
from remit_local.demo.site import demo_site

WAIT_SECONDS = 60.0
HISTORY_LINES = 3
TRANSLATED = frozenset({"pages", "tt_content"})


class StoryError(RuntimeError):
    """The story did not go as it must; the text says where and why."""


@dataclass(frozen=True)
class Chapter:
    """What the story worked on and what came out, for tests and for the closing words.

    Attributes:
        page: uid of the translated page.
        conversation: its id.
        run: id of the run.
        pending: the card.
        decisions: call id -> approve or decline.
        changes: the change list.
        event: the event of the first change list, as read from the broker.
    """

    page: int
    conversation: str
    run: str
    pending: dict[str, Any]
    decisions: dict[str, str]
    changes: dict[str, Any]
    event: ReadEvent


class Story:
    """Plays the conversation over the chat API and prints what an editor sees."""

    def __init__(self, console: Console, chat: ChatClient, store: ApiClient, broker_url: str, demo: dict[str, Any]):
        self._console = console
        self._chat = chat
        self._store = store
        self._broker_url = broker_url
        self._demo = demo

    def play(self) -> Chapter:
        """Play it from the request to the event.

        Raises:
            StoryError: something an editor relies on did not happen.
        """
        title, page = self._untranslated_page()
        conversation = self._ask(page, title)
        pending = self._read_card(conversation, page)
        # Joining a group takes a broker some seconds. The topic is there: the card came over it.
        with EventReader(self._broker_url) as reader:
            decisions = self._decide(conversation, pending)
            changes = self._read_changes(conversation, decisions, pending)
            run = str(pending["run"])
            event = self._read_event(reader, run)
        return Chapter(page, conversation, run, pending, decisions, changes, event)

    def _untranslated_page(self) -> tuple[str, int]:
        """The first page of the list nobody translated yet; it begins with the one that has six elements."""
        titles = [page.title for page in demo_site() if page.german is None and page.access == "town" and page.elements]
        titles.sort(key=lambda title: len(self._demo["elements"][title]) != 6)
        for title in titles:
            uid = int(self._demo["pages"][title])
            if not self._store.get(f"/v1/records/pages/{uid}").get("translations"):
                return title, uid
        raise StoryError("every page of the demo site is translated by now; begin anew with: remit reset")

    def _ask(self, page: int, title: str) -> str:
        name = self._chat.user.get("name") or self._chat.user.get("username")
        text = f"Translate page {page} to German"
        render.heading(self._console, 1, f"{name} asks (page {page} is “{title}”)")
        conversation = self._chat.converse(title=f"German for “{title}”")
        self._chat.say(conversation, text)
        render.said(self._console, str(name), text)
        return conversation

    def _read_card(self, conversation: str, page: int) -> dict[str, Any]:
        view = self._chat.wait(
            conversation,
            card_or_end,
            WAIT_SECONDS,
            "the card",
        )
        pending: dict[str, Any] | None = view["pendingApproval"]
        if pending is None:
            words = [message["content"] for message in view["messages"] if message["role"] == "assistant"]
            raise StoryError(f"no card came for page {page}; the assistant said: {words[-1:] or 'nothing'}")
        render.heading(self._console, 2, "Before anything is written: one card, with what each call will change")
        render.card(self._console, pending)
        if pending["approveBlocked"]:
            raise StoryError(f"the card cannot be approved: {pending['approveBlocked']}")
        return pending

    def _decide(self, conversation: str, pending: dict[str, Any]) -> dict[str, str]:
        ids = [call["callId"] for call in pending["calls"]]
        if len(ids) < 2:
            raise StoryError("the card has a single call; there is nothing to leave out")
        decisions = dict.fromkeys(ids, "approve") | {ids[-1]: "decline"}
        render.heading(self._console, 3, f"The decision: {len(ids) - 1} of {len(ids)} calls, not the last one")
        self._chat.decide(conversation, pending["turnDigest"], decisions)
        for number, (call, word) in enumerate(decisions.items(), 1):
            self._console.print(f"   {number}. {word}  [dim]{call}[/]")
        return decisions

    def _read_changes(self, conversation: str, decisions: dict[str, str], pending: dict[str, Any]) -> dict[str, Any]:
        approved = sum(word == "approve" for word in decisions.values())
        view = self._chat.wait(
            conversation,
            lambda view: card_or_end(view, pending["turnDigest"]),
            WAIT_SECONDS,
            "the end of the run",
        )
        if view["pendingApproval"] is not None:
            raise StoryError("after the decision another card came")
        status = view["conversation"]["status"]
        if status != "completed":
            raise StoryError(f"the run ended as {status}: {view['messages'][-1]['content']}")
        render.heading(self._console, 4, "The answer, and the list of what changed")
        render.said(self._console, "Assistant", view["messages"][-1]["content"])
        changes = self._chat.changes(conversation)
        render.changes(self._console, changes)
        made = [row for row in changes["rows"] if row["table"] in TRANSLATED and row["action"] == "created"]
        if len(made) != approved:
            raise StoryError(f"{approved} calls were approved and {len(made)} translations are listed")
        if changes["counts"]["withheld"] != 1:
            listed = [row["key"] for row in changes["rows"]]
            raise StoryError(
                f"one record is the installation's own and must be withheld, {changes['counts']['withheld']} were; "
                f"listed: {', '.join(listed)}"
            )
        self._history(made[0])
        return changes

    def _history(self, row: dict[str, Any]) -> None:
        try:
            entries = self._store.get("/v1/history", table=row["table"], uid=row["uid"])["entries"]
        except ApiError as error:
            raise StoryError(f"the history of {row['key']} cannot be opened: {error}") from error
        render.heading(self._console, 5, f"“View changes” of {row['tableLabel']} {row['uid']}: its history")
        if not entries:
            raise StoryError(f"the history of {row['key']} is empty")
        for entry in entries[:HISTORY_LINES]:
            self._console.print(f"   {render.history_line(entry)}", markup=False)

    def _read_event(self, reader: EventReader, run: str) -> ReadEvent:
        def fits(event: ReadEvent) -> bool:
            return event.kind == "tool_changes" and event.run == run

        events = reader.wait(lambda read: any(map(fits, read)))
        found = next((event for event in events if fits(event)), None)
        if found is None:
            raise StoryError(f"no consumer found the change list on the broker; {len(events)} events were read")
        render.heading(
            self._console, 6, "The same on the broker, read by a consumer that knows nothing of the services"
        )
        render.event(self._console, found.headers, found.payload, found.place)
        return found
