"""Pure parts: derived columns, DDL, flex forms, relation specs, TSconfig, states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from content_store.datahandler.relations.csv import exchange_references, split_list
from content_store.datahandler.sync_state import parse_state
from content_store.datahandler.tsconfig import parse_tsconfig, record_defaults, table_setting
from content_store.schema.ddl import child_pointers, create_schema_statements, create_table_statements, quote_identifier
from content_store.schema.flex import FlexError, format_value, merge_values, parse_structure, parse_value
from content_store.schema.model import UNSET, Column, Schema, SchemaError
from content_store.schema.tca_types import derive_db_columns
from hypothesis import given
from hypothesis import strategies as st
from store_support.site import site_data
from store_support.suite import suite_folder

_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), max_size=8)
_NAME = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
_FORMS = st.dictionaries(
    _NAME, st.fixed_dictionaries({"lDEF": st.dictionaries(_NAME, st.fixed_dictionaries({"vDEF": _TEXT}))})
)


@given(_FORMS)
def test_form_survives_writing_and_reading(data: dict[str, Any]) -> None:
    assert parse_value(format_value({"data": data})) == {"data": data}


def test_form_that_is_none() -> None:
    with pytest.raises(FlexError):
        parse_value("<broken")
    with pytest.raises(FlexError):
        merge_values({"data": {}}, {"data": {"s": 1}})
    with pytest.raises(FlexError):
        format_value({"data": {"s": {"lDEF": {"f": {"vDEF": "\x01"}}}}})


def test_entities_are_not_resolved() -> None:
    text = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><T3FlexForms><data><sheet index="s"><language index="lDEF"><field index="f"><value index="vDEF">&e;</value></field></language></sheet></data></T3FlexForms>'
    assert parse_value(text)["data"]["s"]["lDEF"]["f"]["vDEF"] == ""


def test_sections_are_deleted_and_ordered() -> None:
    def section(*names: str) -> dict[str, Any]:
        return {"data": {"s": {"lDEF": {"f": {"el": {n: {"c": {"el": {"i": {"vDEF": n}}}} for n in names}}}}}}

    change = section("a", "b", "c")
    elements = change["data"]["s"]["lDEF"]["f"]["el"]
    elements["a"]["_ACTION"], elements["b"]["_ACTION"], elements["c"]["_ACTION"] = "DELETE", 1, 0
    merged = merge_values(section("a", "b"), change)
    assert list(merged["data"]["s"]["lDEF"]["f"]["el"]) == ["c", "b"]


def test_structure_without_sheets() -> None:
    source = "<T3DataStructure><ROOT><el><a><config><type>input</type></config></a></el></ROOT></T3DataStructure>"
    assert [(s, n, c.type) for s, n, c in parse_structure(source).columns()] == [("sDEF", "a", "input")]
    assert list(parse_structure("FILE:somewhere.xml").columns()) == []


def test_every_field_of_the_site_has_a_column() -> None:
    schema = Schema.from_data(site_data())
    for table in schema:
        assert {c.name for c in table.columns.values()} <= table.db_columns.keys()
    assert set(schema.mm_tables) == {"sys_category_record_mm"}


def test_names_are_quoted_and_qualified() -> None:
    table = Schema.from_data(site_data())["tt_content"]
    statements = create_table_statements(table, 'odd"name')
    assert all('"odd""name"."tt_content"' in statement for statement in statements)
    assert "IDENTITY" in statements[0]
    with pytest.raises(ValueError, match="identifier"):
        quote_identifier("a\x00b")
    assert len(create_schema_statements(Schema.from_data(site_data()))) > 20


def test_the_pointer_of_a_child_is_indexed_whatever_its_name() -> None:
    form = (
        "<T3DataStructure><ROOT><el><kids><config><type>inline</type><foreign_table>tx_child</foreign_table>"
        "<foreign_field>in_form</foreign_field></config></kids></el></ROOT></T3DataStructure>"
    )
    inline = {"type": "inline", "foreign_table": "tx_child", "foreign_field": "owner_uid"}
    pointers = {name: {"config": {"type": "number"}} for name in ("owner_uid", "in_form")}
    parent = {"kids": {"config": inline}, "form": {"config": {"type": "flex", "ds": form}}}
    tables = {"tx_parent": {"ctrl": {}, "columns": parent}, "tx_child": {"ctrl": {}, "columns": pointers}}
    schema = Schema.from_data({"tables": tables})
    assert child_pointers(schema) == {"tx_child": ("owner_uid", "in_form")}
    made = [s for s in create_schema_statements(schema) if s.startswith("CREATE INDEX") and "tx_child" in s]
    assert [s.partition(" (")[2] for s in made] == [
        '"pid")',
        '"owner_uid") WHERE "owner_uid" <> 0',
        '"in_form") WHERE "in_form" <> 0',
    ]


def test_changes_make_a_new_schema() -> None:
    schema = Schema.from_data(site_data())
    changed = schema.with_change(["tt_content", "ctrl", "delete"], UNSET)
    assert (schema["tt_content"].delete_field, changed["tt_content"].delete_field) == ("deleted", None)
    typed = schema.with_change(["tt_content", "types", "1", "columnsOverrides"], {"title": {"config": {"max": 3}}})
    assert typed["tt_content"].column_for("title", "1") == Column(
        "title", {"type": "input", "max": 3}, "prefixLangTitle"
    )
    with pytest.raises(SchemaError):
        Schema.from_data({"tables": {"x": {"columns": []}}})


def test_derived_columns_store_what_the_suite_s_tables_store() -> None:
    """Kinds of storage agree; lengths and the like may differ."""
    folder = suite_folder(Path(__file__).resolve().parents[4])
    if not folder.is_dir():
        pytest.skip(f"no conformance suite in {folder.name}")
    kinds = {"string": "text", "blob": "text"}
    for file in folder.glob("*.Modify.json"):
        for name, table in json.loads(file.read_text(encoding="utf-8"))["schema"]["tables"].items():
            derived = derive_db_columns(name, table)
            for column, wanted in table["db_columns"].items():
                if column in derived:
                    found = kinds.get(derived[column].type, derived[column].type)
                    assert found == kinds.get(wanted["type"], wanted["type"]), f"{name}.{column}"


def test_lists() -> None:
    assert split_list(" 1, ,2 ") == ["1", "2"]
    assert split_list(5) == ["5"]
    assert split_list([1, "NEW2", None]) == ["1", "NEW2"]
    several = Column("f", {"type": "group", "allowed": "a,b_c"}).relation
    assert several is not None
    assert exchange_references("b_c_5,a_6,7", several, {"b_c": {5: 50}, "a": {7: 70}}) == "b_c_50,a_6,70"
    assert exchange_references("a_6", several, {"a": {5: 50}}) is None


def test_relations_by_type() -> None:
    file = Column("image", {"type": "file"}).relation
    assert file is not None
    assert (file.table, file.foreign_field, file.match_fields) == (
        "sys_file_reference",
        "uid_foreign",
        {"fieldname": "image"},
    )
    assert Column("x", {"type": "select", "item_values": [1]}).relation is None
    category = Column("c", {"type": "category"}).relation
    assert category is not None
    assert (category.storage, category.mm_table, category.opposite) == ("mm", "sys_category_record_mm", True)


def test_tsconfig_lines() -> None:
    settings = parse_tsconfig(
        "# no\nTCEMAIN.default.x = 1\n // no = 1\nTCEMAIN.table.t.x=2\nbroken\nTCAdefaults.t.f.types.a = 3"
    )
    assert (table_setting(settings, "t", "x"), table_setting(settings, "u", "x")) == ("2", "1")
    assert record_defaults(settings, "t", "a") == {"f": "3"}
    assert record_defaults(settings, "t", "b") == {}


@pytest.mark.parametrize("value", [None, "", "broken", "[]", 5, {"a": "nonsense"}, '{"a": 1}'])
def test_states_that_are_none(value: object) -> None:
    assert parse_state(value) == {}
