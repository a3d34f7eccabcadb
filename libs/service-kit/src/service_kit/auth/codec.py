"""Signing and checking JWTs: what users' tokens and services' assertions have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import jwt
from jwt.exceptions import ExpiredSignatureError, InvalidTokenError

from service_kit.auth.errors import TokenExpiredError, TokenInvalidError
from service_kit.auth.keys import KeySet, SigningKey
from service_kit.logging import get_logger

logger = get_logger(__name__)

ALGORITHM = "EdDSA"
USER_TOKEN_TYPE = "at+jwt"  # noqa: S105 - a media type, no secret
ASSERTION_TYPE = "service-assertion+jwt"
MAX_TOKEN_LENGTH = 16_384


def signed(claims: dict[str, Any], key: SigningKey, kind: str) -> str:
    """A token of a kind (its ``typ`` header)."""
    return jwt.encode(claims, key.private, algorithm=ALGORITHM, headers={"kid": key.kid, "typ": kind})


def peek(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims, not verified: only to choose the issuer and its key."""
    if len(token) > MAX_TOKEN_LENGTH or not token.isascii():
        raise invalid("too long or not ASCII")
    try:
        whole = jwt.decode_complete(token, options={"verify_signature": False})
    except (InvalidTokenError, ValueError, RecursionError) as error:
        raise invalid("unreadable") from error
    return whole["header"], whole["payload"]


def verified_claims(
    token: str,
    header: Mapping[str, Any],
    keys: KeySet,
    *,
    algorithms: tuple[str, ...],
    issuer: str,
    audience: str,
    leeway: timedelta,
    required: list[str],
) -> dict[str, Any]:
    """The claims, when signature, issuer, audience and time are right.

    Raises:
        TokenExpiredError: only the time is wrong.
        TokenInvalidError: anything else.
    """
    key = keys.get(str(header.get("kid", "")))
    if key is None or header.get("alg") not in algorithms or header.get("alg") != key.algorithm_name:
        raise invalid("unknown key or algorithm")
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key=key,
            algorithms=list(algorithms),
            issuer=issuer,
            audience=audience,
            leeway=leeway,
            options={"require": required},
        )
    except ExpiredSignatureError as error:
        raise TokenExpiredError from error
    except (InvalidTokenError, ValueError, TypeError, OverflowError) as error:
        raise invalid(type(error).__name__) from error
    if not isinstance(claims.get("exp"), int):
        raise invalid("expiry is no whole number")
    return claims


def invalid(reason: str) -> TokenInvalidError:
    """The reason goes to the log; a caller learns only that the token is not valid."""
    logger.info("token refused", reason=reason)
    return TokenInvalidError()


def plain_uid(subject: object) -> int | None:
    """The uid a subject stands for: a positive 32-bit number in its plain form, nothing else."""
    text = str(subject)
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and text[0] != "0"):
        return None
    return int(text) if int(text) < 2**31 else None
