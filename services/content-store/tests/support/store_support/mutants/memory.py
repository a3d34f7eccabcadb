"""What earlier runs found out, in ``build/mutants``: an interrupted run goes on, an unchanged mutant is not run again.

A finding holds as long as the sources it rests on: the scope's modules, the tests' support, and the file of the test.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[6]
SERVICE: Final = Path(__file__).resolve().parents[4]
TESTS: Final = SERVICE / "tests" / "scope"
RULES: Final = SERVICE / "src" / "content_store" / "scope"
_SUPPORT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Reach:
    """What one test runs.

    Attributes:
        test: node id.
        seconds: it took.
        lines: of each module of the scope.
    """

    test: str
    seconds: float
    lines: dict[str, list[int]] = field(default_factory=dict)


class Memory:
    """Findings of all runs so far.

    Args:
        folder: where they are kept; several processes may add to it.
        fresh: begin anew.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._reached, self._verdicts = folder / "reached.jsonl", folder / "verdicts.jsonl"
        if fresh:
            for file in (self._reached, self._verdicts):
                file.unlink(missing_ok=True)
        own = [_SUPPORT / "mutants" / "mutation.py", TESTS / "conftest.py"]
        self._rules = _digest([*RULES.glob("*.py"), *_SUPPORT.glob("*.py"), *own])
        self._all = _digest([*RULES.glob("*.py"), *_SUPPORT.glob("*.py"), *own, *TESTS.glob("*.py")])
        self._files = {file.name: _digest([file]) for file in TESTS.rglob("test_*.py")}

    def reached(self) -> dict[str, Reach]:
        """By node id, for tests whose file is as it was."""
        return {
            line["test"]: Reach(line["test"], line["seconds"], line["lines"])
            for line in _lines(self._reached)
            if line["on"] == self._on(line["test"])
        }

    def remember_reach(self, reach: Reach) -> None:
        """Keep what a test runs."""
        _append(self._reached, {"on": self._on(reach.test), **vars(reach)})

    def verdicts(self) -> dict[str, str | None]:
        """Node id of the killing test by label, None for a mutant no test kills; only those that still hold."""
        return {
            line["mutant"]: line["killer"]
            for line in _lines(self._verdicts)
            if line["on"] == (self._on(line["killer"]) if line["killer"] else self._all)
        }

    def hints(self) -> dict[str, str]:
        """The test that killed a mutant the last time, whatever changed since."""
        return {line["mutant"]: line["killer"] for line in _lines(self._verdicts) if line["killer"]}

    def remember_verdict(self, label: str, killer: str | None) -> None:
        """Keep what became of a mutant."""
        on = self._on(killer) if killer else self._all
        _append(self._verdicts, {"on": on, "mutant": label, "killer": killer})

    def _on(self, test: str) -> str:
        name = test.partition("::")[0].rpartition("/")[2]
        return f"{self._rules}-{self._files.get(name, '')}"


def _digest(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def _lines(file: Path) -> Iterable[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue  # The process ended while it wrote this.


def _append(file: Path, line: dict[str, Any]) -> None:
    # One write, so that lines of two processes never mix.
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)
