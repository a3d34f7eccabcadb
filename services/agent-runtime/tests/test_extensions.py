"""Tools and rules of installed packages: the example of the documentation, as it stands there (T-65, S-61)."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_runtime.rules.engine import installed_rules
from agent_runtime.tools.registry import load_registry
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import StartStack

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "tools.md"


def block(language: str) -> str:
    """The one block of code in this language."""
    (found,) = re.findall(
        rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return str(found)


def install(folder: Path) -> None:
    """What an installer leaves behind: the module and its distribution's metadata."""
    project = tomllib.loads(block("toml"))["project"]
    (folder / "townhall_tools.py").write_text(block("python"), encoding="utf-8")
    metadata = folder / f"townhall_tools-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("townhall_tools", None)


@pytest.mark.req("T-65")
def test_without_the_package_nothing_of_it_is_there() -> None:
    assert "hide_element" not in load_registry().names
    assert all(rule.id != "townhall.keep_records" for rule in installed_rules())


@pytest.mark.req("T-65", "T-50", "S-61")
async def test_the_documented_package_works_when_it_is_installed(installed: None, start_stack: StartStack) -> None:
    turn: Any = asks(
        ("delete_record", {"table": "tt_content", "uid": 6}),
        ("hide_element", {"uid": 5}),
        ("hide_for_review", {"uid": 9}),
    )
    model = ScriptedModel([turn, says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("go")
        card = (await stack.run_to_pause(run_id))["pending"]
        refused, hides, reviews = card["calls"]
        assert refused["refusedByRule"]["rule"] == "townhall.keep_records"
        assert hides["previewLines"] == ["Hide Opening hours"]
        assert reviews["refusedByRule"] is None
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        run = await stack.run_to_pause(run_id)
        rows = stack.store.rows.tables["tt_content"]
        assert [rows[uid]["hidden"] for uid in (5, 6, 9)] == [1, 0, 1]
        assert rows[6]["deleted"] == 0
        assert run["status"] == "waiting_for_input"
        question = run["pending"]["question"]
        assert question["question"] == "The run waits for: review of the legal office"
        body = {"turnDigest": run["pending"]["turnDigest"], "answer": question["options"][0]}
        assert (await stack.request("POST", f"/v1/runs/{run_id}/answer", json=body)).status_code == 202
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        told = model.requests[-1].messages[-1].content
        assert told.startswith("tt_content:9 is hidden.")
        assert told.endswith("It is ready")
