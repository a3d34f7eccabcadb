"""Where rows lie, as one workspace sees them (S-08, S-47, S-53)."""

from __future__ import annotations

import pytest
from content_store.scope.places import MOVED, Places
from store_support.known import content, page

TREE = (page(1, 0), page(10, 1), page(2, 0), page(20, 2))


@pytest.mark.req("S-08")
def test_only_a_version_that_moves_a_page_says_where_the_page_lies() -> None:
    changed = page(200, 10, version_of=20, workspace=3)
    moved = page(201, 10, version_of=20, workspace=3, state=MOVED)
    element = content(202, 10, version_of=20, workspace=3, state=MOVED)
    assert Places(3, [*TREE, changed]).chain(20) == [20, 2]
    assert Places(3, [*TREE, element]).chain(20) == [20, 2]
    assert Places(3, [*TREE, moved]).chain(20) == [20, 10, 1]
    assert Places(4, [*TREE, moved]).chain(20) == [20, 2]


@pytest.mark.req("S-08", "S-47")
def test_a_version_lies_where_its_own_workspace_put_it_and_for_every_other_where_the_live_row_lies() -> None:
    version = content(60, 10, version_of=6, workspace=3, state=MOVED)
    rows = [*TREE, content(6, 20), version]
    assert [Places(workspace, rows).position(version) for workspace in (0, 3, 4)] == [20, 10, 20]


@pytest.mark.req("S-51", "S-53")
def test_before_the_call_its_rows_were_elsewhere_or_not_there() -> None:
    after = Places(0, [*TREE, content(5, 10), content(6, 10), content(7, 10)])
    after.mark_missing([("tt_content", 8)])
    before = after.before(
        {("tt_content", 5): content(5, 20), ("tt_content", 6): None, ("tt_content", 8): content(8, 20)}
    )
    known = [before.get("tt_content", uid) for uid in (5, 6, 7, 8)]
    assert known == [content(5, 20), None, content(7, 10), content(8, 20)]
    assert before.chain(20) == [20, 2]


@pytest.mark.req("S-45")
def test_what_was_written_is_forgotten_and_unknown_again_and_the_rest_stays() -> None:
    places = Places(0, [*TREE, content(5, 10)])
    places.forget(("tt_content", 5))
    assert places.unknown([("tt_content", 5), ("pages", 10)]) == {("tt_content", 5)}
    places.forget()
    assert places.unknown([("pages", 10)]) == {("pages", 10)}
