"""Shapes of the reading routes. Rows of record tables keep the names of their columns."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from remit_contracts.base import Contract

Row = dict[str, Any]


class PageNode(Contract):
    """A page of the tree.

    Attributes:
        level: 0 for the page the tree begins with.
        has_children: there is at least one page below that the reader may see.
        translated: title and slug are those of the language asked for.
    """

    uid: int
    pid: int
    title: str
    hidden: bool
    doktype: int
    level: int
    slug: str | None
    has_children: bool
    translated: bool


class PageTreeView(Contract):
    """Pages in the order of the tree, parents first. ``truncated``: there are more than the limit."""

    pages: list[PageNode]
    truncated: bool = False


class RecordsView(Contract):
    """Rows of a table; ``nextCursor`` leads to the next ones."""

    records: list[Row]
    next_cursor: str | None = None


class PageTitle(Contract):
    """The page a record lies on."""

    uid: int
    title: str


class RecordView(Contract):
    """One record.

    Attributes:
        record: fields the reader may read, with the values of the workspace.
        hash: of the whole row, as ``expect`` compares it.
        translations: rows of the record's translations.
        page: none for a record outside of the page tree.
    """

    record: Row
    hash: str
    translations: list[Row] = []
    page: PageTitle | None = None


class FieldView(Contract):
    """A field of a table.

    Attributes:
        type: e.g. ``input``, ``select``.
        writable: the reader may write it; a password can be written and never read.
        options: value and label of a choice.
        config: limits an editor has to know (``max``, ``min``, ``required``, ``foreign_table``, ``maxitems`` …).
    """

    name: str
    label: str
    type: str
    readable: bool
    writable: bool
    required: bool = False
    options: dict[str, str] = {}
    config: Row = {}


class TableView(Contract):
    """A record table, as its reader may use it."""

    name: str
    label: str
    label_field: str | None = None
    writable: bool
    language_field: str | None = None
    parent_field: str | None = None
    sort_field: str | None = None
    type_field: str | None = None
    hidden_field: str | None = None
    versionable: bool = False
    root_level: int = 0
    fields: list[FieldView] | None = None


class TablesView(Contract):
    """Tables the reader may read."""

    tables: list[TableView]


class LanguageView(Contract):
    """A language of a site."""

    language_id: int
    title: str
    locale: str = ""
    fallbacks: list[int] = []
    fallback_type: str = "strict"


class SiteView(Contract):
    """A site, with the languages the reader may work in."""

    identifier: str
    root_page_id: int
    base: str
    languages: list[LanguageView]


class SitesView(Contract):
    """Sites whose root the reader may see."""

    sites: list[SiteView]


class HistoryEntryView(Contract):
    """One entry of a record's history.

    Attributes:
        uid: of the entry; what a rollback names.
        action: ``add``, ``modify``, ``move``, ``delete``, ``undelete``, ``stage`` or ``publish``.
        before: values before, of fields the reader may read.
        after: values after.
        fields: fields that changed whose values are not told (passwords).
    """

    uid: int
    at: datetime
    action: str
    user_uid: int
    workspace_id: int
    correlation_id: str
    before: Row = {}
    after: Row = {}
    fields: list[str] = []


class HistoryView(Contract):
    """Entries, newest first."""

    entries: list[HistoryEntryView]
    next_cursor: str | None = None
