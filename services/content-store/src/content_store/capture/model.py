"""What the database itself saw of a transaction, as values (S-53, CALLS 2).

``CapturedRow`` is one recorded row of one statement; ``RowDelta`` is what became of one record over the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Operation(StrEnum):
    """What a statement did to a row."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a row stood: the columns scope and change list are judged by.

    Attributes:
        pid: page the row lies on; of a page its parent.
        language: ``None`` where the table knows no languages, -1 for all languages.
        parent: default-language row this one translates, 0 for none.
        source: row this translation was made from, 0 for none.
        workspace: workspace the row is stored in, 0 is live.
        live_uid: live row this one is a version of, 0 for none.
        version_state: 0 changed, 1 new, 2 marked for deletion, 4 moved.
        deleted: soft-delete flag.
        pointers: columns by which a child row names its parent record (pointer, parent table, match fields).
    """

    pid: int
    language: int | None = None
    parent: int = 0
    source: int = 0
    workspace: int = 0
    live_uid: int = 0
    version_state: int = 0
    deleted: bool = False
    pointers: Mapping[str, int | str | None] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """A row of an MM table; ``tablenames`` and ``fieldname`` are empty where the table has no such columns."""

    uid_local: int
    uid_foreign: int
    tablenames: str = ""
    fieldname: str = ""


@dataclass(frozen=True, slots=True)
class CapturedRow:
    """One row of one statement, in the order of the statements.

    Attributes:
        table: record or MM table.
        operation: what happened to the row.
        uid: of the record, 0 for a row of an MM table.
        before: identity before the statement, ``None`` when it inserted the row.
        after: identity after the statement, ``None`` when it deleted the row.
        other_changed: a column other than sorting and tstamp differs.
        sorting_changed: the sorting column differs.
        relation: only for a row of an MM table.
        transaction_id: of the writer; only the sweeper mixes several.
    """

    table: str
    operation: Operation
    uid: int = 0
    before: Identity | None = None
    after: Identity | None = None
    other_changed: bool = True
    sorting_changed: bool = False
    relation: Relation | None = None
    transaction_id: int = 0


@dataclass(frozen=True, slots=True)
class RowDelta:
    """What a transaction made of one record or of one MM row: first before, last after.

    Attributes:
        table: record or MM table.
        uid: of the record, 0 for an MM row.
        before: ``None`` when the row is new.
        after: ``None`` when the row is gone.
        other_changed: some statement changed a column other than sorting and tstamp.
        sorting_changed: some statement changed the sorting column.
        relation: only for an MM row; ``relation_change`` says whether it came (1), went (-1) or only its order changed (0).
    """

    table: str
    uid: int
    before: Identity | None
    after: Identity | None
    other_changed: bool
    sorting_changed: bool
    relation: Relation | None = None
    relation_change: int = 0

    @property
    def is_relation(self) -> bool:
        """A row of an MM table."""
        return self.relation is not None

    @property
    def is_passing(self) -> bool:
        """The record was made and removed within the transaction: nothing of it is left."""
        return not self.is_relation and self.before is None and self.after is None

    @property
    def is_new(self) -> bool:
        """The record did not exist before the transaction."""
        return not self.is_relation and self.before is None and self.after is not None

    @property
    def is_gone(self) -> bool:
        """The record existed before the transaction and is deleted hard."""
        return not self.is_relation and self.before is not None and self.after is None

    @property
    def identity_changed(self) -> bool:
        """Place, language, translation, version, deleted flag or parent pointer differ."""
        return not self.is_relation and self.before != self.after

    @property
    def is_renumbering(self) -> bool:
        """Neither identity nor another column changed: no change of a record (S-54)."""
        if self.is_relation:
            return self.relation_change == 0
        return not self.identity_changed and not self.other_changed and not self.is_passing
