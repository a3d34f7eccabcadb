"""The broker dies between a step and its projection; it has a stack of its own, because nobody else may miss it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_support.published import first_seen, sequences
from chaos_support.stack import ChaosStack, start_chaos, stop_chaos
from remit_harness.run import TestRun
from remit_harness.scenes import eventually, scene
from remit_harness.servers import BrokerServer, local_broker
from remit_local.brokers.base import Broker
from remit_local.services import RUNTIME, WORKER

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def own_broker(test_run: TestRun) -> Iterator[Broker]:
    broker = local_broker(test_run, "chaos-broker")
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def chaos(test_run: TestRun, postgres: str, own_broker: Broker) -> Iterator[ChaosStack]:
    made = start_chaos(test_run, postgres, BrokerServer(own_broker.address, own_broker.name, "local"))
    yield made
    stop_chaos(made, postgres)


@pytest.mark.req("T-70", "T-71", "R-001", "R-014")
@pytest.mark.parametrize("with_relays", [False, True])
def test_steps_made_while_the_broker_is_dead_are_listed_once_it_is_back(
    chaos: ChaosStack, own_broker: Broker, with_relays: bool
) -> None:
    element = chaos.test.elements("Waste and Recycling")[int(with_relays)]
    entries = chaos.history(element)
    with scene(chaos.test) as editor:
        pending = editor.card(f"Set the header of element {element} to After the broker")
        run = str(pending["run"])
        own_broker.kill()
        editor.chat.decide(editor.conversation, pending["turnDigest"], "approve")
        eventually(lambda: chaos.run(run)["status"] == "completed", "the run ends without a broker")
        last = int(chaos.runtime(f"/v1/runs/{run}/events")["lastSequence"])
        if with_relays:
            # What is not published is in nobody's memory now.
            chaos.kill(RUNTIME, WORKER)
        own_broker.restart()
        if with_relays:
            chaos.start([RUNTIME, WORKER])
        editor.settle(pending["turnDigest"])
        eventually(lambda: editor.keys() == [(f"tt_content:{element}", "updated")], "the change is listed")
        (row,) = editor.changes()["rows"]
        assert len(row["calls"]) == 1
    assert chaos.history(element) == entries + 1
    found = first_seen(sequences(own_broker.url, run, last))
    assert found == sorted(found)
    if own_broker.lasting:
        assert found == list(range(1, last + 1))
    else:
        # A broker that keeps nothing has only what was published since; the gateway asked for the rest.
        assert found[-1:] == [last]
