"""What the built-in writers share: looking a record up, wording, building plans."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field
from remit_contracts.calls import Expect, Read
from remit_contracts.records import MAX_UID, RecordReference

from agent_runtime.tools.contracts import PlanRefused, StoredRecord, ToolContext

Uid = Annotated[int, Field(ge=1, le=MAX_UID, strict=True)]
EXCERPT = 120
NEW = "NEW1"
LABEL_FIELDS = {"pages": "title", "tt_content": "header", "sys_file": "name", "be_users": "username"}
_SPACE = re.compile(r"\s+")


async def existing(context: ToolContext, table: str, uid: int) -> StoredRecord:
    """The record, or the one neutral refusal for missing and not permitted."""
    stored = await context.reader.record(table, uid)
    if stored is None:
        raise PlanRefused
    return stored


def reference(table: str, uid: int) -> RecordReference:
    """Short for a record reference."""
    return RecordReference(table=table, uid=uid)


def excerpt(value: Any) -> str:
    """A value in quotes on one line, cut."""
    text = _SPACE.sub(" ", "" if value is None else str(value)).strip()
    return f'"{text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"}"'


def label(table: str, stored: StoredRecord) -> str:
    """A record as a person names it: its title in brackets, table and uid."""
    title = _SPACE.sub(" ", stored.text(LABEL_FIELDS.get(table, "title"))).strip() or "–"
    return f"[{title[:EXCERPT]}] ({table}:{stored.number('uid')})"


def page_label(stored: StoredRecord) -> str:
    """The page a record lies on."""
    page = stored.page or {}
    title = _SPACE.sub(" ", str(page.get("title") or "")).strip()
    return f"[{title[:EXCERPT]}] (pages:{page.get('uid', stored.number('pid'))})"


def expectation(table: str, stored: StoredRecord) -> list[Expect]:
    """Require the row to be as the preview saw it; none where the store gave no hash."""
    uid = stored.number("uid")
    return [Expect(table=table, uid=uid, hash=stored.hash)] if stored.hash else []


def read(table: str, uid: int | str, fields: list[str]) -> Read:
    """Read a row inside the call, its own writes included."""
    return Read(table=table, uids=[uid], fields=["uid", *fields])
