"""What the gateway asks of the other services, as its own code sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from remit_contracts.runs import AnswerRequest, DecisionRequest, RunEventsAnswer, RunView
from remit_contracts.visibility import VisibilityAnswer, VisibilityRequest


class RuntimePort(Protocol):
    """agent-runtime, always on behalf of a user."""

    async def start(self, user_uid: int, body: Mapping[str, Any], key: str) -> RunView:
        """Start a run; the same key with the same body gives the same run."""

    async def view(self, user_uid: int, run: UUID) -> RunView:
        """A run with its pending card."""

    async def events(self, user_uid: int, runs: Sequence[UUID], after: Mapping[UUID, int]) -> RunEventsAnswer:
        """Steps of runs after a sequence each."""

    async def decide(self, user_uid: int, run: UUID, decision: DecisionRequest) -> RunView:
        """Pass a decision on."""

    async def answer(self, user_uid: int, run: UUID, answer: AnswerRequest) -> RunView:
        """Pass an answer on."""

    async def cancel(self, user_uid: int, run: UUID) -> RunView:
        """Stop a run at its next step."""

    async def configurations(self, user_uid: int) -> Any:
        """What can be chosen."""


class StorePort(Protocol):
    """content-store."""

    async def visibility(self, viewer_uid: int, request: VisibilityRequest) -> VisibilityAnswer:
        """What the viewer may see of up to 500 records."""

    async def readable_tables(self, viewer_uid: int) -> Mapping[str, str]:
        """Tables the viewer may select, with their labels."""

    async def language_titles(self, viewer_uid: int) -> Mapping[int, str]:
        """Titles by language id of the sites the viewer works in; none where sites name one id differently."""

    async def workspaces(self, viewer_uid: int) -> frozenset[int]:
        """Workspaces the viewer may use, 0 = live."""

    async def session_active(self, session_id: UUID) -> bool:
        """Whether a login session still stands."""

    async def jwks(self) -> Mapping[str, Any]:
        """Public keys of user tokens."""
