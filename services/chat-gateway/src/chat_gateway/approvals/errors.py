"""What can be wrong with a decision."""

from __future__ import annotations

from service_kit.client import RemoteError, RemoteProblem, RemoteUnavailable
from service_kit.problems import ProblemError

from chat_gateway.clients.errors import as_problem


class TurnStaleError(ProblemError):
    """The card the decision is about is not the one that waits now; the fresh one comes along."""

    code = "turn_stale"
    status = 409
    title = "The card has changed"
    detail_text = "Look at the new card and decide again; nothing was carried out."


class NothingPendingError(ProblemError):
    """Nobody has to decide anything: it was decided before, or the run ended."""

    code = "run_not_waiting"
    status = 409
    title = "Nothing is waiting for a decision"


class DecisionIncompleteError(ProblemError):
    """Not every pending call is decided exactly once, or one is named that is not pending."""

    code = "decision_incomplete"
    status = 422
    title = "The decision does not cover exactly the pending calls"


class ApproveBlockedError(ProblemError):
    """The card may be declined, but not approved."""

    code = "approve_blocked"
    status = 409
    title = "This card cannot be approved"


class DecisionUnknownError(ProblemError):
    """The decision was sent and no answer came: it may have been taken or not. Sending it again is harmless."""

    code = "decision_unknown"
    status = 503
    title = "It is not known yet whether your decision arrived"
    detail_text = (
        "Look at the conversation: it shows the card again, or what came of it. "
        "Deciding once more is safe; nothing is carried out twice."
    )


class NotAQuestionError(ProblemError):
    """A card waits where an answer was sent, or the other way round."""

    code = "kind_mismatch"
    status = 409
    title = "What waits is of another kind"
    detail_text = "A card takes a decision, a question takes an answer."


def unanswered(error: RemoteError | TimeoutError) -> ProblemError:
    """What a failed decision is to the editor: refused, not sent, or in doubt, which is said and never guessed."""
    refused = isinstance(error, RemoteProblem) and error.status < 500
    never_sent = isinstance(error, RemoteUnavailable) and not error.sent
    if isinstance(error, RemoteError) and (refused or never_sent):
        return as_problem(error)
    return DecisionUnknownError()
