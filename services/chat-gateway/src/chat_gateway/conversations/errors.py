"""What can be wrong with a conversation or a message."""

from __future__ import annotations

from service_kit.problems import ProblemError


class ConversationNotFoundError(ProblemError):
    """Not there, deleted, or somebody else's: not to be told apart."""

    code = "conversation_not_found"
    status = 404
    title = "This conversation does not exist"


class TurnRunningError(ProblemError):
    """A turn is being worked on."""

    code = "turn_running"
    status = 409
    title = "The assistant is still working"
    detail_text = "Wait until the present turn has ended, then send the message again."


class TooManyMessagesError(ProblemError):
    """The conversation is full."""

    code = "conversation_full"
    status = 409
    title = "This conversation has reached its limit of messages"
    detail_text = "At most {limit} messages are kept. Begin a new conversation."


class ConfigurationUnknownError(ProblemError):
    """No such configuration, or not for this user."""

    code = "configuration_unknown"
    status = 422
    title = "This configuration does not exist"


class WorkspaceUnknownError(ProblemError):
    """No such workspace, or not for this user."""

    code = "workspace_unknown"
    status = 422
    title = "This workspace does not exist"


class CursorInvalidError(ProblemError):
    """The cursor was not made by this list."""

    code = "cursor_invalid"
    status = 422
    title = "This cursor is not valid"
