"""Flex forms: their structure (data structure XML) and their values (XML in one column), as plain data (pure).

A value is ``{"data": {sheet: {"lDEF": {field: {"vDEF": text} | {"el": {id: {container: {"el": {...}}}}}}}}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from content_store.schema.model import Column
from content_store.schema.relations import RelationSpec

#: lxml ships no types; nodes are duck-typed here.
_Node: TypeAlias = Any
_HEADER: Final = '<?xml version="1.0" encoding="utf-8" standalone="yes" ?>\n'
# Entities and the network are never needed in a form value, and a way in when allowed.
_PARSER: Final = {"resolve_entities": False, "no_network": True, "huge_tree": False, "remove_comments": True}
_ACTION: Final = "_ACTION"
_PLACE: Final = re.compile(r"-?[0-9]{1,9}")


class FlexError(ValueError):
    """The structure or value is no readable flex form."""


@dataclass(frozen=True)
class FlexStructure:
    """Fields of a flex form.

    Attributes:
        sheets: sheet -> field -> column.
        sections: (sheet, field) -> container -> field -> column, for repeatable parts.
    """

    sheets: Mapping[str, Mapping[str, Column]] = field(default_factory=dict)
    sections: Mapping[tuple[str, str], Mapping[str, Mapping[str, Column]]] = field(default_factory=dict)

    def columns(self) -> Iterator[tuple[str, str, Column]]:
        """Sheet, field and column of all fields outside of sections."""
        for sheet, columns in self.sheets.items():
            for name, column in columns.items():
                yield sheet, name, column


def structure_of(column: Column) -> FlexStructure:
    """The fields of a form.

    Raises:
        FlexError: its description cannot be read.
    """
    return parse_structure(str(column.config.get("ds") or ""))


def relations_of(column: Column) -> Iterator[RelationSpec]:
    """The relation of a field, or those of the fields of a form; none where its description cannot be read."""
    if column.relation is not None:
        yield column.relation
        return
    try:
        inside = list(structure_of(column).columns())
    except FlexError:
        return
    yield from (inner.relation for _, _, inner in inside if inner.relation is not None)


@lru_cache(maxsize=256)
def parse_structure(source: str) -> FlexStructure:
    """Reads a data structure; a file reference or empty text is a form without known fields.

    Raises:
        FlexError: the text is XML of another kind, or no XML.
    """
    text = source.strip()
    if not text.startswith("<"):
        return FlexStructure()
    root = _read(text)
    sheets_node = root.find("sheets")
    sheets = {"sDEF": root} if sheets_node is None else {str(s.tag): s for s in sheets_node}
    found: dict[str, dict[str, Column]] = {}
    sections: dict[tuple[str, str], dict[str, dict[str, Column]]] = {}
    for sheet, node in sheets.items():
        elements = node.find("ROOT/el")
        found[sheet] = {}
        for element in _children(elements):
            name = str(element.tag)
            if (element.findtext("section") or "").strip() == "1":
                sections[sheet, name] = {
                    str(container.tag): _columns(container.find("el")) for container in _children(element.find("el"))
                }
            else:
                found[sheet][name] = _column(name, element)
    return FlexStructure(found, sections)


def _children(node: _Node | None) -> list[_Node]:
    return list(node) if node is not None else []


def _columns(node: _Node | None) -> dict[str, Column]:
    return {str(e.tag): _column(str(e.tag), e) for e in node} if node is not None else {}


def _column(name: str, node: _Node) -> Column:
    config = node.find("config")
    if config is None:
        config = node.find("TCEforms/config")
    data = _data(config) if config is not None and len(config) else {}
    return Column.from_data(name, {"config": data, "l10n_mode": node.findtext("l10n_mode") or ""})


def _data(node: _Node) -> Any:
    if not len(node):
        return (node.text or "").strip()
    return {str(child.get("index") or child.tag): _data(child) for child in node}


def _read(text: str) -> _Node:
    try:
        root = etree.fromstring(text.encode("utf-8"), etree.XMLParser(**_PARSER))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FlexError("not a flex form") from error
    return root


def parse_value(text: str | None) -> dict[str, Any]:
    """Reads a stored value; an empty one is an empty form.

    Raises:
        FlexError: the text is no XML.
    """
    if not text or not text.strip():
        return {"data": {}}
    root = _read(text.strip())
    data: dict[str, Any] = {}
    for sheet in root.iterfind("data/sheet"):
        data[sheet.get("index", "sDEF")] = {
            language.get("index", "lDEF"): _fields(language) for language in sheet.iterfind("language")
        }
    return {"data": data}


def _fields(node: _Node) -> dict[str, Any]:
    return {child.get("index", ""): _field_value(child) for child in node.iterfind("field")}


def _field_value(node: _Node) -> dict[str, Any]:
    section = node.find("el")
    if section is not None:
        return {"el": _fields(section)}
    return {value.get("index", "vDEF"): _inner(value) for value in node.iterfind("value")}


def _inner(node: _Node) -> Any:
    container = node.find("el")
    return {"el": _fields(container)} if container is not None else (node.text or "")


def format_value(value: Mapping[str, Any]) -> str:
    """Writes a value as XML.

    Raises:
        FlexError: a key or text XML cannot hold.
    """
    root = etree.Element("T3FlexForms")
    data = etree.SubElement(root, "data")
    try:
        for sheet, languages in _map(value.get("data", {})).items():
            sheet_node = etree.SubElement(data, "sheet", index=str(sheet))
            for language, fields in _map(languages).items():
                _write_fields(etree.SubElement(sheet_node, "language", index=str(language)), fields)
    except (ValueError, AttributeError) as error:
        raise FlexError("a flex form cannot hold this value") from error
    etree.indent(root, space="    ")
    text = _HEADER + str(etree.tostring(root, encoding="unicode"))
    # What is nested too deep could be written but never read again.
    _read(text)
    return text


def _write_fields(node: _Node, fields: Mapping[str, Any]) -> None:
    for name, entry in _map(fields).items():
        child = etree.SubElement(node, "field", index=str(name))
        if "el" in _map(entry):
            _write_fields(etree.SubElement(child, "el", index="el"), entry["el"])
            continue
        for key, content in entry.items():
            value = etree.SubElement(child, "value", index=str(key))
            if isinstance(content, Mapping):
                _write_fields(etree.SubElement(value, "el"), content.get("el", {}))
            elif isinstance(content, list | tuple):
                raise FlexError("a single value is expected here")
            else:
                value.text = "" if content is None else str(content)


def merge_values(stored: Mapping[str, Any], submitted: Mapping[str, Any]) -> dict[str, Any]:
    """The stored form with the submitted parts over it; sections are deleted and reordered as ``_ACTION`` says.

    Raises:
        FlexError: the submitted value has another shape.
    """
    merged: dict[str, Any] = {"data": {s: {la: dict(f) for la, f in v.items()} for s, v in stored["data"].items()}}
    data = submitted.get("data", {})
    if not isinstance(data, Mapping):
        raise FlexError("data has to be a map of sheets")
    for sheet, languages in data.items():
        for language, fields in _map(languages).items():
            target = merged["data"].setdefault(str(sheet), {}).setdefault(str(language), {})
            for name, entry in _map(fields).items():
                target[str(name)] = _merge_entry(target.get(str(name), {}), _map(entry))
    return merged


def _map(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FlexError("a map is expected here")
    return value


def _merge_entry(stored: Mapping[str, Any], submitted: Mapping[str, Any]) -> dict[str, Any]:
    if "el" not in submitted:
        return {**{k: v for k, v in stored.items() if k != "el"}, **submitted}
    elements: dict[str, Any] = dict(stored.get("el", {}))
    order: dict[str, float] = {}
    for position, (key, element) in enumerate(_map(submitted["el"]).items()):
        content = {k: v for k, v in _map(element).items() if k != _ACTION}
        action = element.get(_ACTION)
        if action == "DELETE":
            elements.pop(key, None)
            continue
        elements[key] = _merge_containers(elements.get(key, {}), content)
        # Numbers give the wanted order; anything else keeps the submitted place.
        order[key] = float(action) if _PLACE.fullmatch(str(action)) else float(position)
    ordered = sorted(elements, key=lambda key: order.get(key, float(len(order))))
    return {"el": {key: elements[key] for key in ordered}}


def _merge_containers(stored: Mapping[str, Any], submitted: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(stored)
    for container, content in submitted.items():
        if not isinstance(content, Mapping):
            merged[container] = content
            continue
        fields = dict(merged[container].get("el", {})) if isinstance(merged.get(container), Mapping) else {}
        fields.update(_map(content.get("el", {})))
        merged[container] = {"el": fields}
    return merged
