"""Undoing one entry alone: a savepoint in the database and a snapshot of what the run remembers (CALLS 1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun, RecordMap, RunContext


SYNC_SAVEPOINT: Final = "datahandler_sync"


@dataclass(frozen=True)
class ContextSnapshot:
    """What all instances of a run remember."""

    history: int
    log: int
    error_log: int
    references: Any
    mm: Any
    after_commit: int
    flush_requests: int
    localized: dict[tuple[str, int, int], int]


@dataclass(frozen=True)
class RunSnapshot:
    """What one instance remembers."""

    context: ContextSnapshot
    placeholders: dict[str, tuple[str, int]]
    copied: RecordMap
    copied_merged: RecordMap
    auto_versions: RecordMap
    tasks: int
    waiting: int
    exchange: dict[tuple[str, int], set[str]]
    page_children: dict[tuple[str, int], int]
    paste_datamap: dict[str, dict[str, dict[str, Any]]]


def snapshot_context(ctx: RunContext) -> ContextSnapshot:
    """Remembers the shared work lists, callbacks and flush requests."""
    return ContextSnapshot(
        len(ctx.history.entries),
        len(ctx.log.entries),
        len(ctx.log.error_log),
        ctx.references.snapshot(),
        ctx.mm.snapshot(),
        len(ctx.after_commit),
        len(ctx.flush_requests),
        dict(ctx.localized),
    )


def restore_context(ctx: RunContext, snapshot: ContextSnapshot) -> None:
    """Back to the snapshot; what was read since is read again."""
    del ctx.history.entries[snapshot.history :]
    del ctx.log.entries[snapshot.log :]
    del ctx.log.error_log[snapshot.error_log :]
    ctx.references.restore(snapshot.references)
    ctx.mm.restore(snapshot.mm)
    del ctx.after_commit[snapshot.after_commit :]
    del ctx.flush_requests[snapshot.flush_requests :]
    ctx.localized = dict(snapshot.localized)
    ctx.reader.forget()
    ctx.places.forget()
    ctx.forget_settings()
    forget: Callable[[], None] | None = getattr(ctx.policy, "forget_pages", None)
    if forget is not None:
        # Pages that were written are not as the rights remember them any more.
        forget()


def _copy(records: RecordMap) -> RecordMap:
    return defaultdict(dict, {table: dict(uids) for table, uids in records.items()})


def _copy_rows(datamap: dict[str, dict[str, dict[str, Any]]]) -> dict[str, dict[str, dict[str, Any]]]:
    return {table: {key: dict(row) for key, row in rows.items()} for table, rows in datamap.items()}


def snapshot_run(run: HandlerRun) -> RunSnapshot:
    """Remembers an instance and the context."""
    return RunSnapshot(
        snapshot_context(run.ctx),
        dict(run.placeholders),
        _copy(run.copied),
        _copy(run.copied_merged),
        _copy(run.auto_versions),
        len(run.tasks),
        len(run.waiting),
        {key: set(fields) for key, fields in run.exchange.items()},
        dict(run.page_children),
        _copy_rows(run.paste_datamap),
    )


def restore_run(run: HandlerRun, snapshot: RunSnapshot) -> None:
    """Back to the snapshot."""
    restore_context(run.ctx, snapshot.context)
    run.placeholders = dict(snapshot.placeholders)
    run.copied, run.copied_merged = _copy(snapshot.copied), _copy(snapshot.copied_merged)
    run.auto_versions = _copy(snapshot.auto_versions)
    del run.tasks[snapshot.tasks :]
    del run.waiting[snapshot.waiting :]
    run.exchange = {key: set(fields) for key, fields in snapshot.exchange.items()}
    run.page_children = dict(snapshot.page_children)
    run.paste_datamap = _copy_rows(snapshot.paste_datamap)
