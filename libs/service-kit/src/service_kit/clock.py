"""The process's clock. Leases and expiries in the database use its own ``clock_timestamp()``, never this one."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The present moment, with the time zone UTC."""
    return datetime.now(UTC)


def isoformat(moment: datetime) -> str:
    """ISO 8601 in UTC with a trailing ``Z``, the form times have on the wire.

    Raises:
        ValueError: for a moment without a time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a time on the wire needs a time zone")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
