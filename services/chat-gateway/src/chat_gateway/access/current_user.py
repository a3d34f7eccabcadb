"""Who is asking: the user of an access token, as long as the login session stands."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from service_kit.auth import Actor, TokenInvalidError, UserToken, require_user
from service_kit.texts import DEFAULT_LANGUAGE, Texts

MAX_REMEMBERED = 10_000


@dataclass(frozen=True)
class CurrentUser:
    """The reader.

    Attributes:
        locale: language of texts in this answer and of the runs started by it.
        expires_at: when the token ends; a stream ends with it.
    """

    uid: int
    locale: str = DEFAULT_LANGUAGE
    expires_at: datetime | None = None
    session_id: UUID | None = None


class LoginSessions:
    """Whether login sessions still stand, asked of the content-store and remembered for some seconds.

    Args:
        ask: of the store.
        remember: seconds an answer is believed, at most 5.
    """

    def __init__(self, ask: Callable[[UUID], Awaitable[bool]], remember: float) -> None:
        self._ask = ask
        self._remember = remember
        self._known: dict[UUID, tuple[float, bool]] = {}

    async def active(self, session_id: UUID) -> bool:
        """Whether the session stands; raises where the store does not answer, since nothing is let in unchecked."""
        now = time.monotonic()
        known = self._known.get(session_id)
        if known is not None and now - known[0] < self._remember:
            return known[1]
        active = await self._ask(session_id)
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[session_id] = (now, active)
        return active

    async def resolve(self, token: UserToken) -> int:
        """The user of a token whose session stands.

        Raises:
            TokenInvalidError: logged out, disabled, or no user of this system.
        """
        if token.user_uid is None:
            raise TokenInvalidError
        if token.session_id is not None and not await self.active(token.session_id):
            raise TokenInvalidError
        return token.user_uid


async def _current_user(request: Request, actor: Annotated[Actor, require_user()]) -> CurrentUser:
    texts = request.app.state.texts
    locale = texts.negotiate(request.headers.get("accept-language")) if isinstance(texts, Texts) else DEFAULT_LANGUAGE
    token = actor.token
    return CurrentUser(
        uid=actor.user_uid,
        locale=locale,
        expires_at=token.expires_at if token is not None else None,
        session_id=token.session_id if token is not None else None,
    )


CurrentUserDependency = Annotated[CurrentUser, Depends(_current_user)]
"""Parameter of a route: the user who asks."""
