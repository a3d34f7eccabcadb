"""The demo site as data: pages, elements and translations read from ``site.txt`` (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.resources import files

ACCESS_WORDS = ("town", "visit", "internal")
_PAGE = re.compile(r"^(?P<level>=+) (?P<title>.+)$")
_ELEMENT = re.compile(r"^- (?P<header>.+?) :: (?P<text>.+)$")
_TRANSLATION = re.compile(r"^ {2}de: (?P<header>.+?) :: (?P<text>.+)$")
_IMAGE = re.compile(r"^ {2}image: (?P<name>[a-z0-9-]+\.svg)$")
_PAGE_KEY = re.compile(r"^(?P<key>de|slug|access): (?P<value>.+)$")


class SiteTextError(ValueError):
    """A line of the site text cannot be read."""


@dataclass
class Element:
    """A content element; ``german`` is its translation, where there is one."""

    header: str
    text: str
    german: tuple[str, str] | None = None
    image: str | None = None


@dataclass
class Page:
    """A page; ``key`` is its placeholder, ``parent`` the key of the page above (empty for the root)."""

    key: str
    title: str
    level: int
    parent: str = ""
    slug: str = "/"
    access: str = "town"
    german: str | None = None
    elements: list[Element] = field(default_factory=list)


def demo_site() -> list[Page]:
    """The pages of the demo site, parents before children."""
    return parse_site(files("remit_local.demo").joinpath("site.txt").read_text(encoding="utf-8"))


def parse_site(text: str) -> list[Page]:
    """Read the site text.

    Raises:
        SiteTextError: a line is of no known form, or a page skips a level.
    """
    pages: list[Page] = []
    above: list[Page] = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _PAGE.match(line):
            level = len(match["level"])
            if level > len(above) + 1:
                raise SiteTextError(f"line {number}: the page skips a level")
            del above[level - 1 :]
            pages.append(_page(len(pages) + 1, match["title"], above))
            above.append(pages[-1])
        elif pages and line.strip():
            _read_into(pages[-1], line, number)
    return pages


def _page(number: int, title: str, above: list[Page]) -> Page:
    if not above:
        return Page(f"NEWpage{number}", title, 1)
    parent = above[-1]
    segment = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    slug = f"{parent.slug.rstrip('/')}/{segment}"
    return Page(f"NEWpage{number}", title, len(above) + 1, parent.key, slug, parent.access)


def _read_into(page: Page, line: str, number: int) -> None:
    if match := _ELEMENT.match(line):
        page.elements.append(Element(match["header"], match["text"]))
    elif page.elements and (match := _TRANSLATION.match(line)):
        page.elements[-1].german = (match["header"], match["text"])
    elif page.elements and (match := _IMAGE.match(line)):
        page.elements[-1].image = match["name"]
    elif not page.elements and (match := _PAGE_KEY.match(line)):
        _set(page, match["key"], match["value"], number)
    else:
        raise SiteTextError(f"line {number}: cannot be read: {line!r}")


def _set(page: Page, key: str, value: str, number: int) -> None:
    if key == "de":
        page.german = value
    elif key == "slug":
        page.slug = f"{page.slug.rpartition('/')[0]}/{value}"
    elif value in ACCESS_WORDS:
        page.access = value
    else:
        raise SiteTextError(f"line {number}: access is one of {', '.join(ACCESS_WORDS)}")
