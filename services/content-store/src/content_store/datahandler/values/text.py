"""Texts: input, text, email, link, color, country, password (SEMANTICS 5)."""

from __future__ import annotations

import re
from typing import Any, Final

from content_store.datahandler.values.field import KEEP, FieldContext, as_text

_EMAIL: Final = re.compile(r"[^@\s<>]+@[^@\s<>]+")
_COLOR: Final = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE)
_COLOR_ALPHA: Final = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)
_COUNTRY: Final = re.compile(r"[A-Z]{2}")
#: Start of a stored password hash, e.g. ``$argon2id$``; such values are stored as they come, but only from copies.
_HASHED: Final = re.compile(r"\$[a-z0-9-]+\$", re.IGNORECASE)


def _nullable(field: FieldContext, value: Any) -> bool:
    return value is None and field.column.nullable


def apply_evals(value: str, evals: tuple[str, ...]) -> str:
    """The simple rules of ``eval``, in the order they are listed."""
    for rule in evals:
        if rule == "trim":
            value = value.strip()
        elif rule == "upper":
            value = value.upper()
        elif rule == "lower":
            value = value.lower()
        elif rule == "nospace":
            value = value.replace(" ", "")
        elif rule == "alpha":
            value = re.sub(r"[^a-zA-Z]", "", value)
        elif rule == "num":
            value = re.sub(r"[^0-9]", "", value)
        elif rule == "alphanum":
            value = re.sub(r"[^a-zA-Z0-9]", "", value)
    return value


async def check_input(field: FieldContext, value: Any) -> Any:
    """``input``: evals, cut to ``max``, shorter than ``min`` becomes empty, required and empty is left alone."""
    if _nullable(field, value):
        return None
    text = apply_evals(as_text(field, value), field.column.evals)
    limit = int(field.config.get("max") or 0)
    if limit > 0:
        text = text[:limit]
    return _required(field, _minimum(field, text))


async def check_text(field: FieldContext, value: Any) -> Any:
    """``text``: ``min``, required; submitted rich text is transformed."""
    if _nullable(field, value):
        return None
    text = as_text(field, value)
    transform = field.run.ctx.options.transform_rich_text
    if transform is not None and field.config.get("enableRichtext") and not field.run.copy_mode:
        text = transform(text)
    return _required(field, _minimum(field, apply_evals(text, field.column.evals)))


def _minimum(field: FieldContext, text: str) -> str:
    least = int(field.config.get("min") or 0)
    return "" if least > 0 and len(text) < least else text


def _required(field: FieldContext, text: str) -> Any:
    return KEEP if not text and field.column.required else text


async def check_email(field: FieldContext, value: Any) -> Any:
    """``email``: an address or nothing."""
    if _nullable(field, value):
        return None
    text = as_text(field, value).strip()
    if text and not _EMAIL.fullmatch(text):
        raise field.refuse("an email address is expected")
    return _required(field, text)


async def check_link(field: FieldContext, value: Any) -> Any:
    """``link``: trimmed; a script is no link."""
    if _nullable(field, value):
        return None
    text = as_text(field, value).strip()
    if re.match(r"(javascript|vbscript|data)\s*:", text, re.IGNORECASE):
        raise field.refuse("this kind of link is not allowed")
    return _required(field, text)


async def check_color(field: FieldContext, value: Any) -> Any:
    """``color``: ``#rgb`` or ``#rrggbb``, with ``opacity`` also with alpha."""
    if _nullable(field, value):
        return None
    text = as_text(field, value).strip()
    pattern = _COLOR_ALPHA if field.config.get("opacity") else _COLOR
    if text and not pattern.fullmatch(text):
        raise field.refuse("a color like #aabbcc is expected")
    return _required(field, text)


async def check_country(field: FieldContext, value: Any) -> Any:
    """``country``: two capital letters, within the filter of the field."""
    if _nullable(field, value):
        return None
    text = as_text(field, value).strip().upper()
    if not text:
        return _required(field, text)
    choice = field.config.get("filter") or {}
    only, never = choice.get("onlyCountries") or [], choice.get("excludeCountries") or []
    if not _COUNTRY.fullmatch(text) or (only and text not in only) or text in never:
        raise field.refuse("a country code is expected")
    return text


async def check_password(field: FieldContext, value: Any) -> Any:
    """``password``: stored as a hash; empty is left alone, a copy keeps the hash."""
    if _nullable(field, value):
        return None
    text = as_text(field, value)
    if not text:
        return KEEP
    if field.run.copy_mode and _HASHED.match(text):
        return text
    if field.config.get("hashed") is False:
        return text
    hash_password = field.run.ctx.options.hash_password
    if hash_password is None:
        raise field.refuse("passwords cannot be written here")
    return hash_password(text)
