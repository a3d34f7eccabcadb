"""Commands beyond the suite: copy rules, slugs, translations, undelete, inline (SEMANTICS 8-13, 22)."""

from __future__ import annotations

import pytest
from content_store.access.policy import BackendUser
from content_store.datahandler.slugs import clean_slug
from content_store.schema.model import Schema
from hypothesis import given
from hypothesis import strategies as st
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler


async def _content(connection: Connection, schema: Schema, **fields: object) -> int:
    made = await open_handler(connection, schema).process({"tt_content": {"NEW1": {"pid": 2, "title": "x", **fields}}})
    return made.substNEWwithIDs["NEW1"]


async def test_copy_after_takes_fields_of_the_anchor(connection: Connection, schema: Schema) -> None:
    anchor = await _content(connection, schema, colPos=3, title="anchor")
    source = await _content(connection, schema, colPos=1)
    result = await open_handler(connection, schema).process(None, {"tt_content": {str(source): {"copy": -anchor}}})
    copy = (await all_rows(connection, "tt_content", uid=result.copyMappingArray["tt_content"][source]))[0]
    assert copy["colPos"] == 3
    assert copy["sorting"] > (await all_rows(connection, "tt_content", uid=anchor))[0]["sorting"]


async def test_copies_are_hidden_and_labelled(connection: Connection, schema: Schema) -> None:
    uid = str(await _content(connection, schema))
    handler = open_handler(connection, schema)
    for _ in range(2):
        await handler.process(None, {"tt_content": {uid: {"copy": 2}}})
    await handler.process(None, {"tt_content": {uid: {"copy": 1}}})
    rows = await all_rows(connection, "tt_content")
    assert [(r["title"], r["hidden"], r["pid"]) for r in rows] == [
        ("x", 0, 2),
        ("x (copy 1)", 1, 2),
        ("x (copy 2)", 1, 2),
        ("x", 1, 1),
    ]


@pytest.mark.parametrize("key", ["TCEMAIN.table.tt_content.disableHideAtCopy", "TCEMAIN.default.disableHideAtCopy"])
async def test_tsconfig_keeps_copies_visible(connection: Connection, schema: Schema, key: str) -> None:
    uid = await _content(connection, schema)
    handler = open_handler(connection, schema)
    await handler.process({"pages": {"1": {"TSconfig": f"{key} = 1"}}})
    await handler.process(None, {"tt_content": {str(uid): {"copy": 2}}})
    assert [row["hidden"] for row in await all_rows(connection, "tt_content")] == [0, 0]


async def test_never_hide_at_copy_of_the_user(connection: Connection, schema: Schema) -> None:
    uid = await _content(connection, schema)
    handler = open_handler(connection, schema, user=BackendUser(1, admin=True, uc={"neverHideAtCopy": 1}))
    await handler.process(None, {"tt_content": {str(uid): {"copy": 2}}})
    assert [row["hidden"] for row in await all_rows(connection, "tt_content")] == [0, 0]


async def test_paste_updates_the_copy(connection: Connection, schema: Schema) -> None:
    uid = await _content(connection, schema)
    value = {"action": "paste", "target": 1, "update": {"colPos": 9}}
    result = await open_handler(connection, schema).process(None, {"tt_content": {str(uid): {"copy": value}}})
    copy = result.outcomes[0].uid
    assert [(r["uid"], r["colPos"]) for r in await all_rows(connection, "tt_content")] == [(uid, 0), (copy, 9)]


async def test_references_between_records_copied_together(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process(
        {"tt_content": {"NEW1": {"pid": 2, "title": "a"}, "NEW2": {"pid": 2, "title": "b", "related": "NEW1"}}}
    )
    a, b = (str(made.substNEWwithIDs[n]) for n in ("NEW1", "NEW2"))
    result = await handler.process(None, {"tt_content": {b: {"copy": 1}, a: {"copy": 1}}})
    copies = result.copyMappingArray_merged["tt_content"]
    assert (await all_rows(connection, "tt_content", uid=copies[int(b)]))[0]["related"] == str(copies[int(a)])
    alone = await handler.process(None, {"tt_content": {b: {"copy": 1}}})
    assert (await all_rows(connection, "tt_content", uid=alone.outcomes[0].uid))[0]["related"] == a


async def test_copy_levels_of_the_user(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema, user=BackendUser(1, admin=True, uc={"copyLevels": 1}))
    made = await handler.process(
        {
            "pages": {
                "NEWa": {"pid": 2, "title": "a"},
                "NEWb": {"pid": "NEWa", "title": "b"},
            }
        }
    )
    result = await handler.process(None, {"pages": {"2": {"copy": 2}}})
    copied = result.copyMappingArray["pages"]
    assert set(copied) == {2, made.substNEWwithIDs["NEWa"]}
    assert (await all_rows(connection, "pages", uid=copied[2]))[0]["pid"] == 2


async def test_copied_page_gets_a_slug_of_its_own(connection: Connection, schema: Schema) -> None:
    await open_handler(connection, schema).process(None, {"pages": {"2": {"copy": 1}}})
    assert [row["slug"] for row in await all_rows(connection, "pages", pid=1)] == ["/page", "/page-1"]


@pytest.mark.parametrize(
    ("title", "slug"),
    [("Häuser & Gärten", "/haeuser-gaerten"), ("A / B", "/a-b"), ("Ünïcode ß", "/uenicode-ss"), ("--x--", "/x")],
)
async def test_slug_is_built_from_the_title(connection: Connection, schema: Schema, title: str, slug: str) -> None:
    await open_handler(connection, schema).process({"pages": {"NEW1": {"pid": 1, "title": title}}})
    assert (await all_rows(connection, "pages", title=title))[0]["slug"] == slug


async def test_slug_below_a_folder_and_of_a_translation(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process(
        {
            "pages": {
                "NEWf": {"pid": 2, "title": "Folder", "doktype": "254"},
                "NEWp": {"pid": "NEWf", "title": "Inside"},
            }
        }
    )
    inside = made.substNEWwithIDs["NEWp"]
    assert (await all_rows(connection, "pages", uid=inside))[0]["slug"] == "/page/inside"
    await handler.process(None, {"pages": {"2": {"localize": 1}, str(inside): {"localize": 1}}})
    translation = (await all_rows(connection, "pages", l10n_parent=inside))[0]
    assert translation["slug"] == "/translate-to-dansk-page/translate-to-dansk-inside"


@given(st.text(max_size=40))
def test_cleaning_a_slug_twice_changes_nothing(text: str) -> None:
    once = clean_slug(text, leading_slash=True)
    assert clean_slug(once, leading_slash=True) == once
    assert once.startswith("/")
    assert "//" not in once


async def test_translation_exists_already(connection: Connection, schema: Schema) -> None:
    uid = str(await _content(connection, schema))
    handler = open_handler(connection, schema)
    await handler.process(None, {"tt_content": {uid: {"localize": 1}}})
    again = await handler.process(None, {"tt_content": {uid: {"localize": 1, "copyToLanguage": 1}}})
    assert [o.code for o in again.outcomes] == ["translation_exists", "translation_exists"]


async def test_undelete_brings_children_and_relations_back(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process(
        {
            "tt_content": {"NEW1": {"pid": 2, "title": "x", "children": "NEW2", "categories": "NEW3"}},
            "tx_child": {"NEW2": {"pid": 2, "title": "c"}},
            "sys_category": {"NEW3": {"pid": 0, "title": "k"}},
        }
    )
    uid = str(made.substNEWwithIDs["NEW1"])
    index = await all_rows(connection, "sys_refindex")
    assert len(index) == 2
    await handler.process(None, {"tt_content": {uid: {"delete": 1}}})
    assert not await all_rows(connection, "sys_refindex")
    await handler.process(None, {"tt_content": {uid: {"undelete": 1}}})
    assert [row["deleted"] for row in await all_rows(connection, "tx_child")] == [0]
    assert sorted(r["hash"] for r in await all_rows(connection, "sys_refindex")) == sorted(r["hash"] for r in index)


async def test_undelete_needs_the_page(connection: Connection, schema: Schema) -> None:
    uid = str(await _content(connection, schema))
    handler = open_handler(connection, schema)
    await handler.process(None, {"pages": {"2": {"delete": 1}}})
    result = await handler.process(None, {"tt_content": {uid: {"undelete": 1}}})
    assert result.outcomes[0].code == "page_deleted"


async def test_inline_synchronize_follows_the_original(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process(
        {
            "tt_content": {"NEW1": {"pid": 2, "title": "x", "children": "NEW2,NEW3"}},
            "tx_child": {"NEW2": {"pid": 2, "title": "a"}, "NEW3": {"pid": 2, "title": "b"}},
        }
    )
    uid, a, b = (made.substNEWwithIDs[n] for n in ("NEW1", "NEW2", "NEW3"))
    translated = await handler.process(None, {"tt_content": {str(uid): {"localize": 1}}})
    new = str(translated.outcomes[0].uid)
    await handler.process(
        {
            "tt_content": {str(uid): {"children": f"{b},NEW4"}},
            "tx_child": {"NEW4": {"pid": 2, "title": "c"}},
        },
        {"tx_child": {str(a): {"delete": 1}}},
    )
    value = {"field": "children", "language": 1, "action": "synchronize"}
    result = await handler.process(None, {"tt_content": {new: {"inlineLocalizeSynchronize": value}}})
    assert not result.failed
    children = [c for c in await all_rows(connection, "tx_child", parentid=int(new)) if not c["deleted"]]
    assert [(c["title"], c["sorting"]) for c in children] == [
        ("[Translate to Dansk:] b", 1),
        ("[Translate to Dansk:] c", 2),
    ]


async def test_move_of_a_page_into_itself_is_refused(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"pages": {"NEW1": {"pid": 2, "title": "below"}}})
    below = made.substNEWwithIDs["NEW1"]
    for target in (2, below, -below):
        result = await handler.process(None, {"pages": {"2": {"move": target}}})
        assert result.outcomes[0].code == "move_into_branch"


async def test_a_circle_in_the_tree_does_not_hang(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"pages": {"NEW1": {"pid": 2, "title": "below"}}})
    await connection.execute("UPDATE public.pages SET pid = $1 WHERE uid = 2", made.substNEWwithIDs["NEW1"])
    result = await handler.process(
        {"tt_content": {"NEW1": {"pid": 2}}},
        {"pages": {"2": {"copy": 1}, str(made.substNEWwithIDs["NEW1"]): {"delete": 1}}},
    )
    assert not result.failed


async def test_drafts_are_refused_until_there_are_workspaces(connection: Connection, schema: Schema) -> None:
    uid = str(await _content(connection, schema))
    handler = open_handler(connection, schema, workspace=1)
    result = await handler.process(
        {"tt_content": {uid: {"title": "draft"}}}, {"tt_content": {uid: {"delete": 1, "move": 1, "discard": 1}}}
    )
    assert {o.code for o in result.outcomes} == {"workspaces_unavailable"}
    assert (await all_rows(connection, "tt_content"))[0]["title"] == "x"


async def test_rows_of_a_workspace_do_not_show_in_live(connection: Connection, schema: Schema) -> None:
    made = await open_handler(connection, schema, workspace=1).process(
        {"tt_content": {"NEW1": {"pid": 2, "title": "d"}}}
    )
    draft = str(made.substNEWwithIDs["NEW1"])
    row = (await all_rows(connection, "tt_content"))[0]
    assert (row["t3ver_wsid"], row["t3ver_state"], row["t3ver_oid"]) == (1, 1, 0)
    live = open_handler(connection, schema)
    result = await live.process(
        {"tt_content": {draft: {"title": "y"}}}, {"tt_content": {draft: {"copy": 1, "move": 1}}}
    )
    assert [o.status for o in result.outcomes] == ["refused", "error", "error"]
    assert (await live.process(None, {"pages": {"2": {"copy": 1}}})).copyMappingArray.get("tt_content") is None
