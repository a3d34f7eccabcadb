"""English texts of the card; they are the keys of the catalogues."""

from __future__ import annotations

from collections.abc import Mapping

ACTIONS: Mapping[str, str] = {
    "update_page_metadata": "Change the page's properties",
    "set_page_social_image": "Set the page's social image",
    "update_content_element": "Change a content element",
    "create_page_draft": "Create a page draft",
    "create_content_element_draft": "Create a content element draft",
    "create_record_draft": "Create a record draft",
    "create_translation_draft": "Create a translation draft",
    "set_record_visibility_dates": "Set when a record is visible",
    "move_content_element": "Move a content element",
    "move_page": "Move a page",
    "copy_record": "Copy a record",
    "delete_record": "Delete a record",
    "restore_record": "Restore a record",
    "publish_record": "Publish a record",
    "set_file_alternative_text": "Set a file's alternative text",
    "update_file_metadata": "Change a file's metadata",
    "attach_file_to_content_element": "Attach a file to a content element",
    "attach_file_to_record": "Attach a file to a record",
    "replace_file_reference": "Replace a file",
    "create_redirect": "Create a redirect",
    "update_redirect": "Change a redirect",
    "delete_redirect": "Delete a redirect",
    "clear_cache": "Clear caches",
}
OTHER_ACTION = "Run {tool}"

LIVE = "Writes to the live site."
WORKSPACE = "Writes to the workspace “{title}” ({id})."
WORKSPACE_WITHHELD = "Writes to workspace {id}; its title is not visible to you."
DEFAULT_LANGUAGE = "Target language: the default language (0)."
LANGUAGE = "Target language: {title} ({id})."
LANGUAGE_UNTITLED = "Target language: {id}."
ALL_LANGUAGES = "Target language: all languages (-1)."

REFUSED = "This call will not be carried out: a rule refuses it."
DRAFT_REQUIRED = "The configuration requires a draft workspace, and this call would write to the live site."
NOT_REGISTERED = "This tool is not available any more."
STALE = "What this call would do has changed since the card was shown."
PREVIEW_FAILED = "A preview could not be made."

APPROVE = "Approve: {actions}"
TIMES = "{action} ({count}×)"
BLOCKED: Mapping[str, str] = {
    "allRefused": "Nothing can be approved: every call is refused by a rule.",
    "secondApprover": "A second person has to approve this.",
    "configuration": "The configuration of this run does not exist any more.",
    "preview": "It cannot be approved because what it would change could not be worked out.",
}
BLOCKED_OTHER = "It cannot be approved at the moment."

WILL = {
    "created": "Will create: {record}",
    "updated": "Will change: {record}",
    "moved": "Will move: {record}",
    "deleted": "Will delete: {record}",
    "restored": "Will restore: {record}",
}
ALONG = {
    "created": "Along with it, created: {record}",
    "updated": "Along with it, changed: {record}",
    "moved": "Along with it, moved: {record}",
    "deleted": "Along with it, deleted: {record}",
    "restored": "Along with it, restored: {record}",
}
RECORD = "“{title}” ({label}, {table}:{uid})"
NEW_RECORD = "new {table} on page “{title}” ({uid})"
NEW_RECORD_NESTED = "new {table} on a new page"
WOULD_REFUSE = "Would be refused: {record} ({reason})"
HIDDEN_CHANGES = "{count} further record(s) would change that you may not see."
HIDDEN_REFUSED = "{count} further write(s) would be refused on records you may not see."
MORE_CHANGES = "{count} further record(s) would change."
ROLLED_BACK = "The whole call would be undone."
UNKNOWN_ALONG = "It is not known what would change along with it."
NOT_CHECKED = "What would change cannot be shown at the moment because your rights could not be checked."

SCOPE = "This assignment may write: {parts}."
SCOPE_NOTHING = "This assignment may write nothing."
SCOPE_PAGE = "page {page}"
SCOPE_PAGES = "page {page} and {depth} level(s) below it"
SCOPE_RECORD = "record {record}"
SCOPE_TABLES = "only in the tables {tables}"
SCOPE_LANGUAGES = "only in the languages {languages}"
