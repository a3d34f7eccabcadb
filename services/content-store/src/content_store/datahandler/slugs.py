"""Slugs: cleaned, built from the parent's, made unique within the site (SEMANTICS 22)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.values.field import FieldContext, as_text

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.records.gateway import Row
    from content_store.schema.model import Column, TableSchema

_FOLDER, _SPACER = "254", "199"
_ATTEMPTS: Final = 100
# What NFKD does not take apart.
_LETTERS: Final = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "þ": "th",
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "å": "aa",
    }
)


def clean_slug(value: str, *, leading_slash: bool, fallback: str = "-") -> str:
    """Lower case, letters, digits, slashes and the fallback character only."""
    text = re.sub(r"<[^>]*>", "", value).lower().translate(_LETTERS)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c)).lower()
    text = re.sub(r"[\s\u00a0_+\u2010-\u2015-]+", fallback, text)
    text = re.sub(rf"[^\w/{re.escape(fallback)}]", "", text).replace("_", fallback) if fallback else text
    if fallback:
        text = re.sub(rf"{re.escape(fallback)}{{2,}}", fallback, text)
    text = "/".join(part.strip(fallback) for part in text.split("/"))
    text = re.sub(r"/{2,}", "/", text)
    return "/" + text.strip("/") if leading_slash else text.strip("/")


async def check_slug(field: FieldContext, value: Any, record: Mapping[str, Any]) -> str:
    """A given slug cleaned, an empty one built; then made unique.

    Args:
        field: the slug field.
        value: as submitted.
        record: all values of the record, with the ones of this entry.
    """
    given = as_text(field, value).strip()
    prefix = field.table.name == "pages"
    fallback = str(field.config.get("fallbackCharacter") or "-")
    if given:
        slug = clean_slug(given, leading_slash=prefix, fallback=fallback)
    else:
        slug = await build_slug(field.run.ctx, field.table, field.column, record, field.page)
    return await unique_slug(
        field.run.ctx, field.table, field.column, slug, page=field.page, language=field.language, uid=field.uid
    )


async def build_slug(ctx: RunContext, table: TableSchema, column: Column, record: Mapping[str, Any], page: int) -> str:
    """The parent's slug, a slash, and the first filled field of ``generatorOptions.fields``."""
    options = column.config.get("generatorOptions") or {}
    prefix = table.name == "pages"
    if prefix and (page == 0 or str(record.get("is_siteroot") or "0") == "1"):
        return "/"
    parts = []
    for names in options.get("fields") or ():
        candidates = names if isinstance(names, list) else [names]
        text = next((str(record[n]) for n in candidates if record.get(n)), "")
        fallback = str(column.config.get("fallbackCharacter") or "-")
        if text:
            parts.append(clean_slug(text.replace("/", fallback), leading_slash=False, fallback=fallback))
    slug = str(options.get("fieldSeparator", "/")).join(part for part in parts if part)
    if prefix and options.get("prefixParentPageSlug"):
        language = int(record.get(table.language_field or "") or 0)
        above = await _parent_slug(ctx, page, language)
        return f"{above.rstrip('/')}/{slug}"
    return f"/{slug}" if prefix else slug


async def _parent_slug(ctx: RunContext, page: int, language: int) -> str:
    for row in await ctx.reader.rootline(page):
        if str(row.get("doktype")) in (_FOLDER, _SPACER):
            continue
        translated = await _translation(ctx, row, language) if language > 0 else row
        return str((translated or row).get("slug") or "")
    return ""


async def _translation(ctx: RunContext, page: Row, language: int) -> Row | None:
    site = await ctx.site_of(page["uid"])
    known = ctx.sites.language(site, language)
    order = [language, *(known.fallbacks if known else ())]
    translations = {r["sys_language_uid"]: r for r in await ctx.reader.translations("pages", page["uid"])}
    return next((translations[candidate] for candidate in order if candidate in translations), None)


async def unique_slug(
    ctx: RunContext, table: TableSchema, column: Column, slug: str, *, page: int, language: int, uid: int
) -> str:
    """The slug, with -1, -2 ... behind it when another record of the site, page or table has it."""
    evals = set(column.evals)
    if not evals & {"unique", "uniqueInSite", "uniqueInPid"} or not slug:
        return slug
    stem = slug.rstrip("/") or slug
    candidates = [slug, *(f"{stem}-{number}" for number in range(1, _ATTEMPTS + 1))]
    taken = {
        row[column.name]
        for row in await _rivals(ctx, table, column, candidates[:1], language)
        if row["uid"] != uid and await _same_realm(ctx, table, evals, row, page, uid)
    }
    if slug not in taken:
        return slug
    rivals = await _rivals(ctx, table, column, candidates, language)
    if "uniqueInSite" in evals:
        await ctx.reader.read_rootlines([_tree_page(table, row) for row in rivals])
    for row in rivals:
        if row["uid"] != uid and await _same_realm(ctx, table, evals, row, page, uid):
            taken.add(row[column.name])
    return next((c for c in candidates if c not in taken), f"{stem}-{_ATTEMPTS + 1}")


async def _rivals(
    ctx: RunContext, table: TableSchema, column: Column, candidates: list[str], language: int
) -> list[Row]:
    where: dict[str, Any] = {column.name: candidates}
    if table.delete_field:
        where[table.delete_field] = 0
    if table.language_field:
        where[table.language_field] = [language, -1]
    return await ctx.gateway.select(table.name, where)


async def _same_realm(ctx: RunContext, table: TableSchema, evals: set[str], row: Row, page: int, uid: int) -> bool:
    if uid and row.get("t3ver_oid") == uid:
        return False
    if "uniqueInPid" in evals:
        return bool(row["pid"] == page)
    if "uniqueInSite" in evals:
        other = await ctx.site_of(_tree_page(table, row))
        own = await ctx.site_of(page)
        return (other.root_page_id if other else 0) == (own.root_page_id if own else 0)
    return True


def _tree_page(table: TableSchema, row: Row) -> int:
    return int((row.get("l10n_parent") or row["uid"]) if table.name == "pages" else row["pid"])
