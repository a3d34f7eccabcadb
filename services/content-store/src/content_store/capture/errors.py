"""What the database refuses about calls and captured tables: SQL states of our own, and their exceptions.

The states are raised by the functions of the capture; ``capture_error`` turns a driver error into its exception.
"""

from __future__ import annotations

import asyncpg


class CaptureError(Exception):
    """The database refused something to keep the capture complete."""

    sqlstate = ""


class MissingVerdictError(CaptureError):
    """A commit of a call nobody has judged, or whose outcome row is gone."""

    sqlstate = "RM001"


class JudgedRowsDifferError(CaptureError):
    """The verdict covers another number of rows than the call wrote."""

    sqlstate = "RM002"


class UntakenRowsError(CaptureError):
    """A commit with captured rows that were never taken: of a call never judged, of other writes never told."""

    sqlstate = "RM003"


class WriteAfterVerdictError(CaptureError):
    """A record was written after the verdict of the transaction's call."""

    sqlstate = "RM004"


class TruncateRefusedError(CaptureError):
    """TRUNCATE of a captured table: it would remove rows unseen."""

    sqlstate = "RM005"


class UnknownCallError(CaptureError):
    """The transaction has no outcome row of this call: it was rolled back or committed in between."""

    sqlstate = "RM006"


class OutcomeFixedError(CaptureError):
    """The verdict of a call stands and is not changed."""

    sqlstate = "RM007"


_BY_STATE = {
    kind.sqlstate: kind
    for kind in (
        MissingVerdictError,
        JudgedRowsDifferError,
        UntakenRowsError,
        WriteAfterVerdictError,
        TruncateRefusedError,
        UnknownCallError,
        OutcomeFixedError,
    )
}


def capture_error(error: asyncpg.PostgresError) -> CaptureError | None:
    """The exception for a driver error with one of our states, ``None`` for any other."""
    kind = _BY_STATE.get(str(getattr(error, "sqlstate", "")))
    return kind(str(error)) if kind is not None else None
