"""Which requirement is proved by which test.

``docs/requirements.md`` is the source of ids; tests cite them with ``@pytest.mark.req("S-31")`` on a function, a class
or a module (``pytestmark``). The marks are read from the source files, so nothing has to run for it.

Usage: ``python tools/requirements.py [--check]``. Without ``--check`` the test column of the document is written anew.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "requirements.md"
PLACES = ("libs", "services", "deploy/local", "tests")
LEFT_OUT = {".venv", "node_modules", "build"}
ROW = re.compile(r"^\| (?P<id>[SWCPVTRA]-\d+) \| (?P<text>.*?) \|(?: (?P<tests>.*?) ?\|)?$")
OPEN = re.compile(r"^- (?P<id>[SWCPVTR]-\d+): ")
ID = re.compile(r"[SWCPVTRA]-\d+")
DECISIONS = "A"
SHOWN_FILES = 4


def main(arguments: list[str] | None = None) -> int:
    """Print the list, write the document or check it; 1 when an id is unknown or the column is out of date."""
    parser = argparse.ArgumentParser(description="requirement ids and their tests")
    parser.add_argument("--check", action="store_true", help="change nothing, fail when the document is out of date")
    parser.add_argument("--quiet", action="store_true", help="print only the last line")
    options = parser.parse_args(arguments)
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    known = [match["id"] for line in lines if (match := ROW.match(line))]
    cited = citations()
    failures = [f"{DOCUMENT.name} names {id_} twice" for id_, count in Counter(known).items() if count > 1]
    failures += [
        f"{DOCUMENT.name}: {match['id']} is open, but no requirement"
        for line in lines
        if (match := OPEN.match(line)) and match["id"] not in known
    ]
    failures += [
        f"{file}: {id_} is no requirement" for id_, files in cited.items() if id_ not in known for file in files
    ]
    written = "\n".join(_with_tests(line, cited) for line in lines) + "\n"
    if options.check and written != "\n".join(lines) + "\n":
        failures.append("docs/requirements.md is out of date; run: make requirements")
    if not options.check:
        DOCUMENT.write_text(written, encoding="utf-8")
    for failure in failures:
        print(failure, file=sys.stderr)  # noqa: T201
    if not options.quiet and not options.check:
        _print(known, cited, [match["id"] for line in lines if (match := OPEN.match(line))])
    counted = [id_ for id_ in known if not id_.startswith(DECISIONS)]
    tested = [id_ for id_ in counted if id_ in cited]
    print(f"{len(tested)} of {len(counted)} requirement ids have a test")  # noqa: T201
    return 1 if failures else 0


def citations() -> dict[str, Counter[str]]:
    """Id -> test file (relative) -> number of tests that cite it."""
    found: dict[str, Counter[str]] = {}
    for file in test_files():
        name = file.relative_to(ROOT).as_posix()
        for id_, count in marks(file.read_text(encoding="utf-8")).items():
            found.setdefault(id_, Counter())[name] += count
    return found


def test_files() -> Iterator[Path]:
    """Every file pytest would collect tests from."""
    for place in PLACES:
        for file in sorted((ROOT / place).rglob("test_*.py")):
            if not LEFT_OUT & set(file.parts):
                yield file


def marks(source: str) -> Counter[str]:
    """Ids cited in a test file with the number of tests that cite each."""
    counted: Counter[str] = Counter()
    tree = ast.parse(source)
    module_ids = _assigned(tree.body)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            class_ids = module_ids | _decorated(node) | _assigned(node.body)
            for inner in node.body:
                _count(inner, class_ids, counted)
        else:
            _count(node, module_ids, counted)
    return counted


def _count(node: ast.stmt, inherited: set[str], counted: Counter[str]) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        for id_ in inherited | _decorated(node):
            counted[id_] += 1
    elif isinstance(node, ast.Assign) and any(
        isinstance(t, ast.Name) and t.id.startswith("Test") for t in node.targets
    ):
        for id_ in inherited:  # Stateful.TestCase
            counted[id_] += 1


def _decorated(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {id_ for decorator in node.decorator_list for id_ in _ids(decorator)}


def _assigned(body: list[ast.stmt]) -> set[str]:
    return {
        id_
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
        for id_ in _ids(node.value)
    }


def _ids(expression: ast.expr) -> Iterator[str]:
    """Ids of every ``req(…)`` call inside an expression (also in ``pytest.param(…, marks=…)``)."""
    for node in ast.walk(expression):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req"):
            continue
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and ID.fullmatch(argument.value):
                yield argument.value


def _with_tests(line: str, cited: dict[str, Counter[str]]) -> str:
    match = ROW.match(line)
    if match is None:
        return line
    return f"| {match['id']} | {match['text']} | {_tests(cited.get(match['id'], Counter()))} |".replace("|  |", "| |")


def _tests(files: Counter[str]) -> str:
    shown = [f"`{_short(name)}` {count}" for name, count in sorted(files.items())[:SHOWN_FILES]]
    rest = len(files) - len(shown)
    return ", ".join(shown) + (f", {rest} more files" if rest else "")


def _short(name: str) -> str:
    return re.sub(r"^(?:libs|services|deploy)/(?P<room>[^/]+)/tests/", r"\g<room>/", name).removesuffix(".py")


def _print(known: list[str], cited: dict[str, Counter[str]], in_part: list[str]) -> None:
    for id_ in known:
        if id_ in cited:
            print(f"{id_}: {sum(cited[id_].values())} tests in {', '.join(sorted(cited[id_]))}")  # noqa: T201
    missing = [id_ for id_ in known if id_ not in cited and not id_.startswith(DECISIONS)]
    print(f"proved in part, see the end of {DOCUMENT.name}: {', '.join(in_part) or 'none'}")  # noqa: T201
    print(f"without a test: {', '.join(missing) or 'none'}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
