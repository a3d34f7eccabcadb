"""The demo's story over HTTP, and what an editor does instead of approving."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from remit_harness.scenes import history_of, row_of, scene, snapshot
from remit_harness.servers import BrokerServer
from remit_harness.stacks import TestStack
from remit_local.demo.story import Story
from remit_local.services import STORE
from rich.console import Console


@pytest.mark.req("T-30", "T-33", "R-093", "R-100", "C-02", "C-08", "T-70", "W-03", "C-19")
def test_six_of_seven_calls_are_carried_out_listed_and_published(stack: TestStack, broker: BrokerServer) -> None:
    printed = io.StringIO()
    journal = row_of(stack, "tx_remitdemo_journal", stack.demo["journal"])["entries"]
    with stack.stack.chat("emma") as chat, stack.stack.store("emma") as records:
        told = Story(Console(file=printed, width=160), chat, records, broker.url, stack.demo).play()
    assert len(told.pending["calls"]) == 7
    assert list(told.decisions.values()).count("approve") == 6

    page = stack.rows(STORE, "SELECT uid, title FROM pages WHERE l10n_parent = $1 AND sys_language_uid = 1", told.page)
    elements = stack.rows(
        STORE, "SELECT uid, l18n_parent FROM tt_content WHERE pid = $1 AND sys_language_uid = 1", told.page
    )
    assert len(page) == 1
    assert len(elements) == 5
    files = stack.rows(STORE, "SELECT uid FROM sys_file_reference WHERE pid = $1 AND sys_language_uid = 1", told.page)
    created = {row["key"] for row in told.changes["rows"] if row["action"] == "created"}
    assert created == (
        {f"pages:{page[0]['uid']}"}
        | {f"tt_content:{row['uid']}" for row in elements}
        | {f"sys_file_reference:{row['uid']}" for row in files}
    )

    targets = {row["key"] for row in told.changes["rows"] if row["target"]}
    assert targets == {key for key in created if not key.startswith("sys_file_reference")}
    assert "captureIncomplete" not in {note["code"] for note in told.changes["notes"]}

    # The journal is the installation's own record on a page this editor does not see: counted, and nothing else of it.
    assert told.changes["counts"]["withheld"] == 1
    assert row_of(stack, "tx_remitdemo_journal", stack.demo["journal"])["entries"] == journal + 6
    assert "tx_remitdemo_journal" not in str(told.changes)
    assert {"coverage", "withheld"} <= {note["code"] for note in told.changes["notes"]}

    assert told.event.headers["ce_specversion"] == "1.0"
    assert told.event.run == told.run
    for row in told.changes["rows"]:
        assert row["title"] not in str(told.event.payload)
    # What is withheld from the editor is not withheld from whoever may read the topic.
    assert ("tx_remitdemo_journal", stack.demo["journal"]) in set(_records_in(told.event.payload))
    assert "What changed" in printed.getvalue()


def _records_in(value: Any) -> Iterator[tuple[str, int]]:
    """Every record an event names, wherever it stands in it."""
    if isinstance(value, dict):
        if "table" in value and "uid" in value:
            yield value["table"], value["uid"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _records_in(inner)


@pytest.mark.req("R-102", "R-110", "T-02", "T-07")
def test_a_declined_card_changes_nothing(stack: TestStack) -> None:
    page = stack.page("Market Days")
    with scene(stack) as editor:
        before = snapshot(stack)
        pending = editor.card(f"Set the title of page {page} to Sold out")
        assert snapshot(stack) == before, "a card alone must leave no trace"
        view = editor.decide(pending, "decline")
        assert snapshot(stack) == before
        assert view["changesAvailable"] is False
        listed = editor.changes()
        assert listed["rows"] == []
        assert [note["code"] for note in listed["notes"]] == ["coverage"]


@pytest.mark.req("T-31", "T-39", "R-128")
def test_a_card_is_decided_once_and_only_as_it_was_shown(stack: TestStack) -> None:
    from remit_local.clients import ApiError

    page = stack.page("Festivals")
    with scene(stack) as editor:
        pending = editor.card(f"Set the title of page {page} to Lanterns")
        with pytest.raises(ApiError) as stale:
            editor.chat.decide(editor.conversation, "0" * 64, "approve")
        assert (stale.value.status, stale.value.code) == (409, "turn_stale")
        assert stale.value.problem["pendingApproval"]["turnDigest"] == pending["turnDigest"]
        with pytest.raises(ApiError) as unknown:
            editor.chat.decide(editor.conversation, pending["turnDigest"], {"call-of-nobody": "approve"})
        assert (unknown.value.status, unknown.value.code) == (422, "decision_incomplete")
        editor.decide(pending)
        assert row_of(stack, "pages", page)["title"] == "Lanterns"
        with pytest.raises(ApiError) as twice:
            editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        assert twice.value.status == 409
        assert history_of(stack, "pages", page) == 2  # its creation, and one change


@pytest.mark.req("T-34", "T-31")
def test_a_record_that_changed_under_the_card_brings_the_card_back(stack: TestStack) -> None:
    from remit_local.clients import ApiError

    page = stack.page("Camp" if "Camp" in stack.demo["pages"] else "Where to Stay")
    with scene(stack) as editor, stack.stack.store("admin") as admin:
        pending = editor.card(f"Set the title of page {page} to Beds")
        admin.post("/v1/datamap", {"datamap": {"pages": {str(page): {"title": "Rooms"}}}})
        try:
            editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        except ApiError as error:
            assert error.code == "turn_stale"  # noqa: PT017 - either way of telling is fine, the row decides
        view = editor.chat.wait(
            editor.conversation,
            lambda view: (
                view["pendingApproval"] is not None and view["pendingApproval"]["turnDigest"] != pending["turnDigest"]
            ),
            60,
            "the fresh card",
        )
        assert row_of(stack, "pages", page)["title"] == "Rooms"
        editor.decide(view["pendingApproval"])
        assert row_of(stack, "pages", page)["title"] == "Beds"
