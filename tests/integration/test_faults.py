"""Processes killed with SIGKILL at the worst moments: no write is lost, none happens twice, the list is whole."""

from __future__ import annotations

import time

import pytest
from remit_harness.scenes import Scene, eventually, history_of, row_of, scene
from remit_harness.stacks import TestStack
from remit_local.clients import ApiClient
from remit_local.services import CONSUMER, GATEWAY, RUNTIME, STORE, WORKER


def _run_of(pending: dict[str, object]) -> str:
    return str(pending["run"])


def _run_ended(stack: TestStack, run: str) -> bool:
    """As the runtime says: the gateway's consumer is dead in these tests."""
    with stack.stack.store("emma") as emma, ApiClient(stack.stack.plan.url(RUNTIME)) as runtime:
        view = runtime.send("GET", f"/v1/runs/{run}", headers={"Authorization": f"Bearer {emma.token}"})
    return view["status"] in {"completed", "failed", "cancelled"}


@pytest.mark.chaos
@pytest.mark.req("R-001", "T-71", "R-014")
def test_a_consumer_killed_before_the_projection_shows_each_change_once(stack: TestStack) -> None:
    first, second = stack.elements("Library")[:2]
    with scene(stack) as editor:
        pending = editor.card(f"Set the header of element {first} to Lending")
        stack.program(CONSUMER).kill()
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        eventually(lambda: _run_ended(stack, _run_of(pending)), "the run ends without a consumer")
        stack.restart(CONSUMER)
        editor.settle(pending["turnDigest"])
        assert editor.keys() == [(f"tt_content:{first}", "updated")]
        view = editor.chat.messages(editor.conversation)
        assert [message["role"] for message in view["messages"]] == ["user", "assistant"]
        # Once more, and this time it dies while it reads.
        pending = editor.card(f"Set the header of element {second} to When")
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        for _ in range(3):
            stack.program(CONSUMER).kill()
            stack.program(CONSUMER).start()
            time.sleep(0.7)
        editor.settle(pending["turnDigest"])
        assert sorted(editor.keys()) == sorted(
            [(f"tt_content:{first}", "updated"), (f"tt_content:{second}", "updated")]
        )
        assert len(editor.chat.messages(editor.conversation)["messages"]) == 4
        _projected_once(editor)


def _projected_once(editor: Scene) -> None:
    """No event was taken twice: each row was changed by one call."""
    for row in editor.changes()["rows"]:
        assert len(row["calls"]) == 1


@pytest.mark.chaos
@pytest.mark.req("T-23", "T-22", "S-58")
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.15, 0.4])
def test_a_worker_killed_while_the_store_has_its_call_neither_loses_nor_doubles_the_write(
    stack: TestStack, delay: float
) -> None:
    """The store stands still at some moment after the decision, the worker dies waiting for it, the store goes on."""
    element = stack.elements("Kindergartens")[[0.0, 0.05, 0.15, 0.4].index(delay)]
    entries = history_of(stack, "tt_content", element)
    with scene(stack) as editor:
        pending = editor.card(f"Set the header of element {element} to Seven houses")
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        time.sleep(delay)
        stack.program(STORE).pause()
        time.sleep(0.5)
        stack.program(WORKER).kill()
        stack.program(STORE).resume()
        stack.restart(WORKER)
        view = editor.settle(pending["turnDigest"])
        assert view["conversation"]["status"] == "completed", view["messages"][-1]["content"]
        assert row_of(stack, "tt_content", element)["header"] == "Seven houses"
        assert history_of(stack, "tt_content", element) == entries + 1
        assert editor.keys() == [(f"tt_content:{element}", "updated")]


@pytest.mark.chaos
@pytest.mark.req("T-23", "T-10")
def test_a_worker_killed_right_after_the_commit_uses_the_stored_result(stack: TestStack) -> None:
    element = stack.elements("Schools")[0]
    entries = history_of(stack, "tt_content", element)
    with scene(stack) as editor:
        pending = editor.card(f"Set the header of element {element} to First years")
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        eventually(lambda: history_of(stack, "tt_content", element) > entries, "the write is committed", 30)
        stack.program(WORKER).kill()
        stack.restart(WORKER)
        editor.settle(pending["turnDigest"])
        assert history_of(stack, "tt_content", element) == entries + 1
        assert editor.keys() == [(f"tt_content:{element}", "updated")]


@pytest.mark.chaos
@pytest.mark.req("T-40", "T-25")
@pytest.mark.parametrize("name", [STORE, RUNTIME, GATEWAY, WORKER, CONSUMER])
def test_a_card_outlives_any_process(stack: TestStack, name: str) -> None:
    """The card waits; any one process is killed and started again; the decision is carried out once."""
    index = [STORE, RUNTIME, GATEWAY, WORKER, CONSUMER].index(name)
    element = [*stack.elements("Registry Office"), *stack.elements("Building Office")][index]
    entries = history_of(stack, "tt_content", element)
    with scene(stack) as editor:
        pending = editor.card(f"Set the header of element {element} to After {index}")
        stack.program(name).kill()
        stack.restart(name)
        editor.decide(pending)
        assert row_of(stack, "tt_content", element)["header"] == f"After {index}"
        assert history_of(stack, "tt_content", element) == entries + 1
        assert editor.keys() == [(f"tt_content:{element}", "updated")]
