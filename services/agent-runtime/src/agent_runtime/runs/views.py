"""Runs as their readers see them."""

from __future__ import annotations

from remit_contracts.runs import PendingTurn, RunView, TerminationReason, Usage
from service_kit.logging import get_logger

from agent_runtime.runs.envelope import StateCipher, StateUnreadable
from agent_runtime.runs.models import RunRow

logger = get_logger(__name__)


def run_view(
    run: RunRow, cipher: StateCipher, pending: PendingTurn | None = None, *, card_only: bool = False
) -> RunView:
    """A run; for somebody who only decides its card without its text."""
    return RunView(
        id=run.id,
        status=run.status,
        configuration=run.configuration,
        conversation_id=None if card_only else run.conversation_id,
        owner_uid=run.owner_uid,
        segment=run.segment,
        last_sequence=run.last_sequence,
        outcome=run.outcome,
        termination_reason=TerminationReason(run.termination_reason) if run.termination_reason else None,
        truncated=run.truncated,
        retryable=run.retryable,
        final_content=None if card_only else final_content(run, cipher),
        error_code=run.error_code,
        usage=Usage(rounds=run.round, input_tokens=run.input_tokens, output_tokens=run.output_tokens),
        created_at=run.created_at,
        settled_at=run.settled_at,
        pending=pending,
    )


def final_content(run: RunRow, cipher: StateCipher) -> str | None:
    """The last text of a settled run; none where there is none or its key is gone."""
    if run.final_id is None or run.final_sealed is None:
        return None
    try:
        data = cipher.open(run.final_id, run.final_sealed).data
    except StateUnreadable as error:
        logger.error("final content unreadable", run_id=str(run.id), reason=error.reason)
        return None
    return data if isinstance(data, str) else None
