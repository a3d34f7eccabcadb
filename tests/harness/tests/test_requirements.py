"""The requirement list: which marks count, and that the document and the tests agree on the ids."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_tool", ROOT / "tools" / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["requirements_tool"] = module
    spec.loader.exec_module(module)
    return module


def test_marks_of_functions_classes_and_modules_count(tool: ModuleType) -> None:
    source = """
import pytest
pytestmark = pytest.mark.req("S-01")

@pytest.mark.req("S-02", "R-001")
async def test_a(): ...

@pytest.mark.req("S-03")
class TestThings:
    pytestmark = [pytest.mark.req("S-04"), pytest.mark.slow]
    def test_b(self): ...
    def helper(self): ...

@pytest.mark.req("S-99")
def helper(): ...
"""
    assert tool.marks(source) == {"S-01": 2, "S-02": 1, "R-001": 1, "S-03": 1, "S-04": 1}


def test_every_cited_id_is_a_requirement_of_the_document(tool: ModuleType) -> None:
    lines = tool.DOCUMENT.read_text(encoding="utf-8").splitlines()
    known = {match["id"] for line in lines if (match := tool.ROW.match(line))}
    assert len(known) > 250
    assert set(tool.citations()) <= known
