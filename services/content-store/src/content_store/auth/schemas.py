"""Bodies of the login routes."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field
from remit_contracts.base import Contract, RequestContract

from content_store.auth.passwords import MAX_PASSWORD_LENGTH


class LoginRequest(RequestContract):
    """User name and password; neither is ever logged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"username": "editor", "password": "secret"}]})

    username: Annotated[str, Field(min_length=1, max_length=320)]
    password: Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD_LENGTH)]


class RefreshRequest(RequestContract):
    """A refresh token; it is good for one exchange."""

    refresh_token: Annotated[str, Field(min_length=1, max_length=512)]


class UserView(Contract):
    """A user, as it may know itself."""

    uid: int
    username: str
    name: str
    locale: str
    admin: bool


class TokensView(Contract):
    """Tokens of a session. ``expiresIn``: seconds the access token is good for."""

    access_token: str
    refresh_token: str
    expires_in: int
    user: UserView


class SessionView(Contract):
    """Whether a session lets its user in at this moment."""

    active: bool
    user_uid: int | None = None


class KeySetView(Contract):
    """Public keys access tokens are signed with (JWK set)."""

    keys: list[dict[str, str]]
