"""What requests need: the services of the application, and who reads in which workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Query, Request
from remit_contracts.records import MAX_UID
from service_kit.auth import (
    Actor,
    CallerNotAllowedError,
    CallerTable,
    TokenExpiredError,
    TokenInvalidError,
    TokenMissingError,
    require_actor,
)

from content_store.access.readable import Viewer
from content_store.access.users import load_user
from content_store.errors import CallsOnlyError, WorkspaceNotFoundError
from content_store.visibility.links import LinkTemplates
from content_store.workspaces.rules import LIVE, may_use

if TYPE_CHECKING:
    import asyncpg
    from service_kit.auth import SigningKey
    from service_kit.database import Database
    from service_kit.outbox import OutboxWaker

    from content_store.auth.service import AuthService
    from content_store.calls.environment import StoreEnvironment
    from content_store.datahandler.sites import Site, Sites
    from content_store.schema.model import Schema
    from content_store.settings import StoreSettings

#: Operations of ``require_actor`` and ``require_service``.
READ = "records.read"
SEE = "records.see"
WRITE = "records.write"
SESSION = "auth.session"
CALL_OPERATIONS = ("calls.apply", "calls.open", "calls.resolve", "calls.read", "rehearsals", "claims")
EVENTS = "record_events.read"

RUNTIME = "agent-runtime"
GATEWAY = "chat-gateway"


class StoreCallers(CallerTable):
    """Who may call what. A runtime writes through calls only: it has no ``records.write``, and is told so."""

    def __init__(self) -> None:
        super().__init__(
            {
                RUNTIME: {READ, SEE, SESSION, *CALL_OPERATIONS},
                GATEWAY: {READ, SEE, SESSION, EVENTS},
            }
        )

    def check(self, service: str, operation: str) -> None:
        """Refuse what the table does not have.

        Raises:
            CallsOnlyError: a runtime wants to write outside of a call.
            CallerNotAllowedError: anything else.
        """
        if service == RUNTIME and operation == WRITE:
            raise CallsOnlyError
        super().check(service, operation)


CALLERS = StoreCallers()

DEFAULT_LINKS = LinkTemplates()
#: What every reading route may answer.
READER_PROBLEMS = (TokenMissingError, TokenInvalidError, TokenExpiredError, CallerNotAllowedError)


@dataclass
class Services:
    """Everything the routes work with, made once per process (``app.state.services``).

    Attributes:
        reads: pool of reading requests.
        applies: pool of calls and of writes of people, each for one short transaction.
        open_calls: pool of interactive calls.
        database: the store's own tables, through SQLAlchemy.
        waker: rung after each commit that made events.
        environment: what all writes share: schema, hooks, outbox, caches, limits.
    """

    settings: StoreSettings
    schema: Schema
    sites: Sites
    site_list: Sequence[Site]
    signing_key: SigningKey
    auth: AuthService
    database: Database
    reads: asyncpg.Pool[Any]
    applies: asyncpg.Pool[Any]
    open_calls: asyncpg.Pool[Any]
    environment: StoreEnvironment
    waker: OutboxWaker
    links: LinkTemplates = DEFAULT_LINKS
    schema_name: str = "public"


def services(request: Request) -> Services:
    """The application's services."""
    found = request.app.state.services
    if not isinstance(found, Services):
        raise TypeError("app.state.services is not set")
    return found


WorkspaceQuery = Annotated[int, Query(ge=0, le=MAX_UID, description="workspace to read in, 0 is live")]


async def viewer_of(found: Services, actor: Actor, workspace: int, *, any_workspace: bool = False) -> Viewer:
    """The viewer behind a caller, with the rights as they are now.

    Args:
        found: of the application.
        actor: the user, or a service on the user's behalf.
        workspace: to read in.
        any_workspace: the caller judges the right on workspaces by itself.

    Raises:
        TokenInvalidError: the user is gone or disabled.
        WorkspaceNotFoundError: no such workspace, or not for this user.
    """
    loaded = await load_user(found.reads, actor.user_uid, workspace)
    if loaded is None:
        raise TokenInvalidError
    if not any_workspace and not may_use(loaded.workspace, workspace, loaded.user):
        raise WorkspaceNotFoundError(workspace=workspace)
    workspaces = {loaded.workspace.uid: loaded.workspace} if loaded.workspace and workspace != LIVE else {}
    return Viewer(loaded.user, workspace, workspaces, loaded.locale)


@dataclass(frozen=True)
class Reading:
    """A reading request: who, in which workspace, and with what."""

    viewer: Viewer
    services: Services

    @property
    def schema(self) -> Schema:
        """Tables there are."""
        return self.services.schema


async def _reading(
    found: Annotated[Services, Depends(services)],
    actor: Annotated[Actor, require_actor(READ)],
    workspace: WorkspaceQuery = LIVE,
) -> Reading:
    return Reading(await viewer_of(found, actor, workspace), found)


ReadingDependency = Annotated[Reading, Depends(_reading)]
"""The viewer of the request, in the workspace the query names."""
