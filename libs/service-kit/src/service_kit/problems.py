"""Errors that reach a caller: RFC 9457 problem details with a stable code. Texts are made at the edge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from service_kit.texts import DEFAULT_LANGUAGE, Texts

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:remit:problem:"


class FieldProblem(BaseModel):
    """One wrong value of a request.

    Attributes:
        pointer: JSON pointer into the request, e.g. ``/body/title``; first part says body, query, path or header.
        code: stable name of the reason, e.g. ``missing`` or ``int_parsing``.
        detail: the reason in words.
    """

    pointer: str
    code: str
    detail: str


class ProblemDocument(BaseModel):
    """The wire form of an error; a problem may carry more members of its own."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    type: str
    title: str
    status: int
    code: str
    detail: str | None = None
    instance: str | None = None
    request_id: str | None = Field(default=None, alias="requestId")
    errors: list[FieldProblem] | None = None


class ProblemError(Exception):
    """Base of every error a caller may see. A subclass names a fact and declares code, status and title.

    Titles and details are English texts that serve as keys of the catalogues; ``{name}`` in them is filled from the
    parameters.

    Attributes:
        code: stable, snake_case; stored and compared by programs.
        status: HTTP status.
        title: short text, the same for every occurrence.
        detail_text: text of this kind of problem, or ``None``.
        params: what fills the texts.
        members: further members of the problem document, camelCase, JSON values.
        headers: response headers, e.g. ``Retry-After``.
    """

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong on our side"
    detail_text: ClassVar[str | None] = None

    def __init__(
        self,
        *,
        members: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **params: Any,
    ) -> None:
        super().__init__(self.code)
        self.params = params
        self.members = dict(members or {})
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return f"{self.code} {self.params}" if self.params else self.code

    def document(
        self,
        texts: Texts | None = None,
        language: str = DEFAULT_LANGUAGE,
        instance: str | None = None,
        request_id: str | None = None,
    ) -> dict[str, Any]:
        """The problem document as JSON values, in one language."""
        texts = texts or Texts()
        body: dict[str, Any] = {
            **self.members,
            "type": f"{TYPE_PREFIX}{self.code}",
            "title": texts.text(self.title, language, **self.params),
            "status": self.status,
            "code": self.code,
        }
        if self.detail_text is not None:
            body["detail"] = texts.text(self.detail_text, language, **self.params)
        if instance is not None:
            body["instance"] = instance
        if request_id is not None:
            body["requestId"] = request_id
        return body


class ValidationProblem(ProblemError):
    """The request could be read, but values in it are missing, unknown or wrong."""

    code = "invalid_request"
    status = 422
    title = "The request is not valid"


class UnreadableBodyError(ProblemError):
    """The body is no JSON, or not encoded as UTF-8."""

    code = "unreadable_body"
    status = 400
    title = "The body of the request cannot be read"


class BadRequestError(ProblemError):
    """The request as a whole cannot be understood."""

    code = "bad_request"
    status = 400
    title = "The request cannot be understood"


class BodyTooLargeError(ProblemError):
    """The body is over the limit set for the service."""

    code = "body_too_large"
    status = 413
    title = "The body of the request is too large"
    detail_text = "At most {limit} bytes are accepted."


class NotFoundError(ProblemError):
    """There is nothing at this address."""

    code = "not_found"
    status = 404
    title = "There is nothing here"


class MethodNotAllowedError(ProblemError):
    """The address is there, but not for this method."""

    code = "method_not_allowed"
    status = 405
    title = "This method is not possible here"


class InternalError(ProblemError):
    """A fault of ours. The log has the cause under the request id; the caller gets only the id."""

    code = "internal_error"
    status = 500
    title = "Something went wrong on our side"


class NotReadyError(ProblemError):
    """The service cannot work at the moment."""

    code = "not_ready"
    status = 503
    title = "The service is not ready"


def problem_responses(*problems: type[ProblemError], body: bool = False) -> dict[int | str, dict[str, Any]]:
    """OpenAPI ``responses`` entries of a route, one per status with an example per code.

    Args:
        problems: what the route may answer.
        body: the route reads a body: adds the problems of unreadable, too large and invalid bodies.
    """
    listed = [*problems, *((UnreadableBodyError, BodyTooLargeError, ValidationProblem) if body else ())]
    responses: dict[int | str, dict[str, Any]] = {}
    for problem in dict.fromkeys(listed):
        entry = responses.setdefault(
            problem.status,
            {"model": ProblemDocument, "description": "", "content": {MEDIA_TYPE: {"examples": {}}}},
        )
        content = entry["content"][MEDIA_TYPE]
        content["schema"] = {"$ref": "#/components/schemas/ProblemDocument"}
        content["examples"][problem.code] = {"summary": problem.title, "value": problem().document()}
        codes = ", ".join(f"`{code}`" for code in content["examples"])
        entry["description"] = f"Problem: {codes}"
    return responses
