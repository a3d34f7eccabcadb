"""TSconfig: dotted ``key = value`` lines on pages and users, without conditions or includes (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def parse_tsconfig(text: str | None) -> dict[str, str]:
    """Reads lines of ``a.b.c = value``; comments (``#``, ``//``) and other lines are skipped."""
    found: dict[str, str] = {}
    for line in (text or "").splitlines():
        stripped = line.strip()
        key, equals, value = stripped.partition("=")
        if equals and not stripped.startswith(("#", "//")) and key.strip():
            found[key.strip()] = value.strip()
    return found


def merge_tsconfig(texts: Iterable[str | None], user: Mapping[str, str] | None = None) -> dict[str, str]:
    """Page settings from the root downwards, then what the user's own settings say under ``page.``."""
    merged: dict[str, str] = {}
    for text in texts:
        merged.update(parse_tsconfig(text))
    merged.update({k.removeprefix("page."): v for k, v in (user or {}).items() if k.startswith("page.")})
    return merged


def flag(settings: Mapping[str, str], key: str) -> bool:
    """Is the setting there and neither empty nor 0?"""
    return settings.get(key, "") not in ("", "0")


def table_setting(settings: Mapping[str, str], table: str, name: str) -> str | None:
    """``TCEMAIN.table.<table>.<name>``, else ``TCEMAIN.default.<name>``."""
    specific = settings.get(f"TCEMAIN.table.{table}.{name}")
    return specific if specific is not None else settings.get(f"TCEMAIN.default.{name}")


def record_defaults(settings: Mapping[str, str], table: str, record_type: str | None) -> dict[str, str]:
    """``TCAdefaults.<table>.<field>``, overridden by ``TCAdefaults.<table>.<field>.types.<record type>``."""
    prefix = f"TCAdefaults.{table}."
    plain: dict[str, str] = {}
    typed: dict[str, str] = {}
    for key, value in settings.items():
        if not key.startswith(prefix):
            continue
        name, dot, rest = key[len(prefix) :].partition(".")
        if not dot:
            plain[name] = value
        elif record_type is not None and rest == f"types.{record_type}":
            typed[name] = value
    return {**plain, **typed}
