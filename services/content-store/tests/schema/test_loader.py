from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from content_store.schema.files import FIELD_TYPES, SchemaFileError
from content_store.schema.labels import field_label, item_labels, table_label
from content_store.schema.loader import build_schema, load_schema, schema_hash
from content_store.schema.model import Schema

EXAMPLE = Path(__file__).parent / "example" / "tables"
BUILT_IN = {
    "be_groups", "be_users", "pages", "sys_category", "sys_file", "sys_file_metadata", "sys_file_reference",
    "sys_file_storage", "sys_filemounts", "sys_redirect", "sys_workspace", "sys_workspace_stage", "tt_content",
}  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema()


def problems(*sources: tuple[str, Any]) -> list[str]:
    with pytest.raises(SchemaFileError) as refused:
        build_schema(sources)
    return refused.value.problems


def table(**more: Any) -> dict[str, Any]:
    return {"table": "tx_a", "columns": {"title": {"config": {"type": "input"}}}, **more}


def test_the_built_in_tables_are_there(schema: Schema) -> None:
    assert set(schema.tables) == BUILT_IN
    assert set(schema.mm_tables) == {"sys_category_record_mm"}


def test_every_field_has_a_label_in_english_and_german(schema: Schema) -> None:
    for name, data in schema.source["tables"].items():
        for field, column in data["columns"].items():
            if column["config"]["type"] == "passthrough" and field not in ("tables_select", "parentid"):
                continue
            assert set(column["label"]) >= {"en", "de"}, f"{name}.{field}"
        assert set(data["title"]) >= {"en", "de"}, name


def test_every_field_with_storage_has_a_column(schema: Schema) -> None:
    missing = [
        f"{described.name}.{field.name}"
        for described in schema
        for field in described.columns.values()
        if field.name not in described.db_columns
    ]
    assert missing == []


def test_workspaces_and_languages_have_their_columns(schema: Schema) -> None:
    for name in ("pages", "tt_content", "sys_category", "sys_file_reference", "sys_file_metadata"):
        described = schema[name]
        assert described.versionable
        assert described.localizable
        assert {"t3ver_wsid", "t3ver_oid", "t3ver_state", "t3ver_stage", "l10n_state"} <= set(described.db_columns)


def test_a_new_page_is_hidden_but_the_column_is_not(schema: Schema) -> None:
    assert schema["pages"].columns["hidden"].config["default"] == 1
    assert schema["pages"].db_columns["hidden"].default == 0


def test_file_and_category_fields_get_their_relation(schema: Schema) -> None:
    image = schema["tt_content"].columns["image"].config
    assert image["foreign_field"] == "uid_foreign"
    assert image["foreign_match_fields"] == {"fieldname": "image", "tablenames": "tt_content"}
    categories = schema["pages"].columns["categories"].config
    assert (categories["MM"], categories["MM_opposite_field"]) == ("sys_category_record_mm", "items")
    assert categories["MM_match_fields"] == {"tablenames": "pages", "fieldname": "categories"}
    usage = schema["sys_category"].columns["items"].config["MM_oppositeUsage"]
    assert usage == {"pages": ["categories"], "tt_content": ["categories"], "sys_file_metadata": ["categories"]}


def test_items_become_values(schema: Schema) -> None:
    assert schema["pages"].columns["doktype"].config["item_values"] == ["1", "6", "4", "7", "3", "254", "199"]
    assert schema["be_users"].columns["options"].config["item_values"] == 2
    assert schema["pages"].columns["nav_hide"].config["item_values"] == 1


def test_labels_fall_back(schema: Schema) -> None:
    assert table_label(schema, "pages", "de") == "Seite"
    assert table_label(schema, "pages", "fr") == "Page"
    assert table_label(schema, "nowhere", "de") == "nowhere"
    assert field_label(schema, "pages", "title", "de") == "Titel"
    assert field_label(schema, "pages", "perms_user", "de") == "perms_user"
    assert item_labels(schema, "pages", "doktype", "de")["254"] == "Ordner"
    assert item_labels(schema, "tt_content", "recursive", "en")["250"] == "250"


def test_the_hash_sees_everything_but_labels() -> None:
    plain = schema_hash(build_schema([("a", table())]))
    labelled = table(columns={"title": {"label": "T", "config": {"type": "input"}}}, title="X")
    assert schema_hash(build_schema([("a", labelled)])) == plain
    for changed in (
        table(columns={"title": {"config": {"type": "input", "max": 9}}}),
        table(ctrl={"sortby": "sorting"}),
        table(columns={"title": {"exclude": True, "config": {"type": "input"}}}),
    ):
        assert schema_hash(build_schema([("a", changed)])) != plain


def test_the_example_of_a_site_loads() -> None:
    found = load_schema([EXAMPLE])
    assert set(found.tables) == BUILT_IN | {"tx_town_event", "tx_town_slot"}
    assert "town_colour" in found["pages"].db_columns
    assert "title" in found["pages"].db_columns
    assert found["tx_town_event"].versionable
    assert "hidden" in found["tx_town_event"].columns
    usage = found["sys_category"].columns["items"].config["MM_oppositeUsage"]
    assert usage["tx_town_event"] == ["categories"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([], "a: file:"),
        ({"columns": {}}, 'either "table"'),
        (table(extends="pages"), 'either "table"'),
        ({"table": "tx_a"}, "columns are missing"),
        (table(colums={}), "a: colums:"),
        (table(table="Tx"), "a: table:"),
        (table(table="x" * 51), "a: table:"),
        (table(table="sys_history"), "taken by the store itself"),
        (table(columns={"1x": {"config": {"type": "input"}}}), "a: columns.1x"),
        (table(columns={"title": {"config": {"type": "nonsense"}}}), "config.type is 'nonsense'"),
        (table(columns={"title": {"config": {"type": "select", "items": [{"label": "x"}]}}}), "an item has no value"),
        (table(columns={"title": {"config": {"type": "select", "items": {"a": 1}}}}), "config.items is a list"),
        (table(columns={"title": {"config": {"type": "inline"}}}), "foreign_table is missing"),
        (table(columns={"title": {"config": {"type": "inline", "foreign_table": "no"}}}), "there is no table 'no'"),
        (table(columns={"title": {"config": {"type": "group", "allowed": "tx_a, no"}}}), "there is no table 'no'"),
        (table(ctrl={"label": "name"}), "has no field 'name'"),
        (table(ctrl={"languageField": "sys_language_uid"}), "transOrigPointerField: is missing"),
        (table(db_columns={"x": {"type": "varchar"}}), "a: db_columns.x.type"),
        ({"extends": "nowhere", "columns": {}}, "no table 'nowhere' to extend"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_place(data: Any, expected: str) -> None:
    assert any(expected in line and line.startswith("a:") for line in problems(("a", data)))


def test_all_problems_of_all_files_are_told_at_once() -> None:
    lines = problems(("a", table(colums={}, title=5)), ("b", {"table": "tx_b"}), ("c", table()), ("d", table()))
    assert {line.partition(":")[0] for line in lines} == {"a", "b", "d"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"table": "tx_a",}', "line 1, column"),
        ('{"table": "tx_a", "table": "tx_b"}', "stands twice"),
        ("[" * 100_000, "cannot be read"),
        ("\udcff", "cannot be read"),
        ('"' + "x" * 1_100_000 + '"', "is larger than"),
    ],
)
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SchemaFileError, match=expected):
        load_schema([tmp_path])


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaFileError, match="is no folder"):
        load_schema([tmp_path / "nowhere"])


def test_the_documentation_names_every_field_type_and_the_example() -> None:
    text = (Path(__file__).parents[4] / "docs" / "tables.md").read_text("utf-8")
    assert all(kind in text for kind in FIELD_TYPES)
    assert "services/content-store/tests/schema/example" in text


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(table(table=f"tx_{name}")))
    assert list(load_schema([tmp_path]).tables)[-2:] == ["tx_a", "tx_b"]
