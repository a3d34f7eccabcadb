"""What the hook makes of entries and commands, over given rows; through the real store it is in ``test_hook``."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from content_store.datahandler.log import LogCollector
from content_store.datahandler.run import HandlerRun
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.guard import AssignmentScopeGuard
from content_store.scope.hook import AssignmentScopeHook, equals_stored
from remit_contracts.scope import EffectiveAssignmentScope
from store_support.known import TOWN, KnownTopology, known_schema

HALL: dict[str, Any] = {"pages": [{"page": 10}]}
ENGLISH: dict[str, Any] = {**HALL, "languages": [0]}
Maps = dict[str, dict[str, dict[str, Any]]]
Refused = list[tuple[str, str, int | None, int | None, str]]


class Stored:
    """Reads rows by uid, as the gateway does."""

    def __init__(self, rows: dict[tuple[str, int], dict[str, Any]]) -> None:
        self._rows = rows

    async def select_by_uids(self, table: str, uids: Iterable[int]) -> dict[int, dict[str, Any]]:
        return {uid: self._rows[table, uid] for uid in uids if (table, uid) in self._rows}


class Held:
    """A hook under a scope, its guard, and instances it holds."""

    def __init__(self, limits: dict[str, Any], *, uc: dict[str, Any] | None = None) -> None:
        self.guard = AssignmentScopeGuard()
        scope = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate(limits))
        self.hook = AssignmentScopeHook(scope, KnownTopology(TOWN), self.guard)
        self.log = LogCollector(1, 0)
        self._ctx = SimpleNamespace(
            schema=known_schema(),
            log=self.log,
            now=5,
            gateway=Stored({("tt_content", 8): {"uid": 8, "header": "Willkommen", "colPos": 0}}),
            policy=SimpleNamespace(user=SimpleNamespace(uc=uc)),
        )

    def run(self, **values: Any) -> HandlerRun:
        return HandlerRun(cast("Any", self._ctx), **values)

    async def entry(self, table: str, key: str, row: dict[str, Any], *, asked: bool = True, **values: Any) -> Any:
        """What is left of an entry; ``asked`` = it was submitted, not added by the handler."""
        run = self.run(datamap={table: {key: row}} if asked else {}, **values)
        await self.hook.before_start(run)
        return await self.hook.pre_process_field_array(run, row, table, key)

    async def commands(self, cmdmap: Maps, **values: Any) -> Maps:
        """What is left of them."""
        run = self.run(cmdmap=cmdmap, **values)
        await self.hook.before_commands(run)
        return run.cmdmap

    @property
    def refused(self) -> Refused:
        return [(w.operation, w.table, w.uid, w.pid, w.reason) for w in self.guard.refused]


# --- entries ----------------------------------------------------------------------------------------------------


@pytest.mark.req("S-30", "S-31", "S-45", "S-71")
async def test_an_entry_is_vetoed_as_the_update_or_the_creation_it_is() -> None:
    held = Held(HALL)
    assert await held.entry("tt_content", "9", {"header": "x"}) == {"header": "x"}
    assert await held.entry("tt_content", "7", {"header": "x"}) is None
    assert await held.entry("tt_content", "NEW1", {"pid": 10}) == {"pid": 10}
    assert await held.entry("tt_content", "NEW1", {"pid": 20}) is None
    assert await held.entry("tt_content", "NEW2", {"pid": "nowhere"}) is None
    assert await held.entry("tt_content", "07", {"header": "x"}) is None
    assert held.refused == [
        ("update", "tt_content", 7, 20, "outside_scope"),
        ("create", "tt_content", None, 20, "outside_scope"),
        ("create", "tt_content", None, None, "scope_unresolvable"),
        ("update", "tt_content", None, None, "scope_unresolvable"),
    ]


@pytest.mark.req("S-31", "S-45")
@pytest.mark.parametrize("nested", [False, True])
async def test_an_entry_by_placeholder_is_a_new_record_though_the_call_has_used_the_name(nested: bool) -> None:
    held = Held(HALL)
    made = {"NEWin": ("tt_content", 9), "NEWout": ("tt_content", 7)}
    values = {"parent": held.run(parent=held.run(placeholders=made))} if nested else {"placeholders": made}
    assert await held.entry("tt_content", "NEWin", {"pid": 20}, **values) is None
    assert await held.entry("tt_content", "NEWout", {"pid": 10}, **values) == {"pid": 10}
    # The names stand for their records where an entry points at them.
    assert await held.entry("tt_content", "NEW1", {"pid": "-NEWin"}, **values) == {"pid": "-NEWin"}
    assert await held.entry("tt_content", "NEW1", {"pid": "-NEWout"}, **values) is None
    assert held.refused == [("create", "tt_content", None, 20, "outside_scope")]
    assert [key for _, key in held.guard.submitted_since(0)] == ["NEWin", "NEW1"]


@pytest.mark.req("S-45")
async def test_a_table_nobody_knows_is_left_to_the_handler() -> None:
    held = Held(HALL)
    assert await held.entry("nowhere", "7", {"header": "x"}) == {"header": "x"}
    assert held.refused == []


@pytest.mark.req("S-49")
@pytest.mark.parametrize(
    ("key", "row", "asked", "left"),
    [
        ("8", {"header": "Willkommen", "colPos": "0"}, False, {}),
        ("8", {"header": "Willkommen", "colPos": "1"}, False, None),
        # Whoever asks for a row outside is told, though it would stay as it is.
        ("8", {"header": "Willkommen"}, True, None),
        ("4711", {"header": "Willkommen"}, False, None),
        ("NEW1", {"pid": 10, "sys_language_uid": 1}, False, None),
    ],
)
async def test_only_an_entry_nobody_asked_for_that_changes_nothing_is_passed_over(
    key: str, row: dict[str, Any], asked: bool, left: dict[str, Any] | None
) -> None:
    held = Held(ENGLISH)
    assert await held.entry("tt_content", key, row, asked=asked) == left
    assert bool(held.refused) is (left is None)


@pytest.mark.req("S-49")
async def test_what_was_asked_for_is_forgotten_with_its_instance() -> None:
    held = Held(ENGLISH)
    run = held.run(datamap={"tt_content": {"8": {"header": "Willkommen"}}})
    await held.hook.before_start(run)
    await held.hook.after_all_operations(run)
    assert await held.hook.pre_process_field_array(run, {"header": "Willkommen"}, "tt_content", "8") == {}


VALUES: list[Any] = [
    ("header", "a", "a", True),
    ("header", "a", "b", False),
    ("colPos", "3", 3, True),
    ("date", None, None, True),
    ("date", None, 0, False),
    ("date", 0, None, False),
    ("header", None, "None", False),
    ("header", "None", None, False),
    # What is no column of the form is not written from an entry.
    ("pid", 20, 10, True),
    ("no_such_column", "x", "y", True),
    # Of a list only the number of its items is stored: equal where there are none.
    ("image", "1", 1, False),
    ("image", "1", 0, False),
    ("image", "", 1, False),
    ("image", "", 0, True),
    ("categories", "1", 1, False),
    ("categories", [], 0, True),
    ("categories", [], 1, False),
    ("records", ["a"], "['a']", False),
    ("header", [], "", True),
    ("pi_flexform", {"data": {}}, "{'data': {}}", False),
]


@pytest.mark.req("S-49")
@pytest.mark.parametrize(("name", "value", "stored", "equal"), VALUES)
def test_a_value_is_the_stored_one_as_text(name: str, value: object, stored: object, equal: bool) -> None:
    assert equals_stored(Held(HALL).run(), "tt_content", {name: value}, {name: stored}) is equal
    # The values behind it count as well, and a column that is not stored does not.
    more = {name: value, "header_layout": "1", "subheader": "x"}
    assert equals_stored(Held(HALL).run(), "tt_content", more, {name: stored, "header_layout": 0}) is False
    assert equals_stored(Held(HALL).run(), "tt_content", more, {name: stored, "header_layout": 1}) is equal


@pytest.mark.req("S-31", "S-34")
@pytest.mark.parametrize(
    ("lists", "left"),
    [
        ({"tt_content": {"9": {"image": "NEW1"}}}, {"pid": 10}),
        ({"tt_content": {"7": {"image": "NEW1"}}}, None),
        ({"tt_content": {"7": {"image": "50,NEW1"}}}, None),
        ({"tt_content": {"7": {"assets": ["NEW2", "NEW1"]}}}, None),
        ({"tt_content": {"9": {"image": "NEW2"}, "7": {"media": "NEW1"}}}, None),
        ({"pages": {"20": {"media": "NEW1"}}}, None),
        # No list of children: a title, a table without such lists, a list of children of another table.
        ({"tt_content": {"7": {"header": "NEW1"}}}, {"pid": 10}),
        ({"sys_category": {"1": {"title": "NEW1"}}}, {"pid": 10}),
        ({"sys_file": {"4": {"metadata": "NEW1"}}}, {"pid": 10}),
        ({"tt_content": {"7": {"image": "+5,NEW1"}}}, {"pid": 10}),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
async def test_a_child_without_a_pointer_belongs_to_the_entry_that_lists_it(
    lists: Maps, left: dict[str, Any] | None, nested: bool
) -> None:
    held = Held(HALL)
    outer = held.run(datamap=lists)
    run = held.run(parent=outer) if nested else outer
    assert await held.hook.pre_process_field_array(run, {"pid": 10}, "sys_file_reference", "NEW1") == left


# --- the error log ----------------------------------------------------------------------------------------------


@pytest.mark.req("S-45", "S-71")
async def test_each_refusal_goes_to_the_error_log_when_the_instance_is_through() -> None:
    held = Held(HALL)
    run = held.run()
    for key, row in (("7", {"header": "x"}), ("NEW1", {"pid": 20}), ("NEW2", {"pid": 0}), ("4711", {"header": "x"})):
        assert await held.hook.pre_process_field_array(run, row, "tt_content", key) is None
    assert held.log.entries == []
    await held.hook.after_all_operations(run)
    written = [
        (entry.action.name, entry.uid, entry.page, entry.text.partition(" to ")[2]) for entry in held.log.entries
    ]
    assert written == [
        ("UPDATE", 7, 20, "update tt_content:7 (outside_scope)"),
        ("INSERT", 0, 20, "create tt_content:new (outside_scope)"),
        ("INSERT", 0, 0, "create tt_content:new (outside_scope)"),
        ("UPDATE", 4711, -1, "update tt_content:4711 (scope_unresolvable)"),
    ]
    assert {entry.code for entry in held.log.entries} == {
        "assignment_scope.outside_scope",
        "assignment_scope.scope_unresolvable",
    }
    await held.hook.after_all_operations(run)
    assert len(held.log.entries) == 4


# --- commands ---------------------------------------------------------------------------------------------------


@pytest.mark.req("S-41", "S-43", "S-45")
async def test_commands_outside_the_scope_are_removed_and_the_others_stay() -> None:
    held = Held(HALL)
    left = await held.commands(
        {
            "tt_content": {
                "7": {"delete": 1},
                "9": {"move": 20, "delete": 1},
                "09": {"delete": 1},
                "NEWnever": {"delete": 1},
            },
            "nowhere": {"5": {"delete": 1}},
        }
    )
    assert left == {"tt_content": {"9": {"delete": 1}}, "nowhere": {"5": {"delete": 1}}}
    assert held.refused == [
        ("delete", "tt_content", 7, 20, "outside_scope"),
        ("move", "tt_content", 9, 20, "outside_scope"),
        ("delete", "tt_content", None, None, "scope_unresolvable"),
    ]
    # The same refusal of two keys counts once for people, and for each key for the answer.
    assert [key for _, key in held.guard.submitted_since(2)] == ["09", "NEWnever"]
    assert [entry.action.name for entry in held.log.entries] == ["DELETE", "MOVE", "DELETE", "DELETE"]


@pytest.mark.req("S-41", "S-45")
async def test_a_command_on_a_record_the_call_made_before_is_judged_on_that_record() -> None:
    held = Held(HALL)
    made = {"NEWin": ("tt_content", 9), "NEWout": ("tt_content", 7)}
    commands = {"tt_content": {"NEWin": {"delete": 1}, "NEWout": {"delete": 1}}}
    assert await held.commands(commands, placeholders=made) == {"tt_content": {"NEWin": {"delete": 1}}}
    assert held.refused == [("delete", "tt_content", 7, 20, "outside_scope")]


@pytest.mark.req("S-36")
@pytest.mark.parametrize(
    ("uc", "admitted"),
    [
        (None, True),
        ({}, True),
        ({"copyLevels": 0}, True),
        ({"copyLevels": "1"}, False),
        # What cannot be read may copy a branch.
        ({"copyLevels": "many"}, False),
    ],
)
async def test_a_page_is_judged_with_its_subpages_where_the_user_copies_branches(
    uc: dict[str, Any] | None, admitted: bool
) -> None:
    held = Held({"pages": [{"page": 10, "depth": 1}]}, uc=uc)
    left = await held.commands({"pages": {"100": {"copy": 10}}})
    assert left == {"pages": {"100": {"copy": 10}} if admitted else {}}
    assert held.refused == ([] if admitted else [("copy", "pages", 100, 10, "subtree_outside_scope")])
