"""What can be wrong with opening a stream."""

from __future__ import annotations

from service_kit.problems import ProblemError


class TooManyStreamsError(ProblemError):
    """This process holds as many streams as it may; polling still works."""

    code = "too_many_streams"
    status = 503
    title = "Too many open streams"
    detail_text = "Poll the messages instead, or try again in a moment."
