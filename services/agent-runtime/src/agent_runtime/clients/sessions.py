"""Whether a login session is still good: asked of the store, remembered for a few seconds."""

from __future__ import annotations

import time
from collections import OrderedDict
from uuid import UUID

from service_kit.auth import TokenInvalidError, UserToken
from service_kit.client import RemoteProblem, ServiceClient

REMEMBERED_SECONDS = 5.0
MAX_REMEMBERED = 10_000


class SessionCheck:
    """A logged-out session or a disabled user stops at once, give or take the seconds remembered."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client
        self._known: OrderedDict[UUID, tuple[float, int | None]] = OrderedDict()

    async def __call__(self, token: UserToken) -> int:
        """The uid of the token's user.

        Raises:
            TokenInvalidError: the session has ended, or belongs to somebody else.
        """
        if token.session_id is None:
            raise TokenInvalidError
        now = time.monotonic()
        until, uid = self._known.get(token.session_id, (0.0, None))
        if until <= now:
            uid = await self._ask(token.session_id)
            self._known[token.session_id] = (now + REMEMBERED_SECONDS, uid)
            while len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        if uid is None or (token.user_uid is not None and uid != token.user_uid):
            raise TokenInvalidError
        return uid

    async def _ask(self, session_id: UUID) -> int | None:
        try:
            answer = await self._client.get_json(f"/v1/auth/sessions/{session_id}")
        except RemoteProblem as problem:
            if problem.status == 404:
                return None
            raise
        if not isinstance(answer, dict) or answer.get("active") is not True:
            return None
        uid = answer.get("userUid")
        return uid if isinstance(uid, int) and not isinstance(uid, bool) else None
