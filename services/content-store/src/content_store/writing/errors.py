"""Problems of a person's writes."""

from __future__ import annotations

from service_kit.problems import ProblemError


class HistoryEntryNotFoundError(ProblemError):
    """There is no such entry in the history of this record."""

    code = "history_entry_not_found"
    status = 404
    title = "There is no such entry in the history of this record"


class WriteRefusedError(ProblemError):
    """The request as a whole was refused, by a hook or by the database; nothing was written."""

    code = "write_refused"
    status = 422
    title = "The changes were refused, nothing was written"
