"""The programs that publish are killed again and again: nothing lost, nothing reordered within a key."""

from __future__ import annotations

import time

import pytest
from chaos_support.published import first_seen, sequences
from chaos_support.stack import ChaosStack
from remit_harness.scenes import eventually, scene
from remit_harness.servers import BrokerServer
from remit_local.services import RUNTIME, STORE, WORKER


@pytest.mark.req("T-70", "T-71", "T-23")
def test_a_run_whose_relays_die_is_published_whole_and_in_order(chaos: ChaosStack, broker: BrokerServer) -> None:
    element = chaos.test.elements("Parking Permits")[0]
    entries = chaos.history(element)
    with scene(chaos.test) as editor:
        pending = editor.card(f"Set the header of element {element} to Three zones")
        run = str(pending["run"])
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        for _ in range(2):
            time.sleep(0.3)
            chaos.kill(RUNTIME, WORKER, STORE)
            chaos.start([STORE, RUNTIME, WORKER])
        view = editor.settle(pending["turnDigest"])
        assert view["conversation"]["status"] == "completed", view["messages"][-1]["content"]
        assert editor.keys() == [(f"tt_content:{element}", "updated")]
        last = int(chaos.runtime(f"/v1/runs/{run}/events")["lastSequence"])
    assert chaos.history(element) == entries + 1
    assert first_seen(sequences(broker.url, run, last)) == list(range(1, last + 1))
    waiting = "SELECT count(*) AS n FROM outbox WHERE published_at IS NULL"
    for service in (RUNTIME, STORE):
        eventually(lambda s=service: chaos.test.rows(s, waiting)[0]["n"] == 0, "the outbox is empty")  # type: ignore[misc]
