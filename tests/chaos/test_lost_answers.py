"""The store dies around its COMMIT, an answer gets lost, a call arrives too late: written once, said truly."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from chaos_support.http_proxy import Trap
from chaos_support.postgres_proxy import AtCommit, Cut, Where
from chaos_support.stack import ChaosStack
from chaos_support.store_calls import set_header
from remit_harness.scenes import eventually, scene
from remit_local.services import STORE, WORKER

APPLY, RESOLVE = r"^POST /v1/calls/[0-9a-f-]+/apply$", r"^POST /v1/calls/[0-9a-f-]+/resolve$"


@pytest.mark.req("T-23", "S-58", "V-01")
@pytest.mark.parametrize("where", [Where.AFTER, Where.BEFORE])
def test_a_store_killed_at_its_commit_has_written_once_and_the_list_is_right(chaos: ChaosStack, where: Where) -> None:
    """SIGKILL when the database has committed and the store does not know it yet, or right before it commits."""
    element = chaos.test.elements("Town Council")[0 if where is Where.AFTER else 1]
    entries, seen = chaos.history(element), len(chaos.store_proxy.seen)
    with scene(chaos.test) as editor:
        pending = editor.card(f"Set the header of element {element} to {where.name} the commit")
        rule = chaos.postgres_proxy.rule = AtCommit(Cut(where, chaos.test.program(STORE).kill))
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        assert rule.fired.wait(60)
        assert not chaos.test.program(STORE).running
        done = entries + 1 if where is Where.AFTER else entries
        eventually(lambda: chaos.history(element) == done, "the database has ended the dead store's transaction")
        chaos.test.restart(STORE)
        view = editor.settle(pending["turnDigest"])
        assert view["conversation"]["status"] == "completed", view["messages"][-1]["content"]
        assert chaos.header(element) == f"{where.name} the commit"
        assert chaos.history(element) == entries + 1
        assert editor.keys() == [(f"tt_content:{element}", "updated")]
    assert chaos.store_proxy.count(RESOLVE, seen) >= 1
    assert chaos.store_proxy.count(APPLY, seen) == (1 if where is Where.AFTER else 2)


@pytest.mark.req("T-23", "S-58")
def test_an_answer_lost_on_the_way_is_asked_for_by_id_and_nothing_is_sent_again(chaos: ChaosStack) -> None:
    element = chaos.test.elements("Town Council")[2]
    entries, seen = chaos.history(element), len(chaos.store_proxy.seen)
    with scene(chaos.test) as editor:
        pending = editor.card(f"Set the header of element {element} to Heard after all")
        trap = chaos.store_proxy.set(Trap(APPLY, lost=True))
        editor.decide(pending)
        assert (trap.status, json.loads(trap.body)["outcome"]) == (200, "committed")
        assert editor.keys() == [(f"tt_content:{element}", "updated")]
    assert chaos.history(element) == entries + 1
    assert chaos.store_proxy.count(APPLY, seen) == 1
    assert chaos.store_proxy.count(RESOLVE, seen) >= 1


@pytest.mark.req("T-22", "T-23", "S-58")
def test_a_zombies_apply_that_arrives_after_another_worker_resolved_writes_nothing(chaos: ChaosStack) -> None:
    """The first worker stands still with its call on the way; a second one takes over; then both go on."""
    element = chaos.test.elements("Town Council")[3]
    entries = chaos.history(element)
    zombie, second = chaos.test.program(WORKER), chaos.second_worker()
    with scene(chaos.test) as editor:
        pending = editor.card(f"Set the header of element {element} to Written by the living")
        trap = chaos.store_proxy.set(Trap(APPLY, held=True))
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        assert trap.caught.wait(60)
        zombie.pause()
        second.start()
        try:
            view = editor.settle(pending["turnDigest"])
            assert view["conversation"]["status"] == "completed"
            assert chaos.history(element) == entries + 1
            trap.release()
            assert trap.answered.wait(30)
            problem = json.loads(trap.body)
            assert (trap.status, problem["code"]) in {(409, "fenced"), (410, "call_resolved")}
            zombie.resume()
            # It has to be of use again: the next run may be its own.
            second.stop()
            other = editor.card(f"Set the header of element {element} to And on it goes")
            editor.decide(other)
        finally:
            trap.release()
            zombie.resume()
            second.stop()
        assert chaos.header(element) == "And on it goes"
        assert chaos.history(element) == entries + 2
        (row,) = editor.changes()["rows"]
        assert (row["key"], len(row["calls"])) == (f"tt_content:{element}", 2)


@pytest.mark.req("S-58", "T-23")
@pytest.mark.parametrize("seconds", [0.8, pytest.param(4.0, marks=pytest.mark.long)])
def test_a_commit_that_arrives_late_is_never_called_undone(chaos: ChaosStack, seconds: float) -> None:
    """The store loses its connection while the COMMIT is on the way to the server, which carries it out later."""
    element = chaos.test.elements("Council Minutes")[0]
    entries, call = chaos.history(element), str(uuid4())
    rule = chaos.postgres_proxy.rule = AtCommit(Cut(Where.LATE, seconds=seconds))
    body = chaos.calls.body(set_header(element, f"late by {seconds}"))
    answer = chaos.calls.apply(call, body)
    assert answer.outcome in {"committed", "unknown"}, answer
    if answer.outcome == "committed":
        assert chaos.history(element) == entries + 1
    assert rule.fired.wait(30)
    resolved = chaos.calls.resolve(call, body["runId"], 2)
    assert resolved.outcome == "committed"
    assert chaos.header(element) == f"late by {seconds}"
    assert chaos.history(element) == entries + 1
