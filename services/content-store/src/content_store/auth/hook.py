"""A new password ends the logins made with the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from content_store.datahandler.hooks import DataHandlerHook, Fields, Status

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

_REVOKE = "UPDATE public.auth_session SET revoked_at = clock_timestamp() WHERE user_uid = $1 AND revoked_at IS NULL"


class PasswordHook(DataHandlerHook):
    """Ends the sessions of a user whose password is written, in the same transaction."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        """A password field of ``be_users`` was written."""
        if table == "be_users" and status == "update" and "password" in fields:
            await run.ctx.gateway.fetch(_REVOKE, uid)
