"""Plugins of pytest that play tests in an order of their own: to see what each runs, and against mutants."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from types import FrameType
from typing import Any

import pytest

from store_support.mutants.memory import RULES, Memory, Reach
from store_support.mutants.mutation import MODULES, Mutant, applied, lines_of
from store_support.mutants.report import Verdict

FUZZ = "test_fuzz.py"


class Player:
    """Plays tests one by one.

    Attributes:
        sound: no test failed but for a mutant.
        failure: what the last one that failed said.
    """

    def __init__(self) -> None:
        self.sound = True
        self.failure = ""
        self._failed = False

    def pytest_configure(self, config: pytest.Config) -> None:
        """Properties try the same examples for every mutant and keep them for nobody; watched tests are slow."""
        from hypothesis import HealthCheck, settings

        settings.register_profile(
            "mutants", derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notice a failure."""
        if report.failed:
            self._failed, self.failure = True, report.longreprtext

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str]:
        """Single tests are not told."""
        return "", "", ""

    def fails_by_itself(self, item: pytest.Item) -> bool:
        """The same without a mutant: then what was found with one proves nothing."""
        if not self.fails(item):
            return False
        sys.stdout.write(f"fails without a mutant: {item.nodeid}\n{self.failure}\n")
        self.sound = False
        return True

    def fails(self, item: pytest.Item) -> bool:
        """Play one test with all its fixtures but those of the session."""
        self._failed = False
        # The round before ended wherever it ended.
        item.session._setupstate.teardown_exact(item)
        # Never itself: pytest would leave its fixtures as they are.
        following = next(other for other in item.session.items[:2] if other is not item)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return self._failed


class ReachRecorder(Player):
    """Sees which lines of the rules each test runs, and that it passes.

    Args:
        memory: takes it.
        part: which of the tests, as (number, of so many).
    """

    def __init__(self, memory: Memory, part: tuple[int, int]) -> None:
        super().__init__()
        self._memory = memory
        self._part = part
        self._names = {str(RULES / f"{name}.py"): name for name in MODULES}
        self._lines: set[tuple[str, int]] = set()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All tests of the part that are not known yet."""
        known = self._memory.reached()
        number, parts = self._part
        for item in [item for item in session.items if item.path.name != FUZZ][number::parts]:
            if item.nodeid in known:
                continue
            self._lines = set()
            started = time.monotonic()
            sys.settrace(self._entered)
            try:
                failed = self.fails_by_itself(item)
            finally:
                sys.settrace(None)
            if failed:
                continue
            lines = {name: sorted(line for file, line in self._lines if file == name) for name in MODULES}
            self._memory.remember_reach(Reach(item.nodeid, round(time.monotonic() - started, 3), lines))
        return True

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self._names:
            return None
        self._lines.add((self._names[frame.f_code.co_filename], frame.f_lineno))
        return self._went_on

    def _went_on(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._lines.add((self._names[frame.f_code.co_filename], frame.f_lineno))
        return self._went_on


class MutantRunner(Player):
    """Plays, for every mutant, the tests that run the changed line, up to the first that fails.

    First those of the module that need no store, then the others that need none, then those that need one, beginning
    with the one that killed it the last time; random calls last.

    Args:
        memory: knows what each test runs, and takes what becomes of each mutant.
        mutants: to be run.
        budget: seconds for each; one nobody killed by then lives on.
        random_calls: play the fuzz against those that survive.
    """

    def __init__(self, memory: Memory, mutants: list[Mutant], budget: float, *, random_calls: bool) -> None:
        super().__init__()
        self._memory = memory
        self._mutants = mutants
        self._budget = budget
        self._random_calls = random_calls
        self._reached = memory.reached()
        self._hints = memory.hints()
        self._kills: Counter[str] = Counter()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All mutants."""
        cleaner = next(item for item in session.items if "store" in _fixtures(item) and item.path.name != FUZZ)
        for mutant in self._mutants:
            started = time.monotonic()
            killer, played = self._killer(mutant, self._chosen(session.items, mutant), cleaner)
            self._memory.remember_verdict(mutant.label, killer)
            verdict = Verdict(mutant, killer)
            sys.stdout.write(f"{time.monotonic() - started:.1f} s, {played} tests: {verdict}\n")
            sys.stdout.flush()
        return True

    def _killer(self, mutant: Mutant, tests: Iterable[pytest.Item], cleaner: pytest.Item) -> tuple[str | None, int]:
        until = time.monotonic() + self._budget
        played = 0
        for item in tests:
            if time.monotonic() > until:
                break
            played += 1
            with applied(mutant):
                failed = self.fails(item)
            if not failed:
                continue
            if "shared_store" in _fixtures(item):
                # Its teardown puts back what the mutant let be written.
                self.fails(cleaner)
            if not self.fails_by_itself(item):
                self._kills[item.nodeid] += 1
                return item.nodeid, played
        return None, played

    def _chosen(self, items: list[pytest.Item], mutant: Mutant) -> list[pytest.Item]:
        lines = set(lines_of(mutant))
        tests = [
            item
            for item in items
            if (reach := self._reached.get(item.nodeid)) is not None
            and not lines.isdisjoint(reach.lines.get(mutant.module, ()))
        ]
        own = (f"test_{mutant.module}.py", f"test_{mutant.module}_rules.py")
        quick = [item for item in tests if "databases" not in _fixtures(item)]
        # As they stand in their files, so that the table is the same after every run.
        quick.sort(key=lambda item: item.path.name not in own)
        slow = [item for item in tests if "databases" in _fixtures(item)]
        hint = self._hints.get(mutant.label)
        slow.sort(key=lambda item: (item.nodeid != hint, -self._kills[item.nodeid], self._reached[item.nodeid].seconds))
        tests = quick + slow
        if self._random_calls:
            tests += [item for item in items if item.path.name == FUZZ and "no_row_outside" in item.name]
        return tests


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])
