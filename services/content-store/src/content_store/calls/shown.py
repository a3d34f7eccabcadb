"""Was more changed than the card showed (CALLS 4)? Pure: two multisets of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from remit_contracts.calls import ShownChange


def exceeded(shown: Iterable[ShownChange], changed: Iterable[ShownChange]) -> tuple[ShownChange, ...]:
    """Lines of ``changed`` that ``shown`` does not have, each as often as it is missing; less than shown is fine.

    Returns:
        In the order of ``changed``; empty when the card covers everything.
    """
    left = Counter(shown)
    more = []
    for line in changed:
        if left[line] > 0:
            left[line] -= 1
        else:
            more.append(line)
    return tuple(more)
