"""FastAPI dependencies: parts of :class:`chat_gateway.services.Services`, which the application keeps in its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request
from service_kit.auth import TokenExpiredError, TokenInvalidError, TokenMissingError
from service_kit.client import RemoteServiceUnavailableError

from chat_gateway.approvals.service import ApprovalService
from chat_gateway.changes.reader import ConversationChangeReader
from chat_gateway.clients.store import LoginClient

if TYPE_CHECKING:
    from chat_gateway.services import Services

READER_PROBLEMS = (TokenMissingError, TokenInvalidError, TokenExpiredError, RemoteServiceUnavailableError)
"""What every route for users may answer."""


def services_of(request: Request) -> Services:
    """Everything the routes work with."""
    return cast("Services", request.app.state.services)


def _login(request: Request) -> LoginClient:
    return services_of(request).remotes.login


def _changes(request: Request) -> ConversationChangeReader:
    return services_of(request).changes


def _approvals(request: Request) -> ApprovalService:
    return services_of(request).approvals


LoginClientDependency = Annotated[LoginClient, Depends(_login)]
ChangeReaderDependency = Annotated[ConversationChangeReader, Depends(_changes)]
ApprovalServiceDependency = Annotated[ApprovalService, Depends(_approvals)]
