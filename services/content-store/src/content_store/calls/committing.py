"""The end of a call: verdict row, record events, the commit itself, and what waited for it (S-58, S-59)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
from remit_contracts.calls import CallResult, OperationResult, RollbackReason
from service_kit.database import shielded
from service_kit.logging import get_logger

from content_store.caches.flush import CacheFlushFailed, flush_groups
from content_store.calls import outcome
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import CallRolledBack
from content_store.calls.plan import CallPlan
from content_store.calls.results import committed_result, rolled_back_result
from content_store.calls.session import CallSession
from content_store.calls.verdict import Verdict
from content_store.capture.errors import capture_error
from content_store.datahandler.run import AfterCommit
from content_store.events.records import Origin, append_record_events, record_changes
from content_store.records.errors import CALL_ENDING_SQLSTATES, CallMustEnd, StatementRefused
from content_store.records.gateway import RecordGateway
from content_store.records.lost import LOST, connection_gone

logger = get_logger(__name__)


AskAgain = Callable[[CallPlan, CallResult], Awaitable[CallResult]]


class CommitRefused(Exception):
    """The database did not commit: rows nobody judged, or no verdict."""

    code = "commit_refused"


@dataclass(frozen=True)
class OpenTransaction:
    """The transaction of a call.

    Attributes:
        connection: of the driver.
        transaction: of the driver, started.
        gateway: for statements on records.
    """

    connection: Any
    transaction: Any
    gateway: RecordGateway


async def finish(
    env: StoreEnvironment,
    opened: OpenTransaction,
    session: CallSession,
    results: Sequence[OperationResult],
    ask_again: AskAgain,
) -> CallResult:
    """Judge the call, then commit it or roll it back, and say which.

    Args:
        env: what all calls share.
        opened: its transaction.
        session: the call at work.
        results: of its operations.
        ask_again: finds out what became of a commit nobody answered.

    Raises:
        CallRolledBack, TransactionLost: the transaction is not the call's any more.
        CallMustEnd: the database ended the call.
    """
    plan = session.plan
    try:
        verdict = await session.verdict()
        if verdict.reason is not None:
            await rollback(opened.connection, opened.transaction)
            return rolled_back_result(plan, verdict.reason, verdict=verdict, operations=results)
        await session.flush_requested_tags()
        result = committed_result(plan, verdict, results, session)
        await publish(env, opened.gateway, plan, verdict, result)
    except LOST:
        raise
    except CacheFlushFailed as error:
        logger.warning("cache tags of a call were not flushed", exc_info=error)
        raise CallRolledBack(RollbackReason.COMMIT_REFUSED, error.code) from error
    except (StatementRefused, asyncpg.PostgresError) as error:
        # Nothing a call asked for fails here: somebody meddled with the verdict, or wrote after it.
        logger.warning("the verdict of a call was refused", exc_info=error)
        raise CallRolledBack(RollbackReason.COMMIT_REFUSED, "database_refused") from error
    try:
        await commit(opened.transaction)
    except CommitRefused:
        return rolled_back_result(plan, RollbackReason.COMMIT_REFUSED, verdict=verdict, operations=results)
    except LOST as error:
        logger.warning("the connection was lost at the commit of a call", exc_info=error)
        return await ask_again(plan, result)
    return await after_commit(env, session, result)


async def publish(
    env: StoreEnvironment, gateway: RecordGateway, plan: CallPlan, verdict: Verdict, result: CallResult
) -> None:
    """Write the verdict, then the events of what changed, last before the commit.

    Raises:
        CallRolledBack: the outcome row of the call is gone: a hook ended the transaction.
    """
    if not await outcome.write_verdict(gateway, plan.call_id, verdict.judged, result):
        raise CallRolledBack(RollbackReason.COMMIT_REFUSED, "transaction_lost")
    origin = Origin.of_user(plan.actor.user_uid, plan.run_id, plan.call_id)
    changes = record_changes(verdict.deltas, env.relation_ends, origin, verdict.actions)
    if changes:
        await append_record_events(gateway.connection, env.outbox, changes)


async def commit(transaction: Any) -> None:
    """Commit, whatever becomes of the request meanwhile.

    Raises:
        CommitRefused: the database found rows nobody judged.
        CallMustEnd: serialization failure or deadlock at the commit.
    """
    try:
        await shielded(transaction.commit())
    except LOST:
        # Also where the server said why it goes: it may have committed before.
        raise
    except asyncpg.PostgresError as error:
        sqlstate = str(getattr(error, "sqlstate", "") or "")
        if sqlstate in CALL_ENDING_SQLSTATES:
            raise CallMustEnd(sqlstate, str(error)) from error
        logger.warning("the database refused to commit a call", reason=type(capture_error(error) or error).__name__)
        raise CommitRefused(sqlstate) from error


async def after_commit(env: StoreEnvironment, session: CallSession, result: CallResult) -> CallResult:
    """Run what waited for the commit; a failure is a warning, the call stays committed."""
    if result.judged_rows:
        env.published()
    warnings = [*result.warnings, *await flush_groups(env.caches, session.effects.flush_groups)]
    warnings += await run_callbacks(session.effects.after_commit)
    return result.model_copy(update={"warnings": tuple(dict.fromkeys(warnings))}) if warnings else result


async def run_callbacks(callbacks: Iterable[AfterCommit]) -> list[str]:
    """Run what waited for a commit; whatever goes wrong there is a warning and never an error of what was written.

    Returns:
        A warning per failure.
    """
    warnings = []
    for callback in callbacks:
        try:
            await callback()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            # Also where it raises a cancellation of its own: what is committed is told as committed.
            logger.warning("an after-commit callback failed", exc_info=error)
            warnings.append("after_commit_failed")
    return warnings


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def rollback(connection: Any, transaction: Any) -> None:
    """End the transaction, whatever state a hook left it in; a connection that is gone has ended it already."""
    if connection_gone(connection):
        return
    try:
        await transaction.rollback()
    except LOST as error:
        logger.warning("a call could not be rolled back in the usual way", exc_info=error)
    if connection_gone(connection) or not connection.is_in_transaction():
        return
    try:
        await connection.execute("ROLLBACK")
    except LOST as error:
        # Cut it: the server undoes what it cannot be told to.
        logger.warning("the connection of a call is cut to undo it", exc_info=error)
        connection.terminate()
