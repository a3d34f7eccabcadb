"""Keeps the rights of a call true while the call itself changes pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from content_store.access.rights import BackendAccess
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row


class PageRightsHook(DataHandlerHook):
    """Tells the policy of the call that pages were written; put it before hooks that ask for rights.

    Args:
        policy: of the call.
    """

    def __init__(self, policy: BackendAccess) -> None:
        self._policy = policy

    def _wrote(self, table: str) -> None:
        if table == "pages":
            self._policy.forget_pages()

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        """A page is new, or its rights may be others."""
        self._wrote(table)

    async def moved_first_on_page(self, run: HandlerRun, table: str, uid: int, page: int, fields: Fields) -> None:
        """A page has another rootline."""
        self._wrote(table)

    async def moved_after_record(self, run: HandlerRun, table: str, uid: int, anchor: int, fields: Fields) -> None:
        """A page has another rootline."""
        self._wrote(table)

    async def delete_action(self, run: HandlerRun, table: str, uid: int, record: Row, handled: bool) -> bool:
        """A page is about to go."""
        self._wrote(table)
        return handled

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        """A command on a page is done."""
        self._wrote(table)
