"""A card that changed is told of: whoever shows it learns from the steps that there is a fresh one (T-34, T-70)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack
from sqlalchemy import text

TURN = asks(
    ("update_page_metadata", {"uid": 3, "title": "City museum"}),
    ("update_content_element", {"uid": 5, "fields": {"header": "When we open"}}),
)


def scripted() -> dict[str, Any]:
    return {"models": source(ScriptedModel([TURN, says("done")]))}


async def published(stack: RuntimeStack) -> str:
    """Everything that goes to the topic, as one text."""
    async with stack.runtime.database.read() as session:
        rows = await session.execute(text("SELECT row_to_json(outbox) AS event FROM outbox"))
        return json.dumps([row.event for row in rows], ensure_ascii=False)


@pytest.mark.req("T-34", "T-70", "T-31")
async def test_a_stale_card_is_told_of_in_a_status_step(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted()) as stack:
        run_id = await stack.start("two")
        await stack.run_to_pause(run_id)
        before = await stack.steps(run_id)
        stack.store.rows.tables["tt_content"][5]["header"] = "Changed by somebody"
        answer = await stack.decide(run_id, decision="approve")
        assert answer.json()["code"] == "turn_stale"
        fresh = answer.json()["pending"]["turnDigest"]
        (step,) = (await stack.steps(run_id))[len(before) :]
        assert step["kind"] == "status"
        assert (step["payload"]["status"], step["payload"]["outcome"]) == ("waiting_for_approval", "awaiting_approval")
        # Nothing was executed, so it is no new segment.
        assert step["segment"] == step["payload"]["segment"] == before[-1]["segment"]
        # Whoever reads the step finds the fresh card, and waiting, at once: step and state were written together.
        run = await stack.view(run_id)
        assert (run["status"], run["pending"]["turnDigest"]) == ("waiting_for_approval", fresh)
        assert run["lastSequence"] == step["sequence"]
        events = await published(stack)
        assert fresh not in events
        assert "Changed by somebody" not in events
        # A decision that is refused for itself says nothing: the card is the same.
        await stack.request("POST", f"/v1/runs/{run_id}/decision", json={"turnDigest": "x", "decision": "approve"})
        assert (await stack.view(run_id))["lastSequence"] == step["sequence"]


@pytest.mark.req("T-34", "T-70", "S-66")
async def test_a_card_bounced_before_the_commit_is_told_of_too(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted()) as stack:
        run_id = await stack.start("two")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        stack.store.rows.side_effects = [("tt_content", 9)]
        run = await stack.run_to_pause(run_id)
        assert run["status"] == "waiting_for_approval"
        assert stack.store.rows.tables["pages"][3]["title"] == "Museum"
        (*_, last) = await stack.steps(run_id)
        assert (last["kind"], last["payload"]["status"]) == ("status", "waiting_for_approval")
        # The approved segment began and ended here, so the step closes a segment of its own.
        assert last["segment"] == 2
        assert run["lastSequence"] == last["sequence"]
        assert run["pending"]["turnDigest"] not in await published(stack)
        assert [call["previewStale"] for call in run["pending"]["calls"]] == [True, True]
