"""One stack for all tests of this folder that may share one, with proxies between its programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "support"))

from chaos_support.stack import ChaosStack, start_chaos, stop_chaos
from remit_harness.run import TestRun
from remit_harness.servers import BrokerServer


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of this folder on one worker, so that one stack is started; give them time."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("chaos"))
            item.add_marker(pytest.mark.chaos)
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def shared_chaos(test_run: TestRun, postgres: str, broker: BrokerServer) -> Iterator[ChaosStack]:
    """Started once."""
    made = start_chaos(test_run, postgres, broker)
    yield made
    stop_chaos(made, postgres)


@pytest.fixture
def chaos(shared_chaos: ChaosStack) -> Iterator[ChaosStack]:
    """The stack; a test may kill programs and set rules and traps."""
    shared_chaos.calm()
    yield shared_chaos
    shared_chaos.calm()
