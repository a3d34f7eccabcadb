"""Settings of logins, environment variables ``CONTENT_STORE_AUTH_…``."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class AuthSettings(BaseSettings):
    """Lifetimes in seconds."""

    model_config = SettingsConfigDict(env_prefix="CONTENT_STORE_AUTH_", extra="ignore")

    access_lifetime: float = Field(default=900, gt=0, le=86_400)
    refresh_lifetime: float = Field(default=14 * 86_400, gt=0, description="of one refresh token")
    session_lifetime: float = Field(default=30 * 86_400, gt=0, description="of a login, however often it is refreshed")
    failed_logins: int = Field(default=5, ge=1, description="per user name and address within the window")
    failed_logins_window: float = Field(default=60, gt=0)

    @property
    def access(self) -> timedelta:
        """Lifetime of an access token."""
        return timedelta(seconds=self.access_lifetime)

    @property
    def refresh(self) -> timedelta:
        """Lifetime of a refresh token."""
        return timedelta(seconds=self.refresh_lifetime)

    @property
    def session(self) -> timedelta:
        """Lifetime of a login."""
        return timedelta(seconds=self.session_lifetime)

    @property
    def window(self) -> timedelta:
        """How long a failed login counts."""
        return timedelta(seconds=self.failed_logins_window)
