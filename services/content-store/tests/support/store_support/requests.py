"""Random datamaps and cmdmaps for the HTTP API: mostly plausible, some of it nonsense."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

Maps = st.SearchStrategy[dict[str, Any]]

_PAGES: Final = st.sampled_from([10, 11, 12, 13, 14, 15, 21])
_CONTENT: Final = st.sampled_from([100, 101, 102, 103, 104, 105, 106, 107, 108])
_NEW: Final = st.sampled_from(["NEW1", "NEW2", "NEW3"])
_NOTHING: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, -1, 2**63, 1.5, "", "\x00", "nonsense", "NEW1", "NEW9", "1,2", "-0", [], {}, ["a"], {"a": {"b": 1}}]
    ),
    st.text(max_size=6),
)


def _mostly(plausible: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda n: _NOTHING if n == 0 else plausible)


_TEXT: Final = st.sampled_from(["a", "b", "Town", "A longer title", "<p>x</p>"])
_FLAG: Final = st.integers(0, 1)
_LANGUAGE: Final = st.sampled_from([0, 0, 0, 1, 1, 2, -1])
_FIELDS: Final[dict[str, dict[str, st.SearchStrategy[Any]]]] = {
    "pages": {
        "title": _TEXT, "slug": st.sampled_from(["", "/a", "/b/c"]), "doktype": st.sampled_from([1, 254, 199]),
        "hidden": _FLAG, "nav_title": _TEXT, "subtitle": _TEXT, "editlock": _FLAG, "perms_everybody": st.integers(0, 31),
        "sys_language_uid": _LANGUAGE, "l10n_parent": _PAGES, "media": st.sampled_from(["300", "301", "300,301", ""]),
        "sorting": st.integers(0, 5), "deleted": _FLAG, "t3ver_wsid": _FLAG, "TSconfig": st.just("TCEMAIN.permissions.everybody = 31"),
    },
    "tt_content": {
        "header": _TEXT, "bodytext": _TEXT, "CType": st.sampled_from(["text", "text", "html", "image"]),
        "colPos": st.integers(0, 2), "hidden": _FLAG, "subheader": _TEXT, "layout": st.sampled_from(["0", "1"]),
        "sys_language_uid": _LANGUAGE, "l18n_parent": _CONTENT, "l10n_source": _CONTENT, "categories": st.just("400"),
        "image": st.sampled_from(["300", "301", "302", "NEW3", "301,NEW3", ""]), "records": st.just("tt_content_100"),
        "editlock": _FLAG, "starttime": st.integers(0, 9), "pid": _PAGES, "uid": _CONTENT,
    },
    "sys_file_reference": {"title": _TEXT, "uid_local": st.just(500), "uid_foreign": _CONTENT, "tablenames": st.just("tt_content"),
                           "fieldname": st.just("image"), "hidden": _FLAG, "alternative": _TEXT},
    "sys_category": {"title": _TEXT, "parent": st.sampled_from([0, 400]), "items": st.just("tt_content_100")},
    "sys_redirect": {"source_path": _TEXT, "target": _TEXT},
    "be_groups": {"title": _TEXT, "tables_modify": st.just("be_users"), "db_mountpoints": st.just("10")},
}  # fmt: skip
_UIDS: Final[dict[str, st.SearchStrategy[int]]] = {
    "pages": _PAGES,
    "tt_content": _CONTENT,
    "sys_file_reference": st.sampled_from([300, 301, 302]),
    "sys_category": st.just(400),
    "sys_redirect": st.just(600),
    "be_groups": st.just(1),
}
_TABLES: Final = ("pages", "pages", "tt_content", "tt_content", "tt_content", "sys_file_reference", "sys_category")
_FORBIDDEN: Final = ("sys_redirect", "be_groups")


def _tables(editor: bool) -> st.SearchStrategy[str]:
    # An administrator leaves the rights of the editor alone, so that they are known.
    return st.sampled_from((*_TABLES, *_FORBIDDEN) if editor else _TABLES)


@st.composite
def datamaps(draw: st.DrawFn, *, editor: bool) -> dict[str, Any]:
    """``{table: {uid or placeholder: {field: value}}}``, or something else."""
    datamap: dict[str, Any] = {}
    for table in draw(st.lists(_tables(editor), min_size=1, max_size=3, unique=True)):
        keys = st.one_of(_UIDS[table].map(str), _UIDS[table].map(str), _NEW)
        for key in draw(st.lists(keys, min_size=1, max_size=2, unique=True)):
            names = st.lists(st.sampled_from(sorted(_FIELDS[table])), min_size=1, max_size=4, unique=True)
            row = {name: draw(_mostly(_FIELDS[table][name])) for name in draw(names)}
            if "NEW" in key:
                row["pid"] = draw(_mostly(_places(table)))
            datamap.setdefault(table, {})[key] = row
    return _spoiled(draw, datamap)


def _places(table: str) -> st.SearchStrategy[Any]:
    return st.one_of(_PAGES, _PAGES, _UIDS[table].map(lambda uid: -uid), st.sampled_from(["NEW1", "-NEW1", 0]))


_COMMANDS: Final = ("copy", "copy", "move", "move", "localize", "copyToLanguage", "delete", "undelete", "version",
                    "inlineLocalizeSynchronize")  # fmt: skip


def _values(table: str, command: str) -> st.SearchStrategy[Any]:
    if command in ("localize", "copyToLanguage"):
        return st.integers(1, 3)
    if command == "inlineLocalizeSynchronize":
        action = st.sampled_from(["localize", "synchronize"])
        return st.fixed_dictionaries({"field": st.just("image"), "language": st.integers(1, 2), "action": action})
    if command in ("copy", "move"):
        update = st.fixed_dictionaries({"colPos": st.integers(0, 2), "sys_language_uid": st.integers(0, 2)})
        paste = st.fixed_dictionaries({"action": st.just("paste"), "target": _places(table), "update": update})
        return st.one_of(_places(table), _places(table), paste)
    return st.just(1)


@st.composite
def cmdmaps(draw: st.DrawFn, *, editor: bool) -> dict[str, Any]:
    """``{table: {uid: {command: value}}}``, or something else."""
    cmdmap: dict[str, Any] = {}
    for table in draw(st.lists(_tables(editor), min_size=1, max_size=2, unique=True)):
        for key in draw(st.lists(_UIDS[table].map(str), min_size=1, max_size=2, unique=True)):
            command = draw(st.sampled_from(_COMMANDS))
            cmdmap.setdefault(table, {})[key] = {command: draw(_mostly(_values(table, command)))}
    return _spoiled(draw, cmdmap)


def _spoiled(draw: st.DrawFn, maps: dict[str, Any]) -> dict[str, Any]:
    """Now and then something that is no map in a place where one belongs."""
    where = draw(st.integers(0, 30))
    if where == 0:
        maps[draw(st.text(max_size=4))] = draw(_NOTHING)
    elif where == 1:
        maps[draw(st.sampled_from(sorted(maps)))] = draw(_NOTHING)
    elif where == 2:
        maps[min(maps)][draw(st.text(max_size=4))] = draw(_NOTHING)
    return maps
