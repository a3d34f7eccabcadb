"""What a start must not load: it costs every start seconds, and nobody would notice it coming back."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = {
    "remit_local.cli": {"fastapi", "sqlalchemy", "aiokafka", "service_kit.auth", "alembic"},
    # These three are all that migrations need.
    "content_store.cli": {"fastapi", "uvicorn", "aiokafka", "content_store.app"},
    "agent_runtime.cli": {"fastapi", "uvicorn", "aiokafka", "agent_runtime.app", "agent_runtime.worker"},
    "chat_gateway.cli": {"fastapi", "uvicorn", "aiokafka", "chat_gateway.app", "chat_gateway.consumer"},
    # The demo model is no reason to load the libraries of real ones, nor is a missing collector to load its exporter.
    "agent_runtime.app": {"pydantic_ai", "openai", "anthropic", "opentelemetry.sdk", "opentelemetry.exporter"},
    "agent_runtime.deps": {"pydantic_ai", "openai", "anthropic"},
    "chat_gateway.app": {"opentelemetry.sdk", "opentelemetry.exporter"},
    "content_store.app": {"opentelemetry.sdk", "opentelemetry.exporter"},
}


def _loaded(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("module", CASES)
def test_a_command_loads_no_more_than_it_needs(module: str) -> None:
    loaded = _loaded(module)
    assert module in loaded
    assert not CASES[module] & loaded


def test_control_what_is_loaded_is_seen() -> None:
    assert {"fastapi", "sqlalchemy"} <= _loaded("chat_gateway.app")
