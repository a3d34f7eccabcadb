"""What the chat keeps of a step: structure only, so that nothing else can ever be shown or told (R-009)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from remit_contracts.steps import Step, StepKind

_DROPPED = frozenset({"arguments", "result", "artifacts"})
_ALLOWED: Mapping[str, frozenset[str]] = {
    StepKind.APPROVAL: frozenset({"decision", "decisions", "reason"}),
    StepKind.STATUS: frozenset({"status", "outcome", "terminationReason", "segment"}),
}
_WHOLE = frozenset({StepKind.TOOL, StepKind.TOOL_WRITE, StepKind.TOOL_CHANGES})
MAX_DEPTH = 20


def kept_payload(step: Step) -> dict[str, Any]:
    """The payload to store: of a tool call without arguments and results, of a model round nothing."""
    if step.kind in _ALLOWED:
        kept = {name: value for name, value in step.payload.items() if name in _ALLOWED[step.kind]}
    elif step.kind in _WHOLE:
        kept = {name: value for name, value in step.payload.items() if name not in _DROPPED}
    else:
        kept = {}
    cleaned = storable(kept)
    return cleaned if isinstance(cleaned, dict) else {}


def storable(value: Any, depth: int = 0) -> Any:
    """The JSON value without what PostgreSQL's jsonb refuses: NUL characters, lone surrogates, endless nesting."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {str(storable(str(name), depth)): storable(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
