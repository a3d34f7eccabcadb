"""Language models through pydantic-ai's direct requests: openai (any base URL), anthropic, others by extra."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import pydantic_ai.messages as provider
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from agent_runtime.models.port import Message, ModelFailed, ModelNotConfigured, ModelReply, ModelRequest, RequestedCall

KEY_VARIABLES: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
PASSING = (ModelRateLimitError, ModelServerError, ModelUnavailableError, ModelTimeoutError)
DEFAULT_TIMEOUT = 120.0


def provider_model(name: str, base_url: str | None = None) -> ProviderModel:
    """The provider's model for ``provider:model``.

    Raises:
        ModelNotConfigured: unknown provider, missing package or missing key; says which.
    """
    kind, _, model = name.partition(":")
    if not model:
        raise ModelNotConfigured(name, "a model reads provider:model, e.g. openai:gpt-5")
    variable = KEY_VARIABLES.get(kind)
    # A local server of the OpenAI kind asks for no key; the client wants one all the same.
    if variable and not os.environ.get(variable) and not (base_url and kind == "openai"):
        raise ModelNotConfigured(name, f"the variable {variable} is not set")
    try:
        if kind == "openai" and base_url:
            return _openai_compatible(model, base_url)
        if kind == "anthropic" and base_url:
            return _anthropic_compatible(model, base_url)
        return infer_model(name)
    except ImportError as error:
        raise ModelNotConfigured(name, f"install the extra {kind} of pydantic-ai-slim") from error
    except (UserError, ValueError) as error:
        raise ModelNotConfigured(name, _first_line(error)) from error


def _openai_compatible(model: str, base_url: str) -> ProviderModel:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    key = os.environ.get("OPENAI_API_KEY") or "none"
    return OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url, api_key=key))


def _anthropic_compatible(model: str, base_url: str) -> ProviderModel:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key = os.environ.get("ANTHROPIC_API_KEY") or ""
    return AnthropicModel(model, provider=AnthropicProvider(base_url=base_url, api_key=key))


class PydanticAiModel:
    """One configured model behind the port."""

    def __init__(self, model: ProviderModel, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._model = model
        self._timeout = timeout
        self._open = False

    async def close(self) -> None:
        """Give the provider's connections back."""
        if self._open:
            self._open = False
            await self._model.__aexit__(None, None, None)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One reply; see the port."""
        if not self._open:
            self._open = True
            await self._model.__aenter__()
        settings = ModelSettings(timeout=self._timeout)
        if request.max_output_tokens is not None:
            settings["max_tokens"] = request.max_output_tokens
        try:
            response = await model_request(
                self._model,
                to_provider(request.messages),
                model_settings=settings,
                model_request_parameters=ModelRequestParameters(
                    function_tools=[
                        ToolDefinition(
                            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
                        )
                        for tool in request.tools
                    ]
                ),
            )
        except PASSING as error:
            raise ModelFailed("provider_unavailable", passing=True) from error
        except ModelRequestRejectedError as error:
            raise ModelFailed("provider_rejected", passing=False) from error
        except ModelAPIError as error:
            # Neither a status nor a known kind: a lost connection, which may pass.
            raise ModelFailed("provider_unavailable", passing=True) from error
        except (AgentRunError, UserError) as error:
            raise ModelFailed("provider_rejected", passing=False) from error
        return from_provider(response)


def to_provider(messages: tuple[Message, ...]) -> list[provider.ModelMessage]:
    """The transcript in the provider's form; an own assistant message goes back exactly as it came."""
    result: list[provider.ModelMessage] = []
    provider_ids: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            provider_ids = {call.call_id: call.provider_id or call.call_id for call in message.calls}
            result.append(_assistant(message))
            continue
        part: provider.SystemPromptPart | provider.UserPromptPart | provider.ToolReturnPart
        if message.role == "system":
            part = provider.SystemPromptPart(content=message.content)
        elif message.role == "user":
            part = provider.UserPromptPart(content=message.content)
        else:
            call_id = message.call_id or ""
            part = provider.ToolReturnPart(
                tool_name=message.name or "", content=message.content, tool_call_id=provider_ids.get(call_id, call_id)
            )
        if result and isinstance(result[-1], provider.ModelRequest):
            result[-1] = provider.ModelRequest(parts=[*result[-1].parts, part])
        else:
            result.append(provider.ModelRequest(parts=[part]))
    return result


def _assistant(message: Message) -> provider.ModelResponse:
    if message.opaque is not None:
        restored = provider.ModelMessagesTypeAdapter.validate_python(message.opaque)
        if len(restored) == 1 and isinstance(restored[0], provider.ModelResponse):
            return restored[0]
    parts: list[provider.ModelResponsePart] = [provider.TextPart(content=message.content)] if message.content else []
    parts += [
        provider.ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.provider_id or call.call_id)
        for call in message.calls
    ]
    return provider.ModelResponse(parts=parts)


def from_provider(response: provider.ModelResponse) -> ModelReply:
    """A reply out of the provider's response, which is kept whole as opaque JSON."""
    texts = [part.content for part in response.parts if isinstance(part, provider.TextPart)]
    thinking = [part.content for part in response.parts if isinstance(part, provider.ThinkingPart)]
    calls = tuple(
        RequestedCall(call_id=part.tool_call_id, name=part.tool_name, arguments=_arguments(part.args))
        for part in response.parts
        if isinstance(part, provider.ToolCallPart)
    )
    opaque = json.loads(provider.ModelMessagesTypeAdapter.dump_json([response]))
    return ModelReply(
        content="".join(texts),
        thinking="".join(thinking),
        calls=calls,
        finish_reason=str(response.finish_reason or ("tool_call" if calls else "stop")),
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        opaque=opaque,
    )


def _arguments(given: Any) -> Any:
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        try:
            return json.loads(given)
        except ValueError:
            return given
    return given


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it cannot be used"])[0][:300]
