"""Visibility: what one viewer may see of a list of records, in one batch (R-090 to R-098)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from remit_contracts.base import Contract, RequestContract
from remit_contracts.records import TableName, Uid

MAX_VISIBILITY = 500


class RecordKey(RequestContract):
    """Which stored row; ``live_uid`` serves where a draft row is gone because it was published (A-05)."""

    table: TableName
    uid: Uid
    live_uid: Uid | None = None


class VisibilityRequest(RequestContract):
    """Body of ``POST /v1/visibility``; the viewer is the subject of the token or assertion.

    Attributes:
        workspace_id: the workspace the viewer works in now (decides the workspace link, R-103).
    """

    records: Annotated[list[RecordKey], Field(max_length=MAX_VISIBILITY)]
    workspace_ids: list[int] = []
    workspace_id: int = 0


class RecordLinks(Contract):
    """Paths into the CMS, none where the viewer has no use for them (R-103)."""

    edit: str | None = None
    history: str | None = None
    workspace: str | None = None


class VisibleRecord(Contract):
    """Facts of one record the viewer may see. A withheld record is not in the answer at all."""

    table: str
    table_label: str
    uid: int
    title: str
    page_id: int | None = None
    page_title: str | None = None
    language: int | None = None
    language_title: str | None = None
    workspace_id: int = 0
    workspace_title: str | None = None
    deleted: bool = False
    may_modify: bool = False
    links: RecordLinks = RecordLinks()


class VisibilityAnswer(Contract):
    """Visible records in the order asked for; the rest is only a number (R-093)."""

    records: tuple[VisibleRecord, ...]
    withheld: int
    workspace_titles: dict[int, str | None] = {}
