"""Sites: which languages a page's tree has (read-only values)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from content_store.records.gateway import Row


@dataclass(frozen=True)
class SiteLanguage:
    """One language of a site.

    Attributes:
        language_id: value of the language field, 0 is the default language.
        title: shown in the prefix of localized titles.
        fallbacks: language ids tried where a translation is missing, in order.
        locale: such as ``de_DE``; empty where the site names none.
    """

    language_id: int
    title: str
    fallbacks: tuple[int, ...] = ()
    fallback_type: str = "strict"
    locale: str = ""


@dataclass(frozen=True)
class Site:
    """A tree of pages with its languages."""

    identifier: str
    root_page_id: int
    base: str = "/"
    languages: Mapping[int, SiteLanguage] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Site:
        """Reads ``{identifier, rootPageId, base, languages: [{languageId, title, locale, fallbacks, fallbackType}]}``."""
        languages = {
            int(item["languageId"]): SiteLanguage(
                int(item["languageId"]),
                str(item.get("title", "")),
                tuple(int(f) for f in item.get("fallbacks") or ()),
                str(item.get("fallbackType", "strict")),
                str(item.get("locale", "")),
            )
            for item in data.get("languages", [])
        }
        return cls(str(data["identifier"]), int(data["rootPageId"]), str(data.get("base", "/")), languages)


class Sites:
    """All sites, found by a page's rootline."""

    def __init__(self, sites: Iterable[Site] = ()) -> None:
        self._by_root = {site.root_page_id: site for site in sites}

    def of_rootline(self, rootline: Iterable[Row]) -> Site | None:
        """The site whose root is nearest above; a page translation stands for its page."""
        for page in rootline:
            site = self._by_root.get(page["uid"]) or self._by_root.get(page.get("l10n_parent") or 0)
            if site is not None:
                return site
        return None

    def language(self, site: Site | None, language_id: int) -> SiteLanguage | None:
        """The language in the site; without a site, in any site that has it."""
        if site is not None:
            return site.languages.get(language_id)
        candidates = (s.languages.get(language_id) for s in self._by_root.values())
        return next((c for c in candidates if c is not None), None)
