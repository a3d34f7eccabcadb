"""Problems of visibility."""

from __future__ import annotations

from service_kit.problems import ProblemError


class TooManyRecordsError(ProblemError):
    """More records than the service answers for in one request."""

    code = "too_many_records"
    status = 422
    title = "Too many records in one request"
    detail_text = "At most {limit} records are answered for."
