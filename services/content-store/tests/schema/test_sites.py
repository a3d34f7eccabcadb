from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from content_store.schema.files import SchemaFileError
from content_store.sites import load_sites

EXAMPLE = Path(__file__).parent / "example" / "sites"


def site(**more: Any) -> dict[str, Any]:
    return {"identifier": "a", "rootPageId": 1, "languages": [{"languageId": 0, "title": "English"}], **more}


def write(folder: Path, *sites: Any) -> Path:
    for number, data in enumerate(sites):
        (folder / f"{number}.json").write_text(json.dumps(data))
    return folder


def test_the_example_loads() -> None:
    (found,) = load_sites([EXAMPLE])
    assert (found.identifier, found.root_page_id, found.base) == ("town", 1, "https://town.example/")
    assert found.languages[1].fallbacks == (0,)
    assert found.languages[1].title == "German"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (site(rootPageId="1"), "rootPageId"),
        (site(rootPageId=0), "rootPageId"),
        (site(identifier="A b"), "identifier"),
        (site(languages=[]), "languages"),
        (site(languages=[{"languageId": 1, "title": "German"}]), "default language"),
        (site(languages=[{"languageId": 0, "title": "A"}, {"languageId": 0, "title": "B"}]), "stands twice"),
        (site(languages=[{"languageId": 0, "title": "A", "fallbacks": [7]}]), "falls back to 7"),
        (site(languages=[{"languageId": 0, "title": "A", "fallbacks": [0]}]), "falls back to itself"),
        (site(rootpageid=4), "rootpageid"),
    ],
)
def test_a_wrong_site_is_refused(tmp_path: Path, data: Any, expected: str) -> None:
    with pytest.raises(SchemaFileError, match=expected):
        load_sites([write(tmp_path, data)])


def test_two_sites_share_neither_name_nor_root(tmp_path: Path) -> None:
    with pytest.raises(SchemaFileError, match="taken by another site"):
        load_sites([write(tmp_path, site(), site(identifier="b"))])


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaFileError, match="is no folder"):
        load_sites([tmp_path / "nowhere"])
