"""Flushing caches: the one writer that touches no record (S-28)."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit_contracts.calls import FlushCache

from agent_runtime.tools.contracts import (
    ClaimOperation,
    Plan,
    ScopedWrite,
    ToolArguments,
    ToolContext,
    WriteTool,
)


class ClearCacheArguments(ToolArguments):
    """Which caches."""

    group: Literal["pages", "all", "system"] = "pages"


class ClearCache(WriteTool[ClearCacheArguments]):
    """Flush a group of caches. It clears more than a scope names: a cache is not a record."""

    name: ClassVar[str] = "clear_cache"
    description: ClassVar[str] = "Flush a group of caches: pages, system or all. No record changes."
    arguments: ClassVar[type[ToolArguments]] = ClearCacheArguments

    def scoped_write(self, arguments: ClearCacheArguments) -> ScopedWrite:
        """Explicitly no record."""
        return ScopedWrite(ClaimOperation.CLEAR_CACHE, touches_no_record=True)

    async def plan(self, arguments: ClearCacheArguments, context: ToolContext) -> Plan:
        """The flush happens after the commit (S-59)."""
        return Plan(
            operations=(FlushCache(group=arguments.group),),
            lines=(
                context.say("Flush the caches of the group {group}", group=arguments.group),
                context.say("No record changes."),
            ),
            success=f"The caches of the group {arguments.group} were flushed.",
        )
