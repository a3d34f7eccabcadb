"""How rows of a test suite are compared with rows of the database (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree

_ANY: Final = "\\*"
_XML: Final = "<?xml"
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def cell_text(value: Any) -> str:
    """A cell as text: NULL is empty."""
    if value is None or value is False:
        return ""
    return "1" if value is True else str(value)


def _tree(text: str) -> Any:
    def shape(node: ElementTree.Element) -> Any:
        children = [shape(child) for child in node]
        return node.tag, sorted(node.attrib.items()), (node.text or "").strip(), (node.tail or "").strip(), children

    # Suite files and rows of a test database: nobody else's XML.
    return shape(ElementTree.fromstring(text))  # noqa: S314


def cell_matches(expected: Any, actual: Any) -> bool:
    r"""Is the cell as expected? A JSON null demands NULL, ``\\*`` takes anything, XML is compared as a tree."""
    if expected is None:
        return actual is None
    if isinstance(expected, str) and expected.startswith(_ANY):
        return True
    if isinstance(expected, str) and expected.startswith(_XML):
        try:
            return bool(_tree(expected) == _tree(cell_text(actual)))
        except ElementTree.ParseError:
            return False
    return cell_text(expected) == cell_text(actual)


def compare_table(
    table: str, columns: Sequence[str], expected: Iterable[Sequence[Any]], rows: list[Mapping[str, Any]]
) -> list[str]:
    """Differences: every expected row has to have a row of its own, and none may be left over."""
    left, messages = list(rows), []
    key = next((name for name in ("uid", "hash") if name in columns), None)
    for cells in expected:
        wanted = dict(zip(columns, cells, strict=True))
        match = next((r for r in left if all(n in r and cell_matches(v, r[n]) for n, v in wanted.items())), None)
        if match is not None:
            left.remove(match)
            continue
        same = next((r for r in left if key and cell_text(r.get(key)) == cell_text(wanted[key])), None)
        if same is None:
            messages.append(f"{table}: missing {wanted if key is None else f'{key} {wanted[key]}'} {wanted}")
            continue
        left.remove(same)
        wrong = [
            f"{name} should be {value!r}, is {same.get(name)!r}"
            for name, value in wanted.items()
            if name not in same or not cell_matches(value, same[name])
        ]
        messages.append(f"{table}:{cell_text(same.get(key or ''))}: {'; '.join(wrong)}")
    messages += [f"{table}: one too many { ({n: r.get(n) for n in columns}) }" for r in left]
    return messages


def compare_value(check: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A check of a single cell, or of the number of rows; rows are in the order of uid."""
    kind, table = check["assert"], check["table"]
    if kind == "count":
        wanted = check["value"]
        return [] if len(rows) == wanted else [f"{table}: {len(rows)} rows instead of {wanted}"]
    if len(rows) <= check["row_index"]:
        return [f"{table}: there is no row {check['row_index']}"]
    text = cell_text(rows[check["row_index"]].get(check["column"]))
    fits = {
        "equals": text == cell_text(check.get("value")),
        "not_equals": text != cell_text(check.get("value")),
        "not_empty": text not in ("", "0"),
        "is_valid_uuid": bool(_UUID.fullmatch(text)),
    }[kind]
    return [] if fits else [f"{table} row {check['row_index']}: {check['column']} {text!r} fails {kind}"]
