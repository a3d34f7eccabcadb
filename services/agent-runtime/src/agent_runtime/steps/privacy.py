"""What a stored step keeps at each privacy level (T-53, T-73). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from remit_contracts.steps import StepKind

TEXT_LIMIT = 2000
MASK = "[masked]"
_MASKS = (
    re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    re.compile(r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL),
    re.compile(r"(?i)\b(?:password|passwort|secret|token|api[_-]?key)\b\s*[:=]\s*\S+"),
)
STRICTNESS = ("full", "redacted", "metadata")

# Keys of a payload that may hold content, with what stands in their place at the level "metadata".
_Measure = Callable[[Any], dict[str, Any]]
CONTENT: dict[str, dict[str, _Measure]] = {
    StepKind.REQUEST: {"messages": lambda value: {"messagesCount": len(value)}},
    StepKind.LLM: {
        "content": lambda value: {"contentLength": len(value or "")},
        "thinking": lambda value: {"thinkingLength": len(value or "")},
        "requestedCalls": lambda value: {"requestedToolNames": [call.get("name") for call in value or []]},
        "raw": lambda _value: {},
    },
    StepKind.TOOL: {
        "arguments": lambda _value: {},
        "result": lambda value: {"resultLength": len(value or "")},
        "artifacts": lambda value: {"artifactsCount": len(value or [])},
    },
    StepKind.PROGRESS: {"text": lambda _value: {}},
    StepKind.HIGHLIGHT: {"text": lambda _value: {}},
}


def strictest(*levels: str) -> str:
    """The strictest of some levels; an unknown one counts as the strictest there is."""
    ranked = [STRICTNESS.index(level) if level in STRICTNESS else len(STRICTNESS) - 1 for level in levels]
    return STRICTNESS[max(ranked, default=len(STRICTNESS) - 1)]


def filtered(kind: str, payload: dict[str, Any], level: str) -> dict[str, Any]:
    """The payload as it may be stored and published. Names, flags, targets, completeness and change lists survive."""
    content = CONTENT.get(kind)
    if content is None or level == "full":
        return payload
    kept: dict[str, Any] = {}
    for key, value in payload.items():
        if key not in content:
            kept[key] = value
        elif level == "redacted":
            kept[key] = masked(value)
        elif value is not None:
            kept.update(content[key](value))
            kept["contentRedacted"] = True
    return kept


def masked(value: Any) -> Any:
    """The value with secret shapes and addresses masked, and texts cut."""
    if isinstance(value, str):
        text = value
        for pattern in _MASKS:
            text = pattern.sub(MASK, text)
        return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "…"
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value
