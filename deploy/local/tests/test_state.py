"""The state folder: secrets stay, newer data is refused, two programs do not share it."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path

import pytest
from remit_local.state import FORMAT, StateError, default_folder, forget, held, open_state


def test_secrets_are_made_once_and_kept_private(tmp_path: Path) -> None:
    first = open_state(tmp_path)
    again = open_state(tmp_path)
    assert first.secrets == again.secrets
    assert len(set(first.secrets.values())) == len(first.secrets)
    assert len(base64.b64decode(first.secrets["state_key"])) == 32
    assert stat.S_IMODE(first.file.stat().st_mode) == 0o600


def test_what_the_demo_left_is_found_again(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    state.demo = {"pages": {"News": 38}}
    state.save()
    assert open_state(tmp_path).demo == {"pages": {"News": 38}}


def test_data_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    data = json.loads(state.file.read_text())
    state.file.write_text(json.dumps({**data, "format": FORMAT + 1, "version": "9.9"}))
    before = state.file.read_bytes()
    with pytest.raises(StateError, match=r"newer version \(9.9\)"):
        open_state(tmp_path)
    assert state.file.read_bytes() == before


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": "x", "secrets": {}, "demo": {}}'])
def test_a_broken_file_is_said_and_not_overwritten(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(StateError, match="--reset"):
        open_state(tmp_path)
    assert (tmp_path / "state.json").read_text() == content


def test_a_second_program_is_kept_out(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(StateError, match="another remit"), held(tmp_path):
        pass
    with held(tmp_path):
        pass


def test_forgetting_leaves_only_the_lock(tmp_path: Path) -> None:
    open_state(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "lock").touch()
    forget(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["lock"]


def test_a_note_of_a_dead_process_counts_as_nothing_running(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    state.note_running({"services": {}})
    assert state.running() is not None
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    state.running_file.write_text(json.dumps({"pid": pid}))
    assert state.running() is None


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REMIT_STATE", str(tmp_path / "elsewhere"))
    assert default_folder() == tmp_path / "elsewhere"
    monkeypatch.delenv("REMIT_STATE")
    assert default_folder().name in {".remit", "remit"}
