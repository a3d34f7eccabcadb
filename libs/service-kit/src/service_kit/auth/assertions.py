"""Service assertions: which service calls, whom, and on whose behalf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from service_kit.auth.codec import ALGORITHM, ASSERTION_TYPE, invalid, peek, plain_uid, signed, verified_claims
from service_kit.auth.keys import KeySet, SigningKey
from service_kit.clock import utc_now
from service_kit.ids import uuid7

MAX_ASSERTION_LIFETIME = timedelta(seconds=60)


@dataclass(frozen=True)
class ServiceAssertion:
    """A verified service assertion: which service calls, and for which user.

    Attributes:
        service: name of the calling service.
        user_uid: the user on whose behalf, from the subject; ``None`` when the service acts for itself.
        token_id: ``jti``.
        expires_at: UTC.
    """

    service: str
    user_uid: int | None
    token_id: str
    expires_at: datetime


class AssertionSigner:
    """Signs the assertions of one service: who it is, whom it calls, and for whom."""

    def __init__(self, service: str, key: SigningKey, lifetime: timedelta = timedelta(seconds=30)) -> None:
        if lifetime > MAX_ASSERTION_LIFETIME:
            raise ValueError("an assertion lives at most 60 seconds")
        self.service = service
        self._key = key
        self._lifetime = lifetime

    def sign(self, audience: str, user_uid: int | None = None, now: datetime | None = None) -> str:
        """An assertion for one service.

        Args:
            audience: name of the service that is called.
            user_uid: the user on whose behalf; becomes the subject, with this service as ``act``.
            now: moment it is made.
        """
        moment = now or utc_now()
        claims: dict[str, Any] = {
            "iss": self.service,
            "aud": audience,
            "sub": self.service if user_uid is None else str(user_uid),
            "jti": str(uuid7()),
            "iat": int(moment.timestamp()),
            "exp": int((moment + self._lifetime).timestamp()),
        }
        if user_uid is not None:
            claims["act"] = {"sub": self.service}
        return signed(claims, self._key, ASSERTION_TYPE)


class AssertionVerifier:
    """Checks assertions addressed to one service.

    Args:
        service: our name, the audience.
        trusted: public keys by name of the calling service.
        leeway: clock difference tolerated.
    """

    def __init__(self, service: str, trusted: Mapping[str, KeySet], leeway: timedelta = timedelta(seconds=5)) -> None:
        self._service = service
        self._trusted = dict(trusted)
        self._leeway = leeway

    async def verify(self, token: str) -> ServiceAssertion:
        """Check signature, service, audience, kind, age and subject.

        Raises:
            TokenExpiredError: everything is right but the time.
            TokenInvalidError: anything else.
        """
        header, unverified = peek(token)
        keys = self._trusted.get(str(unverified.get("iss")))
        if keys is None:
            raise invalid("unknown service")
        if str(header.get("typ", "")).lower() != ASSERTION_TYPE:
            raise invalid("wrong kind of token")
        claims = verified_claims(
            token,
            header,
            keys,
            algorithms=(ALGORITHM,),
            issuer=str(unverified["iss"]),
            audience=self._service,
            leeway=self._leeway,
            required=["exp", "iat", "iss", "aud", "sub", "jti"],
        )
        if claims["exp"] - claims["iat"] > MAX_ASSERTION_LIFETIME.total_seconds():
            raise invalid("assertion lives too long")
        return ServiceAssertion(
            service=claims["iss"],
            user_uid=_on_behalf_of(claims),
            token_id=str(claims["jti"]),
            expires_at=datetime.fromtimestamp(claims["exp"], UTC),
        )


def is_service_assertion(token: str) -> bool:
    """Whether the token says it is an assertion; nothing is verified."""
    header, _ = peek(token)
    return str(header.get("typ", "")).lower() == ASSERTION_TYPE


def _on_behalf_of(claims: Mapping[str, Any]) -> int | None:
    """The user of an assertion. ``act`` must be there with a user and only then, and must name the issuer."""
    acting = claims.get("act")
    if acting is None:
        if claims["sub"] != claims["iss"]:
            raise invalid("a subject without an acting service")
        return None
    uid = plain_uid(claims["sub"])
    if not isinstance(acting, dict) or acting.get("sub") != claims["iss"] or uid is None:
        raise invalid("acting service and subject do not fit")
    return uid
