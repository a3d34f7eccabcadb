"""Texts in the reader's language, from Babel catalogues: ``locale/<language>/*.po`` in a package, English as the key.

The catalogues are read as they are, so no compiled file has to be kept in step with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from io import StringIO
from typing import Any

from babel.messages.pofile import read_po

DEFAULT_LANGUAGE = "en"


@cache
def _catalogue(package: str) -> Mapping[str, Mapping[str, str]]:
    """Texts of one package by language and English text."""
    found: dict[str, dict[str, str]] = {}
    folder = files(package) / "locale"
    if not folder.is_dir():
        return found
    for language in folder.iterdir():
        if not language.is_dir():
            continue
        texts = found.setdefault(language.name, {})
        for entry in language.iterdir():
            if entry.name.endswith(".po"):
                catalogue = read_po(StringIO(entry.read_text(encoding="utf-8")), locale=language.name)
                texts.update(
                    {
                        message.id: message.string
                        for message in catalogue
                        if isinstance(message.id, str) and isinstance(message.string, str) and message.string
                    }
                )
    return found


class Texts:
    """Translations of some packages; later packages win over earlier ones.

    Args:
        packages: import names of packages with a ``locale`` folder; the kit's own is always part of it.
    """

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self._by_language: dict[str, dict[str, str]] = {DEFAULT_LANGUAGE: {}}
        for package in ("service_kit", *packages):
            for language, texts in _catalogue(package).items():
                self._by_language.setdefault(language, {}).update(texts)

    @property
    def languages(self) -> frozenset[str]:
        """Languages there is any text in."""
        return frozenset(self._by_language)

    def text(self, message: str, language: str = DEFAULT_LANGUAGE, **params: Any) -> str:
        """The message in the language, English when there is no translation; ``{name}`` is replaced by parameters."""
        template = self._by_language.get(language, {}).get(message, message)
        return _fill(template, params)

    def negotiate(self, accept_language: str | None, user_language: str | None = None) -> str:
        """The language to answer in: the best one the header names, else the user's, else English."""
        for wanted in _preferences(accept_language or ""):
            if wanted in self._by_language:
                return wanted
        if user_language and user_language.split("-")[0].lower() in self._by_language:
            return user_language.split("-")[0].lower()
        return DEFAULT_LANGUAGE


def _fill(template: str, params: Mapping[str, Any]) -> str:
    # Not str.format: its fields reach into attributes, and texts may come from an extension's catalogue.
    for name, value in params.items():
        template = template.replace("{" + name + "}", str(value))
    return template


def _preferences(header: str) -> list[str]:
    """Primary language tags of an ``Accept-Language`` header, most wanted first; nonsense is left out."""
    weighted: list[tuple[float, int, str]] = []
    for position, part in enumerate(header.split(",")[:20]):
        tag, _, parameter = part.strip().partition(";")
        weight = 1.0
        if parameter.strip().startswith("q="):
            try:
                weight = float(parameter.strip()[2:])
            except ValueError:
                continue
        if tag and 0 < weight <= 1:
            weighted.append((-weight, position, tag.split("-")[0].lower()))
    return [tag for _, _, tag in sorted(weighted)]
