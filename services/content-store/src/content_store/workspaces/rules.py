"""Who may work in a workspace (SEMANTICS 21), free of I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from content_store.access.policy import BackendUser

LIVE: Final = 0
LIVE_BIT: Final = 1
ONLY_FROM_PUBLISH_STAGE: Final = 1
ONLY_OWNERS_PUBLISH: Final = 2


class WorkspaceRole(StrEnum):
    """What somebody is in a workspace."""

    MEMBER = "member"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A row of ``sys_workspace``.

    Attributes:
        owners: ``be_users_<uid>`` and ``be_groups_<uid>`` entries of ``adminusers``.
        members: the same of ``members``.
        mounts: pages that narrow the mounts of its users; empty narrows nothing.
        file_mounts: rows of sys_filemounts, likewise.
        publish_access: bit 1 publish only from the publish stage, bit 2 only owners publish.
        live_edit: tables without versioning may be written live.
    """

    uid: int
    title: str = ""
    owners: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    mounts: tuple[int, ...] = ()
    file_mounts: tuple[int, ...] = ()
    publish_access: int = 0
    live_edit: bool = False

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Workspace:
        """Reads a row; missing columns count as empty."""
        return cls(
            uid=int(row["uid"]),
            title=str(row.get("title") or ""),
            owners=_entries(row.get("adminusers")),
            members=_entries(row.get("members")),
            mounts=_uids(row.get("db_mountpoints")),
            file_mounts=_uids(row.get("file_mountpoints")),
            publish_access=int(row.get("publish_access") or 0),
            live_edit=bool(int(row.get("live_edit") or 0)),
        )


def _entries(value: Any) -> frozenset[str]:
    # A bare number is a user: such lists are kept with and without the table's name.
    parts = (part.strip() for part in str(value or "").split(","))
    return frozenset(f"be_users_{part}" if part.isdigit() else part for part in parts if part)


def _uids(value: Any) -> tuple[int, ...]:
    parts = (part.strip().removeprefix("pages_") for part in str(value or "").split(","))
    return tuple(int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 19)


def role_in(workspace: Workspace, user: BackendUser) -> WorkspaceRole | None:
    """Owner, member or nothing; administrators own every workspace."""
    names = {f"be_users_{user.uid}", *(f"be_groups_{group}" for group in user.groups)}
    if user.admin or names & workspace.owners:
        return WorkspaceRole.OWNER
    return WorkspaceRole.MEMBER if names & workspace.members else None


def may_use_live(user: BackendUser) -> bool:
    """May the user work in the live workspace?"""
    return user.admin or bool(user.workspace_perms & LIVE_BIT)


def may_use(workspace: Workspace | None, workspace_id: int, user: BackendUser) -> bool:
    """May the user work in the workspace?

    Args:
        workspace: the stored one, ``None`` for live or where it does not exist.
        workspace_id: that was asked for.
        user: who asks.
    """
    if workspace_id == LIVE:
        return may_use_live(user)
    return workspace is not None and role_in(workspace, user) is not None


def may_publish(workspace: Workspace, user: BackendUser) -> bool:
    """May the user publish from the workspace? The stage a record must be in is judged with the record."""
    role = role_in(workspace, user)
    if role is WorkspaceRole.OWNER:
        return True
    return role is not None and may_use_live(user) and not workspace.publish_access & ONLY_OWNERS_PUBLISH


def narrowing_mounts(workspace: Workspace | None) -> frozenset[int] | None:
    """Mounts of the workspace a page must lie in as well; ``None`` narrows nothing."""
    return frozenset(workspace.mounts) if workspace is not None and workspace.mounts else None
