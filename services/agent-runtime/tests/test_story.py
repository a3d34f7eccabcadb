from __future__ import annotations

import pytest
from runtime_support.stack import RuntimeStack


@pytest.mark.req("T-02", "T-30", "T-36", "W-03", "C-02", "T-09")
async def test_a_write_waits_for_its_card_and_is_carried_out_after_the_approval(stack: RuntimeStack) -> None:
    run_id = await stack.start("Set the title of page 3 to 'City museum'")
    await stack.worker().run_until_idle()
    run = await stack.view(run_id)
    assert run["status"] == "waiting_for_approval"
    assert stack.store.rows.tables["pages"][3]["title"] == "Museum"
    card = run["pending"]
    assert [call["tool"] for call in card["calls"]] == ["update_page_metadata"]
    assert any("Museum" in line and "City museum" in line for line in card["calls"][0]["previewLines"])
    assert card["calls"][0]["workspaceTitle"] == "Live"
    assert card["calls"][0]["rehearsal"]["changes"]["changes"][0]["uid"] == 3

    assert (await stack.decide(run_id, decision="approve")).status_code == 202
    await stack.worker().run_until_idle()
    run = await stack.view(run_id)
    assert run["status"] == "completed"
    assert "Saved: title" in run["finalContent"]
    assert stack.store.rows.tables["pages"][3]["title"] == "City museum"

    steps = await stack.steps(run_id)
    assert [step["sequence"] for step in steps] == list(range(1, len(steps) + 1))
    kinds = [step["kind"] for step in steps]
    assert kinds[kinds.index("tool") :][:3] == ["tool", "tool_write", "tool_changes"]
    assert kinds.index("approval") < kinds.index("tool")
    assert {step["segment"] for step in steps} == {1, 2}
