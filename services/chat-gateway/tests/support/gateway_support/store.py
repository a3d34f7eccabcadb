"""A content-store that knows a few records, behind the real contract."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from chat_gateway.access.schemas import LoginRequest
from fastapi import FastAPI
from remit_contracts.visibility import RecordLinks, VisibilityAnswer, VisibilityRequest, VisibleRecord
from service_kit.app import create_app
from service_kit.auth import (
    Actor,
    AssertionVerifier,
    Authenticator,
    CallerTable,
    KeySet,
    ServiceAssertion,
    SigningKey,
    UserTokenIssuer,
    require_actor,
    require_service,
)
from service_kit.ids import uuid7
from service_kit.problems import ProblemError
from service_kit.routing import Router
from service_kit.settings import ServiceSettings

PASSWORD = "correct horse"


class LoginFailedError(ProblemError):
    """Wrong name or password."""

    code = "login_failed"
    status = 401
    title = "Wrong name or password"


class BrokenError(ProblemError):
    """A fault on purpose."""

    code = "internal_error"
    status = 500
    title = "Broken on purpose"


def visible(table: str, uid: int, title: str = "", **facts: Any) -> VisibleRecord:
    """A record a viewer may see, with links."""
    links = RecordLinks(edit=f"/edit/{table}/{uid}", history=f"/history/{table}/{uid}")
    values: dict[str, Any] = {
        "table": table,
        "table_label": table.title(),
        "uid": uid,
        "title": title or f"{table} {uid}",
        "page_id": 1,
        "page_title": "Home",
        "may_modify": True,
        "links": links,
        **facts,
    }
    return VisibleRecord(**values)


@dataclass
class FakeStore:
    """Records by key, users by name, sessions; what was asked; what fails on purpose."""

    records: dict[tuple[str, int], VisibleRecord] = field(default_factory=dict)
    hidden: set[tuple[int, str, int]] = field(default_factory=set)
    workspaces: dict[int, str] = field(default_factory=lambda: {0: "Live", 3: "Draft"})
    tables: dict[str, str] = field(default_factory=lambda: {"pages": "Page", "tt_content": "Content"})
    languages: dict[int, str] = field(default_factory=lambda: {0: "English", 1: "German"})
    ended: set[UUID] = field(default_factory=set)
    asked: list[VisibilityRequest] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    broken: bool = False
    key: SigningKey = field(default_factory=SigningKey.generate)

    def show(self, *records: VisibleRecord) -> None:
        """Let everybody see these."""
        self.records.update({(record.table, record.uid): record for record in records})

    def hide(self, viewer: int, table: str, uid: int) -> None:
        """Hide a record from one viewer."""
        self.hidden.add((viewer, table, uid))

    def token(self, user: int, session: UUID | None = None) -> str:
        """An access token of a user."""
        return UserTokenIssuer(self.key, "remit", "remit").issue(user, session or uuid7())[0]


CALLER = Annotated[Actor, require_actor("read")]
SERVICE = Annotated[ServiceAssertion, require_service("auth.session")]


def store_app(settings: ServiceSettings, fake: FakeStore, gateway_keys: KeySet) -> FastAPI:
    """The application; assertions of the gateway are verified for real."""
    router = Router(prefix="/v1")

    @router.post("/visibility")
    async def visibility(body: VisibilityRequest, actor: CALLER) -> VisibilityAnswer:
        fake.calls["visibility"] += 1
        fake.asked.append(body)
        if fake.broken:
            raise BrokenError
        seen = [
            record
            for key in body.records
            for uid in (key.uid, key.live_uid)
            if uid is not None
            and (record := fake.records.get((key.table, uid))) is not None
            and (actor.user_uid, key.table, uid) not in fake.hidden
        ]
        titles: dict[int, str | None] = {uid: fake.workspaces.get(uid) for uid in body.workspace_ids}
        return VisibilityAnswer(records=tuple(seen), withheld=len(body.records) - len(seen), workspace_titles=titles)

    @router.get("/workspaces")
    async def workspaces(_actor: CALLER) -> dict[str, Any]:
        return {"workspaces": [{"uid": uid, "title": title} for uid, title in fake.workspaces.items()]}

    @router.get("/sites")
    async def sites(_actor: CALLER) -> dict[str, Any]:
        fake.calls["sites"] += 1
        if fake.broken:
            raise BrokenError
        languages = [{"languageId": number, "title": title} for number, title in fake.languages.items()]
        return {"sites": [{"identifier": "main", "rootPageId": 1, "base": "/", "languages": languages}]}

    @router.get("/schema")
    async def schema(_actor: CALLER) -> dict[str, Any]:
        fake.calls["schema"] += 1
        return {"tables": [{"name": name, "label": label} for name, label in fake.tables.items()]}

    @router.get("/auth/jwks")
    async def jwks() -> dict[str, Any]:
        return {"keys": [fake.key.public_jwk()]}

    @router.get("/auth/sessions/{sid}")
    async def session(sid: UUID, _service: SERVICE) -> dict[str, Any]:
        fake.calls["session"] += 1
        return {"active": sid not in fake.ended}

    @router.post("/auth/login")
    async def login(body: LoginRequest) -> dict[str, Any]:
        if body.password != PASSWORD:
            raise LoginFailedError
        user = {"uid": 7, "username": body.username, "name": "Ed", "locale": "en", "admin": False}
        return {"accessToken": fake.token(7), "refreshToken": "r", "expiresIn": 900, "user": user}

    authenticator = Authenticator(
        services=AssertionVerifier("content-store", {"chat-gateway": gateway_keys}),
        callers=CallerTable({"chat-gateway": {"read", "auth.session"}}),
    )
    return create_app("content-store", settings, [router], state={"authenticator": authenticator})
