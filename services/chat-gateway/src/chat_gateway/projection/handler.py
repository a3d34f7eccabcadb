"""Reads messages of the run-steps topic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

from pydantic import ValidationError
from remit_contracts.events import RUN_STEP_TYPE_PREFIX, RunStepEvent
from service_kit.bus import PoisonMessageError, ReceivedMessage
from service_kit.cloudevents import MalformedEventError, from_message

from chat_gateway.projection.delivery import Delivery

MAX_SEQUENCE = 2**31 - 1


class StepHandler:
    """Handles one message: read, project, done; a message nobody can read is poison."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    async def __call__(self, message: ReceivedMessage) -> None:
        """Take one message.

        Raises:
            PoisonMessageError: it is no step event; reading it again would not help.
        """
        await self._delivery.events([_read(message)])

    async def many(self, messages: Sequence[ReceivedMessage]) -> None:
        """Take messages that arrived together: neighbours of one run are one transaction.

        Raises:
            PoisonMessageError: one of them is no step event; nothing was taken.
        """
        for _, events in groupby([_read(message) for message in messages], key=lambda item: _run_of(item[1])):
            await self._delivery.events(list(events))


def _run_of(event: RunStepEvent) -> tuple[UUID, UUID | None, int]:
    return event.run_id, event.conversation_id, event.user_uid


def _read(message: ReceivedMessage) -> tuple[UUID, RunStepEvent]:
    try:
        envelope = from_message(message)
    except MalformedEventError as error:
        raise PoisonMessageError(str(error)) from error
    if not envelope.type.startswith(RUN_STEP_TYPE_PREFIX):
        raise PoisonMessageError(f"unexpected type {envelope.type[:100]}")
    try:
        event = RunStepEvent.model_validate_json(envelope.data)
    except ValidationError as error:
        raise PoisonMessageError(f"not readable: {error.error_count()} wrong value(s)") from error
    if event.step.run_id != event.run_id or not 1 <= event.step.sequence <= MAX_SEQUENCE:
        raise PoisonMessageError("the step does not belong to its run")
    return envelope.id, event
