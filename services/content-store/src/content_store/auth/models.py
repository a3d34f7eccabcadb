"""Tables of logins: sessions, their refresh tokens, and attempts that failed."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, ForeignKey, Index, LargeBinary, String, Uuid, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class AuthModel(DeclarativeBase):
    """Base of the tables."""


class AuthSession(AuthModel):
    """A login; access tokens name it as ``sid``. A revoked or expired one lets nobody in."""

    __tablename__ = "auth_session"

    sid: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    user_uid: Mapped[int] = mapped_column(BigInteger, index=True)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.clock_timestamp())
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), index=True)
    revoked_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class AuthRefreshToken(AuthModel):
    """A refresh token, as SHA-256. Used once; used a second time it ends its session."""

    __tablename__ = "auth_refresh_token"

    token_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    sid: Mapped[UUID] = mapped_column(ForeignKey("auth_session.sid", ondelete="CASCADE"), index=True)
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    used_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class AuthLoginAttempt(AuthModel):
    """A login that has not succeeded (yet)."""

    __tablename__ = "auth_login_attempt"
    __table_args__ = (Index("auth_login_attempt_key_idx", "username", "address", "attempted_at"),)

    attempt_id: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    username: Mapped[str] = mapped_column(String(320))
    address: Mapped[str] = mapped_column(String(64))
    attempted_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.clock_timestamp())
