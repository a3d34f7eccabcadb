"""Writes outside the scope: refused before the card, and rolled back when they only show in their effect."""

from __future__ import annotations

from typing import Any

import pytest
from remit_harness.scenes import row_of, scene, snapshot
from remit_harness.stacks import TestStack


def _scope(page: int, depth: int = 0) -> dict[str, Any]:
    return {"assignmentScope": {"pages": [{"page": page, "depth": depth}]}}


@pytest.mark.req("S-20", "S-24", "R-124", "R-125", "S-71")
def test_a_page_outside_is_refused_before_anybody_can_approve(stack: TestStack) -> None:
    inside, outside = stack.page("Fees"), stack.page("Dog Licence")
    before = snapshot(stack)
    with scene(stack, **_scope(inside)) as editor:
        pending = editor.card(f"Set the title of page {outside} to Cats")
        (call,) = pending["calls"]
        assert call["refusedByRule"]["rule"] == "assignment_scope"
        assert pending["approveBlocked"] == "allRefused"
        editor.decide(pending, "decline")
        assert snapshot(stack) == before
        assert editor.changes()["rows"] == []


@pytest.mark.req("S-15", "S-03")
def test_control_the_same_request_inside_the_scope_is_carried_out(stack: TestStack) -> None:
    inside = stack.page("Fees")
    with scene(stack, **_scope(inside)) as editor:
        editor.decide(editor.card(f"Set the title of page {inside} to What it costs"))
        assert row_of(stack, "pages", inside)["title"] == "What it costs"
        assert editor.keys() == [(f"pages:{inside}", "updated")]


@pytest.mark.req("S-53", "S-75", "S-83", "R-098")
def test_a_hook_that_writes_outside_undoes_the_call(stack: TestStack) -> None:
    """A translation in scope makes the installation's hook write its journal, which lies outside."""
    page = stack.page("Swimming Pool")
    before = snapshot(stack)
    with scene(stack, **_scope(page)) as editor:
        pending = editor.card(f"Translate page {page} to German")
        call = pending["calls"][0]
        assert call["refusedByRule"] is None, "its claim lies in scope; only the effect does not"
        assert call["rehearsalLines"], "the card says before what would become of it"
        print(call["rehearsalLines"], pending["approveBlocked"])
        word = "decline" if pending["approveBlocked"] else "approve"
        editor.decide(pending, word)
        assert snapshot(stack) == before
        listed = editor.changes()
        assert listed["rows"] == []
        if word == "approve":
            assert listed["counts"]["undoneCalls"] + listed["counts"]["refusedWrites"] > 0
            # The journal lies where this editor sees nothing: no row names it.
            assert "tx_remitdemo_journal" not in str(listed)
