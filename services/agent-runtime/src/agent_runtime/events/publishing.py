"""Steps as events: one event per step, the run's sequence is the stream's (T-70)."""

from __future__ import annotations

from collections.abc import Sequence

from remit_contracts.events import RUN_STEPS_TOPIC, RunStepEvent, run_step_type
from remit_contracts.steps import Step
from service_kit.outbox import OutboxEvent

from agent_runtime.runs.models import RunRow

SOURCE = "/agent-runtime"


def step_events(run: RunRow, steps: Sequence[Step]) -> list[OutboxEvent]:
    """The events of stored steps; already filtered by the run's privacy level (T-73)."""
    return [
        OutboxEvent(
            topic=RUN_STEPS_TOPIC,
            stream=str(run.id),
            key=run.event_key,
            type=run_step_type(step.kind),
            source=SOURCE,
            subject=str(run.id),
            data=RunStepEvent(
                run_id=run.id,
                conversation_id=run.conversation_id,
                user_uid=run.owner_uid,
                run_status=run.status.value,
                step=step,
            ),
            time=step.at,
        )
        for step in steps
    ]
