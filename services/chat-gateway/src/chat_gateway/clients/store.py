"""content-store over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from remit_contracts.visibility import VisibilityAnswer, VisibilityRequest
from service_kit.client import RemoteProblem, ServiceClient


class StoreClient:
    """Calls on behalf of viewers; raises what :class:`service_kit.client.ServiceClient` raises."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def visibility(self, viewer_uid: int, request: VisibilityRequest) -> VisibilityAnswer:
        """What the viewer may see of up to 500 records."""
        body = request.model_dump(mode="json", exclude_none=True)
        return VisibilityAnswer.model_validate(
            await self._client.post_json("/v1/visibility", body, user_uid=viewer_uid)
        )

    async def readable_tables(self, viewer_uid: int) -> Mapping[str, str]:
        """Tables the viewer may select, with their labels."""
        answer = await self._client.get_json("/v1/schema", user_uid=viewer_uid)
        tables = answer.get("tables") if isinstance(answer, Mapping) else answer
        found: dict[str, str] = {}
        for item in tables if isinstance(tables, list) else []:
            name = (item.get("name") or item.get("table")) if isinstance(item, Mapping) else item
            label = (item.get("label") or item.get("title")) if isinstance(item, Mapping) else None
            if isinstance(name, str):
                found[name] = label if isinstance(label, str) else name
        return found

    async def language_titles(self, viewer_uid: int) -> Mapping[int, str]:
        """Titles by language id of the sites the viewer works in; none where sites name one id differently."""
        return titles_of_sites(await self._client.get_json("/v1/sites", user_uid=viewer_uid))

    async def workspaces(self, viewer_uid: int) -> frozenset[int]:
        """Workspaces the viewer may use, 0 = live."""
        answer = await self._client.get_json("/v1/workspaces", user_uid=viewer_uid)
        items = answer.get("workspaces") if isinstance(answer, Mapping) else answer
        return frozenset(
            item["uid"]
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, Mapping) and isinstance(item.get("uid"), int)
        )

    async def session_active(self, session_id: UUID) -> bool:
        """Whether a login session still stands."""
        try:
            answer = await self._client.get_json(f"/v1/auth/sessions/{session_id}")
        except RemoteProblem as problem:
            if problem.status == 404:
                return False
            raise
        return isinstance(answer, Mapping) and answer.get("active") is True

    async def jwks(self) -> Mapping[str, Any]:
        """Public keys of user tokens."""
        answer = await self._client.get_json("/v1/auth/jwks")
        return answer if isinstance(answer, Mapping) else {}


def titles_of_sites(answer: Any) -> dict[int, str]:
    """Titles by language id; an id that two sites name differently has none, since nobody says which site is meant."""
    found: dict[int, set[str]] = {}
    for site in _items(answer, "sites"):
        for language in _items(site, "languages"):
            number, title = language.get("languageId"), language.get("title")
            if isinstance(number, int) and isinstance(title, str) and title:
                found.setdefault(number, set()).add(title)
    return {number: titles.pop() for number, titles in found.items() if len(titles) == 1}


def _items(answer: Any, name: str) -> list[Mapping[str, Any]]:
    """The objects of a list in an answer; whatever else it holds is left out."""
    items = answer.get(name) if isinstance(answer, Mapping) else None
    return [item for item in (items if isinstance(items, list) else []) if isinstance(item, Mapping)]


class LoginClient:
    """The store's login routes, passed through with nothing but the user's own header."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def forward(
        self, method: str, path: str, *, body: Any = None, authorization: str | None = None, address: str | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of the store's answer."""
        headers = {"Authorization": authorization} if authorization else {}
        if address:
            headers["X-Forwarded-For"] = address
        response = await self._client.request(method, path, json=body, headers=headers)
        return response.status_code, response.json() if response.content else None
