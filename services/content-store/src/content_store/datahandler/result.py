"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from content_store.datahandler.log import storable

EntryStatus = Literal["written", "unchanged", "refused", "error", "vetoed"]
_NAME_LIMIT: Final = 64
#: Statuses of entries that changed nothing.
NOT_CARRIED_OUT: Final = frozenset({"refused", "error", "vetoed"})
Mapping2 = dict[str, dict[int, int]]


@dataclass(frozen=True)
class DroppedField:
    """A submitted field that was not written although the rest of its entry was.

    Attributes:
        field: as submitted.
        code: ``field_not_allowed`` for a missing right, ``unknown_field``, ``follows_original`` for a field of a
            translation that its original decides, or the code of what refused a relation.
    """

    field: str
    code: str


@dataclass
class EntryOutcome:
    """What happened to one entry of the datamap or one command.

    Attributes:
        table: as submitted.
        id: uid or placeholder, as submitted.
        operation: ``new``, ``update``, or the name of the command.
        status: ``written``; ``unchanged`` where nothing was left to write; ``refused`` for a missing right;
            ``error``; ``vetoed`` by a hook.
        uid: of the record written, the copy or the translation.
        code: stable code of a refusal or error.
        message: for people, English.
        dropped: submitted fields that were not written; where that were all of them, the entry is ``refused``.
    """

    table: str
    id: str
    operation: str
    status: EntryStatus
    uid: int | None = None
    code: str | None = None
    message: str | None = None
    dropped: list[DroppedField] = field(default_factory=list)

    def drop(self, name: str, code: str) -> None:
        """Names a field that is not written."""
        self.dropped.append(DroppedField(storable(name)[:_NAME_LIMIT], code))


@dataclass
class ProcessResult:
    """Results of :meth:`DataHandler.process`, named as callers of a DataHandler know them.

    Attributes:
        substNEWwithIDs: placeholder -> uid.
        substNEWwithIDs_table: placeholder -> table.
        copyMappingArray: table -> source -> copy, of the last command.
        copyMappingArray_merged: the same of all commands.
        autoVersionIdMap: table -> live uid -> uid of the version made for it.
        errorLog: texts of all errors, warnings included.
        outcomes: one per entry and command, in order.
        correlation_id: scope shared by the history entries of the run.
    """

    substNEWwithIDs: dict[str, int] = field(default_factory=dict)
    substNEWwithIDs_table: dict[str, str] = field(default_factory=dict)
    copyMappingArray: Mapping2 = field(default_factory=dict)
    copyMappingArray_merged: Mapping2 = field(default_factory=dict)
    autoVersionIdMap: Mapping2 = field(default_factory=dict)
    errorLog: list[str] = field(default_factory=list)
    outcomes: list[EntryOutcome] = field(default_factory=list)
    correlation_id: str = ""

    @property
    def failed(self) -> list[EntryOutcome]:
        """Entries and commands that were not carried out."""
        return [o for o in self.outcomes if o.status in NOT_CARRIED_OUT]
