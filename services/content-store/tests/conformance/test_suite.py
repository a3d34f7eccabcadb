"""The conformance suite, played against the DataHandler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from store_support.adapter import Connection, case_run
from store_support.suite import SuiteCase, SuiteGroup, read_suite, suite_folder, wanted_modes

_FOLDER = suite_folder(Path(__file__).resolve().parents[4])
_GROUPS: dict[Path, SuiteGroup] = {
    group.cases[0].file: group for group in (read_suite(_FOLDER, wanted_modes()) if _FOLDER.is_dir() else [])
}
_CASES = [case for group in _GROUPS.values() for case in group.cases]

if not _CASES:
    _CASES_OR_SKIP = [pytest.param(None, marks=pytest.mark.skip(reason=f"no conformance suite in {_FOLDER.name}"))]
else:
    _CASES_OR_SKIP = [pytest.param(case, id=case.id) for case in _CASES]


@pytest.fixture
async def connection(suite_database: str) -> AsyncIterator[Connection]:
    found = await asyncpg.connect(suite_database)
    try:
        yield found
    finally:
        await found.close()


@pytest.mark.parametrize("case", _CASES_OR_SKIP)
async def test_conforms(case: SuiteCase, connection: Connection) -> None:
    group = _GROUPS[case.file]
    async with case_run(connection, group, case) as run:
        messages = await run.play()
    assert not messages, "\n".join(messages)
