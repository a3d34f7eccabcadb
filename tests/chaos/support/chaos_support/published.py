"""What an independent consumer finds on the topic of run steps."""

from __future__ import annotations

from remit_contracts.events import RUN_STEPS_TOPIC
from remit_local.demo.reader import ReadEvent, read_events


def sequences(broker_url: str, run: str, last: int, seconds: float = 60.0) -> list[int]:
    """Sequences of a run's events in the order they lie on the topic, read until ``last`` was seen or time is over."""

    def of_run(events: list[ReadEvent]) -> list[int]:
        return [int(event.headers["ce_sequence"]) for event in events if event.run == run]

    return of_run(read_events(broker_url, lambda events: last in of_run(events), seconds, RUN_STEPS_TOPIC))


def first_seen(found: list[int]) -> list[int]:
    """Each sequence where it lies first: at least once is promised, and the order of these."""
    return list(dict.fromkeys(found))
