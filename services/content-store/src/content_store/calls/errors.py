"""What a caller is told when a call cannot begin, go on or be found (CALLS 1); and what ends a call inside."""

from __future__ import annotations

from typing import Final

from remit_contracts.calls import RollbackReason
from service_kit.problems import ProblemError

from content_store.records.errors import CallMustEnd

LOCK_TIMEOUT: Final = "55P03"


class CallFenced(ProblemError):
    """A worker with a newer lease has taken the run over; nothing was written."""

    code = "fenced"
    status = 409
    title = "The run was taken over by another worker"


class CallLocked(ProblemError):
    """A record is held by somebody else longer than a call waits; nothing was written."""

    code = "locked"
    status = 409
    title = "A record is being changed by somebody else"


class CallConflict(ProblemError):
    """The database ended the call in favour of another one, twice repeated; nothing was written."""

    code = "conflict"
    status = 409
    title = "The call got in the way of another one"


class CallExists(ProblemError):
    """The id was used for other operations."""

    code = "call_exists"
    status = 409
    title = "This call id was used for something else"


class CallResolved(ProblemError):
    """The call was resolved as not done; it can never be done under this id."""

    code = "call_resolved"
    status = 410
    title = "The call was already resolved"


class ActorMismatch(ProblemError):
    """The actor of the request is not the user the assertion stands for."""

    code = "actor_mismatch"
    status = 403
    title = "The call is not signed for this user"


class ActorUnknown(ProblemError):
    """The acting user does not exist or is disabled."""

    code = "actor_unknown"
    status = 403
    title = "The acting user is not allowed to work here"


class WorkspaceDenied(ProblemError):
    """The acting user may not work in this workspace, or there is none."""

    code = "workspace_denied"
    status = 403
    title = "The acting user may not work in this workspace"


class CallNotFound(ProblemError):
    """No open call has this id here, or the token is not the one of its last answer. Says nothing about its outcome."""

    code = "call_not_found"
    status = 404
    title = "There is no such open call here"


class CallGone(ProblemError):
    """The open call was ended and everything of it undone."""

    code = "call_expired"
    status = 410
    title = "The open call was ended and undone"


class CallUndone(ProblemError):
    """The request ended the open call and everything of it is undone; member ``reason`` says why."""

    code = "call_rolled_back"
    status = 409
    title = "The open call was undone"


class CallUncertain(ProblemError):
    """A hook ended the transaction of the open call and had something committed; it has to be resolved (S-67)."""

    code = "call_uncertain"
    status = 409
    title = "What became of the open call is not known"


class CallBusy(ProblemError):
    """Another request of the call is being worked on; requests of one call are never queued."""

    code = "call_busy"
    status = 409
    title = "The call is at work on another request"


class CallOutOfOrder(ProblemError):
    """The sequence number is neither the next nor the last one with the same content."""

    code = "call_out_of_order"
    status = 409
    title = "The request is out of order"


class TooManyCalls(ProblemError):
    """As many calls are open as the service allows."""

    code = "too_many_calls"
    status = 429
    title = "Too many calls are open"


class NotInteractive(ProblemError):
    """The operation is not possible in an open call."""

    code = "not_interactive"
    status = 422
    title = "Pages are moved and deleted only by a call in one request"


class ServiceStopping(ProblemError):
    """The service is stopping and takes no new calls."""

    code = "stopping"
    status = 503
    title = "The service is stopping"


class CallRolledBack(Exception):
    """Leaves a call that must not be committed (S-66).

    Attributes:
        reason: what undid it.
        code: more exactly, where there is more to say.
    """

    def __init__(self, reason: RollbackReason, code: str | None = None) -> None:
        super().__init__(code or reason.value)
        self.reason = reason
        self.code = code or reason.value


class TreeLockNeeded(CallMustEnd):
    """Something inside the call needs a stronger lock of the page tree than was taken at its start.

    Attributes:
        exclusive: the lock to repeat the call with.
    """

    code = "tree_lock"

    def __init__(self, *, exclusive: bool) -> None:
        super().__init__("", "the page tree has to be locked from the start of the call")
        self.exclusive = exclusive


class SavepointNeeded(Exception):
    """The database refused the only operation of a call, for which no savepoint was taken: repeat it with one."""


def problem_of(error: CallMustEnd) -> ProblemError:
    """The problem a caller reads for an error that ended the call."""
    return CallLocked() if error.sqlstate == LOCK_TIMEOUT else CallConflict()


def reason_of(error: CallMustEnd) -> RollbackReason:
    """The reason of a rollback for an error that ended the call."""
    return RollbackReason.LOCKED if error.sqlstate == LOCK_TIMEOUT else RollbackReason.CONFLICT
