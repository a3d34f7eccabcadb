"""Who is calling: users' access tokens and services' short assertions, both JWT with EdDSA."""

from __future__ import annotations

from service_kit.auth.assertions import AssertionSigner, AssertionVerifier, ServiceAssertion
from service_kit.auth.callers import CallerTable
from service_kit.auth.dependencies import (
    Actor,
    Authenticator,
    require_actor,
    require_service,
    require_user,
)
from service_kit.auth.errors import (
    AuthenticationError,
    CallerNotAllowedError,
    TokenExpiredError,
    TokenInvalidError,
    TokenMissingError,
)
from service_kit.auth.keys import KeySet, SigningKey, load_signing_key, load_trusted_keys
from service_kit.auth.tokens import (
    TrustedIssuer,
    UserToken,
    UserTokenIssuer,
    UserTokenVerifier,
)

__all__ = [
    "Actor",
    "AssertionSigner",
    "AssertionVerifier",
    "AuthenticationError",
    "Authenticator",
    "CallerNotAllowedError",
    "CallerTable",
    "KeySet",
    "ServiceAssertion",
    "SigningKey",
    "TokenExpiredError",
    "TokenInvalidError",
    "TokenMissingError",
    "TrustedIssuer",
    "UserToken",
    "UserTokenIssuer",
    "UserTokenVerifier",
    "load_signing_key",
    "load_trusted_keys",
    "require_actor",
    "require_service",
    "require_user",
]
