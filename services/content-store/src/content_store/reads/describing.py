"""What a reader may know of the schema and of the sites."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from content_store.access.policy import BackendUser
from content_store.access.readable import Parameters, ReadableRows, Viewer, with_clause
from content_store.access.repository import AccessRepository
from content_store.access.rules import (
    may_modify_table,
    may_select_table,
    may_use_field,
    may_use_language,
    may_use_value,
)
from content_store.access.users import Queries
from content_store.datahandler.sites import Site
from content_store.reads.rows import readable_fields
from content_store.reads.schemas import FieldView, LanguageView, SiteView, TableView
from content_store.schema.labels import field_label, item_labels, table_label
from content_store.schema.model import Column, Schema, TableSchema

#: Parts of a field's configuration that tell an editor or a tool what may be written.
_TOLD: Final = (
    "max", "min", "eval", "range", "format", "nullable", "foreign_table", "allowed", "maxitems", "minitems", "default",
    "MM", "renderType", "multiple",
)  # fmt: skip


def described_tables(schema: Schema, viewer: Viewer) -> list[TableView]:
    """Tables the viewer may read, without their fields."""
    return [
        _table_view(schema, table, viewer)
        for table in schema
        if may_select_table(table.name, viewer.user) and _within_reach(table, viewer.user)
    ]


def described_table(schema: Schema, table: TableSchema, viewer: Viewer) -> TableView:
    """One table with its fields."""
    readable = set(readable_fields(table, viewer.user))
    may_write = may_modify_table(table, viewer.user) is None
    fields = [
        FieldView(
            name=column.name,
            label=field_label(schema, table.name, column.name, viewer.locale),
            type=column.type,
            readable=column.name in readable,
            writable=may_write and may_use_field(table, column.name, viewer.user) and not column.config.get("readOnly"),
            required=column.required,
            options=_options(schema, table, column, viewer),
            config={name: column.config[name] for name in _TOLD if name in column.config},
        )
        for column in table.columns.values()
        if may_use_field(table, column.name, viewer.user)
    ]
    return _table_view(schema, table, viewer).model_copy(update={"fields": fields})


def _within_reach(table: TableSchema, user: BackendUser) -> bool:
    return user.admin or not table.ctrl.get("adminOnly")


def _table_view(schema: Schema, table: TableSchema, viewer: Viewer) -> TableView:
    return TableView(
        name=table.name,
        label=table_label(schema, table.name, viewer.locale),
        label_field=table.label_field,
        writable=may_modify_table(table, viewer.user) is None,
        language_field=table.language_field,
        parent_field=table.parent_field,
        sort_field=table.sort_field,
        type_field=table.type_field,
        hidden_field=table.enable_columns.get("disabled"),
        versionable=table.versionable,
        root_level=table.root_level,
    )


def _options(schema: Schema, table: TableSchema, column: Column, viewer: Viewer) -> dict[str, str]:
    labels = item_labels(schema, table.name, column.name, viewer.locale)
    return {value: label for value, label in labels.items() if may_use_value(table, column.name, value, viewer.user)}


async def readable_sites(
    queries: Queries, sites: Iterable[Site], viewer: Viewer, schema_name: str = "public"
) -> list[SiteView]:
    """Sites one of whose pages the viewer may see, with the languages the viewer may work in."""
    listed = list(sites)
    seen = await _roots_in_reach(queries, [site.root_page_id for site in listed], viewer, schema_name)
    return [_site_view(site, viewer.user) for site in listed if site.root_page_id in seen]


async def _roots_in_reach(queries: Queries, roots: list[int], viewer: Viewer, schema_name: str) -> set[int]:
    """Site roots that lie above a mount the viewer may see, or in one."""
    if viewer.user.admin or not roots:
        return set(roots)
    parameters = Parameters()
    readable = ReadableRows(viewer, parameters, schema_name)
    mounts = parameters.add(sorted({*viewer.user.webmounts, *roots}), "bigint[]")
    workspace = f"{int(viewer.workspace_id)}::bigint"
    expressions = readable.page_expressions(f"SELECT uid, {workspace} FROM unnest({mounts}) AS uid")
    sql = f"{with_clause(expressions)}SELECT uid FROM readable_page"
    visible = [row["uid"] for row in await queries.fetch(sql, *parameters.values)]
    pages = await AccessRepository(queries, schema_name, viewer.workspace_id).rootlines(visible)
    return set(pages) & set(roots)


def _site_view(site: Site, user: BackendUser) -> SiteView:
    languages: list[Any] = [
        LanguageView(
            language_id=language.language_id,
            title=language.title,
            locale=language.locale,
            fallbacks=list(language.fallbacks),
            fallback_type=language.fallback_type,
        )
        for language in site.languages.values()
        if may_use_language(language.language_id, user)
    ]
    return SiteView(identifier=site.identifier, root_page_id=site.root_page_id, base=site.base, languages=languages)
