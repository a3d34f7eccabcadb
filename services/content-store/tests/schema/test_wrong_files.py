"""What a table file may not say: every wrong value is a line with file, table and place, and there is no schema."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from content_store.schema.files import SchemaFileError
from content_store.schema.loader import build_schema, folder_sources, load_schema
from content_store.schema.migrate import _create_statements
from content_store.schema.model import Schema, SchemaError
from hypothesis import example, given
from hypothesis import strategies as st


def table(ctrl: Any = None, columns: Any = None, **more: Any) -> dict[str, Any]:
    title = {"config": {"type": "input"}}
    ctrl = {"label": "title", **(ctrl or {})}
    return {"table": "tx_h", "ctrl": ctrl, "columns": {"title": title, **(columns or {})}, **more}


def field(**config: Any) -> dict[str, Any]:
    return table(columns={"f": {"config": config}})


def group(**config: Any) -> dict[str, Any]:
    return field(type="group", allowed="pages", **config)


def inline(**config: Any) -> dict[str, Any]:
    return field(type="inline", foreign_table="pages", **config)


def form(config: str) -> dict[str, Any]:
    return field(
        type="flex", ds=f"<T3DataStructure><ROOT><el><a><config>{config}</config></a></el></ROOT></T3DataStructure>"
    )


_CTRL: list[tuple[dict[str, Any], str]] = [
    ({"rootLevel": "abc"}, "ctrl.rootLevel"),
    ({"rootLevel": 7}, "ctrl.rootLevel"),
    ({"enablecolumns": ["hidden"]}, "ctrl.enablecolumns"),
    ({"enablecolumns": {"disabled": 5}}, "ctrl.enablecolumns"),
    ({"enablecolumns": {"disabled": 'a"b'}}, "ctrl.enablecolumns.disabled"),
    ({"enablecolumns": {"disabled": "title"}}, "ctrl.enablecolumns"),
    ({"sortby": 5}, "ctrl.sortby"),
    ({"sortby": {"a": 1}}, "ctrl.sortby"),
    ({"sortby": 'x" ; drop table pages; --'}, "ctrl.sortby"),
    ({"sortby": "s" * 100}, "ctrl.sortby"),
    ({"sortby": "uid"}, "ctrl.sortby"),
    ({"sortby": "title"}, "ctrl.sortby"),
    ({"sortby": "deleted", "delete": "deleted"}, "ctrl.sortby"),
    ({"delete": True}, "ctrl.delete"),
    ({"delete": "pid"}, "ctrl.delete"),
    ({"label": ["title"]}, "ctrl.label"),
    ({"security": ["x"]}, "ctrl.security"),
    ({"tstamp": "a\x00b"}, "ctrl.tstamp"),
    ({"languageField": {"a": 1}, "transOrigPointerField": "p"}, "ctrl.languageField"),
    ({"default_sortby": ["title"]}, "ctrl.default_sortby"),
    ({"defaultAllowedRecordTypes": "tt_content"}, "ctrl.defaultAllowedRecordTypes"),
    ({"versioningWS": {"a": 1}}, "ctrl.versioningWS"),
    ({"type": ["a"]}, "ctrl.type"),
]
_CONFIG: list[tuple[dict[str, Any], str]] = [
    ({"type": "input", "max": "abc"}, "max"),
    ({"type": "input", "max": [1]}, "max"),
    ({"type": "input", "max": -1}, "max"),
    ({"type": "input", "min": "x"}, "min"),
    ({"type": "input", "eval": ["trim"]}, "eval"),
    ({"type": "input", "behaviour": ["a"]}, "behaviour"),
    ({"type": "input", "default": [1]}, "default"),
    ({"type": "input", "default": "a\x00b"}, "default"),
    ({"type": "input", "default": "abcdefghi", "max": 5}, "default"),
    ({"type": "input", "nullable": "perhaps"}, "nullable"),
    ({"type": "number", "default": "x"}, "default"),
    ({"type": "number", "default": 2**63}, "default"),
    ({"type": "number", "range": {"lower": "x"}}, "range.lower"),
    ({"type": "number", "range": {"upper": 1.5}}, "range.upper"),
    ({"type": "number", "range": [1]}, "range"),
    ({"type": "datetime", "range": {"upper": "2020-01-01"}}, "range.upper"),
    ({"type": "datetime", "dbType": "year"}, "dbType"),
    ({"type": "select", "items": [{"value": "a"}], "maxitems": "x"}, "maxitems"),
    ({"type": "select", "items": [{"value": {"a": 1}}]}, "items"),
    ({"type": "select", "renderType": "selectSingle", "dbFieldLength": "9; x"}, "dbFieldLength"),
    ({"type": "select", "dbFieldLength": 0.5}, "dbFieldLength"),
    ({"type": "select", "foreign_table": ["pages"]}, "foreign_table"),
    ({"type": "check", "item_values": 5000}, "items"),
    ({"type": "check", "items": [{}] * 63}, "items"),
    ({"type": "check", "eval": "maximumRecordsChecked", "validation": {"maximumRecordsChecked": "x"}}, "validation"),
    ({"type": "check", "validation": [1]}, "validation"),
    ({"type": "uuid", "version": "x"}, "version"),
    ({"type": "country", "filter": ["DE"]}, "filter"),
    ({"type": "country", "filter": {"onlyCountries": "DE"}}, "filter.onlyCountries"),
    ({"type": "text", "softref": {"a": 1}}, "softref"),
    ({"type": "json", "default": "x"}, "default"),
    ({"type": "slug", "generatorOptions": ["title"]}, "generatorOptions"),
    ({"type": "slug", "generatorOptions": {"fields": "title"}}, "generatorOptions.fields"),
    ({"type": "slug", "generatorOptions": {"fieldSeparator": 5}}, "generatorOptions.fieldSeparator"),
    ({"type": "slug", "fallbackCharacter": "\\"}, "fallbackCharacter"),
    ({"type": "slug", "fallbackCharacter": "--"}, "fallbackCharacter"),
    ({"type": "flex", "ds": "<a"}, "ds"),
    ({"type": "flex", "ds": ["a"]}, "ds"),
    ({"type": "group", "allowed": ["pages"]}, "allowed"),
    ({"type": "group", "allowed": "pages", "MM": 'x"y'}, "MM"),
    ({"type": "group", "allowed": "pages", "MM": "m" * 100}, "MM"),
    ({"type": "group", "allowed": "pages", "MM": {"a": 1}}, "MM"),
    ({"type": "group", "allowed": "pages", "MM": "tx_mm", "MM_oppositeUsage": ["a"]}, "MM_oppositeUsage"),
    ({"type": "group", "allowed": "pages", "MM": "tx_mm", "MM_match_fields": ["a"]}, "MM_match_fields"),
    ({"type": "group", "allowed": "pages", "relationship": "some"}, "relationship"),
    ({"type": "inline", "foreign_table": "tx_h", "foreign_match_fields": ["a"]}, "foreign_match_fields"),
    ({"type": "inline", "foreign_table": "tx_h", "foreign_match_fields": 0}, "foreign_match_fields"),
    ({"type": "inline", "foreign_table": "pages", "foreign_field": {"a": 1}}, "foreign_field"),
]
_PLACES: list[tuple[dict[str, Any], str]] = [
    (group(MM="pages"), "columns.f.config: MM: 'pages' is a table of records"),
    (group(MM="be_users"), "columns.f.config: MM: 'be_users' is a table of records"),
    (group(MM="auth_session"), "columns.f.config: MM: the name 'auth_session' is taken"),
    (group(MM="pg_class"), "columns.f.config: MM: the name 'pg_class' is taken"),
    (field(type="input", MM="pages"), "columns.f.config: MM: 'pages' is a table of records"),
    (form("<type>group</type><allowed>pages</allowed><MM>pages</MM>"), "columns.f.config.ds.sDEF.a: MM: 'pages'"),
    (form("<type>group</type><allowed>nowhere</allowed>"), "columns.f.config.ds.sDEF.a: there is no table 'nowhere'"),
    (form("<type>input</type><max>x</max>"), "columns.f.config.ds.sDEF.a.max: a whole number"),
    (inline(foreign_field="nope"), "columns.f.config: foreign_field: the table pages has no column 'nope'"),
    (inline(foreign_field="title"), "columns.f.config: foreign_field: the column 'title' of pages has to be a whole"),
    (inline(foreign_field="pid"), "columns.f.config: foreign_field: the column 'pid' of pages has another use"),
    (inline(foreign_field="deleted"), "columns.f.config: foreign_field: the column 'deleted' of pages has another use"),
    (inline(foreign_field="shortcut", foreign_sortby="no"), "foreign_sortby: the table pages has no column 'no'"),
    (inline(foreign_field="shortcut", foreign_sortby="title"), "foreign_sortby: the column 'title' of pages has to be"),
    (inline(foreign_field="shortcut", foreign_sortby="uid"), "foreign_sortby: the column 'uid' of pages has another"),
    (inline(foreign_field="shortcut", foreign_table_field="no"), "foreign_table_field: the table pages has no column"),
    (inline(foreign_field="shortcut", foreign_match_fields={"no": 1}), "foreign_match_fields: the table pages has no"),
    (inline(foreign_field="shortcut", foreign_match_fields={"pid": 1}), "foreign_match_fields: the column 'pid'"),
    (table(columns={"uid": {"config": {"type": "input"}}}), "columns.uid: the store itself"),
    (table(columns={"pid": {"config": {"type": "number"}}}), "columns.pid: the store itself"),
    (table(columns={"t3ver_wsid": {"config": {"type": "number"}}}), "columns.t3ver_wsid: the store itself"),
    (table({"delete": "d"}, {"d": {"config": {"type": "check"}}}), "columns.d: it is ctrl.delete"),
    (table({"sortby": "s"}, {"s": {"config": {"type": "passthrough"}}}), "columns.s: it is ctrl.sortby"),
    (table({"tstamp": "f"}, {"f": {"config": {"type": "input"}}}), "ctrl.tstamp: the field 'f' holds no whole"),
    (table(db_columns={"uid": {"type": "string"}}), "db_columns.uid: the store itself"),
    (table(db_columns={"pid": {"type": "json", "nullable": True}}), "db_columns.pid: the store itself"),
    (table(db_columns={"x": {"type": "float", "default": float("nan")}}), "db_columns.x.default: a number"),
    (table(db_columns={"x": {"type": "int", "default": "0); drop"}}), "db_columns.x.default: a whole number"),
    (table(db_columns={"x": {"type": "date", "default": "soon"}}), "db_columns.x.default: a date"),
    (table(db_columns={"x": {"type": "json", "default": "{"}}), "db_columns.x.default: JSON"),
    (table(db_columns={"x": {"type": "string", "length": 2, "default": "abc"}}), "db_columns.x.default: it is longer"),
    (table({"sortby": "s"}, db_columns={"s": {"type": "text"}}), "ctrl.sortby: the column 's' has to be a whole"),
    (table({"sortby": "s"}, db_columns={"s": {"type": "int", "nullable": True}}), "ctrl.sortby: the column 's' has"),
    (table({"delete": "d"}, db_columns={"d": {"type": "int", "nullable": True}}), "ctrl.delete: the column 'd' has"),
    (
        table({"languageField": "l", "transOrigPointerField": "p"}, db_columns={"l": {"type": "text"}}),
        "ctrl.languageField: the column 'l' has",
    ),
    (table(type_columns_overrides={"1": {"title": {"config": 5}}}), "type_columns_overrides.1.title.config"),
    (table(type_columns_overrides={"1": {"title": {"config": 0}}}), "type_columns_overrides.1.title.config"),
    (table(type_columns_overrides={"1": {"title": {"config": {"max": "x"}}}}), "type_columns_overrides.1.title.config.max"),
    (table(type_columns_overrides={"1": {"title": {"l10n_mode": 5}}}), "type_columns_overrides.1.title.l10n_mode"),
    (table(type_columns_overrides={"1": {"title": {"config": {"type": "json"}}}}), "type_columns_overrides.1.title.config"),
    (table(type_columns_overrides={"1": {"title": {"config": {"MM": "pages"}}}}), "type_columns_overrides.1.title.config"),
]  # fmt: skip


def lines_of(*sources: tuple[str, Any]) -> list[str]:
    with pytest.raises(SchemaFileError) as refused:
        build_schema([*_builtin(), *sources])
    return refused.value.problems


@cache
def _builtin() -> list[tuple[str, Any]]:
    folder = Path(str(files("content_store.schema") / "tables"))
    return [(path.name, content) for path, content in folder_sources([folder], [])]


@pytest.mark.parametrize(("ctrl", "place"), _CTRL)
def test_a_wrong_control_section_is_refused_with_its_place(ctrl: dict[str, Any], place: str) -> None:
    found = lines_of(("h.json", table(ctrl)))
    assert any(line.startswith(f"h.json: tx_h: {place}: ") for line in found), found


@pytest.mark.parametrize(("config", "place"), _CONFIG)
def test_a_wrong_field_is_refused_with_its_place(config: dict[str, Any], place: str) -> None:
    found = lines_of(("h.json", field(**config)))
    assert all(line.startswith(f"h.json: tx_h: columns.f.config.{place}") for line in found), found


@pytest.mark.parametrize(("data", "expected"), _PLACES)
def test_a_file_that_does_not_fit_together_is_refused_with_its_place(data: dict[str, Any], expected: str) -> None:
    found = lines_of(("h.json", data))
    assert any(line.startswith("h.json: tx_h: ") and expected in line for line in found), found


def test_the_file_that_adds_the_wrong_part_is_named() -> None:
    more = {
        "extends": "pages",
        "ctrl": {"rootLevel": "x"},
        "columns": {"tx_a": {"config": {"type": "input", "max": "x"}}},
    }
    assert [line.partition(": c")[0] for line in lines_of(("more.json", more))] == ["more.json: pages"] * 2
    rights = {"extends": "pages", "columns": {"perms_user": {"config": {"type": "number"}}}}
    assert lines_of(("more.json", rights)) == [
        "more.json: pages: columns.perms_user: the rights of a page are no field"
    ]


def test_what_is_right_is_still_accepted() -> None:
    columns: dict[str, Any] = {
        "count": {"config": {"type": "number", "range": {"lower": -1, "upper": "9"}, "default": 0, "nullable": True}},
        "price": {"config": {"type": "number", "format": "decimal", "range": {"lower": 0.5}, "default": "1.50"}},
        "name": {"config": {"type": "input", "max": "40", "min": 2, "default": "", "eval": "trim"}},
        "id": {"config": {"type": "uuid", "version": 7}},
        "path": {
            "config": {"type": "slug", "fallbackCharacter": "_", "generatorOptions": {"fields": [["name", "title"]]}}
        },
        "land": {"config": {"type": "country", "filter": {"onlyCountries": ["DE"]}}},
        "parent": {"config": {"type": "group", "allowed": "tx_h", "relationship": "manyToOne"}},
        "below": {
            "config": {"type": "inline", "foreign_table": "tx_h", "foreign_field": "parent", "foreign_sortby": "sorting"}
        },
        "other": {"config": {"type": "group", "allowed": "pages,tt_content", "MM": "tx_h_mm", "maxitems": 5}},
        "changed": {"config": {"type": "datetime", "readOnly": True}},
    }  # fmt: skip
    ctrl = {"sortby": "sorting", "delete": "deleted", "tstamp": "changed", "rootLevel": -1, "type": "parent:count"}
    data = table(ctrl, columns, type_columns_overrides={"1": {"name": {"config": {"required": True}, "label": "n"}}})
    schema = build_schema([*_builtin(), ("h.json", json.loads(json.dumps(data)))])
    assert "tx_h_mm" in schema.mm_tables
    assert set(_create_statements(schema, "public")) == set(schema.tables) | set(schema.mm_tables)


def test_a_relation_table_never_takes_the_place_of_a_table_of_records() -> None:
    """Also where a schema was made in another way than from files: its columns would be dropped as not described."""
    plain = {"ctrl": {}, "columns": {"f": {"config": {"type": "group", "allowed": "pages", "MM": "pages"}}}}
    schema = Schema.from_data({"tables": {"pages": plain}})
    with pytest.raises(SchemaError, match="pages: named as a relation table"):
        _create_statements(schema, "public")


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_JSON = st.recursive(_SCALARS, lambda part: st.lists(part, max_size=2) | st.dictionaries(st.text(max_size=3), part, max_size=2), max_leaves=4)  # fmt: skip
_KNOWN = st.sampled_from(sorted({place.split(".")[0] for _, place in _CONFIG}))
_KNOWN_CTRL = st.sampled_from(
    sorted({place.split(".")[1] for _, place in _CTRL} | {"editlock", "origUid", "label_alt"})
)
_TYPES = st.sampled_from(
    ["input", "number", "select", "group", "inline", "slug", "flex", "check", "uuid", "json", "file"]
)


@example("select", {"foreign_table": []}, {})
@given(_TYPES, st.dictionaries(_KNOWN, _JSON, max_size=3), st.dictionaries(_KNOWN_CTRL, _JSON, max_size=2))
def test_any_file_is_a_schema_or_lines_that_say_what_is_wrong(
    kind: str, config: dict[str, Any], ctrl: dict[str, Any]
) -> None:
    data = table(ctrl, {"f": {"config": {**config, "type": kind}}})
    try:
        schema = build_schema([("h.json", data), ("p.json", {**table(), "table": "pages"})])
    except SchemaFileError as refused:
        problems = refused.problems
    else:
        problems = []
        assert _create_statements(schema, "public")
        assert schema.parents_of is not None
    assert all(line.startswith("h.json: ") for line in problems)


def test_the_built_in_tables_are_right() -> None:
    assert load_schema().tables
