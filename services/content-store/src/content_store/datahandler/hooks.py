"""Hook points of a DataHandler, in the order they are called (SEMANTICS 20).

A hook is an object of a subclass of :class:`DataHandlerHook`; every method does nothing by default. Installed hooks
are found by the entry point group ``content_store.hooks`` (a class without arguments). A hook refuses by raising
:class:`HookVeto`; it may write through a DataHandler of its own (``DataHandler.within(run.ctx)``), which shares
correlation, work lists and callbacks, and it must do nothing outside the database while ``run.ctx.rehearsal``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.records.gateway import Row

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun

__all__ = ["HOOK_GROUP", "DataHandlerHook", "Fields", "HookVeto", "Row", "Status", "load_hooks"]

HOOK_GROUP = "content_store.hooks"
Fields = dict[str, Any]
Status = Literal["new", "update"]


class HookVeto(Refusal):
    """Raised by a hook to keep an entry or command from being carried out."""

    def __init__(self, message: str, code: str = ErrorCode.VETOED, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, message, data or {}, denied=True)


class DataHandlerHook:
    """Base of all hooks. ``run`` is the instance that is at work, nested instances included."""

    # --- datamap ------------------------------------------------------------------------------------------------

    async def before_start(self, run: HandlerRun) -> None:
        """Once per instance, before anything of ``run.datamap`` is processed; may change it."""

    async def check_modify_access_list(self, run: HandlerRun, table: str, allowed: bool) -> bool:
        """Per table, with either map: may it be written? Returns the verdict."""
        return allowed

    async def pre_process_field_array(self, run: HandlerRun, row: Fields, table: str, record_id: str) -> Fields | None:
        """Per entry: the submitted row with what translations add. Returns the row to use, ``None`` is a veto."""
        return row

    async def check_record_update_access(
        self, run: HandlerRun, table: str, uid: int, row: Fields, verdict: bool | None
    ) -> bool | None:
        """Per update: ``True`` or ``False`` decides instead of the rights, ``None`` leaves it to them."""
        return verdict

    async def post_process_field_array(
        self, run: HandlerRun, status: Status, table: str, record_id: str, fields: Fields
    ) -> None:
        """Per entry: the final fields without unchanged ones, also when none are left; may change them."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        """Per entry: what was written. A row with placeholders waits for them."""

    async def after_all_operations(self, run: HandlerRun) -> None:
        """Once per instance, after the datamap."""

    # --- cmdmap -------------------------------------------------------------------------------------------------

    async def before_commands(self, run: HandlerRun) -> None:
        """Once per instance, before ``run.cmdmap`` is processed; may change it."""

    async def pre_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste_update: Fields | None
    ) -> Any:
        """Per command: returns the value to use."""
        return value

    async def process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, handled: bool, paste: Fields | None
    ) -> bool:
        """Per command: ``True`` says the hook carried it out."""
        return handled

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        """Per command, with the uids it made (copy, translation) or the record itself; may change the paste update."""

    async def after_commands(self, run: HandlerRun) -> None:
        """Once per instance, after the cmdmap."""

    # --- inside commands ----------------------------------------------------------------------------------------

    async def delete_action(self, run: HandlerRun, table: str, uid: int, record: Row, handled: bool) -> bool:
        """Per record deleted, cascades included (not what lies on a deleted page)."""
        return handled

    async def discard_action(self, run: HandlerRun, table: str, uid: int, record: Row, handled: bool) -> bool:
        """Per version discarded."""
        return handled

    async def move_record(
        self, run: HandlerRun, table: str, uid: int, target: int, record: Row, page: int, handled: bool
    ) -> bool:
        """Per record moved; ``target`` as given, ``page`` where it will lie."""
        return handled

    async def moved_first_on_page(self, run: HandlerRun, table: str, uid: int, page: int, fields: Fields) -> None:
        """After a record was moved to the top of a page."""

    async def moved_after_record(self, run: HandlerRun, table: str, uid: int, anchor: int, fields: Fields) -> None:
        """After a record was moved behind another."""

    async def translate_copy_action(
        self, run: HandlerRun, table: str, field: str, value: str, language_title: str
    ) -> str:
        """Per field that gets the prefix of its language; returns the value to use."""
        return value


def load_hooks() -> list[DataHandlerHook]:
    """Hooks that installed packages announce, in the order of their names.

    Raises:
        TypeError: an entry point is no :class:`DataHandlerHook`.
    """
    hooks: list[DataHandlerHook] = []
    for entry in sorted(entry_points(group=HOOK_GROUP), key=lambda e: e.name):
        hook = entry.load()()
        if not isinstance(hook, DataHandlerHook):
            raise TypeError(f"{HOOK_GROUP}: {entry.name} is no DataHandlerHook")
        hooks.append(hook)
    return hooks
