"""What a figure is."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measured value beside its limit, both medians in milliseconds.

    Attributes:
        goal: the ratio that should not be exceeded.
        limit: what the limit is, in words.
    """

    name: str
    value_ms: float
    limit_ms: float
    goal: float
    limit: str

    @property
    def ratio(self) -> float:
        """Value divided by limit."""
        return self.value_ms / self.limit_ms if self.limit_ms else 0.0

    def as_json(self) -> dict[str, Any]:
        """As it stands in build/bench.json."""
        return {
            "value_ms": round(self.value_ms, 3),
            "limit_ms": round(self.limit_ms, 3),
            "ratio": round(self.ratio, 3),
            "goal": self.goal,
        }


def median_ms(seconds: Iterable[float]) -> float:
    """The median of durations, in milliseconds; the first tenth is warm-up and left out."""
    every = list(seconds)
    return statistics.median(every[len(every) // 10 :]) * 1000
