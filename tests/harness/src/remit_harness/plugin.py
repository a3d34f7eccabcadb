"""The pytest plugin: servers for tests, requirement marks, and skips that are counted aloud."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
from _pytest.terminal import TerminalReporter

from remit_harness.databases import Databases
from remit_harness.run import TestRun
from remit_harness.servers import POSTGRES_VARIABLE, BrokerServer, broker_server, postgres_server, stop_servers
from remit_harness.stacks import TestStack, forget_template, stack_template, start_stack, stop_stack

RUN = pytest.StashKey[TestRun]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin the run in the controller, join it in a worker."""
    worker = hasattr(config, "workerinput")
    config.stash[RUN] = TestRun.join() if worker else TestRun.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """In the controller: stop what the run started."""
    run = config.stash.get(RUN, None)
    if run is not None and run.owner == os.getpid():
        if given := os.environ.get(POSTGRES_VARIABLE):
            forget_template(run, given)
        stop_servers(run)
        run.end()


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say how many tests were skipped, and why; nothing is skipped in silence."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons: Counter[str] = Counter()
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    terminalreporter.write_line(f"skipped: {sum(reasons.values())}")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"  {count} × {reason}")


@pytest.fixture(scope="session")
def test_run(pytestconfig: pytest.Config) -> TestRun:
    """The run's shared folder."""
    return pytestconfig.stash[RUN]


@pytest.fixture(scope="session")
def postgres(test_run: TestRun) -> str:
    """An administrator's URL of a PostgreSQL server, without a driver name."""
    return postgres_server(test_run).url


@pytest.fixture(scope="session")
def broker(test_run: TestRun) -> BrokerServer:
    """A broker that speaks Kafka's protocol; Apache Kafka wherever it can run."""
    return broker_server(test_run)


@pytest.fixture
async def databases(postgres: str, test_run: TestRun) -> AsyncIterator[Databases]:
    """Databases of this test, dropped at its end."""
    made = Databases(postgres, test_run)
    yield made
    await made.drop()


@pytest.fixture(scope="session")
def broker_address(broker: BrokerServer) -> str:
    """``host:port`` of the broker."""
    return broker.address


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    """A failing test shows the ends of the services' logs: of ``stack``, or of a fixture that has one as ``test``."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and report.failed:
        used = (getattr(value, "test", value) for value in getattr(item, "funcargs", {}).values())
        made = next((value for value in used if isinstance(value, TestStack)), None)
        if made is not None:
            report.sections.append(("logs of the services", made.stack.logs()))
    return None


@pytest.fixture(scope="session")
def shared_stack(test_run: TestRun, postgres: str, broker: BrokerServer) -> Iterator[TestStack]:
    """One stack for all tests of this process; use ``stack``, which repairs it between tests."""
    made = start_stack(stack_template(test_run, postgres, broker), postgres, broker)
    yield made
    stop_stack(made, postgres)


@pytest.fixture
def stack(request: pytest.FixtureRequest) -> Iterator[TestStack]:
    """The running services with the demo site. A test may kill and pause programs; it leaves pages of its own changed.

    Tests that use it belong into one xdist group (``pytest.mark.xdist_group("stack")``), else each worker starts one.
    """
    if "PYTEST_XDIST_WORKER" in os.environ and "@" not in request.node.nodeid:
        pytest.fail("this test stands in no xdist group, so each worker would start a stack")
    shared_stack: TestStack = request.getfixturevalue("shared_stack")
    shared_stack.repair()
    yield shared_stack
    shared_stack.repair()
