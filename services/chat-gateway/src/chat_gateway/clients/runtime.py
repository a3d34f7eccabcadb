"""agent-runtime over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from remit_contracts.runs import AnswerRequest, DecisionRequest, RunEventsAnswer, RunView
from service_kit.client import ServiceClient


class RuntimeClient:
    """Calls on behalf of users; raises what :class:`service_kit.client.ServiceClient` raises."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def start(self, user_uid: int, body: Mapping[str, Any], key: str) -> RunView:
        """Start a run; the same key with the same body gives the same run."""
        answer = await self._client.post_json("/v1/runs", dict(body), user_uid=user_uid, idempotency_key=key)
        return RunView.model_validate(answer)

    async def view(self, user_uid: int, run: UUID) -> RunView:
        """A run with its pending card."""
        return RunView.model_validate(await self._client.get_json(f"/v1/runs/{run}", user_uid=user_uid))

    async def events(self, user_uid: int, runs: Sequence[UUID], after: Mapping[UUID, int]) -> RunEventsAnswer:
        """Steps of runs after a sequence each."""
        body = {
            "runs": [str(run) for run in runs],
            "after": {str(run): sequence for run, sequence in after.items()},
        }
        answer = await self._client.post_json("/v1/runs:events", body, user_uid=user_uid)
        return RunEventsAnswer.model_validate(answer)

    async def decide(self, user_uid: int, run: UUID, decision: DecisionRequest) -> RunView:
        """Pass a decision on."""
        body = decision.model_dump(mode="json", exclude_none=True)
        answer = await self._client.post_json(f"/v1/runs/{run}/decision", body, user_uid=user_uid)
        return RunView.model_validate(answer)

    async def answer(self, user_uid: int, run: UUID, answer: AnswerRequest) -> RunView:
        """Pass an answer on."""
        body = answer.model_dump(mode="json")
        return RunView.model_validate(await self._client.post_json(f"/v1/runs/{run}/answer", body, user_uid=user_uid))

    async def cancel(self, user_uid: int, run: UUID) -> RunView:
        """Stop a run at its next step."""
        return RunView.model_validate(await self._client.post_json(f"/v1/runs/{run}/cancel", user_uid=user_uid))

    async def configurations(self, user_uid: int) -> Any:
        """What can be chosen."""
        return await self._client.get_json("/v1/configurations", user_uid=user_uid)
