"""Open calls: whoever holds one dies, and nothing stays; whoever holds one long stands in nobody's way."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self
from uuid import uuid4

import pytest
from chaos_support.stack import IDLE_SECONDS, INSTALLATION, ChaosStack
from chaos_support.store_calls import Answer, StoreCalls, read_header, set_header
from remit_harness.scenes import eventually, scene
from remit_local.services import RUNTIME, STORE

HOLDER = Path(__file__).with_name("support") / "chaos_support" / "holder.py"


@pytest.mark.req("S-64", "S-62", "S-66")
def test_nothing_stays_of_an_open_call_whose_runtime_was_killed(chaos: ChaosStack) -> None:
    element = chaos.test.elements("Services")[0]
    before, entries = chaos.header(element), chaos.history(element)
    call, run = str(uuid4()), str(uuid4())
    plan = chaos.test.stack.plan
    command = [sys.executable, str(HOLDER), plan.url(STORE), str(plan.keys / f"{RUNTIME}.pem")]
    command += [str(chaos.calls.user), call, run, str(element)]
    holder = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(INSTALLATION.parent / "support")}
    )
    assert holder.stdout is not None
    with holder, holder.stdout:
        token, sequence = holder.stdout.readline().split()
        assert chaos.calls.send("GET", f"/v1/calls/{call}").outcome == "open"
        holder.kill()
        holder.wait()
    held = Answer(200, {"token": token, "sequence": sequence})
    eventually(
        lambda: chaos.calls.send("GET", f"/v1/calls/{call}").outcome != "open",
        "the store ends the call",
        IDLE_SECONDS + 20,
    )
    for what in ("operations", "commit"):
        late = chaos.calls.continued(call, what, held, set_header(element, "too late"))
        assert late.status in {404, 410}, late
    assert (chaos.header(element), chaos.history(element)) == (before, entries)
    assert chaos.calls.resolve(call, run, 2).outcome == "rolled_back"
    # Its locks are gone with it.
    assert chaos.calls.apply(str(uuid4()), chaos.calls.body(set_header(element, "free again"))).outcome == "committed"


@pytest.mark.req("S-64", "S-58")
def test_nothing_stays_of_an_open_call_whose_store_was_killed(chaos: ChaosStack) -> None:
    element = chaos.test.elements("Services")[1]
    before, entries = chaos.header(element), chaos.history(element)
    call, body = str(uuid4()), chaos.calls.body()
    opened = chaos.calls.open(call, body)
    after = chaos.calls.continued(call, "operations", opened, set_header(element, "held"))
    assert after.body["operations"][0]["errors"] == []
    chaos.kill(STORE)
    chaos.start([STORE])
    assert chaos.calls.continued(call, "commit", after).status in {404, 410}
    assert chaos.calls.resolve(call, body["runId"], 2).outcome == "rolled_back"
    assert (chaos.header(element), chaos.history(element)) == (before, entries)


@pytest.mark.req("S-64", "T-70")
@pytest.mark.parametrize("seconds", [0, pytest.param(60, marks=pytest.mark.long)])
def test_other_runs_are_listed_and_published_while_a_call_is_open(chaos: ChaosStack, seconds: int) -> None:
    held, free = chaos.test.elements("Services")[2], chaos.test.elements("Dog Licence")[0]
    before, began, runs = chaos.header(held), time.monotonic(), 0
    with KeptOpen(chaos.calls, held, f"held {seconds}") as kept:
        while runs == 0 or time.monotonic() < began + seconds:
            with scene(chaos.test) as editor:
                pending = editor.card(f"Set the header of element {free} to Free {seconds} {runs}")
                editor.decide(pending)
                assert editor.keys() == [(f"tt_content:{free}", "updated")]
            runs += 1
        assert chaos.header(held) == before, "nobody sees what is not committed"
        result = kept.commit()
    assert result.outcome == "committed", result
    assert chaos.header(held) == f"held {seconds}"


class KeptOpen:
    """An open call that wrote a header and reads it again and again, so that no idle limit ends it."""

    def __init__(self, calls: StoreCalls, element: int, header: str) -> None:
        self._calls = calls
        self._element = element
        self._call = str(uuid4())
        opened = calls.open(self._call, calls.body())
        self._last = calls.continued(self._call, "operations", opened, set_header(element, header))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while self._last.status == 200 and not self._ended.wait(0.5):
            self._last = self._calls.continued(self._call, "operations", self._last, read_header(self._element))

    def commit(self) -> Answer:
        """End it; the answer of the request that failed, where one did."""
        self._ended.set()
        self._thread.join()
        if self._last.status != 200:
            return self._last
        return self._calls.continued(self._call, "commit", self._last)
