"""Who may call what: a table per service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from service_kit.auth.errors import CallerNotAllowedError


class CallerTable:
    """Operations by calling service. What is not in it is not allowed.

    Args:
        allowed: service name to names of operations, e.g. ``{"agent-runtime": {"calls.apply"}}``.
    """

    def __init__(self, allowed: Mapping[str, Iterable[str]]) -> None:
        self._allowed = {service: frozenset(operations) for service, operations in allowed.items()}

    @property
    def operations(self) -> frozenset[str]:
        """Every operation somebody may call."""
        return frozenset().union(*self._allowed.values())

    def allows(self, service: str, operation: str) -> bool:
        """Whether the service may call the operation."""
        return operation in self._allowed.get(service, frozenset())

    def check(self, service: str, operation: str) -> None:
        """Refuse what the table does not have.

        Raises:
            CallerNotAllowedError: with the operation as parameter.
        """
        if not self.allows(service, operation):
            raise CallerNotAllowedError(service=service, operation=operation)
