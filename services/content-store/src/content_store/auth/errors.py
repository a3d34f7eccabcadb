"""What can go wrong with a login."""

from __future__ import annotations

from service_kit.auth import AuthenticationError
from service_kit.problems import ProblemError


class LoginFailedError(AuthenticationError):
    """Unknown user, wrong password, disabled user: nobody learns which."""

    code = "login_failed"
    title = "User name or password is wrong"


class TooManyLoginsError(ProblemError):
    """Too many failed logins of one user name from one address; ``Retry-After`` says when to try again."""

    code = "too_many_logins"
    status = 429
    title = "Too many failed logins"
    detail_text = "Try again in {seconds} seconds."


class RefreshFailedError(AuthenticationError):
    """The refresh token is unknown, used, expired, or its session has ended."""

    code = "refresh_failed"
    title = "The session has ended, log in again"
