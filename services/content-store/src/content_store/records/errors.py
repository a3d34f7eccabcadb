"""What can go wrong between a value and its row."""

from __future__ import annotations

from typing import Final

# Deadlock, serialization failure, lock timeout, cancelled statement: what the transaction did before is not sound
# any more, so the whole call ends (CALLS 1).
CALL_ENDING_SQLSTATES: Final = frozenset({"40P01", "40001", "55P03", "57014"})

FORGOTTEN_STATEMENT: Final = "26000"


class RecordError(Exception):
    """Base of the errors of the record gateway."""

    code = "record_error"


class TransactionLost(RecordError):
    """The connection is no longer in the transaction of the call (somebody sent COMMIT or ROLLBACK)."""

    code = "transaction_lost"


class CallMustEnd(RecordError):
    """The database ended more than one statement.

    Attributes:
        sqlstate: one of :data:`CALL_ENDING_SQLSTATES`, or :data:`FORGOTTEN_STATEMENT`.
    """

    code = "call_must_end"

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class StatementRefused(RecordError):
    """The database refused one statement (a constraint, a trigger); the savepoint has to be rolled back.

    Attributes:
        sqlstate: as reported by the database.
    """

    code = "database_refused"

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class ValueNotStorable(RecordError):
    """A value does not fit its column; found before any SQL was sent.

    Attributes:
        table: of the record.
        column: that cannot hold the value.
        reason: ``nul``, ``encoding``, ``range``, ``length``, ``type``, ``null``.
    """

    code = "value_not_storable"

    def __init__(self, table: str, column: str, reason: str) -> None:
        super().__init__(f"{table}.{column} cannot hold this value ({reason})")
        self.table = table
        self.column = column
        self.reason = reason
