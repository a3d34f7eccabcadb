"""Statements on logins and, to check a password, on the row of the user. Times are the database's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import BigInteger, String, column, delete, func, insert, or_, select, table, update
from sqlalchemy.ext.asyncio import AsyncSession

from content_store.auth.models import AuthLoginAttempt, AuthRefreshToken, AuthSession

_users = table(
    "be_users",
    *(column(name, BigInteger) for name in ("uid", "admin", "disable", "deleted", "starttime", "endtime")),
    *(column(name, String) for name in ("username", "password", "realName", "lang")),
    schema="public",
)
_clock = func.clock_timestamp()


@dataclass(frozen=True)
class StoredUser:
    """What logging in needs of a user."""

    uid: int
    username: str
    password: str
    name: str
    locale: str
    admin: bool


@dataclass(frozen=True)
class RefreshRow:
    """A refresh token as found.

    Attributes:
        used: it was exchanged before.
        alive: neither the token nor its session has ended.
    """

    sid: UUID
    user_uid: int
    used: bool
    alive: bool


def _enabled() -> tuple[object, ...]:
    now = func.extract("epoch", _clock)
    return (
        _users.c.deleted == 0,
        _users.c.disable == 0,
        _users.c.starttime <= now,
        or_(_users.c.endtime == 0, _users.c.endtime > now),
    )


class AuthRepository:
    """Reads and writes in the session it is given."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def user_by(self, *, username: str | None = None, uid: int | None = None) -> StoredUser | None:
        """The enabled user of this name or uid."""
        key = _users.c.username == username if username is not None else _users.c.uid == uid
        query = select(_users).where(key, *_enabled()).order_by(_users.c.uid).limit(1)  # type: ignore[arg-type]
        row = (await self._session.execute(query)).first()
        if row is None:
            return None
        return StoredUser(
            uid=row.uid,
            username=row.username,
            password=row.password or "",
            name=row.realName or row.username,
            locale=(row.lang or "en").split("_")[0].split("-")[0],
            admin=bool(row.admin),
        )

    async def reserve_attempt(
        self, attempt_id: UUID, username: str, address: str, allowed: int, window: timedelta
    ) -> int | None:
        """Notes an attempt, which counts as failed until it succeeds.

        Returns:
            ``None``, or seconds to wait where there were as many as allowed within the window; nothing is noted then.
        """
        # Attempts of one user from one address queue up here, or a burst of them would slip under the limit.
        await self._session.execute(
            select(func.pg_advisory_xact_lock(func.hashtextextended(f"login:{username}:{address}", 0)))
        )
        same = (AuthLoginAttempt.username == username, AuthLoginAttempt.address == address)
        recent = (
            select(AuthLoginAttempt.attempted_at)
            .where(*same, AuthLoginAttempt.attempted_at > _clock - window)
            .order_by(AuthLoginAttempt.attempted_at.desc())
            .limit(allowed)
        )
        found = list((await self._session.execute(recent)).scalars())
        if len(found) >= allowed:
            now: datetime = (await self._session.execute(select(_clock))).scalar_one()
            return max(1, round((found[-1] + window - now).total_seconds()))
        # Old attempts of everybody go here: there are few, and no other job is needed for them.
        await self._session.execute(delete(AuthLoginAttempt).where(AuthLoginAttempt.attempted_at < _clock - window))
        await self._session.execute(
            insert(AuthLoginAttempt).values(attempt_id=attempt_id, username=username, address=address)
        )
        return None

    async def forget_attempts(self, username: str, address: str) -> None:
        """A login succeeded: those before it do not count any more."""
        await self._session.execute(
            delete(AuthLoginAttempt).where(AuthLoginAttempt.username == username, AuthLoginAttempt.address == address)
        )

    async def add_session(self, sid: UUID, user_uid: int, lifetime: timedelta) -> None:
        """A new login; sessions that ended long ago go."""
        await self._session.execute(delete(AuthSession).where(AuthSession.expires_at < _clock - timedelta(days=1)))
        await self._session.execute(
            insert(AuthSession).values(sid=sid, user_uid=user_uid, expires_at=_clock + lifetime)
        )

    async def add_refresh_token(self, token_hash: bytes, sid: UUID, lifetime: timedelta) -> None:
        """A refresh token of the session."""
        await self._session.execute(
            insert(AuthRefreshToken).values(token_hash=token_hash, sid=sid, expires_at=_clock + lifetime)
        )

    async def refresh_token(self, token_hash: bytes) -> RefreshRow | None:
        """The token, locked until the transaction ends, so that two exchanges of one token follow each other."""
        query = (
            select(
                AuthSession.sid,
                AuthSession.user_uid,
                AuthRefreshToken.used_at.is_not(None).label("used"),
                (
                    AuthSession.revoked_at.is_(None)
                    & (AuthSession.expires_at > _clock)
                    & (AuthRefreshToken.expires_at > _clock)
                ).label("alive"),
            )
            .join(AuthSession, AuthSession.sid == AuthRefreshToken.sid)
            .where(AuthRefreshToken.token_hash == token_hash)
            .with_for_update()
        )
        row = (await self._session.execute(query)).first()
        return RefreshRow(row.sid, row.user_uid, row.used, row.alive) if row is not None else None

    async def use_refresh_token(self, token_hash: bytes) -> None:
        """The token was exchanged."""
        await self._session.execute(
            update(AuthRefreshToken).where(AuthRefreshToken.token_hash == token_hash).values(used_at=_clock)
        )

    async def revoke_session(self, sid: UUID) -> None:
        """The session lets nobody in any more."""
        await self._session.execute(
            update(AuthSession)
            .where(AuthSession.sid == sid, AuthSession.revoked_at.is_(None))
            .values(revoked_at=_clock)
        )

    async def revoke_sessions_of(self, user_uid: int) -> None:
        """All sessions of a user end, e.g. after a new password."""
        await self._session.execute(
            update(AuthSession)
            .where(AuthSession.user_uid == user_uid, AuthSession.revoked_at.is_(None))
            .values(revoked_at=_clock)
        )

    async def session_user(self, sid: UUID) -> int | None:
        """The enabled user of a session that is alive."""
        query = (
            select(AuthSession.user_uid)
            .join(_users, _users.c.uid == AuthSession.user_uid)
            .where(
                AuthSession.sid == sid,
                AuthSession.revoked_at.is_(None),
                AuthSession.expires_at > _clock,
                *_enabled(),  # type: ignore[arg-type]
            )
        )
        return (await self._session.execute(query)).scalar_one_or_none()
