"""Logins: sessions, refresh tokens, failed attempts."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE public.auth_session (
      sid uuid PRIMARY KEY,
      user_uid bigint NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      expires_at timestamptz NOT NULL,
      revoked_at timestamptz
    )
    """,
    "CREATE INDEX auth_session_user_uid_idx ON public.auth_session (user_uid)",
    "CREATE INDEX auth_session_expires_at_idx ON public.auth_session (expires_at)",
    """
    CREATE TABLE public.auth_refresh_token (
      token_hash bytea PRIMARY KEY,
      sid uuid NOT NULL REFERENCES public.auth_session (sid) ON DELETE CASCADE,
      expires_at timestamptz NOT NULL,
      used_at timestamptz
    )
    """,
    "CREATE INDEX auth_refresh_token_sid_idx ON public.auth_refresh_token (sid)",
    """
    CREATE TABLE public.auth_login_attempt (
      attempt_id uuid PRIMARY KEY,
      username varchar(320) NOT NULL,
      address varchar(64) NOT NULL,
      attempted_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "CREATE INDEX auth_login_attempt_key_idx ON public.auth_login_attempt (username, address, attempted_at)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
