"""``apply`` over one kept connection, as the runtime sends it, with as little client as possible."""

from __future__ import annotations

import http.client
import json
from typing import Any, Self
from uuid import uuid4

from remit_harness.stacks import TestStack
from remit_local.services import RUNTIME, STORE
from service_kit.auth import AssertionSigner, SigningKey


class StoreCalls:
    """Sends updates of one page's title."""

    def __init__(self, stack: TestStack, page: int) -> None:
        plan = stack.stack.plan
        self._signer = AssertionSigner(RUNTIME, SigningKey.from_pem((plan.keys / f"{RUNTIME}.pem").read_text()))
        self.user = int(stack.rows(STORE, "SELECT uid FROM be_users WHERE username = 'emma'")[0]["uid"])
        self._page = page
        self._run = str(uuid4())
        self._http = http.client.HTTPConnection("127.0.0.1", plan.ports.store, timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def connect(self) -> None:
        """Open the connection anew; the server closes one that was quiet for some seconds."""
        self._http.close()
        self._http.connect()

    def update(self, title: str) -> dict[str, Any]:
        """One ``apply`` that changes the title."""
        body = {
            "runId": self._run,
            "leaseEpoch": 1,
            "actor": {"userUid": self.user, "workspaceId": 0, "locale": "en"},
            "scope": {"pages": [{"page": 1, "depth": 99}], "records": [], "tables": None, "languages": None},
            "tool": "update_page_metadata",
            "effect": "write",
            "writeTarget": {"table": "pages", "uid": self._page},
            "operations": [{"op": "datamap", "datamap": {"pages": {str(self._page): {"title": title}}}}],
        }
        headers = {
            "Authorization": f"Bearer {self._signer.sign(STORE, self.user)}",
            "Content-Type": "application/json",
        }
        self._http.request("POST", f"/v1/calls/{uuid4()}/apply", json.dumps(body), headers)
        answer = self._http.getresponse()
        result: dict[str, Any] = json.loads(answer.read())
        if answer.status != 200 or result.get("outcome") != "committed":
            raise RuntimeError(f"the call was not carried out: {answer.status} {result}")
        return result
