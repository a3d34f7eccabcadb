"""Soft references: links inside texts (pure, SEMANTICS 18)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

_TAG_LINK: Final = re.compile(r"<a\s[^>]*?href\s*=\s*(\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_EMAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL: Final = re.compile(r"(?<![\"'=])\bhttps?://[^\s\"'<>]+")
_HANDLERS: Final = {"page": "pages", "file": "sys_file", "folder": ""}


@dataclass(frozen=True)
class SoftReference:
    """A link found in a text.

    Attributes:
        key: parser, e.g. ``typolink``.
        id: position within the field.
        table: of the record, ``_STRING`` where there is none.
        uid: of the record, else 0.
        text: target without a record (address), else empty.
    """

    key: str
    id: str
    table: str
    uid: int
    text: str = ""


def find_soft_references(value: str, parsers: Iterable[str]) -> list[SoftReference]:
    """Links in a text, by the parsers of the field's ``softref`` (``typolink``, ``typolink_tag``, ``email``, ``url``)."""
    found: list[SoftReference] = []
    for parser in parsers:
        key = parser.strip().partition("[")[0]
        if key == "typolink":
            found += _targets(key, [value.split(" ")[0]] if value.strip() else [])
        elif key == "typolink_tag":
            found += _targets(key, [m.group(2) or m.group(3) or "" for m in _TAG_LINK.finditer(value)])
        elif key == "email":
            found += [SoftReference(key, str(i), "_STRING", 0, m) for i, m in enumerate(_EMAIL.findall(value))]
        elif key == "url":
            found += [SoftReference(key, str(i), "_STRING", 0, m) for i, m in enumerate(_URL.findall(value))]
    return found


def _targets(key: str, links: Iterable[str]) -> list[SoftReference]:
    result = []
    for number, link in enumerate(links):
        reference = _target(key, str(number), link.strip())
        if reference is not None:
            result.append(reference)
    return result


def _target(key: str, position: str, link: str) -> SoftReference | None:
    if link.startswith("t3://"):
        parts = urlsplit(link)
        query = parse_qs(parts.query)
        uid = (query.get("uid") or ["0"])[0]
        if parts.netloc == "record":
            return None
        table = _HANDLERS.get(parts.netloc, "")
        if table and uid.isascii() and uid.isdigit() and len(uid) < 19 and int(uid):
            return SoftReference(key, position, table, int(uid))
        return None
    # A bare number names a page.
    if link.isascii() and link.isdigit() and len(link) < 19 and int(link):
        return SoftReference(key, position, "pages", int(link))
    if link.startswith("mailto:"):
        return SoftReference(key, position, "_STRING", 0, link.removeprefix("mailto:"))
    if re.match(r"https?://", link):
        return SoftReference(key, position, "_STRING", 0, link)
    return None
