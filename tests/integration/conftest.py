"""Every test here uses the one stack of its worker."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of this folder on one worker, so that only one stack is started; give them time."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("stack"))
            item.add_marker(pytest.mark.timeout(300))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    """A failing test shows the ends of the services' logs."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    stack = getattr(item, "funcargs", {}).get("stack")
    if report.when == "call" and report.failed and stack is not None:
        report.sections.append(("logs of the services", stack.stack.logs()))
    return None
