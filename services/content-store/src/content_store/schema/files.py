"""The form of a table file, checked with errors a person can act on (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from content_store.schema.model import SchemaError
from content_store.schema.values import FIELD_PATTERN, TABLE_PATTERN

FIELD_TYPES: Final = (
    "input", "text", "number", "check", "radio", "select", "group", "inline", "file", "category", "language",
    "datetime", "email", "link", "color", "country", "password", "slug", "json", "uuid", "flex", "folder",
    "imageManipulation", "passthrough", "user", "none",
)  # fmt: skip

TableName = Annotated[str, StringConstraints(pattern=TABLE_PATTERN)]
FieldName = Annotated[str, StringConstraints(pattern=FIELD_PATTERN)]
Label = str | dict[Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")], str]


class SchemaFileError(SchemaError):
    """Table files that cannot be used; ``problems`` holds one line per problem: file, place, reason."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DbColumnFile(_Part):
    """A database column given by hand."""

    type: Literal["int", "string", "text", "blob", "decimal", "float", "json", "datetime", "date", "time"]
    default: str | int | float | bool | None = None
    nullable: bool = False
    length: Annotated[int, Field(ge=1, le=10_485_760)] | None = None


class ColumnFile(_Part):
    """A field of a table."""

    label: Label | None = None
    description: Label | None = None
    exclude: bool = False
    l10n_mode: Literal["", "exclude", "prefixLangTitle"] = ""
    displayCond: str | dict[str, Any] | list[Any] | None = None
    config: dict[str, Any]

    @model_validator(mode="after")
    def _known_type(self) -> ColumnFile:
        kind = self.config.get("type")
        if kind not in FIELD_TYPES:
            raise ValueError(f"config.type is {kind!r}, known are {', '.join(FIELD_TYPES)}")
        items = self.config.get("items", [])
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ValueError("config.items is a list of {value, label}")
        if kind != "check" and any("value" not in item for item in items):
            raise ValueError("config.items: an item has no value")
        if kind == "inline" and not self.config.get("foreign_table"):
            raise ValueError("config.foreign_table is missing")
        return self


class TableFile(_Part):
    """A file that describes a table, or with ``extends`` adds to one."""

    table: TableName | None = None
    extends: TableName | None = None
    title: Label | None = None
    ctrl: dict[str, Any] = {}
    columns: dict[FieldName, ColumnFile] = {}
    db_columns: dict[FieldName, DbColumnFile] = {}
    type_columns_overrides: dict[str, dict[str, dict[str, Any]]] = {}
    allowed_record_types_by_doktype: dict[str, list[str]] = {}

    @model_validator(mode="after")
    def _one_name(self) -> TableFile:
        if (self.table is None) == (self.extends is None):
            raise ValueError('either "table" (a table of its own) or "extends" (adds to a table) is needed')
        if self.table is not None and not self.columns:
            raise ValueError("columns are missing")
        return self


def read_table_file(source: str, data: Any) -> TableFile:
    """A parsed file, checked on its own.

    Args:
        source: name of the file, for the errors.
        data: its JSON.

    Raises:
        SchemaFileError: with one line per problem.
    """
    try:
        return TableFile.model_validate(data)
    except ValidationError as error:
        raise SchemaFileError(
            f"{source}: {'.'.join(str(part) for part in item['loc']) or 'file'}: "
            f"{item['msg'].removeprefix('Value error, ')}"
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ) from error
