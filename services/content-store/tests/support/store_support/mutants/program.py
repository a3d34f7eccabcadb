"""Runs the scope's tests against every mutant of its rules and says which test kills which.

It takes the servers the tests take, and writes docs/mutants.md when everything was run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from store_support.mutants.mutation import MODULES, Mutant, applied, mutants_of
from store_support.mutants.report import EQUIVALENT, Verdict, write_report

ROOT = Path(__file__).resolve().parents[6]
SCOPE = Path(__file__).resolve().parents[3] / "scope"
#: The tests that know a module best.
FIRST = {
    "checker": ("test_checker.py", "test_borders.py"),
    "effect": ("test_effect.py", "test_borders.py"),
    "hook": ("test_hook.py", "test_layers.py"),
    "entries": ("test_hook.py",),
    "commands": ("test_borders.py", "test_hook.py", "test_claims.py"),
}
STAGES = ("own tests", "the other tests", "random calls")
FUZZ = "test_fuzz.py"


class MutantRunner:
    """A pytest plugin: instead of running the tests once it runs them for every mutant, up to the first that fails.

    Args:
        mutants: to be run.
        stages: each runs what the one before left alive.

    Attributes:
        verdicts: what became of them.
        sound: the tests pass without a mutant, and each that killed one passes again.
    """

    def __init__(self, mutants: list[Mutant], stages: Sequence[str] = STAGES) -> None:
        self._mutants = mutants
        self._stages = stages
        self._killed: dict[Mutant, Verdict] = {}
        self._kills: Counter[str] = Counter()
        self.verdicts: list[Verdict] = []
        self.sound = True
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notice a failure."""
        self._failed = self._failed or report.failed

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str]:
        """Single tests are not told."""
        return "", "", ""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All mutants."""
        tests = [item for item in session.items if item.path.name != FUZZ]
        cleaner = next(item for item in tests if "store" in getattr(item, "fixturenames", ()))
        if (broken := self._killer(tests)) is not None:
            sys.stdout.write(f"fails without a mutant: {broken.nodeid}\n")
            self.sound = False
            return True
        living = self._mutants
        for stage in self._stages:
            sys.stdout.write(f"{len(living)} mutants, {stage}:\n")
            found = [self._verdict(mutant, _chosen(session.items, mutant, stage), cleaner) for mutant in living]
            self._killed |= {verdict.mutant: verdict for verdict in found if verdict.killer}
            living = [verdict.mutant for verdict in found if verdict.killer is None]
        self.verdicts = [self._killed.get(mutant, Verdict(mutant, None)) for mutant in self._mutants]
        return True

    def _verdict(self, mutant: Mutant, tests: list[pytest.Item], cleaner: pytest.Item) -> Verdict:
        started = time.monotonic()
        with applied(mutant):
            killer = self._killer(sorted(tests, key=lambda item: -self._kills[item.nodeid]))
        if any("shared_store" in getattr(item, "fixturenames", ()) for item in tests):
            # Its teardown puts back what the mutant let be written.
            self._killer([cleaner])
        if killer is not None:
            # A test that fails without the mutant as well has killed nothing.
            self.sound = self.sound and self._killer([killer]) is None
            self._kills[killer.nodeid] += 1
        verdict = Verdict(mutant, f"{killer.path.name}::{killer.name}" if killer is not None else None)
        sys.stdout.write(f"{time.monotonic() - started:.1f} s {verdict}\n")
        sys.stdout.flush()
        return verdict

    def _killer(self, items: list[pytest.Item]) -> pytest.Item | None:
        """The first test that fails."""
        self._failed = False
        if items:
            # The round before ended wherever it ended.
            items[0].session._setupstate.teardown_exact(items[0])
        for number, item in enumerate(items):
            # Never itself: pytest would leave its fixtures as they are.
            following = items[number + 1 :] or [other for other in item.session.items[:2] if other is not item]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following[0])
            if self._failed:
                return item
        return None


def _chosen(items: list[pytest.Item], mutant: Mutant, stage: str) -> list[pytest.Item]:
    """The tests of a stage: those of the module, all others of the scope, or random calls."""
    first = FIRST[mutant.module]
    if stage == "random calls":
        return [item for item in items if item.path.name == FUZZ and "no_row_outside" in item.name]
    if stage == "own tests":
        known = [item for item in items if item.path.name in first]
        return sorted(known, key=lambda item: first.index(item.path.name))
    return [item for item in items if item.path.name not in (*first, FUZZ)]


def main() -> int:
    """Run, print, and say with the exit code whether all is well: 1 when a mutant lives on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MODULES, action="append")
    parser.add_argument("--function", help="part of the name of a function")
    parser.add_argument(
        "--stages", type=int, default=len(STAGES), help="1: only the module's own tests, 2: no random calls"
    )
    parser.add_argument("--report", type=Path, help="where to, instead of docs/mutants.md")
    options = parser.parse_args()
    # Examples that kill a mutant are of no use to anybody else.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", tempfile.mkdtemp(prefix="mutants-"))
    os.environ.setdefault("REMIT_FUZZ_CALLS", "300")
    mutants = [m for module in options.only or MODULES for m in mutants_of(module)]
    mutants = [m for m in mutants if (options.function or "") in m.function and m.label not in EQUIVALENT]
    runner = MutantRunner(mutants, STAGES[: options.stages])
    arguments = [str(SCOPE), "--ignore", str(SCOPE / "mutants"), "-m", "not long", "-p", "no:terminalreporter"]
    code = pytest.main([*arguments, "--timeout=60", f"--rootdir={ROOT}", f"--confcutdir={ROOT}"], plugins=[runner])
    living = [verdict for verdict in runner.verdicts if verdict.killer is None]
    sys.stdout.write(f"{len(runner.verdicts)} mutants, {len(living)} live on\n")
    for verdict in living:
        sys.stdout.write(f"  {verdict.mutant.label}\n")
    whole = not options.only and not options.function and options.stages == len(STAGES)
    if runner.sound and (whole or options.report):
        write_report(options.report or ROOT / "docs" / "mutants.md", runner.verdicts)
    return 1 if living or not runner.sound or not runner.verdicts or code > 1 else 0
