from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from _pytest.terminal import TerminalReporter
from remit_harness.databases import Databases
from remit_harness.run import TestRun

_PREFIX = "test_conforms["


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    green, red = 0, []
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            name = getattr(report, "nodeid", "").rpartition("::")[2]
            if not name.startswith(_PREFIX) or (outcome == "passed" and report.when != "call"):
                continue
            if outcome == "passed":
                green += 1
            else:
                red.append(name[len(_PREFIX) : -1])
    if green or red:
        for name in sorted(set(red)):
            terminalreporter.write_line(f"red: {name}")
        terminalreporter.write_line(f"{green} of {green + len(set(red))} cases green")


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    # Cases of a group go to one worker where the run is told to keep groups together.
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "case" in callspec.params and item.name.startswith(_PREFIX):
        item.add_marker(pytest.mark.xdist_group(callspec.params["case"].file.stem))


@pytest.fixture(scope="session")
def suite_database(postgres: str, test_run: TestRun) -> Iterator[str]:
    """A database of this process; each group makes its tables in a schema of its own, once."""
    databases = Databases(postgres, test_run)
    yield asyncio.run(databases.create("dh_suite"))
    asyncio.run(databases.drop())
