"""``POST /v1/visibility``."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from remit_contracts.visibility import VisibilityAnswer, VisibilityRequest
from service_kit.auth import Actor, require_actor
from service_kit.problems import problem_responses
from service_kit.routing import Router

from content_store.deps import READER_PROBLEMS, SEE, Services, services, viewer_of
from content_store.visibility.errors import TooManyRecordsError
from content_store.visibility.service import VisibilityService
from content_store.workspaces.rules import LIVE

router = Router(prefix="/v1", tags=["visibility"])


@router.post("/visibility", responses=problem_responses(*READER_PROBLEMS, TooManyRecordsError, body=True))
async def visibility(
    body: VisibilityRequest,
    actor: Annotated[Actor, require_actor(SEE)],
    found: Annotated[Services, Depends(services)],
) -> VisibilityAnswer:
    """Which of up to 500 records the caller's user may see, and what; withheld ones are only counted."""
    limit = found.settings.visibility_limit
    if len(body.records) > limit:
        raise TooManyRecordsError(limit=limit)
    # Which workspace the viewer works in decides a link, no right: each record is judged in its own workspace.
    viewer = await viewer_of(found, actor, LIVE, any_workspace=True)
    service = VisibilityService(found.reads, found.schema, found.sites, found.links, found.schema_name)
    return await service.answer(body, viewer)
