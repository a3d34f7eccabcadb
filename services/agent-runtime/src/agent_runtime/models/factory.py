"""From the model string of a configuration to a model; nothing falls back to another one."""

from __future__ import annotations

from agent_runtime.models.demo.model import DemoModel
from agent_runtime.models.port import Model

DEMO = "demo"


def build_model(name: str, base_url: str | None = None) -> Model:
    """The model called ``demo``, or one of a provider (``openai:…``, ``anthropic:…``, …).

    Raises:
        ModelNotConfigured: names the variable or the extra that is missing.
    """
    if name == DEMO:
        return DemoModel()
    # Providers' packages take seconds to import; a process that needs none does without.
    from agent_runtime.models.pydantic_ai import PydanticAiModel, provider_model

    return PydanticAiModel(provider_model(name, base_url))
