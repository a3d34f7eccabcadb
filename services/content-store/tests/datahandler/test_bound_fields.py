"""Fields of a translation that follow its original: another value asked for is not written, and that is told."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.datahandler.result import EntryOutcome
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler

FOLLOWS = "follows_original"


async def _translated(connection: Connection, schema: Schema, **fields: Any) -> tuple[int, int]:
    """A record and its translation."""
    handler = open_handler(connection, schema)
    await handler.process(None, {"pages": {"2": {"localize": 1}}})
    entries = {
        "tt_content": {"NEW1": {"pid": 2, "title": "x", "colPos": 3, **fields}, "NEW9": {"pid": 2, "title": "y"}},
        "tx_child": {"NEW2": {"pid": 2}},
        "sys_category": {"NEW3": {"pid": 0, "title": "c"}},
    }
    made = await handler.process(entries)
    uid = made.substNEWwithIDs["NEW1"]
    localized = await handler.process(None, {"tt_content": {str(uid): {"localize": 1}}})
    assert not [*made.failed, *localized.failed]
    return uid, localized.outcomes[0].uid or 0


def _dropped(outcome: EntryOutcome) -> list[tuple[str, str]]:
    return [(dropped.field, dropped.code) for dropped in outcome.dropped]


async def test_another_value_is_named(connection: Connection, schema: Schema) -> None:
    _, translation = await _translated(connection, schema)
    result = await open_handler(connection, schema).process({"tt_content": {translation: {"colPos": 5, "title": "z"}}})
    outcome = result.outcomes[0]
    assert (outcome.status, _dropped(outcome)) == ("written", [("colPos", FOLLOWS)])
    assert outcome.message == "Not written: colPos"
    row = (await all_rows(connection, "tt_content", uid=translation))[0]
    assert (row["colPos"], row["title"]) == (3, "z")


@pytest.mark.parametrize("value", [3, "3", " 3"])
async def test_the_same_value_is_no_complaint(connection: Connection, schema: Schema, value: object) -> None:
    _, translation = await _translated(connection, schema)
    result = await open_handler(connection, schema).process({"tt_content": {translation: {"colPos": value}}})
    assert (result.outcomes[0].status in ("written", "unchanged"), _dropped(result.outcomes[0])) == (True, [])


async def test_nothing_else_asked_for_is_an_error(connection: Connection, schema: Schema) -> None:
    _, translation = await _translated(connection, schema)
    handler = open_handler(connection, schema)
    # The diff source of the field is brought up to date the first time.
    await handler.process({"tt_content": {translation: {"colPos": 3}}})
    before = await all_rows(connection, "tt_content", uid=translation)
    result = await handler.process({"tt_content": {translation: {"colPos": 5}}})
    outcome = result.outcomes[0]
    assert (outcome.status, outcome.code, _dropped(outcome)) == ("error", FOLLOWS, [("colPos", FOLLOWS)])
    assert await all_rows(connection, "tt_content", uid=translation) == before


async def test_a_new_translation(connection: Connection, schema: Schema) -> None:
    uid, _ = await _translated(connection, schema)
    pointers = {"sys_language_uid": 2, "l10n_parent": uid, "l10n_source": uid}
    entry = {"pid": 2, "title": "de", "colPos": 5, **pointers}
    result = await open_handler(connection, schema).process({"tt_content": {"NEW1": entry}})
    assert (result.outcomes[0].status, _dropped(result.outcomes[0])) == ("written", [("colPos", FOLLOWS)])
    assert (await all_rows(connection, "tt_content", title="de"))[0]["colPos"] == 3


async def test_a_change_of_the_original_in_the_same_request_counts(connection: Connection, schema: Schema) -> None:
    uid, translation = await _translated(connection, schema)
    entries = {str(uid): {"colPos": 5}, str(translation): {"colPos": 5}}
    result = await open_handler(connection, schema).process({"tt_content": entries})
    assert [(o.status, _dropped(o)) for o in result.outcomes] == [("written", []), ("written", [])]
    assert {row["colPos"] for row in await all_rows(connection, "tt_content", colPos=5)} == {5}


async def test_states_decide_who_follows(connection: Connection, schema: Schema) -> None:
    path = ("tt_content", "columns", "related", "config", "behaviour", "allowLanguageSynchronization")
    described = schema.with_change(path[:-1], {path[-1]: True})
    _, translation = await _translated(connection, described, related="NEW9")
    other = (await all_rows(connection, "tt_content", title="y"))[0]["uid"]
    handler = open_handler(connection, described)
    same = await handler.process({"tt_content": {translation: {"related": str(other), "title": "1"}}})
    assert _dropped(same.outcomes[0]) == []
    result = await handler.process({"tt_content": {translation: {"related": str(translation), "title": "2"}}})
    assert _dropped(result.outcomes[0]) == [("related", FOLLOWS)]
    own = {"related": str(translation), "l10n_state": {"related": "custom"}}
    result = await handler.process({"tt_content": {translation: own}})
    assert (result.outcomes[0].status, _dropped(result.outcomes[0])) == ("written", [])


@pytest.mark.parametrize(("field", "given"), [("children", "NEW2"), ("categories", "NEW3")])
async def test_relations_that_are_kept_elsewhere(
    connection: Connection, schema: Schema, field: str, given: str
) -> None:
    described = schema.with_change(("tt_content", "columns", field, "l10n_mode"), "exclude")
    _, translation = await _translated(connection, described, **{field: given})
    handler = open_handler(connection, described)
    result = await handler.process({"tt_content": {translation: {field: "", "title": "2"}}})
    assert _dropped(result.outcomes[0]) == [(field, FOLLOWS)]
    if field == "children":
        uids = [r["uid"] for r in await all_rows(connection, "tx_child", parentid=translation)]
    else:
        uids = [r["uid"] for r in await all_rows(connection, "sys_category")]
    assert len(uids) == 1
    result = await handler.process({"tt_content": {translation: {field: str(uids[0]), "title": "3"}}})
    assert _dropped(result.outcomes[0]) == []


async def test_what_a_copy_brings_along_is_no_complaint(connection: Connection, schema: Schema) -> None:
    uid, translation = await _translated(connection, schema)
    await connection.execute('UPDATE public.tt_content SET "colPos" = 7 WHERE uid = $1', translation)
    result = await open_handler(connection, schema).process(None, {"tt_content": {str(uid): {"copy": 1}}})
    assert [(o.status, _dropped(o)) for o in result.outcomes] == [("written", [])]
