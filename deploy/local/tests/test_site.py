"""The demo site's text and the datamaps made from it."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from remit_local.demo import maps
from remit_local.demo.people import Mounts, groups, page_rights
from remit_local.demo.pictures import pictures
from remit_local.demo.site import SiteTextError, demo_site, parse_site


def test_the_site_has_the_size_it_promises() -> None:
    pages = demo_site()
    assert len(pages) == 40
    assert sum(len(page.elements) for page in pages) == 150
    translated = sum(page.german is not None for page in pages)
    assert 10 <= translated <= 30
    story = next(page for page in pages if page.title == "Waste and Recycling")
    assert (len(story.elements), story.german) == (6, None)


def test_slugs_and_pictures_fit_together() -> None:
    pages = demo_site()
    assert len({page.slug for page in pages}) == len(pages)
    used = {element.image for page in pages for element in page.elements if element.image}
    assert used == {picture.name for picture in pictures()}


def test_a_page_hands_its_access_down() -> None:
    pages = parse_site("= Root\naccess: town\n== A\naccess: internal\n=== B\n== C\n")
    assert [page.access for page in pages] == ["town", "internal", "internal", "town"]
    assert [page.parent for page in pages] == ["", "NEWpage1", "NEWpage2", "NEWpage1"]


@pytest.mark.parametrize(
    "text",
    ["= Root\n=== too deep\n", "= Root\nnonsense\n", "= Root\naccess: everybody\n", "= Root\n  de: Kopf :: Text\n"],
)
def test_a_line_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(SiteTextError, match="line 2"):
        parse_site(text)


@given(st.lists(st.integers(1, 4), max_size=20))
def test_every_parent_comes_before_its_children(levels: list[int]) -> None:
    lines, depth = ["= Root"], 1
    for number, wish in enumerate(levels):
        depth = min(wish + 1, depth + 1)
        lines.append(f"{'=' * depth} Page {number}")
    pages = parse_site("\n".join(lines))
    seen = {""}
    for page in pages:
        assert page.parent in seen
        seen.add(page.key)


def test_rows_follow_one_another_and_translations_point_at_their_origin() -> None:
    pages = demo_site()
    uids = maps.Uids({"NEWgroupweb": 7, "NEWgroupvisit": 8})
    sent = maps.pages_map(pages, uids)
    known = {placeholder for table in sent.values() for placeholder in table}
    for rows in sent.values():
        for row in rows.values():
            assert row["pid"] == 0 or str(row["pid"]).lstrip("-") in known
    made = maps.Uids({placeholder: number for number, placeholder in enumerate(sorted(known), 1)})
    translations = maps.translations_map(pages, made)
    for row in translations["tt_content"].values():
        assert row["l18n_parent"] == row["l10n_source"] == -row["pid"]


def test_editors_differ_and_the_internal_page_is_for_administrators() -> None:
    desks = groups(Mounts(site=1, visit=31, files=1))
    assert desks["NEWgroupweb"]["db_mountpoints"] != desks["NEWgroupvisit"]["db_mountpoints"]
    assert maps.JOURNAL not in desks["NEWgroupweb"]["tables_select"]
    assert page_rights("internal", 7, 8)["perms_everybody"] == 0
    assert page_rights("visit", 7, 8)["perms_groupid"] == 8


def test_the_schema_and_site_files_are_readable() -> None:
    folder = files("remit_local.demo")
    table = json.loads(folder.joinpath("schema", f"{maps.JOURNAL}.json").read_text())
    assert table["table"] == maps.JOURNAL
    assert set(maps.journal_map(demo_site(), maps.Uids({p.key: 1 for p in demo_site()}))[maps.JOURNAL]["NEWjournal"]) <= {
        "pid", *table["columns"],
    }  # fmt: skip
    site = json.loads(folder.joinpath("sites", "alderbrook.json").read_text())
    assert [language["languageId"] for language in site["languages"]] == [0, maps.GERMAN]
