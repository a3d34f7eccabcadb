"""Every reason rights can give, in one place: stable codes and the log texts that go with them."""

from __future__ import annotations

from typing import Any, Final

from content_store.access.policy import Denial

MESSAGES: Final = {
    "unknown_table": "There is no table {table}",
    "table_read_only": "The table {table} cannot be written",
    "admin_only": "Only administrators may write the table {table}",
    "table_modify": "The user may not write the table {table}",
    "table_select": "The user may not read the table {table}",
    "root_level": "Records of {table} cannot be put on page {page}",
    "root_level_rights": "Only administrators may work with {table} outside of the page tree",
    "page_missing": "The page {page} does not exist",
    "page_type": "The type of page {page} does not take records of {table}",
    "page_permission": "The user lacks rights on page {page}",
    "page_mount": "The page {page} lies outside of the user's mounts",
    "page_editlock": "The page {page} is locked for editors",
    "branch_permission": "The user may not delete page {page} of the branch",
    "language": "The user may not work in language {language}",
    "auth_mode": "The user may not use {value} in field {field} of {table}",
    "page_type_right": "The user may not use pages of type {value}",
    "editlock": "The record {table}:{uid} is locked for editors",
    "workspace": "The user may not work in workspace {workspace}",
    "file_mount": "The file lies outside of the user's file mounts",
}


def denial(code: str, **data: Any) -> Denial:
    """A :class:`Denial` with the text of its code; an unknown code is a programming error (``KeyError``)."""
    return Denial(code, MESSAGES[code], data)
