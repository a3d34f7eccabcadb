"""A small store over HTTP with its own memory, and faults on demand. Tests only."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

import jwt
from fastapi import APIRouter, FastAPI, HTTPException, Request
from remit_contracts.calls import (
    ApplyRequest,
    CallOutcome,
    CallResolution,
    CallResult,
    RehearsalRequest,
    RehearsalResult,
    RehearsedCall,
    RollbackReason,
    ShownChange,
)
from remit_contracts.changes import ObservedChangeSet, RefusedWrite
from remit_contracts.scope import EffectiveAssignmentScope
from starlette.responses import JSONResponse, Response, StreamingResponse

from runtime_support.rows import Call, ExpectationUnmet, Rows


@dataclass
class Fault:
    """What happens to the next requests whose ``METHOD path`` matches.

    Attributes:
        how: ``lost`` = carried out, the answer is cut; ``cut`` = not carried out, the answer is cut;
            ``answer`` = not carried out, answered with ``problem``; ``hold`` = waits for ``release`` first.
    """

    pattern: str
    how: str
    times: int = 1
    status: int = 503
    code: str = "service_unavailable"
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)


class SmallStore:
    """State and behaviour of the store; ``application`` is its HTTP face."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.fences: dict[UUID, int] = {}
        self.outcomes: dict[UUID, CallResult] = {}
        self.resolved: set[UUID] = set()
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.applied: list[tuple[UUID, ApplyRequest]] = []
        self.admins: set[int] = {1}
        self.people: list[dict[str, Any]] = []
        self.workspace_titles: dict[int, str | None] = {0: "Live"}
        self.answer_claims = True
        self.before_rehearsal: Callable[[], Awaitable[None]] | None = None
        self.application, living = _application()
        living.store = self

    def fail(self, pattern: str, how: str, **values: Any) -> Fault:
        """Add a fault."""
        fault = Fault(pattern, how, **values)
        self.faults.append(fault)
        return fault

    def fault_of(self, request: Request) -> Fault | None:
        """The fault this request meets."""
        line = f"{request.method} {request.url.path}"
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.pattern, line):
                fault.times -= 1
                return fault
        return None

    def fence(self, run_id: UUID, epoch: int) -> None:
        """Take the run's fence or refuse."""
        if self.fences.get(run_id, 0) > epoch:
            raise StoreProblem(409, "fenced")
        self.fences[run_id] = epoch

    def apply(self, call_id: UUID, request: ApplyRequest) -> CallResult:
        """Carry a call out on a copy; keep the copy when nothing speaks against it."""
        self.fence(request.run_id, request.lease_epoch)
        if call_id in self.resolved:
            raise StoreProblem(410, "call_resolved")
        if call_id in self.outcomes:
            return self.outcomes[call_id]
        call = Call(self.rows.copy(), request.scope, request.actor.user_uid, _target(request.write_target))
        try:
            operations = call.run(request.operations)
        except ExpectationUnmet:
            result = CallResult(call_id=call_id, outcome=CallOutcome.ROLLED_BACK, reason=RollbackReason.EXPECT)
        else:
            result = self._verdict(call_id, request, call, operations)
        self.outcomes[call_id] = result
        self.applied.append((call_id, request))
        return result

    def _verdict(self, call_id: UUID, request: ApplyRequest, call: Call, operations: Any) -> CallResult:
        outside = [
            key for key in call.changes if not call.rows.in_scope(key[0], call.rows.tables[key[0]][key[1]], call.scope)
        ]
        reason = RollbackReason.VIOLATION if outside else None
        exceeded: tuple[ShownChange, ...] = ()
        if request.shown is not None and reason is None:
            exceeded = tuple(change for change in call.shown() if change not in request.shown)
            reason = RollbackReason.MORE_THAN_SHOWN if exceeded else None
        if reason is not None:
            refused = tuple(
                RefusedWrite(operation="effect", table=table, uid=uid, reason="outside_scope", undone=True)
                for table, uid in outside
            )
            return CallResult(
                call_id=call_id,
                outcome=CallOutcome.ROLLED_BACK,
                reason=reason,
                exceeded=exceeded,
                changes=ObservedChangeSet(refused=refused),
            )
        self.rows = call.rows
        return CallResult(
            call_id=call_id, outcome=CallOutcome.COMMITTED, operations=operations, changes=call.change_set()
        )

    def rehearse(self, rehearsal_id: UUID, request: RehearsalRequest) -> RehearsalResult:
        """The same, on one copy for the whole turn, kept by nobody."""
        self.fence(request.run_id, request.lease_epoch)
        rows = self.rows.copy()
        answers = []
        for wanted in request.calls:
            call = Call(rows.copy(), request.scope, request.actor.user_uid, _target(wanted.write_target))
            try:
                operations = call.run(wanted.operations)
            except ExpectationUnmet:
                unmet = RollbackReason.EXPECT
                answers.append(RehearsedCall(key=wanted.key, outcome=CallOutcome.ROLLED_BACK, reason=unmet))
                continue
            rows = call.rows
            errors = tuple(error for operation in operations for error in operation.errors)
            answers.append(
                RehearsedCall(
                    key=wanted.key,
                    outcome=CallOutcome.COMMITTED,
                    shown=call.shown(),
                    changes=call.change_set(),
                    errors=errors,
                )
            )
        return RehearsalResult(rehearsal_id=rehearsal_id, calls=tuple(answers))

    def claims(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Layer one: what of each claim lies outside."""
        scope = EffectiveAssignmentScope.model_validate(body["scope"])
        return [{"key": claim["key"], "refusals": self._outside(claim, scope)} for claim in body["claims"]]

    def _outside(self, claim: dict[str, Any], scope: EffectiveAssignmentScope) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for record in claim["records"]:
            row = self.rows.tables.get(record["table"], {}).get(record["uid"])
            reason = "scope_unresolvable" if row is None else "outside_scope"
            if row is None or not self.rows.in_scope(record["table"], row, scope):
                found.append({"reason": reason, "table": record["table"], "uid": record["uid"]})
        found += [
            {"reason": "outside_scope", "table": page["table"], "pid": page["page"]}
            for page in claim["pages"]
            if page["page"] not in {root.page for root in scope.pages}
        ]
        return found


class StoreProblem(Exception):
    """A problem the small store answers with."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


def problem(status: int, code: str) -> JSONResponse:
    """A problem document."""
    body = {"type": f"urn:remit:problem:{code}", "title": code, "status": status, "code": code}
    return JSONResponse(body, status_code=status, media_type="application/problem+json")


def _target(target: Any) -> tuple[str, int | str] | None:
    return (target.table, target.uid) if target is not None else None


def claims_of(request: Request) -> dict[str, Any]:
    """What the assertion says; signatures are the real store's business."""
    token = request.headers["authorization"].removeprefix("Bearer ")
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


def caller(request: Request) -> int:
    """The user on whose behalf."""
    claims = claims_of(request)
    return int(claims["sub"]) if str(claims["sub"]).isdigit() else 0


@dataclass
class _Living:
    """The store whose requests are answered."""

    store: SmallStore = field(init=False)


@cache
def _application() -> tuple[FastAPI, _Living]:
    """Built once: the routes cost more than most tests. They serve the store that lives now; one does at a time."""
    living = _Living()
    application = FastAPI()
    application.include_router(_calls(living))
    application.include_router(_records(living))
    application.include_router(_people(living))

    @application.middleware("http")
    async def faults(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        living.store.requests.append(f"{request.method} {request.url.path}")
        fault = living.store.fault_of(request)
        if fault is None:
            return await call_next(request)
        fault.reached.set()
        if fault.how == "hold":
            await fault.release.wait()
            return await call_next(request)
        if fault.how == "answer":
            return problem(fault.status, fault.code)
        if fault.how == "lost":
            await call_next(request)
        return StreamingResponse(_cut(), headers={"content-length": "1000"})

    async def on_problem(_request: Request, error: Exception) -> Response:
        if isinstance(error, StoreProblem):
            return problem(error.status, error.code)
        raise error

    application.add_exception_handler(StoreProblem, on_problem)
    return application, living


async def _cut() -> AsyncIterator[bytes]:
    yield b"{"
    raise ConnectionAbortedError("the answer is cut on purpose")


def _calls(living: _Living) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/calls/{call_id}/apply")
    async def apply(call_id: UUID, request: Request) -> Any:
        body = ApplyRequest.model_validate_json(await request.body())
        if body.actor.user_uid != caller(request):
            raise StoreProblem(403, "actor_mismatch")
        return living.store.apply(call_id, body).model_dump(mode="json", by_alias=True)

    @router.post("/v1/calls/{call_id}/resolve")
    async def resolve(call_id: UUID, request: Request) -> Any:
        body = await request.json()
        living.store.fence(UUID(body["runId"]), body["leaseEpoch"])
        living.store.resolved.add(call_id)
        found = living.store.outcomes.get(call_id)
        committed = found is not None and found.outcome is CallOutcome.COMMITTED
        outcome = CallOutcome.COMMITTED if committed else CallOutcome.ROLLED_BACK
        answer = CallResolution(call_id=call_id, outcome=outcome, result=found if committed else None)
        return answer.model_dump(mode="json", by_alias=True)

    @router.post("/v1/rehearsals/{rehearsal_id}")
    async def rehearse(rehearsal_id: UUID, request: Request) -> Any:
        if living.store.before_rehearsal is not None:
            await living.store.before_rehearsal()
        body = RehearsalRequest.model_validate_json(await request.body())
        return living.store.rehearse(rehearsal_id, body).model_dump(mode="json", by_alias=True)

    @router.post("/v1/claims")
    async def claims(request: Request) -> Any:
        answers = living.store.claims(await request.json())
        return {"answers": answers if living.store.answer_claims else []}

    return router


def _people(living: _Living) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> Any:
        return {"status": "ok"}

    @router.get("/v1/auth/me")
    async def me(request: Request) -> Any:
        uid = caller(request)
        living.store.people.append(claims_of(request))
        return {"uid": uid, "username": f"user{uid}", "name": "", "locale": "en", "admin": uid in living.store.admins}

    @router.get("/v1/sites")
    async def sites() -> Any:
        languages = [
            {"languageId": 0, "title": "English", "locale": "en_GB"},
            {"languageId": 1, "title": "Deutsch", "locale": "de_DE"},
        ]
        return {"sites": [{"identifier": "town", "rootPageId": 1, "languages": languages}]}

    @router.post("/v1/visibility")
    async def visibility(request: Request) -> Any:
        body = await request.json()
        uid = caller(request)
        seen = [
            {"table": item["table"], "tableLabel": item["table"], "uid": item["uid"], "title": "seen"}
            for item in body["records"]
            if living.store.rows.get(item["table"], item["uid"], uid) is not None
        ]
        titles = {str(number): living.store.workspace_titles.get(number) for number in body["workspaceIds"]}
        return {"records": seen, "withheld": len(body["records"]) - len(seen), "workspaceTitles": titles}

    return router


def _records(living: _Living) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/records/{table}/{uid}")
    async def record(table: str, uid: int, request: Request) -> Any:
        row = living.store.rows.get(table, uid, caller(request))
        if row is None:
            raise StoreProblem(404, "record_not_found")
        parent = "l10n_parent" if table == "pages" else "l18n_parent"
        translations = [
            other
            for other in living.store.rows.tables[table].values()
            if other.get(parent) == uid and not other["deleted"]
        ]
        page = living.store.rows.tables["pages"].get(row["pid"], {})
        return {
            "record": row,
            "hash": living.store.rows.hash(table, uid),
            "translations": translations,
            "page": {"uid": row["pid"], "title": page.get("title")},
        }

    @router.get("/v1/records/{table}")
    async def records(table: str, pid: int, request: Request, language: int | None = None) -> Any:
        if table not in living.store.rows.tables:
            raise HTTPException(404)
        rows = [
            row
            for row in living.store.rows.tables[table].values()
            if row["pid"] == pid and not row["deleted"] and language in {None, row["sys_language_uid"]}
        ]
        return {"records": rows, "nextCursor": None}

    @router.get("/v1/pages/tree")
    async def tree(root: int, request: Request) -> Any:
        pages = [
            {**row, "level": 0, "hasChildren": False}
            for row in living.store.rows.tables["pages"].values()
            if row["pid"] == root and not row["deleted"] and not row["sys_language_uid"]
        ]
        return {"pages": pages}

    return router
