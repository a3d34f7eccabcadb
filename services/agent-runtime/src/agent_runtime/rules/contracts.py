"""Invocation rules: plug-ins asked before a card is shown and again before a call runs (T-38, T-50)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from remit_contracts.actor import ActorContext
from remit_contracts.calls import ToolEffect
from remit_contracts.changes import RefusedWrite
from remit_contracts.scope import EffectiveAssignmentScope

from agent_runtime.configurations.models import Configuration
from agent_runtime.tools.contracts import ScopedWrite, Tool


@dataclass(frozen=True)
class RuleCall:
    """One call a rule judges; the arguments are only the claim to check (S-16).

    Attributes:
        claim: what the tool says it touches; none where it cannot say.
    """

    call_id: str
    tool: Tool[Any]
    arguments: Any
    claim: ScopedWrite | None

    @property
    def write(self) -> bool:
        """Declared writes, remote ones, undeclared tools that need approval."""
        return self.tool.counts_as_write()

    @property
    def remote(self) -> bool:
        """It changes things outside the store."""
        return self.tool.effect is ToolEffect.REMOTE


@dataclass(frozen=True)
class RuleContext:
    """What a rule may know: all calls of a turn that are judged together, never their results."""

    actor: ActorContext
    configuration: Configuration
    scope: EffectiveAssignmentScope | None
    calls: Sequence[RuleCall]


@dataclass(frozen=True)
class RuleDenial:
    """A rule says no.

    Attributes:
        rule: id of the rule.
        code: reason.
        message: English text, key of the catalogue; ``{name}`` is filled from ``params``.
        refused: the refusals as data (S-24).
    """

    rule: str
    code: str
    message: str
    params: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[RefusedWrite, ...] = ()


class InvocationRule(Protocol):
    """A rule with a stable id."""

    id: str

    async def judge(self, context: RuleContext) -> Mapping[str, RuleDenial]:
        """Denials by call id; a call that is not named passes."""
