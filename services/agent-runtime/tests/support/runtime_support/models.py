"""A model that says what a test wrote down. Tests only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from agent_runtime.configurations.models import Configuration
from agent_runtime.models.port import Model, ModelReply, ModelRequest, RequestedCall

Reply = ModelReply | Exception


def asks(*calls: tuple[str, Any], content: str = "") -> ModelReply:
    """A reply that asks for calls: ``(name, arguments)`` each, with ids c1, c2, …"""
    made = tuple(
        RequestedCall(call_id=f"c{place + 1}", name=name, arguments=arguments)
        for place, (name, arguments) in enumerate(calls)
    )
    return ModelReply(content=content, calls=made, input_tokens=10, output_tokens=5)


def says(content: str) -> ModelReply:
    """A closing reply."""
    return ModelReply(content=content, input_tokens=10, output_tokens=5)


class ScriptedModel:
    """Gives its replies by the number of assistant messages in the transcript, so that another worker goes on right.

    Attributes:
        requests: what it was asked.
        hold: when set, a request waits for it.
    """

    def __init__(self, replies: Iterable[Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.hold: asyncio.Event | None = None
        self.asked = asyncio.Event()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next reply; an exception is raised once."""
        self.requests.append(request)
        self.asked.set()
        if self.hold is not None:
            await self.hold.wait()
        place = sum(1 for message in request.messages if message.role == "assistant")
        reply = self.replies[min(place, len(self.replies) - 1)]
        if isinstance(reply, Exception):
            self.replies.pop(place)
            raise reply
        return reply

    async def close(self) -> None:
        """Holds nothing."""


def source(model: Model) -> Callable[[Configuration], Model]:
    """The same model for every configuration."""
    return lambda _configuration: model
