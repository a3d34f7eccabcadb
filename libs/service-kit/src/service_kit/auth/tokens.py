"""Users' access tokens. Their ``typ`` header differs from an assertion's, so one is never taken for the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from service_kit.auth.codec import (
    ALGORITHM,
    ASSERTION_TYPE,
    USER_TOKEN_TYPE,
    invalid,
    peek,
    plain_uid,
    signed,
    verified_claims,
)
from service_kit.auth.keys import KeySet, SigningKey
from service_kit.clock import utc_now
from service_kit.ids import uuid7

DEFAULT_ACCESS_LIFETIME = timedelta(minutes=15)
OIDC_ALGORITHMS = ("EdDSA", "ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
KeySource = Callable[[str], Awaitable[KeySet]]
"""Gives the keys of an issuer; the argument is the key id that is wanted, so a source can fetch anew for an unknown one."""


@dataclass(frozen=True)
class UserToken:
    """A verified access token.

    Attributes:
        user_uid: uid of the be_users row; ``None`` when a foreign issuer's subject is no uid: the service maps it.
        subject: the token's subject (or the configured claim) as text.
        issuer: who signed it.
        token_id: ``jti``, or empty for issuers that give none.
        session_id: the login session (built-in issuer), for logout.
        expires_at: UTC.
        claims: everything else the token says.
    """

    user_uid: int | None
    subject: str
    issuer: str
    token_id: str
    session_id: UUID | None
    expires_at: datetime
    claims: Mapping[str, Any]


def fixed_keys(keys: KeySet) -> KeySource:
    """A source that always gives the same keys."""

    async def source(_kid: str) -> KeySet:
        return keys

    return source


class UserTokenIssuer:
    """Signs access tokens of the built-in issuer."""

    def __init__(
        self, key: SigningKey, issuer: str, audience: str, lifetime: timedelta = DEFAULT_ACCESS_LIFETIME
    ) -> None:
        self.key = key
        self.issuer = issuer
        self.audience = audience
        self.lifetime = lifetime

    def issue(self, user_uid: int, session_id: UUID, now: datetime | None = None) -> tuple[str, UserToken]:
        """A token for one user and login session, with what it says."""
        moment = (now or utc_now()).replace(microsecond=0)
        token_id = str(uuid7())
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": str(user_uid),
            "sid": str(session_id),
            "jti": token_id,
            "iat": int(moment.timestamp()),
            "exp": int((moment + self.lifetime).timestamp()),
        }
        token = signed(claims, self.key, USER_TOKEN_TYPE)
        return token, UserToken(
            user_uid, str(user_uid), self.issuer, token_id, session_id, moment + self.lifetime, claims
        )


@dataclass(frozen=True)
class TrustedIssuer:
    """An issuer whose access tokens are accepted.

    Attributes:
        issuer: value of ``iss``.
        audience: value ``aud`` must contain.
        keys: where its keys come from.
        algorithms: what it may sign with; never a symmetric one.
        user_claim: claim that names the user.
        token_types: accepted ``typ`` headers, lower case; empty accepts all but service assertions.
    """

    issuer: str
    audience: str
    keys: KeySource
    algorithms: tuple[str, ...] = (ALGORITHM,)
    user_claim: str = "sub"
    token_types: frozenset[str] = frozenset({USER_TOKEN_TYPE})

    @classmethod
    def builtin(cls, issuer: str, audience: str, keys: KeySet) -> TrustedIssuer:
        """The built-in issuer."""
        return cls(issuer, audience, fixed_keys(keys))

    @classmethod
    def oidc(cls, issuer: str, audience: str, keys: KeySource, user_claim: str = "sub") -> TrustedIssuer:
        """An OIDC provider; its access tokens may be signed with any asymmetric algorithm of JWA."""
        return cls(issuer, audience, keys, OIDC_ALGORITHMS, user_claim, frozenset())


class UserTokenVerifier:
    """Checks access tokens against the trusted issuers."""

    def __init__(self, issuers: Iterable[TrustedIssuer], leeway: timedelta = timedelta(seconds=5)) -> None:
        self._issuers = {issuer.issuer: issuer for issuer in issuers}
        self._leeway = leeway

    async def verify(self, token: str) -> UserToken:
        """Check signature, issuer, audience, kind and time.

        Raises:
            TokenExpiredError: everything is right but the time.
            TokenInvalidError: anything else.
        """
        header, unverified = peek(token)
        trusted = self._issuers.get(str(unverified.get("iss")))
        if trusted is None:
            raise invalid("unknown issuer")
        kind = str(header.get("typ", "")).lower().removeprefix("application/")
        if kind == ASSERTION_TYPE or (trusted.token_types and kind not in trusted.token_types):
            raise invalid("wrong kind of token")
        claims = verified_claims(
            token,
            header,
            await trusted.keys(str(header.get("kid", ""))),
            algorithms=trusted.algorithms,
            issuer=trusted.issuer,
            audience=trusted.audience,
            leeway=self._leeway,
            required=["exp", "iss", "aud"],
        )
        subject = claims.get(trusted.user_claim)
        if not isinstance(subject, str | int) or isinstance(subject, bool) or subject == "":
            raise invalid("no subject")
        return UserToken(
            user_uid=plain_uid(subject),
            subject=str(subject),
            issuer=trusted.issuer,
            token_id=str(claims.get("jti", "")),
            session_id=_uuid(claims.get("sid")),
            expires_at=datetime.fromtimestamp(claims["exp"], UTC),
            claims=claims,
        )


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None
