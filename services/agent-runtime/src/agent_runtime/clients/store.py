"""The content-store over HTTP: calls, rehearsals, claims, reads. Whose rights hold travels with each request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError
from remit_contracts.actor import ActorContext
from remit_contracts.base import Contract
from remit_contracts.calls import CallResolution, CallResult, RehearsalRequest, RehearsalResult
from remit_contracts.claims import ClaimAnswer
from remit_contracts.records import RecordReference
from remit_contracts.scope import EffectiveAssignmentScope
from remit_contracts.visibility import VisibilityAnswer
from service_kit.client import RemoteError, RemoteProblem, ServiceClient
from service_kit.texts import Texts

from agent_runtime.tools.contracts import StoredRecord, ToolContext

STORE = "content-store"
ModelT = TypeVar("ModelT", bound=BaseModel)
PAGE_SIZE = 200
MAX_ROWS = 2000
NOTHING_THERE = frozenset({400, 403, 404, 422})


class StoreAnswerUnreadable(RemoteError):
    """The store answered with something its contract does not have."""


class StoreUser(Contract):
    """The user as the store knows it."""

    uid: int
    username: str = ""
    locale: str = "en"
    admin: bool = False


class StoreClient:
    """All requests to the store; one per process.

    Args:
        client: signs for this service.
        call_timeout: seconds to wait for an ``apply``.
        texts: what tools say to people.
    """

    def __init__(self, client: ServiceClient, call_timeout: float = 60.0, texts: Texts | None = None) -> None:
        self.client = client
        self._call_timeout = call_timeout
        self._texts = texts or Texts()

    async def apply(self, call_id: UUID, body: str, user_uid: int) -> CallResult:
        """Send a write call; exactly the stored bytes."""
        response = await self.client.request(
            "POST",
            f"/v1/calls/{call_id}/apply",
            content=body.encode("utf-8"),
            user_uid=user_uid,
            timeout=self._call_timeout,
        )
        return _read(CallResult, response.json())

    async def resolve(self, call_id: UUID, run_id: UUID, lease_epoch: int, user_uid: int) -> CallResolution:
        """What became of a call whose answer was lost; fences it."""
        body = {"runId": str(run_id), "leaseEpoch": lease_epoch}
        answer = await self.client.post_json(f"/v1/calls/{call_id}/resolve", body, user_uid=user_uid)
        return _read(CallResolution, answer)

    async def rehearse(self, rehearsal_id: UUID, request: RehearsalRequest) -> RehearsalResult:
        """What the calls of a turn would do, in order; always rolled back."""
        body = request.model_dump_json(by_alias=True).encode("utf-8")
        response = await self.client.request(
            "POST",
            f"/v1/rehearsals/{rehearsal_id}",
            content=body,
            user_uid=request.actor.user_uid,
            timeout=self._call_timeout,
        )
        return _read(RehearsalResult, response.json())

    async def claims(
        self, actor: ActorContext, scope: EffectiveAssignmentScope, claims: Sequence[dict[str, Any]]
    ) -> Sequence[ClaimAnswer]:
        """Layer one: all claims of a turn in one request."""
        body = {
            "scope": scope.model_dump(mode="json", by_alias=True),
            "workspaceId": actor.workspace_id,
            "claims": list(claims),
        }
        answer = await self.client.post_json("/v1/claims", body, user_uid=actor.user_uid)
        answers = answer.get("answers", answer.get("claims")) if isinstance(answer, dict) else answer
        if not isinstance(answers, list):
            raise StoreAnswerUnreadable("the store's answer to claims cannot be read")
        return [_read(ClaimAnswer, item) for item in answers]

    async def visibility(
        self, user_uid: int, records: Sequence[RecordReference], workspace_id: int
    ) -> VisibilityAnswer:
        """Which of some records a viewer may see, and the title of the workspace."""
        body = {
            "records": [{"table": record.table, "uid": record.uid} for record in records],
            "workspaceIds": [workspace_id],
            "workspaceId": workspace_id,
        }
        return _read(VisibilityAnswer, await self.client.post_json("/v1/visibility", body, user_uid=user_uid))

    async def user(self, user_uid: int) -> StoreUser:
        """The user on whose behalf is asked; an error for a disabled or unknown one."""
        answer = await self.client.get_json("/v1/auth/me", user_uid=user_uid)
        inner = answer.get("user", answer) if isinstance(answer, dict) else answer
        return _read(StoreUser, inner)

    def reader(self, actor: ActorContext) -> ActorReader:
        """Reads with one user's rights in the workspace of a run."""
        return ActorReader(self, actor)

    def context(self, actor: ActorContext) -> ToolContext:
        """What a tool is given."""
        return ToolContext(actor=actor, reader=self.reader(actor), texts=self._texts)


class ActorReader:
    """Reads of the store for one actor (T-62)."""

    def __init__(self, store: StoreClient, actor: ActorContext) -> None:
        self._client = store.client
        self._actor = actor

    async def record(self, table: str, uid: int) -> StoredRecord | None:
        """One record; none when it is not there or not readable."""
        answer = await self._get(f"/v1/records/{table}/{uid}")
        return _read(StoredRecord, answer) if answer is not None else None

    async def records(
        self, table: str, *, pid: int, language: int | None = None, limit: int = PAGE_SIZE
    ) -> list[dict[str, Any]]:
        """Rows of a page, over as many answers as it takes."""
        rows: list[dict[str, Any]] = []
        cursor: str | None = None
        wanted = min(limit, MAX_ROWS)
        while len(rows) < wanted:
            count = min(PAGE_SIZE, wanted - len(rows))
            answer = await self._get(f"/v1/records/{table}", pid=pid, language=language, limit=count, cursor=cursor)
            rows += _objects(answer, "records")
            cursor = answer.get("nextCursor") if isinstance(answer, dict) else None
            if not cursor:
                break
        return rows

    async def page_tree(self, root: int, depth: int, language: int | None = None) -> list[dict[str, Any]]:
        """Pages below a page."""
        return _objects(await self._get("/v1/pages/tree", root=root, depth=depth, language=language), "pages")

    async def sites(self) -> list[dict[str, Any]]:
        """Sites with their languages."""
        return _objects(await self._get("/v1/sites", workspace=False), "sites")

    async def table_schema(self, table: str) -> dict[str, Any] | None:
        """Fields of a table the user may see."""
        answer = await self._get(f"/v1/schema/{table}", workspace=False)
        return answer if isinstance(answer, dict) else None

    async def _get(self, path: str, *, workspace: bool = True, **params: Any) -> Any:
        """The answer; none where there is nothing for this user: unknown, out of range and forbidden are the same."""
        if workspace:
            params["workspace"] = self._actor.workspace_id
        try:
            return await self._client.get_json(path, user_uid=self._actor.user_uid, params=params)
        except RemoteProblem as problem:
            if problem.status in NOTHING_THERE:
                return None
            raise
        except ValueError as error:
            raise StoreAnswerUnreadable("the store's answer is no JSON") from error


def _objects(answer: Any, name: str) -> list[dict[str, Any]]:
    items = answer.get(name, []) if isinstance(answer, dict) else []
    return [item for item in items if isinstance(item, dict)]


def _read(model: type[ModelT], value: Any) -> ModelT:
    try:
        return model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise StoreAnswerUnreadable(f"the store's answer is no {model.__name__}") from error
