"""Who acts: the identity that travels with a run through queue, suspension and resume (S-09, S-10)."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer, model_validator

from remit_contracts.base import Contract
from remit_contracts.records import Uid
from remit_contracts.scope import AssignmentScope

SCOPE_KEY = "assignmentScope"


class ActorContext(Contract):
    """A user, the workspace the run was started in, and the scope of the assignment.

    Attributes:
        user_uid: row of ``be_users``.
        workspace_id: 0 is live.
        locale: language the user reads, ``en`` or ``de``.
        assignment_scope: none = no scope; the stored form then has no key (S-09). A key that cannot be read is
            the scope that admits nothing (S-10).
    """

    user_uid: Uid
    workspace_id: Annotated[int, Field(ge=0)] = 0
    locale: str = "en"
    assignment_scope: AssignmentScope | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_scope(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for key in (SCOPE_KEY, "assignment_scope"):
            if key in value and not isinstance(value[key], AssignmentScope):
                return {**value, key: _readable_scope(value[key])}
        return value

    @model_serializer(mode="wrap")
    def _without_empty_scope(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self.assignment_scope is None:
            data.pop(SCOPE_KEY, None)
            data.pop("assignment_scope", None)
        return data

    def with_assignment_scope(self, scope: AssignmentScope | None) -> Self:
        """The same actor held to another scope."""
        return self.model_copy(update={"assignment_scope": scope})


class ActorRequest(ActorContext):
    """The actor of a start request: an unreadable scope is refused here, where the run is started (S-01)."""

    @model_validator(mode="before")
    @classmethod
    def _read_scope(cls, value: Any) -> Any:
        return value


def _readable_scope(value: Any) -> AssignmentScope:
    try:
        return AssignmentScope.model_validate(value)
    except ValidationError:
        return AssignmentScope.none()
