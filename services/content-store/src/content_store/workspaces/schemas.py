"""Shapes of the workspace list."""

from __future__ import annotations

from remit_contracts.base import Contract


class WorkspaceView(Contract):
    """A workspace its reader may use.

    Attributes:
        uid: 0 is live.
        role: ``owner``, ``member``, or ``live`` for the live workspace.
        may_publish: the reader may publish from it.
    """

    uid: int
    title: str
    role: str
    may_publish: bool


class WorkspacesView(Contract):
    """All of them, live first."""

    workspaces: list[WorkspaceView]
