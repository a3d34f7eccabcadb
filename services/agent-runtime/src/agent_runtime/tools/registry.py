"""Which tools there are: built in and found by entry points, checked when they are registered (T-03, T-65)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import Any

from pydantic import ValidationError
from remit_contracts.calls import ToolEffect

from agent_runtime.tools.contracts import Tool, ToolArgumentError, ToolArguments, WriteTool

ENTRY_POINTS = "agent_runtime.tools"
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ToolRegistrationError(Exception):
    """A tool that may not be registered; says which and why."""


class ToolRegistry:
    """Registered tools by name, in the order they were registered."""

    def __init__(self, tools: Iterable[Tool[Any]] = ()) -> None:
        self._tools: dict[str, Tool[Any]] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool[Any]) -> None:
        """Add a tool.

        Raises:
            ToolRegistrationError: bad or taken name, approval together with input, a write without a plan.
        """
        name = getattr(tool, "name", "")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ToolRegistrationError(f"the tool {type(tool).__name__} has no usable name")
        if name in self._tools:
            raise ToolRegistrationError(f"the tool {name} is registered twice")
        if tool.needs_approval() and tool.requires_input:
            raise ToolRegistrationError(f"the tool {name} asks for approval and for input at once")
        if tool.dependency and tool.requires_input:
            raise ToolRegistrationError(f"the tool {name} asks for input and waits for a dependency at once")
        if tool.effect is ToolEffect.WRITE and not isinstance(tool, WriteTool):
            raise ToolRegistrationError(f"the tool {name} writes and has no plan")
        self._tools[name] = tool

    def get(self, name: str) -> Tool[Any] | None:
        """The tool of this name, none where there is none."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool[Any]]:
        return iter(self._tools.values())

    @property
    def names(self) -> frozenset[str]:
        """Names of all registered tools."""
        return frozenset(self._tools)


def load_registry() -> ToolRegistry:
    """The built-in tools and those of installed packages."""
    from agent_runtime.tools.builtin import builtin_tools

    registry = ToolRegistry(builtin_tools())
    for entry in entry_points(group=ENTRY_POINTS):
        found = entry.load()()
        for tool in found if isinstance(found, list | tuple) else [found]:
            if not isinstance(tool, Tool):
                raise ToolRegistrationError(f"the entry point {entry.name} gives something that is no tool")
            registry.register(tool)
    return registry


def read_arguments(tool: Tool[Any], given: Any) -> ToolArguments:
    """The arguments as the tool's model; unknown ones are refused as a whole.

    Raises:
        ToolArgumentError: names the wrong arguments, never their values.
    """
    if not isinstance(given, dict):
        raise ToolArgumentError("The arguments are no JSON object.")
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(str(part) for part in item['loc']) or 'arguments'}: {item['msg']}"
            for item in error.errors(include_input=False, include_url=False, include_context=False)[:5]
        ]
        raise ToolArgumentError("The arguments do not fit: " + "; ".join(wrong) + ".") from error
