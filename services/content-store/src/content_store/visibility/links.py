"""Where the CMS shows a record (R-103), free of I/O."""

from __future__ import annotations

from dataclasses import dataclass

from remit_contracts.visibility import RecordLinks


@dataclass(frozen=True)
class LinkTemplates:
    """Paths with ``{table}``, ``{uid}`` and ``{workspace}``; an empty one makes no link."""

    edit: str = "/records/{table}/{uid}/edit"
    history: str = "/records/{table}/{uid}/history"
    workspace: str = "/workspaces/{workspace}"


def links_of(
    templates: LinkTemplates,
    table: str,
    uid: int,
    workspace: int,
    *,
    may_modify: bool,
    deleted: bool,
    working_in: int,
) -> RecordLinks:
    """Links of a record for one viewer.

    Args:
        templates: of the installation.
        table: of the record.
        uid: of the record.
        workspace: the record is stored in.
        may_modify: the viewer may write the table; without it there is no edit link.
        deleted: a deleted record has no history link, and nothing to edit.
        working_in: the workspace the viewer works in now; only its own records link to it.
    """

    def path(template: str, wanted: bool) -> str | None:
        if not wanted or not template:
            return None
        filled = template.replace("{table}", table).replace("{uid}", str(uid))
        return filled.replace("{workspace}", str(workspace))

    return RecordLinks(
        edit=path(templates.edit, may_modify and not deleted),
        history=path(templates.history, not deleted),
        workspace=path(templates.workspace, workspace != 0 and workspace == working_in),
    )
