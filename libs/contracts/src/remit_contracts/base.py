"""Base models: camelCase on the wire, frozen in Python, strict where a request comes in, lenient where data is read back."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Contract(BaseModel):
    """A frozen value that ignores keys it does not know: events, stored JSON and answers of other services."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", serialize_by_alias=True
    )


class StoredContract(Contract):
    """A stored value that keeps keys it does not know, so that an update by an older program loses nothing."""

    model_config = ConfigDict(extra="allow")


class RequestContract(Contract):
    """A request body: an unknown key is refused, a value of another type is not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)
