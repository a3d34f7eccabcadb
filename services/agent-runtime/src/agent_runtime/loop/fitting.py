"""Makes a transcript fit the model's window: oldest whole turns go first (T-11). Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agent_runtime.models.port import Message, ToolSpec

CHARACTERS_PER_TOKEN = 3.5
DENSE_CHARACTERS_PER_TOKEN = 2.5
PER_MESSAGE = 8
PER_CALL = 12
MARGIN = 0.03
RESERVED_OUTPUT = 1024


@dataclass(frozen=True)
class Fitted:
    """What is sent.

    Attributes:
        messages: none where even head and newest turn do not fit.
        dropped: messages left out.
        estimate: tokens of what is sent, tools included.
        window: tokens there are for it.
    """

    messages: tuple[Message, ...] | None
    dropped: int
    estimate: int
    window: int


def tokens_of(message: Message) -> int:
    """An estimate of one message's tokens."""
    rate = DENSE_CHARACTERS_PER_TOKEN if message.role == "tool" else CHARACTERS_PER_TOKEN
    calls = sum(len(json.dumps(call.arguments, default=str)) / DENSE_CHARACTERS_PER_TOKEN for call in message.calls)
    return int(len(message.content) / rate + calls) + PER_MESSAGE + PER_CALL * len(message.calls)


def tokens_of_tools(tools: Sequence[ToolSpec]) -> int:
    """An estimate of the tools' part of a request."""
    return int(sum(len(tool.model_dump_json()) for tool in tools) / DENSE_CHARACTERS_PER_TOKEN)


def fitted(
    messages: Sequence[Message], tools: Sequence[ToolSpec], context_tokens: int, reserved_output: int | None = None
) -> Fitted:
    """Head and newest turn stay, a call is never parted from its result."""
    window = int(context_tokens * (1 - MARGIN)) - min(reserved_output or RESERVED_OUTPUT, context_tokens // 2)
    head, blocks, newest = parts(messages)
    fixed = sum(map(tokens_of, [*head, *newest])) + tokens_of_tools(tools)
    if fixed > window:
        return Fitted(None, sum(len(block) for block in blocks), fixed, window)
    kept: list[list[Message]] = []
    used = fixed
    for block in reversed(blocks):
        cost = sum(map(tokens_of, block))
        if used + cost > window:
            break
        kept.insert(0, block)
        used += cost
    dropped = sum(len(block) for block in blocks[: len(blocks) - len(kept)])
    sent = (*head, *(message for block in kept for message in block), *newest)
    return Fitted(sent, dropped, used, window)


def parts(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]], list[Message]]:
    """Head (leading system messages), earlier turns (each from a user message on), newest turn."""
    start = 0
    while start < len(messages) and messages[start].role == "system":
        start += 1
    blocks: list[list[Message]] = []
    for message in messages[start:]:
        if message.role == "user" or not blocks:
            blocks.append([message])
        else:
            blocks[-1].append(message)
    newest = blocks.pop() if blocks else []
    return list(messages[:start]), blocks, newest
