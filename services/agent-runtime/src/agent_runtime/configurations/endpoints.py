"""HTTP of configurations and tools."""

from __future__ import annotations

from fastapi import Request
from service_kit.problems import problem_responses
from service_kit.routing import Router

from agent_runtime.models.factory import DEMO
from agent_runtime.runs.endpoints import COMMON, Reader, runtime
from agent_runtime.runs.schemas import ConfigurationList, ConfigurationView, ToolList, ToolView

router = Router(prefix="/v1", tags=["configurations"])


@router.get("/configurations", responses=problem_responses(*COMMON))
async def configurations(request: Request, caller: Reader) -> ConfigurationList:
    """Names, labels, offered tools and switches."""
    parts = runtime(request)
    return ConfigurationList(
        configurations=tuple(
            ConfigurationView(
                name=item.name,
                label=item.label or item.name,
                model=item.model,
                demo=item.model == DEMO,
                tools=tuple(tool.name for tool in parts.gate.offered(item, None)),
                require_assignment_scope=item.require_assignment_scope,
                require_draft_workspace=item.require_draft_workspace,
                four_eyes=item.four_eyes,
                max_rounds=item.max_rounds,
            )
            for item in parts.configurations.all()
        )
    )


@router.get("/tools", responses=problem_responses(*COMMON))
async def tools(request: Request, caller: Reader) -> ToolList:
    """Declared tools with effect and schema."""
    return ToolList(
        tools=tuple(
            ToolView(
                name=tool.name,
                description=tool.description,
                effect=tool.effect.value,
                group=tool.group,
                needs_approval=tool.needs_approval(),
                requires_input=tool.requires_input,
                parameters=tool.schema(),
            )
            for tool in runtime(request).registry
        )
    )
