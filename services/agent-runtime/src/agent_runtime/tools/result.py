"""The result of a tool call: transformed on its way through the loop, never rebuilt (W-01, W-04, T-05)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from remit_contracts.records import RecordReference
from remit_contracts.steps import Refusal, WriteCompleteness

ERROR_PREFIX = "Error: "
CUT_MARK = "\n[cut: the result was longer]"
MAX_ARTIFACT_DEPTH = 64


class ToolOutcome(StrEnum):
    """How a call went; not the same as a refusal (T-08)."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class ToolResult:
    """What a call says.

    Attributes:
        content: the text the model reads.
        artifacts: typed side material for people, never for the model.
        write_target: the record a writer wrote; never on an error (W-05).
        refusal: why the call was not carried out, set by the loop.
    """

    content: str
    is_error: bool = False
    artifacts: tuple[Any, ...] = ()
    write_target: RecordReference | None = None
    completeness: WriteCompleteness = WriteCompleteness.UNCONFIRMED
    hook_failed_after_write: bool = False
    outcome: ToolOutcome = ToolOutcome.OK
    refusal: Refusal | None = None

    @classmethod
    def error(cls, text: str, refusal: Refusal | None = None, outcome: ToolOutcome = ToolOutcome.FAILED) -> ToolResult:
        """An error: nothing but its message, no target, no artifacts (W-05, T-07)."""
        content = text if text.startswith(ERROR_PREFIX) else ERROR_PREFIX + text
        return cls(content=content, is_error=True, outcome=outcome, refusal=refusal)

    def with_bounded_channels(self, max_content: int, max_artifacts: int) -> ToolResult:
        """The same result with content and artifacts cut to their limits in bytes (T-05)."""
        return replace(self, content=bounded_text(self.content, max_content), artifacts=self._bounded(max_artifacts))

    def with_hook_failure(self, failed: bool) -> ToolResult:
        """The same result, marked where a hook failed after the write (W-08)."""
        return replace(self, hook_failed_after_write=self.hook_failed_after_write or failed)

    def with_sentence(self, sentence: str) -> ToolResult:
        """The same result with one more sentence for the model."""
        return replace(self, content=f"{self.content} {sentence}" if sentence else self.content)

    def as_error(self, text: str) -> ToolResult:
        """An error in place of this result; its own success text is not believed (S-70)."""
        failed = self.content if self.is_error else ERROR_PREFIX + "The call was not carried out as asked."
        return ToolResult.error(f"{failed} {text}".strip(), self.refusal)

    def _bounded(self, limit: int) -> tuple[Any, ...]:
        if not self.artifacts:
            return ()
        try:
            text = json.dumps(self.artifacts)
        except (TypeError, ValueError, RecursionError):
            return ({"type": "text", "text": "The material cannot be shown."},)
        if len(text.encode()) > limit or _depth(self.artifacts) > MAX_ARTIFACT_DEPTH:
            return ({"type": "text", "text": "The material was left out: it is too large."},)
        return self.artifacts


def bounded_text(text: str, limit: int) -> str:
    """Valid UTF-8 of at most ``limit`` bytes, cut at a character, the mark included."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    room = max(0, limit - len(CUT_MARK.encode()))
    return data[:room].decode("utf-8", "ignore") + CUT_MARK


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0
