"""Answers of this service that no other service shares."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remit_contracts.base import Contract
from remit_contracts.runs import RunView


class RunList(Contract):
    """A page of runs; ``next_cursor`` is none on the last one."""

    runs: tuple[RunView, ...]
    next_cursor: UUID | None = None


class ConfigurationView(Contract):
    """What can be chosen when a run is started."""

    name: str
    label: str
    model: str
    demo: bool
    tools: tuple[str, ...]
    require_assignment_scope: bool
    require_draft_workspace: bool
    four_eyes: bool
    max_rounds: int


class ConfigurationList(Contract):
    """All configurations, by name."""

    configurations: tuple[ConfigurationView, ...]


class ToolView(Contract):
    """A declared tool."""

    name: str
    description: str
    effect: str
    group: str
    needs_approval: bool
    requires_input: bool
    parameters: dict[str, Any]


class ToolList(Contract):
    """All registered tools."""

    tools: tuple[ToolView, ...]
