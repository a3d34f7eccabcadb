"""What can go wrong with a run."""

from __future__ import annotations

from service_kit.problems import ProblemError


class LeaseLost(Exception):
    """The run is no longer ours: it was cancelled, requeued or claimed by another worker. Write nothing more (T-22)."""


class StepNotStored(Exception):
    """A step could not be stored for what is in it, not for a connection that is away (T-10)."""


class TransitionRefused(Exception):
    """The run is in another state by now; somebody else was first."""


class RunNotFoundError(ProblemError):
    """No such run, or not for this reader: the same answer (T-20)."""

    code = "run_not_found"
    status = 404
    title = "There is no such run"


class RunNotWaitingError(ProblemError):
    """The run does not wait for this; the member ``run`` is its present state."""

    code = "run_not_waiting"
    status = 409
    title = "The run does not wait for a decision"


class TurnStaleError(ProblemError):
    """The card changed since it was shown; the member ``pending`` is the fresh one."""

    code = "turn_stale"
    status = 409
    title = "What the card shows has changed; please look at it again"


class DecisionIncompleteError(ProblemError):
    """A pending call is not decided, or one is that is not pending."""

    code = "decision_incomplete"
    status = 422
    title = "Every waiting call needs exactly one decision"


class AnswerInvalidError(ProblemError):
    """The answer is none of the options; it can be given again."""

    code = "answer_invalid"
    status = 422
    title = "The answer is none of the possible ones"


class ApprovalBlockedError(ProblemError):
    """The card, or one of its calls, cannot be approved; declining stays possible."""

    code = "approval_blocked"
    status = 409
    title = "This cannot be approved"


class SecondPersonRequiredError(ProblemError):
    """Whoever started the run may not approve its changes here."""

    code = "second_person_required"
    status = 403
    title = "A second person has to approve this"


class ApproverNotPermittedError(ProblemError):
    """The approver could not make these changes in person."""

    code = "approver_not_permitted"
    status = 403
    title = "You may not make one of these changes yourself, so you cannot approve it"


class ConfigurationUnknownError(ProblemError):
    """There is no configuration of this name."""

    code = "configuration_unknown"
    status = 422
    title = "There is no configuration of this name"


class ConfigurationGoneError(ProblemError):
    """The configuration of the waiting run was removed."""

    code = "configuration_gone"
    status = 409
    title = "The configuration of this run is gone"


class ToolUnknownError(ProblemError):
    """A tool of the allow-list does not exist."""

    code = "tool_unknown"
    status = 422
    title = "There is no tool of this name"


class ActorMismatchError(ProblemError):
    """The actor of the request is not the user it is made for."""

    code = "actor_mismatch"
    status = 403
    title = "A run can only be started for the user who asks for it"


class NotAllowedError(ProblemError):
    """Only administrators start runs in person; editors do through the chat."""

    code = "not_allowed"
    status = 403
    title = "You may not do that"


class StateUnreadableError(ProblemError):
    """The stored state of the run cannot be used by this version; the run stays as it is (T-25)."""

    code = "state_unreadable"
    status = 409
    title = "The stored state of this run cannot be read"
