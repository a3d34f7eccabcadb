"""Logging in, staying logged in, logging out."""

from __future__ import annotations

import hashlib
import secrets
from uuid import UUID

from service_kit.auth import TokenInvalidError, UserToken, UserTokenIssuer
from service_kit.database import Database
from service_kit.ids import uuid7
from service_kit.logging import get_logger

from content_store.auth.errors import LoginFailedError, RefreshFailedError, TooManyLoginsError
from content_store.auth.passwords import check_password
from content_store.auth.repository import AuthRepository, StoredUser
from content_store.auth.schemas import TokensView, UserView
from content_store.auth.settings import AuthSettings

logger = get_logger(__name__)
_SECRET_BYTES = 32


class AuthService:
    """Sessions of users of the built-in issuer.

    Args:
        database: of the store.
        issuer: signs access tokens.
        settings: lifetimes and limits.
    """

    def __init__(self, database: Database, issuer: UserTokenIssuer, settings: AuthSettings) -> None:
        self._database = database
        self._issuer = issuer
        self._settings = settings

    async def login(self, username: str, password: str, address: str) -> TokensView:
        """Check the password and begin a session.

        Args:
            username: upper and lower case are the same.
            password: in the clear.
            address: of the caller; failed logins are counted per user name and address.

        Raises:
            TooManyLoginsError: too many failed before.
            LoginFailedError: anything wrong with name or password.
        """
        name, address = username.strip().lower(), address[:64]
        if "\x00" in name or not name.isprintable():
            raise LoginFailedError
        async with self._database.unit_of_work() as session:
            wait = await AuthRepository(session).reserve_attempt(
                uuid7(), name, address, self._settings.failed_logins, self._settings.window
            )
        if wait is not None:
            raise TooManyLoginsError(seconds=wait, headers={"Retry-After": str(wait)})
        async with self._database.read() as reading:
            user = await AuthRepository(reading).user_by(username=name)
        # The password is checked outside of any transaction: it takes a while.
        if not await check_password(user.password if user else None, password) or user is None:
            raise LoginFailedError
        return await self._begin_session(user, name, address)

    async def _begin_session(self, user: StoredUser, name: str, address: str) -> TokensView:
        sid, refresh = uuid7(), secrets.token_urlsafe(_SECRET_BYTES)
        async with self._database.unit_of_work() as session:
            repository = AuthRepository(session)
            await repository.forget_attempts(name, address)
            await repository.add_session(sid, user.uid, self._settings.session)
            await repository.add_refresh_token(_hash(refresh), sid, self._settings.refresh)
        return self._tokens(user, sid, refresh)

    async def refresh(self, refresh_token: str) -> TokensView:
        """Exchange a refresh token for new tokens. One that was exchanged before ends its session: somebody copied it.

        Raises:
            RefreshFailedError: unknown, used, expired, revoked, or the user is disabled.
        """
        token_hash, fresh = _hash(refresh_token), secrets.token_urlsafe(_SECRET_BYTES)
        user: StoredUser | None = None
        sid: UUID | None = None
        async with self._database.unit_of_work() as session:
            repository = AuthRepository(session)
            found = await repository.refresh_token(token_hash)
            if found is not None and found.used:
                logger.warning("refresh token used twice", session_id=str(found.sid), user_uid=found.user_uid)
                await repository.revoke_session(found.sid)
            elif found is not None and found.alive:
                sid = found.sid
                user = await repository.user_by(uid=found.user_uid)
                if user is not None:
                    await repository.use_refresh_token(token_hash)
                    await repository.add_refresh_token(_hash(fresh), sid, self._settings.refresh)
        # Raised only here: the revocation has to be committed.
        if user is None or sid is None:
            raise RefreshFailedError
        return self._tokens(user, sid, fresh)

    async def logout(self, sid: UUID) -> None:
        """End the session: its access tokens stop at once, its refresh tokens for good."""
        async with self._database.unit_of_work() as session:
            await AuthRepository(session).revoke_session(sid)

    async def active_user(self, sid: UUID) -> int | None:
        """The user a session lets in now, ``None`` when it was ended or the user is disabled."""
        async with self._database.read() as session:
            return await AuthRepository(session).session_user(sid)

    async def user(self, uid: int) -> UserView | None:
        """The enabled user."""
        async with self._database.read() as session:
            stored = await AuthRepository(session).user_by(uid=uid)
        return _view(stored) if stored is not None else None

    async def resolve(self, token: UserToken) -> int:
        """The uid a verified access token stands for, asked for each request.

        A token of the built-in issuer needs its session; one of another issuer names its user by user name.

        Raises:
            TokenInvalidError: the session has ended, or there is no enabled user.
        """
        uid: int | None = None
        if token.issuer != self._issuer.issuer:
            async with self._database.read() as session:
                stored = await AuthRepository(session).user_by(username=token.subject.strip().lower())
            uid = stored.uid if stored is not None else None
        elif token.session_id is not None:
            uid = await self.active_user(token.session_id)
            if uid != token.user_uid:
                uid = None
        if uid is None:
            raise TokenInvalidError
        return uid

    def _tokens(self, user: StoredUser, sid: UUID, refresh: str) -> TokensView:
        access, _ = self._issuer.issue(user.uid, sid)
        return TokensView(
            access_token=access,
            refresh_token=refresh,
            expires_in=int(self._issuer.lifetime.total_seconds()),
            user=_view(user),
        )


def _view(user: StoredUser) -> UserView:
    return UserView(uid=user.uid, username=user.username, name=user.name, locale=user.locale, admin=user.admin)


def _hash(refresh_token: str) -> bytes:
    return hashlib.sha256(refresh_token.encode("utf-8", "surrogatepass")).digest()
