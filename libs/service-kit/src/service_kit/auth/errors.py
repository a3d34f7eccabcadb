"""What can be wrong with a caller's identity."""

from __future__ import annotations

from typing import Any

from service_kit.problems import ProblemError


class AuthenticationError(ProblemError):
    """Base of everything answered with 401."""

    code = "token_invalid"
    status = 401
    title = "The access token is not valid"

    def __init__(self, **params: Any) -> None:
        super().__init__(headers={"WWW-Authenticate": f'Bearer error="{self.code}"'}, **params)


class TokenMissingError(AuthenticationError):
    """The request names no caller."""

    code = "token_missing"
    title = "An access token is needed"


class TokenInvalidError(AuthenticationError):
    """The token is forged, for somebody else, of the wrong kind or cannot be read; which of them is only logged."""

    code = "token_invalid"
    title = "The access token is not valid"


class TokenExpiredError(AuthenticationError):
    """The token was good once."""

    code = "token_expired"
    title = "The access token has expired"


class CallerNotAllowedError(ProblemError):
    """The service is known, but this operation is not for it."""

    code = "caller_not_allowed"
    status = 403
    title = "This service may not do that"
