"""Child processes: they end with the one they belong to, and come back when they die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from remit_local.processes import ProcessError, Program, spawn
from remit_local.supervisor import LONGEST_PAUSE, Supervisor, pause_after

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
ENVIRONMENT = {"PATH": os.environ["PATH"]}


def _until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def _program(tmp_path: Path, name: str = "sleeper", command: list[str] | None = None) -> Program:
    return Program(name, command or SLEEP, ENVIRONMENT, tmp_path / f"{name}.log")


def test_a_killed_program_is_started_again(tmp_path: Path) -> None:
    program = _program(tmp_path)
    lines: list[str] = []
    supervisor = Supervisor([program], lines.append)
    supervisor.start()
    try:
        first = program.pid
        os.kill(first, signal.SIGKILL)
        _until(lambda: supervisor.restarts("sleeper") == 1 and program.running)
        assert program.pid != first
        assert "starting it again" in lines[0]
    finally:
        supervisor.stop()
    assert not program.running


def test_a_program_that_keeps_dying_is_reported_with_its_last_words(tmp_path: Path) -> None:
    program = _program(tmp_path, "broken", [sys.executable, "-c", "raise SystemExit('no such database')"])
    supervisor = Supervisor([program])
    supervisor.start()
    try:
        with pytest.raises(ProcessError, match="no such database"):
            supervisor.wait_until(lambda: False, "broken", 30)
    finally:
        supervisor.stop()


def test_pauses_grow_and_have_an_end() -> None:
    pauses = [pause_after(deaths) for deaths in range(1, 12)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 1
    assert pauses[-1] == LONGEST_PAUSE


def test_without_watching_a_dead_program_stays_dead(tmp_path: Path) -> None:
    program = _program(tmp_path)
    supervisor = Supervisor([program])
    supervisor.start(watch=False)
    program.kill()
    assert not program.running
    with pytest.raises(ProcessError, match="keeps ending"):
        supervisor.wait_until(lambda: False, "sleeper", 5)
    program.start()
    assert program.running
    supervisor.stop()


def test_programs_end_side_by_side(tmp_path: Path) -> None:
    """Each ends only when it sees that the other was asked as well."""
    script = (
        "import pathlib, signal, sys, time\n"
        "mine, other = map(pathlib.Path, sys.argv[1:])\n"
        "def end(number, frame):\n"
        "    mine.touch()\n"
        "    while not other.exists(): time.sleep(0.01)\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    marks = [str(tmp_path / "one"), str(tmp_path / "two")]
    commands = {"one": [*marks], "two": [*reversed(marks)]}
    programs = [_program(tmp_path, name, [sys.executable, "-c", script, *paths]) for name, paths in commands.items()]
    supervisor = Supervisor(programs)
    supervisor.start()
    _until(lambda: all("ready" in program.tail() for program in programs))
    supervisor.stop()
    assert [program.process.returncode for program in programs if program.process is not None] == [0, 0]


def test_a_paused_program_can_be_stopped(tmp_path: Path) -> None:
    program = _program(tmp_path)
    program.start()
    program.pause()
    program.stop(10)
    assert not program.running


@pytest.mark.parametrize("guarded", [False, True])
def test_a_child_ends_when_its_owner_is_killed(tmp_path: Path, guarded: bool) -> None:
    """The owner is killed with SIGKILL, so nothing of its own can clean up."""
    parent = subprocess.Popen(SLEEP) if guarded else None
    owner = f"{parent.pid}" if parent else "os.getpid()"
    script = (
        "import os, sys, time\nfrom pathlib import Path\nfrom remit_local.processes import spawn\n"
        f"child = spawn({SLEEP!r}, log=Path({str(tmp_path / 'log')!r}), environment=dict(os.environ), owner={owner})\n"
        "print(child.pid, flush=True)\ntime.sleep(600)\n"
    )
    middle = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert middle.stdout is not None
    child = int(middle.stdout.readline())
    assert not _gone(child)
    victim = parent or middle
    victim.kill()
    victim.wait()
    _until(lambda: _gone(child))
    middle.kill()
    middle.wait()
    middle.stdout.close()


def test_control_a_child_without_an_owner_stays(tmp_path: Path) -> None:
    script = (
        "import os\nfrom pathlib import Path\nfrom remit_local.processes import spawn\n"
        f"print(spawn({SLEEP!r}, log=Path({str(tmp_path / 'log')!r}), environment=dict(os.environ)).pid, flush=True)\n"
        "os._exit(0)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    child = int(result.stdout)
    assert not _gone(child)
    os.kill(child, signal.SIGKILL)


def test_output_goes_to_the_log(tmp_path: Path) -> None:
    process = spawn([sys.executable, "-c", "print('hello')"], log=tmp_path / "a" / "log", environment=ENVIRONMENT)
    process.wait()
    assert (tmp_path / "a" / "log").read_text() == "hello\n"
