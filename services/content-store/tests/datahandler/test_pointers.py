"""The one reader of language and pointers, and that synchronization takes nothing the user may not read."""

from __future__ import annotations

import pytest
from content_store.access.policy import BackendUser, Denial, Row
from content_store.datahandler.errors import Refusal
from content_store.datahandler.pointers import canonical_pointers, read_number, translated_uid
from content_store.datahandler.policy import AdministratorPolicy
from content_store.records.gateway import RecordGateway
from content_store.records.overlay import OverlayReader
from content_store.schema.flex import FlexError, format_value, merge_values
from content_store.schema.model import Schema
from hypothesis import given
from hypothesis import strategies as st
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler

EDITOR = BackendUser(2, "ed", tables_modify=frozenset({"pages", "tt_content"}))


@pytest.mark.req("S-42")
@pytest.mark.parametrize(
    ("value", "number"),
    [(None, 0), ("", 0), (0, 0), ("0", 0), (-1, -1), ("-1", -1), ("18", 18), (1.0, 1), (-1.0, -1)]
    + [
        (v, None)
        for v in (
            True,
            False,
            1.5,
            float("inf"),
            float("nan"),
            "+1",
            "1.0",
            "1e0",
            "\u00b2",
            "\u0663",
            "--1",
            " ",
            "1 ",
            " 1",
            "007",
            "-0",
        )
    ]
    + [(v, None) for v in ([1], {"a": 1}, "9" * 19, "9" * 5000, 10**18, 1e30, "1_0", "0x1", "1,2", "\x001")],
    ids=lambda value: repr(value)[:12],
)
def test_a_number_is_read_the_same_everywhere(value: object, number: int | None) -> None:
    assert read_number(value) == number


@pytest.mark.req("S-42")
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3))
def test_a_number_read_twice_is_the_same(value: object) -> None:
    number = read_number(value)
    assert read_number(number) == (number or 0)
    assert number is None or read_number(str(number)) == number


@pytest.mark.parametrize("value", [[20], "20,", "20,NEW1", -5, "-5", True, "+20", "NEW 1", {"a": 1}])
@pytest.mark.parametrize("name", ["l10n_parent", "l10n_source"])
def test_a_pointer_is_a_number_or_a_placeholder(schema: Schema, name: str, value: object) -> None:
    with pytest.raises(Refusal, match=name):
        canonical_pointers(schema["tt_content"], {name: value})


def test_pointers_are_made_canonical(schema: Schema) -> None:
    submitted = {"sys_language_uid": "1", "l10n_parent": "tt_content_20", "l10n_source": "NEW1", "title": " 1 "}
    row = canonical_pointers(schema["tt_content"], submitted)
    assert row == {"sys_language_uid": 1, "l10n_parent": 20, "l10n_source": "NEW1", "title": " 1 "}
    assert translated_uid(schema["tt_content"], row) == 20
    assert translated_uid(schema["tt_content"], {**row, "sys_language_uid": 0}) == 0
    assert translated_uid(schema["tt_content"], {**row, "sys_language_uid": -1}) == 0


class _Blind(AdministratorPolicy):
    """An editor without any right on one page."""

    def __init__(self, schema: Schema, gateway: RecordGateway, page: int) -> None:
        super().__init__(EDITOR, schema, OverlayReader(gateway))
        self._page = page

    async def update(self, table: str, row: Row, *, with_pages: bool = False) -> Denial | None:
        return Denial("page_permission", "No") if self._page in (row["pid"], row["uid"]) else None

    async def show_page(self, page: int) -> Denial | None:
        return Denial("page_permission", "No") if page == self._page else None


@pytest.fixture
def described(schema: Schema) -> Schema:
    """With a title that translations take from their original."""
    path = ("tt_content", "columns", "title", "config", "behaviour")
    return schema.with_change(path, {"allowLanguageSynchronization": True})


async def _secret(connection: Connection, schema: Schema) -> tuple[int, int]:
    made = await open_handler(connection, schema).process(
        {"pages": {"NEWp": {"pid": 1, "title": "secret"}}, "tt_content": {"NEW1": {"pid": "NEWp", "title": "hidden"}}}
    )
    return made.substNEWwithIDs["NEWp"], made.substNEWwithIDs["NEW1"]


async def _titles(connection: Connection) -> list[str]:
    return sorted(row["title"] for row in await all_rows(connection, "tt_content"))


async def test_a_new_translation_takes_no_hidden_text(connection: Connection, described: Schema) -> None:
    page, original = await _secret(connection, described)
    row = {"pid": 2, "title": "spy", "sys_language_uid": 1, "l10n_parent": original}
    policy = _Blind(described, RecordGateway(connection, described), page)
    handler = open_handler(connection, described, user=EDITOR, policy=policy)
    result = await handler.process({"tt_content": {"NEW1": row}})
    assert [o.code for o in result.outcomes] == ["page_permission"]
    assert await _titles(connection) == ["hidden"]
    # The same by somebody who may see the page.
    await open_handler(connection, described).process({"tt_content": {"NEW1": row}})
    assert await _titles(connection) == ["hidden", "hidden"]


async def test_a_translation_cannot_be_told_to_follow_hidden_text(connection: Connection, described: Schema) -> None:
    page, original = await _secret(connection, described)
    own = {"pid": 2, "title": "own", "sys_language_uid": 1, "l10n_parent": original, "l10n_state": {"title": "custom"}}
    made = await open_handler(connection, described).process({"tt_content": {"NEW1": own}})
    follows = {"tt_content": {str(made.substNEWwithIDs["NEW1"]): {"l10n_state": {"title": "parent"}}}}
    policy = _Blind(described, RecordGateway(connection, described), page)
    result = await open_handler(connection, described, user=EDITOR, policy=policy).process(follows)
    assert [o.code for o in result.outcomes] == ["page_permission"]
    assert await _titles(connection) == ["hidden", "own"]
    await open_handler(connection, described).process(follows)
    assert await _titles(connection) == ["hidden", "hidden"]


@pytest.mark.req("S-42")
@pytest.mark.parametrize(
    "field",
    [
        {"el": {"1": {"c": {"el": {"x": 5}}}}},
        {"el": {"1": {"c": {"el": {"x": "el"}}}}},
        {"el": {"1": {"c": {"el": {"x": {"el": 5}}}}}},
        {"vDEF": {"el": {"x": 5}}},
        {"vDEF": {"el": 5}},
        {"vDEF": [1]},
    ],
    ids=repr,
)
def test_a_flex_form_of_another_shape_is_refused(field: dict[str, object]) -> None:
    with pytest.raises(FlexError):
        format_value(merge_values({"data": {}}, {"data": {"s": {"lDEF": {"f": field}}}}))


@pytest.mark.req("S-42")
@pytest.mark.parametrize("action", ["--5", "\u00b2", "9" * 400, 1.5, None, "DOWN"])
def test_an_order_that_is_no_number_keeps_the_place(action: object) -> None:
    elements = {"1": {"_ACTION": action, "c": {"el": {}}}, "2": {"_ACTION": "-1", "c": {"el": {}}}}
    merged = merge_values({"data": {}}, {"data": {"s": {"lDEF": {"f": {"el": elements}}}}})
    assert list(merged["data"]["s"]["lDEF"]["f"]["el"]) == ["2", "1"]


def test_a_flex_form_too_deep_to_be_read_again_is_not_written() -> None:
    field: dict[str, object] = {"vDEF": "x"}
    for _ in range(150):
        field = {"el": {"f": field}}
    with pytest.raises(FlexError):
        format_value({"data": {"s": {"lDEF": {"f": field}}}})
