"""A small site for tests of the DataHandler: its tables, and a DataHandler on a fresh transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from content_store.access.policy import AccessPolicy, BackendUser
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.hooks import DataHandlerHook
from content_store.datahandler.run import HandlerOptions
from content_store.datahandler.sites import Site, Sites
from content_store.records.gateway import RecordGateway
from content_store.schema.ddl import create_schema_statements
from content_store.schema.model import Schema

from store_support.adapter import Connection

_LANGUAGE: Final = {
    "languageField": "sys_language_uid",
    "transOrigPointerField": "l10n_parent",
    "translationSource": "l10n_source",
    "transOrigDiffSourceField": "l10n_diffsource",
}
_COMMON: Final = {
    "label": "title",
    "tstamp": "tstamp",
    "crdate": "crdate",
    "delete": "deleted",
    "sortby": "sorting",
    "versioningWS": True,
    "enablecolumns": {"disabled": "hidden"},
    "security": {"ignorePageTypeRestriction": True},
    "prependAtCopy": "copy",
    **_LANGUAGE,
}


def _pointers(table: str) -> dict[str, Any]:
    return {
        "hidden": {"config": {"type": "check", "default": 0}},
        "sys_language_uid": {"config": {"type": "language"}},
        "l10n_parent": {
            "config": {"type": "select", "renderType": "selectSingle", "foreign_table": table, "default": 0}
        },
        "l10n_source": {"config": {"type": "passthrough"}},
        "l10n_diffsource": {"config": {"type": "passthrough", "default": ""}},
    }


_VALUES: Final[dict[str, dict[str, Any]]] = {
    "trimmed": {"type": "input", "eval": "trim,upper", "max": 10},
    "least": {"type": "input", "min": 3},
    "needed": {"type": "input", "required": True, "default": "kept"},
    "nullable": {"type": "input", "nullable": True, "default": None},
    "single": {"type": "input", "eval": "unique"},
    "single_here": {"type": "input", "eval": "uniqueInPid"},
    "body": {"type": "text", "enableRichtext": True, "softref": "typolink_tag,email[subst],url"},
    "count": {"type": "number", "range": {"lower": 0, "upper": 100}},
    "price": {"type": "number", "format": "decimal"},
    "moment": {"type": "datetime", "default": 0},
    "day": {"type": "datetime", "dbType": "date"},
    "clock": {"type": "datetime", "dbType": "time"},
    "instant": {"type": "datetime", "dbType": "datetime"},
    "mail": {"type": "email"},
    "link": {"type": "link", "softref": "typolink"},
    "tint": {"type": "color"},
    "country": {"type": "country"},
    "secret": {"type": "password"},
    "data": {"type": "json"},
    "ident": {"type": "uuid"},
    "mask": {"type": "check", "item_values": 3},
    "choice": {"type": "radio", "item_values": ["a", "b"], "default": "a"},
    "kind": {"type": "select", "renderType": "selectSingle", "item_values": ["x", "y", ""], "default": "x"},
    "several": {"type": "select", "renderType": "selectCheckBox", "item_values": [-1, 1, 2], "exclusiveKeys": "-1"},
    "anything": {"type": "passthrough", "default": ""},
}


def _page_fields() -> dict[str, Any]:
    slug = {
        "type": "slug",
        "eval": "uniqueInSite",
        "default": "",
        "generatorOptions": {"fields": ["title"], "prefixParentPageSlug": True},
    }
    doktype = {"type": "select", "renderType": "selectSingle", "item_values": ["1", "254"], "default": "1"}
    return {
        "title": {"l10n_mode": "prefixLangTitle", "config": {"type": "input", "max": 255, "required": True}},
        "slug": {"config": slug},
        "doktype": {"config": doktype},
        "is_siteroot": {"config": {"type": "check"}},
        "TSconfig": {"config": {"type": "text"}},
        **_pointers("pages"),
    }


def _content_fields() -> dict[str, Any]:
    children = {
        "type": "inline",
        "foreign_table": "tx_child",
        "foreign_field": "parentid",
        "foreign_table_field": "parenttable",
    }
    categories = {
        "type": "category",
        "foreign_table": "sys_category",
        "MM": "sys_category_record_mm",
        "MM_opposite_field": "items",
        "MM_match_fields": {"tablenames": "tt_content", "fieldname": "categories"},
    }
    return {
        "title": {"l10n_mode": "prefixLangTitle", "config": {"type": "input", "max": 255}},
        "colPos": {"l10n_mode": "exclude", "config": {"type": "number", "default": 0}},
        "children": {"config": children},
        "categories": {"config": categories},
        "related": {"config": {"type": "group", "allowed": "tt_content"}},
        **_pointers("tt_content"),
    }


def site_data() -> dict[str, Any]:
    """The tables, as a schema reads them."""
    child = {
        "title": {"l10n_mode": "prefixLangTitle", "config": {"type": "input"}},
        "parentid": {"config": {"type": "passthrough", "default": 0}},
        "parenttable": {"config": {"type": "passthrough", "default": ""}},
        **_pointers("tx_child"),
    }
    items = {
        "type": "group",
        "allowed": "*",
        "MM": "sys_category_record_mm",
        "MM_oppositeUsage": {"tt_content": ["categories"]},
    }
    category = {
        "title": {"config": {"type": "input", "required": True}},
        "items": {"config": items},
        **_pointers("sys_category"),
    }
    values = {name: {"config": config} for name, config in _VALUES.items()}
    plain = {"label": "trimmed", "tstamp": "tstamp", "delete": "deleted", "rootLevel": -1}
    content_ctrl = {**_COMMON, "copyAfterDuplFields": "colPos,sys_language_uid", "hideAtCopy": True}
    return {
        "tables": {
            "pages": {"ctrl": {**_COMMON, "type": "doktype"}, "columns": _page_fields()},
            "tt_content": {"ctrl": content_ctrl, "columns": _content_fields()},
            "tx_child": {"ctrl": _COMMON, "columns": child},
            "sys_category": {"ctrl": {**_COMMON, "rootLevel": -1}, "columns": category},
            "tx_values": {"ctrl": {**plain, "security": {"ignorePageTypeRestriction": True}}, "columns": values},
        }
    }


SITES: Final = Sites(
    [
        Site.from_data(
            {
                "identifier": "test",
                "rootPageId": 1,
                "languages": [
                    {"languageId": 0, "title": "English"},
                    {"languageId": 1, "title": "Dansk"},
                    {"languageId": 2, "title": "Deutsch"},
                ],
            }
        )
    ]
)
ADMINISTRATOR: Final = BackendUser(1, "admin", admin=True)


async def make_site(connection: Connection) -> Schema:
    """Makes the tables and the root page (uid 1) with a page for content (uid 2)."""
    schema = Schema.from_data(site_data())
    await connection.execute(";".join(create_schema_statements(schema)))
    gateway = RecordGateway(connection, schema)
    async with connection.transaction():
        await gateway.insert("pages", {"pid": 0, "title": "Root", "slug": "/", "is_siteroot": 1, "sorting": 256})
        await gateway.insert("pages", {"pid": 1, "title": "Page", "slug": "/page", "sorting": 256})
    return schema


def open_handler(
    connection: Connection,
    schema: Schema,
    hooks: Sequence[DataHandlerHook] = (),
    *,
    user: BackendUser = ADMINISTRATOR,
    policy: AccessPolicy | None = None,
    workspace: int = 0,
    options: HandlerOptions | None = None,
    rehearsal: bool = False,
) -> DataHandler:
    """A DataHandler on the connection, which has to be in a transaction."""
    gateway = RecordGateway(connection, schema)
    actor = HandlerActor(user, workspace)
    return DataHandler(
        gateway, actor, hooks, policy=policy, sites=SITES, options=options, rehearsal=rehearsal, now=1_700_000_000
    )


async def all_rows(connection: Connection, table: str, **where: Any) -> list[Mapping[str, Any]]:
    """Rows of a table that have these values, in the order of uid where there is one."""
    rows = [dict(row) for row in await connection.fetch(f'SELECT * FROM public."{table}"')]
    found = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return sorted(found, key=lambda row: row.get("uid", 0))
