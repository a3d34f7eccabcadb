"""The fields of one entry: which of them are written, by which rule, with which diff source (SEMANTICS 3 to 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from content_store.datahandler.diffsource import diff_source
from content_store.datahandler.errors import ErrorCode
from content_store.datahandler.pointers import read_number, translated_uid
from content_store.datahandler.run import RemapTask
from content_store.datahandler.slugs import check_slug
from content_store.datahandler.values.check import check_value
from content_store.datahandler.values.field import KEEP, FieldContext, as_int, is_finite
from content_store.schema.tca_types import PERMISSION_COLUMNS

if TYPE_CHECKING:
    from content_store.datahandler.result import EntryOutcome
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema

#: Never taken from a submitted row; the handler sets them itself.
_SYSTEM: Final = frozenset({"uid", "pid", "t3ver_oid", "t3ver_wsid", "t3ver_state", "t3ver_stage"})


@dataclass
class CheckedFields:
    """What an entry writes.

    Attributes:
        values: column -> value.
        tasks: relations to write elsewhere, now or when placeholders are known.
        dropped: submitted names that are not written -> code: no such field, no right to write it, or a translation
            that follows its original there.
    """

    values: dict[str, Any] = field(default_factory=dict)
    tasks: list[RemapTask] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """The record an entry writes to.

    Attributes:
        table: its table.
        record_id: uid or placeholder.
        uid: 0 for a new one.
        page: where it lies or will lie.
        current: stored row of an update.
        base: values of a new record that were not submitted.
    """

    table: TableSchema
    record_id: str
    uid: int
    page: int
    current: Row | None
    base: Mapping[str, Any]

    @property
    def status(self) -> Literal["new", "update"]:
        """Is the record made or changed?"""
        return "update" if self.current is not None else "new"


async def check_fields(run: HandlerRun, target: Target, submitted: Mapping[str, Any]) -> CheckedFields:
    """Checks all submitted fields.

    Raises:
        Refusal: a value its rule refuses; nothing of the entry is written then.
    """
    table, checked = target.table, CheckedFields()
    whole = {**target.base, **(target.current or {}), **submitted}
    record_type = str(whole.get(table.type_field)) if table.type_field and whole.get(table.type_field) else None
    language = _language(table, whole)
    slugs: list[FieldContext] = []
    for name, value in submitted.items():
        column = table.column_for(name, record_type)
        if column is None or (name not in table.db_columns and column.type != "none"):
            _take_system_field(run, target, name, value, checked)
            continue
        if not _may_write(run, table, name):
            checked.dropped[name] = ErrorCode.FIELD_NOT_ALLOWED
            continue
        context = FieldContext(
            run, table, column, target.record_id, target.uid, target.status, target.page, target.current, language
        )
        if not is_finite(value):
            raise context.refuse("a finite number is expected")
        if column.type == "slug":
            slugs.append(context)
            continue
        result = await check_value(context, value, checked.tasks)
        if result is not KEEP:
            checked.values[name] = result
        elif column.type == "language":
            # Not among the languages of the user.
            checked.dropped[name] = ErrorCode.FIELD_NOT_ALLOWED
    for context in slugs:
        record = {**whole, **checked.values}
        checked.values[context.column.name] = await check_slug(context, submitted[context.column.name], record)
    return checked


def name_dropped(run: HandlerRun, outcome: EntryOutcome, submitted: Mapping[str, Any], checked: CheckedFields) -> None:
    """Says in the outcome which fields were not written; where nothing else was asked for, the entry is refused.

    What a hook or the synchronization of translations added was not asked for by anybody.
    """
    asked = run.submitted.get((outcome.table, outcome.id), frozenset())
    dropped = {name: code for name, code in checked.dropped.items() if name in asked}
    for name, code in dropped.items():
        outcome.drop(name, code)
    if not dropped:
        return
    outcome.message = "Not written: " + ", ".join(f.field for f in outcome.dropped)[:500]
    left = [name for name in asked if name not in dropped and name in submitted and name not in _SYSTEM]
    if outcome.status == "unchanged" and not left:
        denied = ErrorCode.FIELD_NOT_ALLOWED in dropped.values()
        outcome.status = "refused" if denied else "error"
        outcome.code = ErrorCode.FIELD_NOT_ALLOWED if denied else next(iter(dropped.values()))


def _language(table: TableSchema, whole: Mapping[str, Any]) -> int:
    return read_number(whole.get(table.language_field or "", 0)) or 0


def _may_write(run: HandlerRun, table: TableSchema, name: str) -> bool:
    # What a copy brings along is not an edit of that field.
    if run.copy_mode or name in (table.language_field, table.parent_field, table.source_field):
        return True
    return run.ctx.policy.may_write_field(table.name, name)


def _take_system_field(run: HandlerRun, target: Target, name: str, value: Any, checked: CheckedFields) -> None:
    table = target.table
    if name == "l10n_state" and name in table.db_columns:
        # A map was read by the synchronization; only its JSON is stored.
        if value is None or isinstance(value, str):
            checked.values[name] = value
    elif table.name == "pages" and name in PERMISSION_COLUMNS:
        if _may_set_rights(run, target):
            column = FieldContext(run, table, _plain(name), target.record_id, 0, target.status, 0, None)
            checked.values[name] = as_int(column, value)
        else:
            checked.dropped[name] = ErrorCode.FIELD_NOT_ALLOWED
    elif name == table.orig_uid_field:
        checked.values[name] = value
    elif name not in table.db_columns:
        checked.dropped[name] = ErrorCode.UNKNOWN_FIELD
    elif name not in _SYSTEM or (target.current is not None and str(target.current[name]) != str(value)):
        # Columns nobody edits: the order, times, flags.
        checked.dropped[name] = ErrorCode.FIELD_NOT_ALLOWED


def _plain(name: str) -> Any:
    from content_store.schema.model import Column

    return Column(name, {"type": "number"})


def _may_set_rights(run: HandlerRun, target: Target) -> bool:
    user = run.ctx.policy.user
    return user.admin or target.current is None or target.current.get("perms_userid") == user.uid


async def add_diff_source(
    run: HandlerRun, target: Target, submitted: Mapping[str, Any], values: dict[str, Any]
) -> None:
    """Adds the diff source to the values, unless one was submitted (an undo) or comes from a default."""
    table = target.table
    name = table.diff_source_field
    if not name or name not in table.db_columns or not table.parent_field:
        return
    whole = {**(target.current or {}), **values}
    parent = translated_uid(table, whole)
    original: Row | None = None
    if parent:
        original = await run.ctx.reader.stored(table.name, parent)
    elif target.current is None:
        return
    if target.current is not None and name in submitted:
        return
    stored = target.current.get(name) if target.current else None
    text = diff_source(table, submitted, original, stored)
    if text is not None:
        values[name] = text


def without_unchanged(target: Target, values: dict[str, Any], counted: frozenset[str]) -> dict[str, Any]:
    """Drops values that are stored already; fields with a relation table are never dropped."""
    current = target.current or {}
    return {
        name: value
        for name, value in values.items()
        if name in counted or not same_value(target.table, name, current.get(name), value)
    }


def same_value(table: TableSchema, name: str, stored: Any, value: Any) -> bool:
    """Is the value what is stored already?"""
    column = table.db_columns.get(name)
    if stored is None or value is None:
        if stored is None and value is None:
            return True
        # NULL and an empty text are one and the same where the editor cannot store NULL.
        described = table.columns.get(name)
        if described is not None and described.nullable:
            return False
        return str(stored if value is None else value) == ""
    if column is not None and column.type == "int":
        try:
            return int(stored) == int(value)
        except (TypeError, ValueError, OverflowError):
            return False
    return str(stored) == str(value)
