"""One tool round of the runtime: from the moment the round is taken up to its stored change list."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from figures import Figure, median_ms
from remit_harness.scenes import scene
from remit_harness.stacks import TestStack
from remit_local.clients import ApiClient
from remit_local.services import RUNTIME
from store_calls import StoreCalls

GOAL = 1.0


def tool_round(stack: TestStack, rounds: int) -> Figure:
    """Approved calls of the demo model, their steps' times read back; the limit is the bare call it makes.

    The peer of the plan (LangGraph with its PostgreSQL checkpointer and a tool that makes the same call) has an
    environment of its own and is not measured here yet: the limit is the ``apply`` alone, which no peer can undercut.
    """
    element = stack.elements("Business")[0]
    measured: list[float] = []
    with scene(stack) as editor, stack.stack.store("emma") as emma, StoreCalls(stack, stack.page("Business")) as calls:
        calls.update("warm")
        bare: list[float] = []
        for number in range(rounds):
            pending = editor.card(f"Set the header of element {element} to Round {number}")
            editor.decide(pending)
            measured.append(_round(_steps(stack, emma.token, str(pending["run"]))))
            begin = time.perf_counter()
            calls.update(f"Round {number}")
            bare.append(time.perf_counter() - begin)
    return Figure(
        "tool_round", median_ms(measured), median_ms(bare), GOAL, "the apply it makes, alone (peer LangGraph: later)"
    )


def _steps(stack: TestStack, token: str, run: str) -> list[dict[str, Any]]:
    with ApiClient(stack.stack.plan.url(RUNTIME)) as runtime:
        answer = runtime.send("GET", f"/v1/runs/{run}/events", headers={"Authorization": f"Bearer {token}"})
    steps: list[dict[str, Any]] = answer["steps"]
    return steps


def _round(steps: list[dict[str, Any]]) -> float:
    """Seconds the tool's execution and the recording of its steps took."""
    changes = next(step for step in steps if step["kind"] == "tool_changes")
    tool = next(step for step in steps if step["kind"] == "tool" and step["callId"] == changes["callId"])
    recorded = (_at(changes) - _at(tool)).total_seconds()
    return float(tool["durationMs"]) / 1000 + max(recorded, 0.0)


def _at(step: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(step["at"])
