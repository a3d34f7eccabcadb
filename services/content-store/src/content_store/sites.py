"""Reads site files: identifier, root page, base, languages with fallbacks (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from content_store.datahandler.sites import Site
from content_store.schema.files import SchemaFileError
from content_store.schema.loader import folder_sources


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class LanguageFile(_Part):
    """A language of a site; 0 is the default language."""

    language_id: Annotated[int, Field(ge=0, le=9999)]
    title: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    locale: str = ""
    base: str = ""
    fallback_type: Literal["strict", "fallback", "free"] = "strict"
    fallbacks: list[int] = []


class SiteFile(_Part):
    """A site file."""

    identifier: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
    root_page_id: Annotated[int, Field(ge=1)]
    base: str = "/"
    languages: Annotated[list[LanguageFile], Field(min_length=1)]

    @model_validator(mode="after")
    def _languages(self) -> SiteFile:
        ids = [language.language_id for language in self.languages]
        if len(set(ids)) < len(ids):
            raise ValueError("languages: a languageId stands twice")
        if 0 not in ids:
            raise ValueError("languages: the default language (languageId 0) is missing")
        for language in self.languages:
            unknown = [fallback for fallback in language.fallbacks if fallback not in ids]
            if unknown:
                raise ValueError(
                    f"languages: {language.title} falls back to {unknown[0]}, which the site does not have"
                )
            if language.language_id in language.fallbacks:
                raise ValueError(f"languages: {language.title} falls back to itself")
        return self


def load_sites(folders: Iterable[Path]) -> list[Site]:
    """The sites of all ``*.json`` files in the folders.

    Raises:
        SchemaFileError: with one line per problem of all files.
    """
    sites: dict[str, Site] = {}
    roots: dict[int, str] = {}
    problems: list[str] = []
    for path, content in folder_sources(folders, problems):
        try:
            site = _site(path, content)
        except SchemaFileError as error:
            problems += error.problems
            continue
        if site.identifier in sites or site.root_page_id in roots:
            problems.append(f"{path}: identifier or rootPageId is taken by another site")
        sites[site.identifier] = site
        roots[site.root_page_id] = site.identifier
    if problems:
        raise SchemaFileError(problems)
    return list(sites.values())


def _site(path: Path, data: Any) -> Site:
    try:
        file = SiteFile.model_validate(data)
    except ValidationError as error:
        raise SchemaFileError(
            f"{path}: {'.'.join(str(part) for part in item['loc']) or 'file'}: {item['msg'].removeprefix('Value error, ')}"
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ) from error
    return Site.from_data(file.model_dump(by_alias=True))
