"""The store's calls as the runtime makes them, with the runtime's own signature."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from remit_local.clients import ApiClient, ApiError
from remit_local.services import RUNTIME, STORE
from service_kit.auth import AssertionSigner, SigningKey


@dataclass(frozen=True)
class Answer:
    """What came back: a status of 0 where nothing did."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """Code of the problem, empty for an answer."""
        return str(self.body.get("code", ""))

    @property
    def outcome(self) -> str:
        """What the answer says became of the call, empty where it says nothing."""
        return str(self.body.get("outcome", ""))


class StoreCalls:
    """Sends calls on behalf of a user.

    Args:
        url: of the store.
        key: file of the runtime's key.
        user: uid.
    """

    def __init__(self, url: str, key: Path, user: int) -> None:
        self.user = user
        self._url = url
        self._signer = AssertionSigner(RUNTIME, SigningKey.from_pem(key.read_text()))

    def send(
        self, method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request; a refusal and a lost connection are answers as well."""
        sent = {"Authorization": f"Bearer {self._signer.sign(STORE, self.user)}", **(headers or {})}
        with ApiClient(self._url) as client:
            try:
                return Answer(200, client.send(method, path, body, headers=sent, renew=False))
            except ApiError as error:
                return Answer(error.status, error.problem)
            except httpx2.TransportError:
                return Answer(0, {})

    def body(self, *operations: dict[str, Any], run: str | None = None, **more: Any) -> dict[str, Any]:
        """Body of an apply, or with ``operations`` left out of an open."""
        body: dict[str, Any] = {
            "runId": run or str(uuid4()),
            "leaseEpoch": 1,
            "actor": {"userUid": self.user, "workspaceId": 0, "locale": "en"},
            "tool": "test_tool",
            "effect": "write",
            **more,
        }
        return {**body, "operations": list(operations)} if operations else body

    def apply(self, call: str, body: dict[str, Any]) -> Answer:
        """Send an apply."""
        return self.send("POST", f"/v1/calls/{call}/apply", body)

    def resolve(self, call: str, run: str, epoch: int = 1) -> Answer:
        """Ask what became of a call."""
        return self.send("POST", f"/v1/calls/{call}/resolve", {"runId": run, "leaseEpoch": epoch})

    def open(self, call: str, body: dict[str, Any]) -> Answer:
        """Open a call."""
        return self.send("POST", f"/v1/calls/{call}/open", body)

    def continued(self, call: str, what: str, opened: Answer, *operations: dict[str, Any]) -> Answer:
        """``operations`` or ``commit`` of an open call, or with an empty word its end."""
        headers = {"Call-Token": str(opened.body["token"]), "Call-Seq": str(opened.body["sequence"])}
        if not what:
            return self.send("DELETE", f"/v1/calls/{call}", headers=headers)
        body = {"operations": list(operations)} if what == "operations" else {}
        return self.send("POST", f"/v1/calls/{call}/{what}", body, headers)


def set_header(element: int, header: str) -> dict[str, Any]:
    """An operation: the header of an element."""
    return {"op": "datamap", "datamap": {"tt_content": {str(element): {"header": header}}}}


def read_header(element: int) -> dict[str, Any]:
    """An operation: reads it."""
    return {"op": "read", "table": "tt_content", "uids": [element], "fields": ["header"]}
