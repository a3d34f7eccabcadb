"""What each command touches (S-29, S-35 to S-41); pure, over the tree of the test store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.commands import CommandCheck, CommandVerdict
from remit_contracts.scope import EffectiveAssignmentScope, ScopeReason
from store_support.known import TOWN, KnownTopology, content, page

HALL: dict[str, Any] = {"pages": [{"page": 10}]}
ENGLISH: dict[str, Any] = {**HALL, "languages": [0]}
OFFICE: dict[str, Any] = {"pages": [{"page": 10, "depth": 1}, {"page": 11}]}
BRANCH: dict[str, Any] = {"pages": [{"page": 10, "depth": 2}]}
#: Content with the uid of the page it lies on; a page below a page's translation; the translation of a page outside
#: that lies in scope; a version of 9 and one of 7; a translation of 6.
ROWS = (
    *TOWN,
    content(10, 10),
    page(300, 30),
    page(32, 10, language=1, parent=20),
    content(900, 10, version_of=9, workspace=1),
    content(905, 20, version_of=7, workspace=1),
    content(61, 100, 1, parent=6),
)
MADE = {"NEWpage": ("pages", 10), "NEWin": ("tt_content", 9), "NEWout": ("tt_content", 7), "NEWother": ("pages", 20)}
OUTSIDE, UNREADABLE = ScopeReason.OUTSIDE_SCOPE, ScopeReason.SCOPE_UNRESOLVABLE
LANGUAGE, TABLE = ScopeReason.LANGUAGE_NOT_ALLOWED, ScopeReason.TABLE_NOT_ALLOWED
SUBTREE = ScopeReason.SUBTREE_OUTSIDE_SCOPE


def check(limits: Mapping[str, Any], *, copies_subpages: bool = False) -> CommandCheck:
    scope = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate(limits))
    return CommandCheck(scope, KnownTopology(ROWS), MADE.get, copies_subpages=copies_subpages)


def case(name: str, limits: dict[str, Any], command: str, record: tuple[str, int], value: Any, *verdict: Any) -> Any:
    return pytest.param(limits, command, record, value, CommandVerdict(*verdict) if verdict else None, id=name)


def element(uid: int) -> tuple[str, int]:
    return "tt_content", uid


COMMANDS: list[Any] = [
    case("unknown", HALL, "explode", element(9), 1, UNREADABLE, None),
    case("not there", HALL, "delete", element(4711), 1, UNREADABLE, None),
    case("outside", HALL, "delete", element(7), 1, OUTSIDE, 20),
    case("table", {**HALL, "tables": ["pages"]}, "undelete", element(9), 1, TABLE, 10),
    case("nothing further is asked", HALL, "undelete", element(9), 1),
    case("synchronize", HALL, "inlineLocalizeSynchronize", element(9), {"field": "image"}),
    # move
    case("move in scope", HALL, "move", element(9), 10),
    case("move out", HALL, "move", element(9), 20, OUTSIDE, 20),
    case("move to the root", HALL, "move", element(9), 0, OUTSIDE, 0),
    case("move onto a page translation", HALL, "move", element(9), 30),
    case("move unreadably", HALL, "move", element(9), "10 ", UNREADABLE, 10),
    case("move onto a page made before", HALL, "move", element(9), "NEWpage"),
    case("move onto a page made before, outside", HALL, "move", element(9), "NEWother", OUTSIDE, 20),
    case("move onto an element", HALL, "move", element(9), "NEWin", UNREADABLE, 10),
    case("move behind an element made before", HALL, "move", element(9), "-NEWin"),
    case("move behind one outside made before", HALL, "move", element(9), "-NEWout", OUTSIDE, 20),
    case("move behind a page", HALL, "move", element(9), "-NEWpage", UNREADABLE, 10),
    case("move behind what is still to be made", HALL, "move", element(9), "-NEWlater", UNREADABLE, 10),
    case("move behind", HALL, "move", element(9), -5),
    case("move behind nothing", HALL, "move", element(9), -4711, UNREADABLE, 10),
    case("move with translations", ENGLISH, "move", element(5), 10, LANGUAGE, 10),
    case("move without translations", ENGLISH, "move", element(9), 10),
    case("move behind one with translations", ENGLISH, "move", element(9), -5, LANGUAGE, 10),
    case("move behind a translation", ENGLISH, "move", element(9), -8, LANGUAGE, 10),
    case("move a page where it fits", BRANCH, "move", ("pages", 100), 10),
    case("move a page where its subpages do not fit", BRANCH, "move", ("pages", 1000), 1000, OUTSIDE, 1000),
    case("move a tall page", {**BRANCH, "pages": [*BRANCH["pages"], {"page": 11, "depth": 1}]}, "move", ("pages", 100), 11, SUBTREE, 11),
    case("move a page behind a tall one", OFFICE, "move", ("pages", 11), -100, SUBTREE, 10),
    case("move a page behind one", {"pages": [{"page": 1, "depth": 3}]}, "move", ("pages", 11), -100),
    case("move a page behind a page outside that lies inside", BRANCH, "move", ("pages", 1000), -32, OUTSIDE, 10),
    # copy
    case("copy in scope", HALL, "copy", element(9), 10),
    case("copy out", HALL, "copy", element(9), 20, OUTSIDE, 20),
    case("copy behind", HALL, "copy", element(9), -5),
    case("copy behind one outside", HALL, "copy", element(9), -7, OUTSIDE, 20),
    case("copy behind a translation", ENGLISH, "copy", element(9), -8, LANGUAGE, 10),
    # An anchor of a copy stays where it is, so nothing goes along with it.
    case("copy behind one with translations", ENGLISH, "copy", element(9), -5),
    case("copy behind a tall page", OFFICE, "copy", ("pages", 11), -100),
    case("copy with translations", ENGLISH, "copy", element(5), 10),
    case("copy of a page alone", OFFICE, "copy", ("pages", 100), 10),
    case("copy unreadably", HALL, "copy", element(9), {"action": "cut", "target": 10}, UNREADABLE, 10),
    # localize
    case("localize", HALL, "localize", element(9), 1),
    case("localize into a language", ENGLISH, "localize", element(9), 1, LANGUAGE, 10),
    case("copy to a language", ENGLISH, "copyToLanguage", element(9), "1", LANGUAGE, 10),
    case("localize unreadably", HALL, "localize", element(9), "1 ", UNREADABLE, 10),
    # delete and discard
    case("delete", ENGLISH, "delete", element(9), 1),
    case("delete with translations", ENGLISH, "delete", element(5), 1, LANGUAGE, 10),
    case("delete what has the uid of a page", HALL, "delete", element(10), 1),
    case("delete a page", BRANCH, "delete", ("pages", 10), 1),
    case("delete a page with its subpages", HALL, "delete", ("pages", 10), 1, SUBTREE, 1),
    case("delete a page with its translation", {**BRANCH, "languages": [0]}, "delete", ("pages", 10), 1, LANGUAGE, 1),
    # A page translation is one row: nothing that lies below its page goes along with it.
    case("delete a page translation", HALL, "delete", ("pages", 30), 1),
    case("discard", ENGLISH, "discard", element(9), 1),
    case("discard with translations", ENGLISH, "discard", element(5), 1, LANGUAGE, 10),
    # version
    case("publish", ENGLISH, "version", element(5), {"action": "publish"}),
    case("publish with a version", HALL, "version", element(9), {"action": "publish", "swapWith": 900}),
    case("publish with a version outside", HALL, "version", element(9), {"action": "publish", "swapWith": 905}, OUTSIDE, 10),
    case("publish with nothing", HALL, "version", element(9), {"action": "publish", "swapWith": 4711}, UNREADABLE, 10),
    case("publish unreadably", HALL, "version", element(9), {"action": "publish", "swapWith": "0900"}, UNREADABLE, 10),
    case("discard by version", ENGLISH, "version", element(5), {"action": "flush"}, LANGUAGE, 10),
    case("discard with a version", ENGLISH, "version", element(5), {"action": "clearWSID", "swapWith": 900}, LANGUAGE, 10),
    case("no action", HALL, "version", element(9), {"swapWith": 900}, UNREADABLE, 10),
    case("an action that is no name", HALL, "version", element(9), {"action": 5}, UNREADABLE, 10),
    case("no map", HALL, "version", element(9), "swap", UNREADABLE, 10),
]  # fmt: skip


@pytest.mark.req("S-29", "S-35", "S-36", "S-37", "S-38", "S-39", "S-40", "S-41", "S-42")
@pytest.mark.parametrize(("limits", "command", "record", "value", "verdict"), COMMANDS)
async def test_a_command_is_judged_by_all_it_touches(
    limits: dict[str, Any], command: str, record: tuple[str, int], value: Any, verdict: CommandVerdict | None
) -> None:
    assert await check(limits).judge(command, *record, value) == verdict


@pytest.mark.req("S-36")
@pytest.mark.parametrize(
    ("limits", "record", "target", "reason"),
    [
        (BRANCH, ("pages", 100), 10, None),
        (OFFICE, ("pages", 100), 10, SUBTREE),
        # Where it goes is outside, whatever lies below it.
        (BRANCH, ("pages", 100), 20, OUTSIDE),
        # An element has no pages below it, though one has its uid.
        (HALL, ("tt_content", 10), 10, None),
    ],
)
async def test_a_page_copied_with_its_subpages_is_judged_by_them(
    limits: dict[str, Any], record: tuple[str, int], target: int, reason: ScopeReason | None
) -> None:
    verdict = await check(limits, copies_subpages=True).judge("copy", *record, target)
    assert (verdict.reason if verdict is not None else None) is reason


@pytest.mark.req("S-29", "S-35")
@pytest.mark.parametrize(
    ("limits", "record", "target", "reason"),
    [
        (HALL, ("tt_content", 9), 10, None),
        (HALL, ("tt_content", 9), 30, None),
        (HALL, ("tt_content", 9), 20, OUTSIDE),
        (HALL, ("tt_content", 9), 0, OUTSIDE),
        (BRANCH, ("pages", 100), 10, None),
        ({"pages": [{"page": 10, "depth": 1}]}, ("pages", 100), 10, SUBTREE),
    ],
)
async def test_a_row_is_put_on_a_page_with_everything_below_it(
    limits: dict[str, Any], record: tuple[str, int], target: int, reason: ScopeReason | None
) -> None:
    topology = KnownTopology(ROWS)
    row = (await topology.load([record])).get(*record)
    assert row is not None
    scope = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate(limits))
    assert await CommandCheck(scope, topology, MADE.get).placed_on(row, target) is reason
