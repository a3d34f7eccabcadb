"""The demo's HTTP clients: the chat API as an editor's program sees it, and the store's for loading the site."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx2

TIMEOUT = 30.0


class ApiError(RuntimeError):
    """A service refused; ``code`` is the problem document's.

    Attributes:
        status: HTTP status.
        code: stable code, ``unknown`` where the answer was no problem document.
        problem: the whole document.
    """

    def __init__(self, status: int, code: str, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {code}: {problem.get('detail') or problem.get('title') or ''}".strip())
        self.status = status
        self.code = code
        self.problem = dict(problem)


class ApiClient:
    """JSON over HTTP with a bearer token, renewed when it ran out."""

    def __init__(self, base_url: str, *, language: str = "en") -> None:
        self.base_url = base_url
        self._http = httpx2.Client(base_url=base_url, timeout=TIMEOUT, headers={"Accept-Language": language})
        self._tokens: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    @property
    def user(self) -> dict[str, Any]:
        """The user that is logged in."""
        user: dict[str, Any] = self._tokens.get("user", {})
        return user

    @property
    def token(self) -> str:
        """The access token."""
        return str(self._tokens["accessToken"])

    def login(self, username: str, password: str) -> dict[str, Any]:
        """Log in; later requests carry the token."""
        self._tokens = self.send("POST", "/v1/auth/login", {"username": username, "password": password}, renew=False)
        return self.user

    def get(self, path: str, **parameters: Any) -> dict[str, Any]:
        """GET with query parameters, those that are none left out."""
        return self.send("GET", path, parameters={k: v for k, v in parameters.items() if v is not None})

    def post(self, path: str, body: Any, *, key: str | None = None) -> dict[str, Any]:
        """POST; ``key`` is sent as ``Idempotency-Key``."""
        return self.send("POST", path, body, headers={"Idempotency-Key": key} if key else None)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        renew: bool = True,
    ) -> dict[str, Any]:
        """One request.

        Raises:
            ApiError: any answer of 400 and above.
        """
        sent = dict(headers or {})
        if "accessToken" in self._tokens and "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {self.token}"
        answer = self._http.request(method, path, json=body, params=parameters, headers=sent)
        if answer.status_code == 401 and renew and self._renew():
            return self.send(method, path, body, parameters=parameters, headers=headers, renew=False)
        if answer.status_code >= 400:
            raise _error(answer)
        return dict(answer.json()) if answer.content else {}

    def ready(self) -> bool:
        """``/readyz`` says yes."""
        try:
            return self._http.get("/readyz", timeout=2).status_code == 200
        except httpx2.HTTPError:
            return False

    def _renew(self) -> bool:
        token = self._tokens.pop("refreshToken", None)
        if token is None:
            return False
        try:
            self._tokens |= self.send("POST", "/v1/auth/refresh", {"refreshToken": token}, renew=False)
        except ApiError:
            return False
        return True


def _error(answer: httpx2.Response) -> ApiError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    return ApiError(answer.status_code, str(problem.get("code", "unknown")), problem or {"detail": answer.text[:300]})


FINAL = frozenset({"idle", "completed", "failed", "cancelled"})


def card_or_end(view: Mapping[str, Any], decided: str = "") -> bool:
    """A card waits (another than the one with digest ``decided``), or nothing more will come of the run."""
    pending = view["pendingApproval"]
    if pending is not None:
        return bool(pending["turnDigest"] != decided)
    return view["conversation"]["status"] in FINAL


class ChatClient(ApiClient):
    """An editor at the chat-gateway."""

    def converse(self, **settings: Any) -> str:
        """A new conversation; the answer is its id."""
        return str(self.post("/v1/conversations", settings)["id"])

    def say(self, conversation: str, text: str, *, key: str | None = None, view: Any = None) -> dict[str, Any]:
        """Post a message, which starts a run."""
        body: dict[str, Any] = {"content": text}
        if view is not None:
            body["viewContext"] = view
        return self.post(f"/v1/conversations/{conversation}/messages", body, key=key or str(uuid4()))

    def messages(self, conversation: str) -> dict[str, Any]:
        """Messages, activity and the pending card."""
        return self.get(f"/v1/conversations/{conversation}/messages")

    def decide(self, conversation: str, digest: str, decisions: Mapping[str, str] | str) -> dict[str, Any]:
        """Decide a card: per call, or one word for all."""
        kind = "decision" if isinstance(decisions, str) else "decisions"
        return self.post(
            f"/v1/conversations/{conversation}/decision",
            {"turnDigest": digest, kind: decisions if isinstance(decisions, str) else dict(decisions)},
        )

    def changes(self, conversation: str) -> dict[str, Any]:
        """The change list, all its pages."""
        first = self.get(f"/v1/conversations/{conversation}/changes")
        page = first
        while page.get("nextCursor"):
            page = self.get(f"/v1/conversations/{conversation}/changes", cursor=page["nextCursor"])
            first["rows"] += page["rows"]
        return first

    def wait(
        self, conversation: str, ready: Callable[[dict[str, Any]], bool], seconds: float, what: str
    ) -> dict[str, Any]:
        """Poll the messages until ``ready`` likes them.

        Raises:
            TimeoutError: not within ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while True:
            view = self.messages(conversation)
            if ready(view):
                return view
            if time.monotonic() > deadline:
                status = view["conversation"]["status"]
                raise TimeoutError(f"{what} did not come within {seconds:.0f} s; the conversation is {status}")
            time.sleep(0.15)
