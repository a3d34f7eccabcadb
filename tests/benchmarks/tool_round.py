"""One tool round of the runtime against LangGraph's, and against the bare call inside it.

Both sides stop before the write for an approval, since the runtime never writes without one, and both are measured
behind it: from the resumption of the waiting run, over the same ``apply`` over HTTP, up to the stored answer of the
model. Neither counts how long the approval took or how it was stored. Both keep what they do in the same PostgreSQL
before they go on (LangGraph with ``durability="sync"``), and both have a model that answers at once from this machine.
The peer is spared what a tool of its own would have to do beside the call: its token is signed and its request made for
it, and its resumption is a breakpoint's, which stores no decision. The runtime's relay publishes beside its rounds.
"""

from __future__ import annotations

import asyncio
import json
import time
from uuid import uuid4

from figures import Figure, median_ms
from peer_process import PeerProcess, PeerUnavailable
from remit_harness.stacks import TestStack
from remit_local.services import RUNTIME, STORE
from runtime_rounds import running_rounds
from service_kit.auth import AssertionSigner, SigningKey
from store_calls import StoreCalls

GOAL = 1.0
WORKER = "agent-runtime-worker"
#: What one side left to do (events to publish) must not be counted for the other.
SETTLE_SECONDS = 0.1


def tool_round(stack: TestStack, rounds: int) -> list[Figure]:
    """The round against the peer, where it can be had, and against the ``apply`` alone."""
    stack.program(WORKER).stop()
    try:
        with StoreCalls(stack, stack.page("Business")) as calls:
            calls.update("warm")
            return _compared(stack, calls, rounds)
    finally:
        stack.restart(WORKER)


def _compared(stack: TestStack, calls: StoreCalls, rounds: int) -> list[Figure]:
    alone = "the apply it makes, alone"
    try:
        with PeerProcess("langgraph", stack.database_urls[STORE]) as peer:
            own, bare, other = asyncio.run(_rounds(stack, calls, peer, rounds))
    except PeerUnavailable as missing:
        print(f"tool_round is not compared with LangGraph: {missing}")
        own, bare, _ = asyncio.run(_rounds(stack, calls, None, rounds))
        return [Figure("tool_round", median_ms(own), median_ms(bare), GOAL, f"{alone} (no LangGraph here)")]
    value = median_ms(own)
    return [
        Figure("tool_round", value, median_ms(other), GOAL, "LangGraph, PostgreSQL checkpointer, the same apply"),
        Figure("tool_round_over_apply", value, median_ms(bare), GOAL, alone),
    ]


async def _rounds(
    stack: TestStack, calls: StoreCalls, peer: PeerProcess | None, rounds: int
) -> tuple[list[float], list[float], list[float]]:
    """Seconds of ours, of the call alone and of the peer's, in turns."""
    mine, its = stack.elements("Business")[:2]
    plan = stack.stack.plan
    signer = AssertionSigner(RUNTIME, SigningKey.from_pem((plan.keys / f"{RUNTIME}.pem").read_text()))
    own: list[float] = []
    bare: list[float] = []
    other: list[float] = []
    async with running_rounds(stack, calls.user) as ours:
        for number in range(rounds):
            own.append(await ours.seconds(mine, f"Round {number}"))
            await asyncio.sleep(SETTLE_SECONDS)
            calls.connect()
            begin = time.perf_counter()
            calls.update(f"Round {number}")
            bare.append(time.perf_counter() - begin)
            if peer is None:
                continue
            body = await ours.request(its, f"Round {number}")
            await asyncio.sleep(SETTLE_SECONDS)
            url = f"{plan.url(STORE)}/v1/calls/{uuid4()}/apply"
            call = json.dumps({"url": url, "token": signer.sign(STORE, calls.user), "body": body})
            other.append(float((await asyncio.to_thread(peer.ask, call))["seconds"]))
    return own, bare, other
