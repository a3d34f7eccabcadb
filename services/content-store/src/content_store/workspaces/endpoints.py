"""The list of workspaces."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from service_kit.auth import Actor, TokenInvalidError, require_actor
from service_kit.problems import problem_responses
from service_kit.routing import Router

from content_store.access.policy import BackendUser
from content_store.access.users import load_user
from content_store.deps import READ, READER_PROBLEMS, Services, services
from content_store.workspaces.repository import all_workspaces
from content_store.workspaces.rules import LIVE, Workspace, may_publish, may_use_live, role_in
from content_store.workspaces.schemas import WorkspacesView, WorkspaceView
from content_store.workspaces.titles import live_title

router = Router(prefix="/v1", tags=["workspaces"])


@router.get("/workspaces", responses=problem_responses(*READER_PROBLEMS))
async def list_workspaces(
    actor: Annotated[Actor, require_actor(READ)], found: Annotated[Services, Depends(services)]
) -> WorkspacesView:
    """Workspaces the reader may work in, live first."""
    loaded = await load_user(found.reads, actor.user_uid)
    if loaded is None:
        raise TokenInvalidError
    workspaces = await all_workspaces(found.reads, found.schema, found.schema_name)
    return WorkspacesView(workspaces=usable_workspaces(workspaces, loaded.user, loaded.locale))


def usable_workspaces(workspaces: list[Workspace], user: BackendUser, locale: str) -> list[WorkspaceView]:
    """Those the user may work in."""
    live = WorkspaceView(uid=LIVE, title=live_title(locale), role="live", may_publish=False)
    views = [live] if may_use_live(user) else []
    for workspace in workspaces:
        role = role_in(workspace, user)
        if role is not None:
            views.append(
                WorkspaceView(
                    uid=workspace.uid, title=workspace.title, role=role, may_publish=may_publish(workspace, user)
                )
            )
    return views
