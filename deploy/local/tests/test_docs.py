"""The documentation page of each running service: complete without any other server, and its viewer really shows the API."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from remit_harness.stacks import TestStack
from remit_local.services import GATEWAY, RUNTIME, STORE

NODE = shutil.which("node")
LOADER = Path(__file__).parent / "docs_page.mjs"
METHODS = ("get", "post", "put", "patch", "delete", "head", "options")

pytestmark = [
    pytest.mark.xdist_group("stack"),
    pytest.mark.skipif(NODE is None, reason="no node on the path to run the documentation page with"),
]


def _load(page: str, word: str) -> dict[str, Any]:
    command = [str(NODE), str(LOADER), page, word]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
@pytest.mark.parametrize(("service", "word"), [(STORE, "/v1/datamap"), (RUNTIME, "/v1/runs/{"), (GATEWAY, "/decision")])
def test_the_page_shows_every_operation_and_asks_nobody_else(
    stack: TestStack, service: str, word: str, path: str
) -> None:
    base = stack.stack.plan.url(service)
    description = httpx2.get(f"{base}/openapi.json").json()
    page = _load(f"{base}{path}", word)
    assert all(url.startswith(f"{base}/") for url in page["fetched"])
    assert f"{base}/openapi.json" in page["fetched"]
    assert not any(":" in reference or reference.startswith("//") for reference in page["references"])
    for reference in page["references"]:
        asset = httpx2.get(f"{base}/{reference}")
        assert asset.status_code == 200
        assert len(asset.content) > 500
        if not reference.endswith(".json"):
            assert "://" not in asset.text
    operations = [
        f"{method.upper()}{route}"
        for route, methods in description["paths"].items()
        for method in METHODS
        if method in methods
    ]
    assert len(page["operations"]) == len(operations)
    assert all(any(shown.startswith(operation) for shown in page["operations"]) for operation in operations)
    assert page["schemas"] == [f"schema-{name}" for name in description["components"]["schemas"]]
    assert description["info"]["description"] in page["about"]
    assert 0 < page["left"] < page["all"], "the filter hides what does not hold the word"
