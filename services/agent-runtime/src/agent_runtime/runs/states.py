"""What a live run keeps to go on: transcript, waiting turn, write call in flight; encrypted rows (T-23, T-25, T-26)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from remit_contracts.base import StoredContract
from remit_contracts.scope import EffectiveAssignmentScope

from agent_runtime.approvals.turns import TurnState
from agent_runtime.models.port import Message, RequestedCall
from agent_runtime.runs.envelope import StateCipher, StateUnreadable
from agent_runtime.runs.models import NewState
from agent_runtime.tools.contracts import Plan

MESSAGE = "message"
TURN = "turn"
CALL = "call"


class CallInFlight(StoredContract):
    """A write call as it was sent, or was about to be.

    Attributes:
        store_call_id: what the store knows it by; stored before anything is sent.
        body: the exact request as text.
        scope: what the call was held to, for the words of its error.
        previous: ids tried before and known to be rolled back.
    """

    call_id: str
    tool: str
    arguments: Any = None
    store_call_id: UUID
    body: str
    plan: Plan
    round: int = 0
    scope: EffectiveAssignmentScope | None = None
    previous: tuple[UUID, ...] = ()


@dataclass
class RunState:
    """The state of a run in memory."""

    messages: list[Message] = field(default_factory=list)
    turn: TurnState | None = None
    call: CallInFlight | None = None

    @property
    def open_calls(self) -> tuple[RequestedCall, ...]:
        """Calls of the newest assistant message that have no result yet, in order."""
        last = max((place for place, message in enumerate(self.messages) if message.role == "assistant"), default=-1)
        if last < 0:
            return ()
        answered = {message.call_id for message in self.messages[last + 1 :] if message.role == "tool"}
        return tuple(call for call in self.messages[last].calls if call.call_id not in answered)

    @property
    def turn_started(self) -> bool:
        """Some call of the newest turn has its result."""
        return bool(self.messages) and self.messages[-1].role == "tool"


def message_state(message: Message) -> NewState:
    """A message of the transcript as a state row."""
    return NewState(MESSAGE, message.model_dump(mode="json", by_alias=True))


def turn_state(turn: TurnState) -> NewState:
    """The waiting turn as the one state row of its kind."""
    return NewState(TURN, turn.model_dump(mode="json", by_alias=True))


def call_state(call: CallInFlight) -> NewState:
    """The call in flight as the one state row of its kind."""
    return NewState(CALL, call.model_dump(mode="json", by_alias=True))


def read_state(cipher: StateCipher, rows: Iterable[tuple[UUID, str, bytes]]) -> RunState:
    """The state out of its rows.

    Raises:
        StateUnreadable: a row is damaged, moved from another row, of an unknown version or kind.
    """
    state = RunState()
    for row_id, kind, sealed in rows:
        envelope = cipher.open(row_id, sealed)
        if envelope.kind != kind:
            raise StateUnreadable("corrupt")
        try:
            _take(state, kind, envelope.data)
        except ValidationError as error:
            raise StateUnreadable("corrupt") from error
    return state


def _take(state: RunState, kind: str, data: Any) -> None:
    if kind == MESSAGE:
        state.messages.append(Message.model_validate(data))
    elif kind == TURN:
        state.turn = TurnState.model_validate(data)
    elif kind == CALL:
        state.call = CallInFlight.model_validate(data)
    else:
        raise StateUnreadable("unknown_version")


def initial_messages(system_prompt: str, messages: Sequence[Message]) -> list[Message]:
    """The transcript a run begins with; the prompt is fixed at the start."""
    return [Message(role="system", content=system_prompt), *messages]
