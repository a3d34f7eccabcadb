"""Bodies of the login routes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from remit_contracts.base import Contract, RequestContract


class LoginRequest(RequestContract):
    """Body of ``POST /v1/auth/login``."""

    username: Annotated[str, Field(min_length=1, max_length=255)]
    password: Annotated[str, Field(min_length=1, max_length=1000)]


class RefreshRequest(RequestContract):
    """Body of ``POST /v1/auth/refresh``."""

    refresh_token: Annotated[str, Field(min_length=1, max_length=16_384)]


class LoggedInUser(Contract):
    """The user."""

    uid: int
    username: str
    name: str = ""
    locale: str = "en"
    admin: bool = False


class Tokens(Contract):
    """Answer of login and refresh; ``expiresIn`` in seconds."""

    access_token: str
    refresh_token: str
    expires_in: int
    user: LoggedInUser
