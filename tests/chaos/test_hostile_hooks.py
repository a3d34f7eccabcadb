"""A hook that breaks out of its call, in the store's own process: nothing unjudged stays and the answer is true."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from chaos_support.stack import ChaosStack
from chaos_support.store_calls import Answer, set_header
from remit_harness.scenes import scene
from remit_local.services import STORE

# Those that end the transaction of the call, or meddle with its witness: refused as a whole.
REFUSED = ("commit", "restart", "restart_clean", "chain", "take", "verdict", "late", "late_immediate", "write")
# Those that the database does not let happen: the entry is undone with the hook's statement.
UNDONE = ("outcome", "temporary", "triggers", "owner")


def _page(chaos: ChaosStack, title: str) -> dict[str, Any]:
    return {"pages": [{"page": chaos.test.page(title), "depth": 0}], "records": [], "tables": None, "languages": None}


def _hostile(chaos: ChaosStack, deed: str, element: int, victim: int) -> tuple[str, Answer, Answer]:
    body = chaos.calls.body(
        set_header(element, f"hostile {deed} {victim}"),
        scope=_page(chaos, "Departments"),
        writeTarget={"table": "tt_content", "uid": element},
    )
    call = str(uuid4())
    answer = chaos.calls.apply(call, body)
    return call, answer, chaos.calls.resolve(call, body["runId"])


@pytest.mark.req("S-53", "S-58", "S-67")
@pytest.mark.parametrize("deed", [*REFUSED, *UNDONE])
def test_what_a_hook_does_behind_the_calls_back_does_not_stay(chaos: ChaosStack, deed: str) -> None:
    element, victim = chaos.test.elements("Departments")[0], chaos.test.elements("Fees")[0]
    before = [chaos.header(uid) for uid in (element, victim)]
    entries = chaos.history(element)
    _, answer, resolved = _hostile(chaos, deed, element, victim)
    assert [chaos.header(uid) for uid in (element, victim)] == before, answer
    assert chaos.history(element) == entries
    assert answer.status == 200, answer
    assert answer.body["changes"]["changes"] == []
    if deed in REFUSED:
        assert answer.outcome == "rolled_back"
    else:
        assert answer.body["operations"][0]["errors"], "an entry that was undone is told"
    assert resolved.outcome == answer.outcome
    # The connection goes back into the pool as if nothing had been.
    call, body = str(uuid4()), chaos.calls.body(set_header(element, before[0]))
    assert chaos.calls.apply(call, body).outcome == "committed"


@pytest.mark.req("S-53")
def test_control_the_same_hook_without_a_scope_writes_and_is_listed(chaos: ChaosStack) -> None:
    element, victim = chaos.test.elements("Departments")[1], chaos.test.elements("Fees")[1]
    body = chaos.calls.body(set_header(element, f"hostile write {victim}"))
    answer = chaos.calls.apply(str(uuid4()), body)
    assert answer.outcome == "committed"
    assert chaos.header(victim) == "hostile was here"
    listed = {(c["table"], c["uid"]) for c in answer.body["changes"]["changes"]}
    assert listed == {("tt_content", element), ("tt_content", victim)}


@pytest.mark.req("S-53", "S-67", "T-07", "C-11")
@pytest.mark.parametrize(
    "deed",
    [
        "commit",
        "take",
        pytest.param("late", marks=pytest.mark.long),
        pytest.param("late_immediate", marks=pytest.mark.long),
        pytest.param("temporary", marks=pytest.mark.long),
        pytest.param("restart_clean", marks=pytest.mark.long),
    ],
)
def test_the_editor_is_told_the_truth_about_such_a_call(chaos: ChaosStack, deed: str) -> None:
    element, victim = chaos.test.elements("Public Order")[0], chaos.test.elements("Fees")[2]
    before = [chaos.header(uid) for uid in (element, victim)]
    with scene(chaos.test, assignmentScope=_page(chaos, "Public Order")) as editor:
        pending = editor.card(f"Set the header of element {element} to hostile {deed} {victim}")
        view = editor.decide(pending)
        assert [chaos.header(uid) for uid in (element, victim)] == before
        assert editor.keys() == []
        tools = [step for step in chaos.steps(str(pending["run"])) if step["kind"] == "tool"]
        assert [step["payload"]["isError"] for step in tools] == [True], tools
        told = str(view["messages"][-1]["content"])
        assert "0 of 1 steps were carried out" in told
        assert view["conversation"]["status"] == "completed"
    assert chaos.test.rows(STORE, "SELECT call_id FROM call_outcome WHERE verdict IS NULL") == []
