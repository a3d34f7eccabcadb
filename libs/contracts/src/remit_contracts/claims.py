"""Claims: what the calls of a turn say they will touch, asked about before anybody decides (S-20 to S-29)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from remit_contracts.base import Contract, RequestContract
from remit_contracts.records import PageUid, TableName, Uid
from remit_contracts.scope import EffectiveAssignmentScope, Language, ScopeReason

MAX_CLAIMS: Final = 100
MAX_TARGETS: Final = 200


class ClaimOperation(StrEnum):
    """What a tool does with the records of its claim."""

    UPDATE = "update"
    CREATE = "create"
    MOVE = "move"
    COPY = "copy"
    LOCALIZE = "localize"
    DELETE = "delete"
    PUBLISH = "publish"
    CLEAR_CACHE = "clear_cache"


class ClaimedRecord(RequestContract):
    """An existing row the tool acts on, an anchor included (S-22)."""

    table: TableName
    uid: Uid


class ClaimedPage(RequestContract):
    """A page that gets rows of a table."""

    page: PageUid
    table: TableName


class ScopedClaim(RequestContract):
    """The claim of one call (S-21).

    Attributes:
        key: names it in the answer.
        subtree: it reaches the subpages of a page.
        language: it writes; none where it takes none.
        source_language: it reads from.
        tables: it writes beside those of its records and pages.
        writes_files: refused under every scope (S-27).
        touches_no_record: passes under every scope (S-28).
    """

    key: Annotated[str, Field(max_length=100)]
    tool: Annotated[str, Field(max_length=100)] = ""
    operation: Annotated[ClaimOperation, Field(strict=False)]
    records: Annotated[list[ClaimedRecord], Field(max_length=MAX_TARGETS)] = []
    pages: Annotated[list[ClaimedPage], Field(max_length=MAX_TARGETS)] = []
    subtree: bool = False
    language: Language | None = None
    source_language: Language | None = None
    tables: Annotated[list[TableName], Field(max_length=MAX_TARGETS)] = []
    writes_files: bool = False
    touches_no_record: bool = False


class ClaimsRequest(RequestContract):
    """All claims of a turn."""

    scope: Annotated[EffectiveAssignmentScope, Field(strict=False)]
    workspace_id: Annotated[int, Field(ge=0)] = 0
    claims: Annotated[list[ScopedClaim], Field(max_length=MAX_CLAIMS)]


class ClaimRefusal(Contract):
    """One thing of a claim that lies outside; identities only, a title might not be the reader's to see.

    Attributes:
        reason: a ``ScopeReason`` or a later code.
    """

    reason: ScopeReason | str
    table: str | None = None
    uid: int | None = None
    pid: int | None = None


class ClaimAnswer(Contract):
    """What is outside; no refusal means everything is inside."""

    key: str
    refusals: tuple[ClaimRefusal, ...] = ()


class ClaimsAnswer(Contract):
    """One answer per claim, in order."""

    answers: tuple[ClaimAnswer, ...]
