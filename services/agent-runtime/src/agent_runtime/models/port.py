"""The port to a language model: neutral messages in, one reply out."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from remit_contracts.base import Contract


class RequestedCall(Contract):
    """A call the model asks for.

    Attributes:
        call_id: unique within its turn.
        provider_id: the id as the provider gave it, where it differs.
        arguments: as given; anything but an object is an argument error of the call.
    """

    call_id: str
    name: str
    arguments: Any = None
    provider_id: str | None = None


class Message(Contract):
    """One message of a transcript.

    Attributes:
        calls: of an assistant message.
        call_id: of a tool message: which call it answers; ``name`` is the tool.
        opaque: what the provider wants back unchanged with this assistant message.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    calls: tuple[RequestedCall, ...] = ()
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    opaque: Any = None


class ToolSpec(Contract):
    """A tool as the model is told about it."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(Contract):
    """One request: transcript and the tools on offer."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    user_locale: str = "en"


class ModelReply(Contract):
    """One reply."""

    content: str = ""
    calls: tuple[RequestedCall, ...] = ()
    finish_reason: str = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    thinking: str = ""
    opaque: Any = None


class ModelFailed(Exception):
    """The model gave no reply.

    Attributes:
        code: stable reason, e.g. ``provider_unavailable``, ``provider_rejected``.
        passing: trying again later may help (T-24).
    """

    def __init__(self, code: str, *, passing: bool) -> None:
        super().__init__(code)
        self.code = code
        self.passing = passing


class ModelNotConfigured(Exception):
    """A model of a configuration cannot be used; ``reason`` names the variable or the extra that is missing."""

    code = "model_not_configured"

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"model_not_configured: {model}: {reason}")
        self.model = model
        self.reason = reason


class Model(Protocol):
    """A language model, or what stands in for one."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One reply.

        Raises:
            ModelFailed: no reply could be had.
        """

    async def close(self) -> None:
        """Give back what it holds."""


def unique_calls(calls: tuple[RequestedCall, ...]) -> tuple[RequestedCall, ...]:
    """The calls of a turn with ids that are unique in it; a renamed one keeps the provider's id."""
    taken: set[str] = set()
    unique: list[RequestedCall] = []
    for position, call in enumerate(calls):
        name = call.call_id or f"call-{position + 1}"
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}-{number}", number + 1
        taken.add(candidate)
        if candidate == call.call_id:
            unique.append(call)
        else:
            unique.append(
                call.model_copy(update={"call_id": candidate, "provider_id": call.provider_id or call.call_id})
            )
    return tuple(unique)
