"""Names of workspaces that have no row."""

from __future__ import annotations


def live_title(locale: str) -> str:
    """What the live workspace is called in the reader's language."""
    return "Live-Arbeitsbereich" if locale == "de" else "Live workspace"
