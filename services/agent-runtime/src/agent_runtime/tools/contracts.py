"""What a tool is: arguments, effect, claim, plan, preview, execution (T-03, T-61, S-21). The surface for tool authors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from remit_contracts.actor import ActorContext
from remit_contracts.base import Contract
from remit_contracts.calls import CallResult, ToolEffect
from remit_contracts.claims import ClaimOperation
from service_kit.texts import Texts

from agent_runtime.tools.claims import PageTarget, ScopedWrite
from agent_runtime.tools.conclusions import conclude
from agent_runtime.tools.plans import CopyCheck, Plan, ReadBack
from agent_runtime.tools.result import ToolOutcome, ToolResult

__all__ = [
    "NOT_FOUND",
    "ArgumentsT",
    "ClaimOperation",
    "CopyCheck",
    "DependencyPending",
    "PageTarget",
    "Plan",
    "PlanRefused",
    "ReadBack",
    "ScopedWrite",
    "StoreReader",
    "StoredRecord",
    "Tool",
    "ToolArgumentError",
    "ToolArguments",
    "ToolContext",
    "ToolOutcome",
    "ToolResult",
    "WriteCall",
    "WriteTool",
]
_NAME = re.compile(r"\{(\w+)\}")
NOT_FOUND = "There is no such record, or it cannot be used here. Nothing was changed."


def filled(message: str, params: Mapping[str, object]) -> str:
    """The message with its names filled in one pass: a brace inside a value is the value's own."""
    return _NAME.sub(lambda found: str(params.get(found[1], found[0])), message)


class ToolArguments(BaseModel):
    """Arguments of a tool; an unknown one is refused as a whole (T-61). An omitted argument is not an empty one."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    def given(self) -> dict[str, Any]:
        """The arguments the model gave, by their Python names."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}


ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


class PlanRefused(Exception):
    """A plan cannot be made. The same for missing and not permitted.

    Args:
        message: English, key of the catalogue for the card; ``{name}`` is filled from ``params``.

    Attributes:
        text: what the model reads.
    """

    def __init__(self, message: str = NOT_FOUND, **params: object) -> None:
        self.message = message
        self.params = params
        self.text = filled(message, params)
        super().__init__(self.text)


class DependencyPending(Exception):
    """Something outside has to be ready before the run goes on; raised by a tool that declares ``dependency`` (S-61).

    What the call wrote within its scope stands, and the run waits for a person to say that it may go on. A write tool
    raises it from ``conclude``, so that the run also waits where the answer of its call was found after a crash.

    Args:
        name: what is waited for, as a person reads it.
        result: what the call has done so far.
    """

    def __init__(self, name: str, result: ToolResult | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.result = result or ToolResult("The call is not finished.")


class StoredRecord(Contract):
    """One record as the acting user may see it.

    Attributes:
        hash: of its columns without sorting, for ``expect``.
        page: uid and title of the page it lies on.
    """

    record: dict[str, Any]
    hash: str = ""
    translations: tuple[dict[str, Any], ...] = ()
    page: dict[str, Any] | None = None

    def text(self, name: str) -> str:
        """A column as text; an empty text for none."""
        value = self.record.get(name)
        return "" if value is None else str(value)

    def number(self, name: str) -> int:
        """A column as a whole number; 0 for none and for what is no number."""
        value = self.record.get(name)
        try:
            return int(value) if value is not None else 0
        except (TypeError, ValueError):
            return 0


class StoreReader(Protocol):
    """Reads of the store with the rights of one user in one workspace (T-62)."""

    async def record(self, table: str, uid: int) -> StoredRecord | None:
        """One record; none when it is not there or not readable, alike."""

    async def records(
        self, table: str, *, pid: int, language: int | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Rows of a table on a page in their order."""

    async def page_tree(self, root: int, depth: int, language: int | None = None) -> list[dict[str, Any]]:
        """Pages below a page."""

    async def sites(self) -> list[dict[str, Any]]:
        """Sites with their languages."""

    async def table_schema(self, table: str) -> dict[str, Any] | None:
        """Fields of a table the user may see; none for an unknown table."""


@dataclass(frozen=True)
class ToolContext:
    """Whom a tool works for, and where it may read.

    Attributes:
        texts: catalogues for what a person reads; a tool of another package may bring its own.
    """

    actor: ActorContext
    reader: StoreReader
    texts: Texts = field(default_factory=Texts)

    @property
    def workspace_id(self) -> int:
        """The workspace the run was started in, 0 is live."""
        return self.actor.workspace_id

    def say(self, message: str, **params: object) -> str:
        """A line for a person in the language of the run's owner; ``{name}`` is filled from ``params``."""
        return filled(self.texts.text(message, self.actor.locale), params)


class WriteCall(Protocol):
    """The one call a write tool is handed: transaction, guard and collector belong to the loop."""

    async def apply(self, plan: Plan) -> CallResult:
        """Carry the plan out in one transaction of the store; may be used once."""


class Tool(Generic[ArgumentsT]):
    """Base of every tool. A subclass sets the class attributes; instances hold no state.

    Attributes:
        effect: an undeclared effect together with ``requires_approval`` counts as a write (S-25, T-50).
        requires_input: the tool asks the person and takes the answer as its result.
        display_only: it only drives the display of the chat (T-63).
        dependency: it may raise :class:`DependencyPending`; from any other tool that is a failure.
        group: for the gate of a configuration.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    arguments: ClassVar[type[ToolArguments]]
    effect: ClassVar[ToolEffect] = ToolEffect.UNDECLARED
    group: ClassVar[str] = "content"
    requires_approval: ClassVar[bool] = False
    requires_input: ClassVar[bool] = False
    display_only: ClassVar[bool] = False
    admin_only: ClassVar[bool] = False
    dependency: ClassVar[bool] = False

    async def execute(self, arguments: ArgumentsT, context: ToolContext) -> ToolResult:
        """Do it and say what the model shall read. A write tool goes through a plan instead."""
        raise NotImplementedError

    def scoped_write(self, arguments: ArgumentsT) -> ScopedWrite | None:
        """The claim of a call; none = it cannot be stated, and a write is refused under a scope (S-23)."""
        return None

    @classmethod
    def needs_approval(cls) -> bool:
        """A write effect implies approval (T-03)."""
        return cls.requires_approval or cls.effect in {ToolEffect.WRITE, ToolEffect.REMOTE}

    @classmethod
    def counts_as_write(cls) -> bool:
        """Declared writes, remote ones, and undeclared tools that need approval (S-25, T-50)."""
        if cls.effect is ToolEffect.UNDECLARED:
            return cls.requires_approval
        return cls.effect is not ToolEffect.READ

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return cls.arguments.model_json_schema(by_alias=True)


class WriteTool(Tool[ArgumentsT]):
    """A tool that writes through the store: one plan, used everywhere (T-61)."""

    effect: ClassVar[ToolEffect] = ToolEffect.WRITE
    group: ClassVar[str] = "editing"

    async def plan(self, arguments: ArgumentsT, context: ToolContext) -> Plan:
        """Resolve every fact of the call under the user's rights.

        Raises:
            PlanRefused: it cannot be done; missing and not permitted read alike.
        """
        raise NotImplementedError

    async def write(self, plan: Plan, call: WriteCall, context: ToolContext) -> ToolResult:
        """Carry the plan out and judge the answer."""
        return await self.conclude(plan, await call.apply(plan), context)

    async def conclude(self, plan: Plan, result: CallResult, context: ToolContext) -> ToolResult:
        """What the model reads after the store's answer; also used where a call is resolved after a crash (T-23)."""
        return await conclude(plan, result, context)


class ToolArgumentError(Exception):
    """The arguments do not fit the tool's model; ``text`` says which and never repeats a value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
