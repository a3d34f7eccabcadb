"""Makes steps as a runtime would store them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from remit_contracts.events import RUN_STEPS_TOPIC, RunStepEvent, run_step_type
from remit_contracts.steps import Step
from service_kit.bus import Message
from service_kit.cloudevents import CloudEvent, to_message
from service_kit.ids import uuid7

START = datetime(2026, 1, 1, tzinfo=UTC)


class Steps:
    """The steps of one run, numbered without gaps."""

    def __init__(self, run: UUID | None = None) -> None:
        self.run = run or uuid7()
        self.all: list[Step] = []
        self.segment = 1
        self.round = 0

    def add(
        self, kind: str, payload: Mapping[str, Any] | None = None, *, call: str | None = None, ms: float = 12.5
    ) -> Step:
        """Add a step of any kind."""
        step = Step(
            run_id=self.run,
            sequence=len(self.all) + 1,
            segment=self.segment,
            round=self.round,
            kind=kind,
            duration_ms=ms,
            call_id=call,
            at=START + timedelta(seconds=len(self.all)),
            payload=dict(payload or {}),
        )
        self.all.append(step)
        return step

    def llm(self) -> Step:
        """A model round."""
        self.round += 1
        return self.add("llm", {"content": "text of the model"})

    def tool(
        self,
        name: str,
        call: str,
        *,
        error: bool = False,
        ms: float = 12.5,
        refusal: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        result: str | None = None,
    ) -> Step:
        """A call of a tool."""
        payload: dict[str, Any] = {"toolName": name, "callId": call, "isError": error}
        if refusal is not None:
            payload["refusal"] = {"kind": refusal}
        if arguments is not None:
            payload["arguments"] = dict(arguments)
        if result is not None:
            payload["result"] = result
        return self.add("tool", payload, call=call, ms=ms)

    def write(self, name: str, call: str, table: str, uid: int, completeness: str = "complete") -> Step:
        """The record a tool named."""
        payload = {"toolName": name, "callId": call, "table": table, "uid": uid, "completeness": completeness}
        return self.add("tool_write", payload, call=call)

    def changes(
        self,
        call: str,
        changes: Sequence[Mapping[str, Any]],
        *,
        refused: Sequence[Mapping[str, Any]] = (),
        omitted: int = 0,
    ) -> Step:
        """What the store observed."""
        payload = {
            "changes": [dict(change) for change in changes],
            "changesOmitted": omitted,
            "coverage": "datahandler",
            "refused": [dict(item) for item in refused],
        }
        return self.add("tool_changes", payload, call=call)

    def status(self, status: str, outcome: str | None = None) -> Step:
        """A change of the run's status."""
        return self.add("status", {"status": status, "outcome": outcome, "segment": self.segment})

    def next_segment(self) -> None:
        """The run goes on after a pause."""
        self.segment += 1

    def whole_write(self, name: str, call: str, table: str, uid: int, action: str = "updated") -> None:
        """A call that wrote one record, with its three steps."""
        self.tool(name, call)
        self.write(name, call, table, uid)
        self.changes(call, [{"table": table, "uid": uid, "action": action, "writeTarget": True}])


def message_of(step: Step, conversation: UUID | None, user: int, event_id: UUID | None = None) -> Message:
    """The step as it lies on the topic."""
    event = RunStepEvent(
        run_id=step.run_id, conversation_id=conversation, user_uid=user, run_status="running", step=step
    )
    cloud = CloudEvent(
        id=event_id or uuid7(),
        source="/agent-runtime",
        type=run_step_type(step.kind),
        data=event.model_dump_json().encode(),
        time=step.at,
        key=str(conversation or step.run_id),
        stream=str(step.run_id),
        sequence=step.sequence,
    )
    return to_message(cloud, RUN_STEPS_TOPIC)
