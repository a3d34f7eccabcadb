"""References to records."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_serializer, model_validator

from remit_contracts.base import Contract

TABLE_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
IDENTIFIER_REFERENCE = re.compile(r"^(?P<table>[a-z][a-z0-9_]{0,62}):(?P<uid>[1-9][0-9]{0,18})$")
MAX_UID = 2**31 - 1

TableName = Annotated[str, StringConstraints(pattern=TABLE_PATTERN)]
Uid = Annotated[int, Field(strict=True, ge=1, le=MAX_UID)]
PageUid = Annotated[int, Field(strict=True, ge=0, le=MAX_UID)]


class RecordReference(Contract):
    """Which record: table and uid (W-01). On the wire the text ``table:uid``; an object is read too."""

    table: TableName
    uid: Uid

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if isinstance(value, str):
            match = IDENTIFIER_REFERENCE.match(value)
            if match is None:
                raise ValueError("a record reference reads table:uid")
            return {"table": match["table"], "uid": int(match["uid"])}
        return value

    @model_serializer
    def _to_text(self) -> str:
        return str(self)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``table:uid``; raises ``ValidationError`` for anything else."""
        return cls.model_validate(text)

    def __str__(self) -> str:
        return f"{self.table}:{self.uid}"


class WriteTarget(Contract):
    """The record a call names as its target: a uid, or the placeholder of a record the call creates (W-01).

    Attributes:
        copied: the record meant is the copy or translation that the call makes of this one.
    """

    table: TableName
    uid: Uid | Annotated[str, StringConstraints(pattern=r"^NEW[A-Za-z0-9_.]{0,60}$")]
    copied: bool = False
