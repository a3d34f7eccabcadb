"""What can be wrong with showing records."""

from __future__ import annotations

from service_kit.problems import ProblemError


class VisibilityUnavailableError(ProblemError):
    """Nobody can say what this viewer may see, so nothing is shown (R-095)."""

    code = "visibility_unavailable"
    status = 503
    title = "It cannot be checked at the moment which records you may see"
    detail_text = "Nothing is shown until it can. Try again in a moment."
