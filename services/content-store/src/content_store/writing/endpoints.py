"""``POST /v1/datamap``, ``/v1/cmdmap`` and the rollback of a record: for people, and services acting as one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Depends
from service_kit.auth import Actor, require_actor
from service_kit.problems import ValidationProblem, problem_responses
from service_kit.routing import Router

from content_store.calls.errors import CallConflict, CallLocked
from content_store.deps import READER_PROBLEMS, WRITE, Services, WorkspaceQuery, services
from content_store.errors import CallsOnlyError, RecordNotFoundError, TableNotFoundError, WorkspaceNotFoundError
from content_store.reads.endpoints import TablePath, UidPath
from content_store.workspaces.rules import LIVE
from content_store.writing.errors import HistoryEntryNotFoundError, WriteRefusedError
from content_store.writing.schemas import (
    CmdmapRequest,
    DatamapRequest,
    EntryView,
    RollbackRequest,
    RollbackView,
    WriteView,
)
from content_store.writing.service import RecordWriter, Writer, Written

router = Router(prefix="/v1", tags=["writing"])
_PROBLEMS = (
    *READER_PROBLEMS,
    CallsOnlyError,
    WorkspaceNotFoundError,
    CallLocked,
    CallConflict,
    WriteRefusedError,
    ValidationProblem,
)


def _writer(found: Annotated[Services, Depends(services)]) -> RecordWriter:
    return RecordWriter(found.environment, found.applies, found.waker.ring)


WriterDependency = Annotated[RecordWriter, Depends(_writer)]
WritingActor = Annotated[Actor, require_actor(WRITE)]


@router.post("/datamap", responses=problem_responses(*_PROBLEMS, body=True))
async def datamap(
    body: DatamapRequest, actor: WritingActor, records: WriterDependency, workspace: WorkspaceQuery = LIVE
) -> WriteView:
    """Create and update records in one transaction; the answer says per entry what happened."""
    return _view(await records.write(Writer(actor.user_uid, workspace), body.datamap, {}))


@router.post("/cmdmap", responses=problem_responses(*_PROBLEMS, body=True))
async def cmdmap(
    body: CmdmapRequest, actor: WritingActor, records: WriterDependency, workspace: WorkspaceQuery = LIVE
) -> WriteView:
    """Copy, move, localize, delete and restore records in one transaction; the answer says per command what happened."""
    return _view(await records.write(Writer(actor.user_uid, workspace), {}, body.cmdmap))


@router.post(
    "/records/{table}/{uid}/rollback",
    responses=problem_responses(
        *_PROBLEMS, TableNotFoundError, RecordNotFoundError, HistoryEntryNotFoundError, body=True
    ),
)
async def rollback(
    table: TablePath,
    uid: UidPath,
    body: RollbackRequest,
    actor: WritingActor,
    records: WriterDependency,
    workspace: WorkspaceQuery = LIVE,
) -> RollbackView:
    """Bring a record back to how it was right after an entry of its history. This is a change like any other."""
    written = await records.roll_back(Writer(actor.user_uid, workspace), table, uid, body.history_uid)
    return RollbackView(**_view(written).model_dump(by_alias=False), skipped_fields=written.skipped)


def _view(written: Written) -> WriteView:
    result = written.result
    return WriteView(
        entries=[EntryView(**asdict(outcome)) for outcome in result.outcomes],
        placeholders=result.substNEWwithIDs,
        copies={
            table: {str(source): copy for source, copy in copies.items()}
            for table, copies in result.copyMappingArray_merged.items()
        },
        warnings=sorted(set(written.warnings)),
    )
