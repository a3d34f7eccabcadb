"""A question to the person (T-63): the run waits, the answer becomes the result."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, field_validator
from remit_contracts.calls import ToolEffect

from agent_runtime.tools.contracts import Tool, ToolArguments, ToolContext
from agent_runtime.tools.result import ToolResult

Option = Annotated[str, Field(min_length=1, max_length=120)]


class ChoiceArguments(ToolArguments):
    """A question on one line and two to ten different answers (T-05)."""

    question: Annotated[str, Field(min_length=1, max_length=300)]
    options: Annotated[list[Option], Field(min_length=2, max_length=10)]

    @field_validator("options")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) != len(value):
            raise ValueError("the options must differ")
        return value


class AskChoice(Tool[ChoiceArguments]):
    """Ask the editor to pick one of some answers."""

    name: ClassVar[str] = "ask_choice"
    description: ClassVar[str] = "Ask the person one question with 2 to 10 possible answers and wait for the pick."
    arguments: ClassVar[type[ToolArguments]] = ChoiceArguments
    effect: ClassVar[ToolEffect] = ToolEffect.READ
    requires_input: ClassVar[bool] = True

    async def execute(self, arguments: ChoiceArguments, context: ToolContext) -> ToolResult:
        """Only reached without an answer, which nobody but the person can give."""
        return ToolResult.error("The question was not answered.")
