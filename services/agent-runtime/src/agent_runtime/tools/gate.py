"""The one gate that decides which tools are offered and may run (T-51). Asked at offer, before each call, at resume."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_runtime.configurations.models import Configuration
from agent_runtime.tools.contracts import Tool
from agent_runtime.tools.registry import ToolRegistry


class ToolGate:
    """Registered, enabled, in the configuration, in the run, admin only; cheapest and least revealing first.

    Args:
        disabled: names of tools an operator switched off.
    """

    def __init__(self, registry: ToolRegistry, disabled: Iterable[str] = ()) -> None:
        self._registry = registry
        self._disabled = frozenset(disabled)

    def refusal(
        self, name: str, configuration: Configuration, run_tools: Iterable[str] | None, *, admin: bool = False
    ) -> str | None:
        """Why the tool may not be used: ``unknown_tool`` or ``not_permitted``; none = it may."""
        tool = self._registry.get(name)
        if tool is None:
            return "unknown_tool"
        permitted = (
            name not in self._disabled
            and (not tool.admin_only or admin)
            and (configuration.tools is None or name in configuration.tools)
            and (configuration.groups is None or tool.group in configuration.groups)
            and (run_tools is None or name in run_tools)
        )
        return None if permitted else "not_permitted"

    def offered(
        self, configuration: Configuration, run_tools: Iterable[str] | None, *, admin: bool = False
    ) -> list[Tool[Any]]:
        """The tools a run may use."""
        wanted = None if run_tools is None else frozenset(run_tools)
        return [tool for tool in self._registry if self.refusal(tool.name, configuration, wanted, admin=admin) is None]
