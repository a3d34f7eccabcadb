"""When two requests are the same call (CALLS 1): pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from remit_contracts.actor import ActorContext
from remit_contracts.calls import Operation, ToolEffect
from remit_contracts.records import WriteTarget


def request_hash(
    actor: ActorContext,
    tool: str,
    effect: ToolEffect,
    write_target: WriteTarget | None,
    operations: Sequence[Operation] | None,
) -> str:
    """SHA-256 over what a call does and as whom, 64 hexadecimal digits.

    The order of operations, entries and commands counts. The effective scope is not part of it, because it is computed
    afresh for every call (S-14); nor is what a card showed.

    Args:
        actor: user and workspace count.
        tool: name of the tool.
        effect: as declared.
        write_target: as named.
        operations: None for an open call, whose operations follow.
    """
    content: dict[str, Any] = {
        "user": actor.user_uid,
        "workspace": actor.workspace_id,
        "tool": tool,
        "effect": effect.value,
        "target": write_target.model_dump(mode="json") if write_target is not None else None,
        "operations": None if operations is None else [o.model_dump(mode="json") for o in operations],
    }
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
