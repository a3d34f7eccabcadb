"""Makes mutants of the scope's rules: one small change of one function at a time, put in place while tests run."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

PACKAGE: Final = "content_store.scope"
#: What is mutated: the checker, the effect check with what it asks of deletions, and the hook with the two classes it asks.
MODULES: Final = ("checker", "effect", "deletions", "hook", "entries", "commands")
_SHIFTED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_Change = Callable[[ast.AST], ast.AST]


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        module: name below ``content_store.scope``.
        function: qualified name.
        kind: ``negated``, ``left out``, ``shifted``, ``swapped`` or ``not asked``.
        source: the expression as written.
        nth: which of the equal changes of the function, from 0.
    """

    module: str
    function: str
    kind: str
    source: str
    nth: int = 0

    @property
    def label(self) -> str:
        """For people, and to name it by."""
        again = f" ({self.nth + 1})" if self.nth else ""
        return f"{self.module}.{self.function}: {self.kind}: {self.source}{again}"


@dataclass(frozen=True)
class _Site:
    kind: str
    source: str
    place: tuple[tuple[str, int | None], ...]
    change: _Change


def mutants_of(module: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its source."""
    found: list[Mutant] = []
    for name, node in _functions(_tree(module)):
        seen: dict[tuple[str, str], int] = {}
        for site in _sites(node):
            nth = seen.get((site.kind, site.source), 0)
            seen[site.kind, site.source] = nth + 1
            found.append(Mutant(module, name, site.kind, site.source, nth))
    return found


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The function works as the mutant says; whoever imported it before sees that, too.

    Raises:
        LookupError: there is no such place in the source.
    """
    module = importlib.import_module(f"{PACKAGE}.{mutant.module}")
    function = _function(module, mutant.function)
    original = function.__code__
    function.__code__ = _mutated(mutant, module)
    try:
        yield
    finally:
        function.__code__ = original


def lines_of(mutant: Mutant) -> range:
    """Lines of the statement it changes, without those nested in it: a test that runs none of them cannot tell."""
    node: ast.AST
    node, site = _found(_tree(mutant.module), mutant)
    statement: ast.stmt = node
    for step, number in site.place:
        inner = getattr(node, step)
        node = inner if number is None else inner[number]
        statement = node if isinstance(node, ast.stmt) else statement
    nested = [getattr(statement, name)[0] for name in ("body", "cases") if getattr(statement, name, None)]
    last = min(
        (getattr(first, "lineno", statement.lineno) for first in nested), default=(statement.end_lineno or 0) + 1
    )
    return range(statement.lineno, max(last, statement.lineno + 1))


def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(f"{PACKAGE}.{module}")))


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _mutated(mutant: Mutant, module: ModuleType) -> CodeType:
    tree = _tree(mutant.module)
    node, site = _found(tree, mutant)
    _replace(node, site.place, site.change)
    compiled = compile(ast.fix_missing_locations(tree), str(module.__file__), "exec")
    return next(code for code in _codes(compiled) if code.co_qualname == mutant.function)


def _found(tree: ast.Module, mutant: Mutant) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, _Site]:
    node = dict(_functions(tree)).get(mutant.function)
    sites = [s for s in _sites(node) if (s.kind, s.source) == (mutant.kind, mutant.source)] if node else []
    if node is None or mutant.nth >= len(sites):
        raise LookupError(mutant.label)
    return node, sites[mutant.nth]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _function(module: ModuleType, name: str) -> FunctionType:
    owner, _, last = name.rpartition(".")
    found: Any = vars(getattr(module, owner))[last] if owner else getattr(module, last)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    assert isinstance(found, FunctionType), name
    return found


# --- where something can be changed -----------------------------------------------------------------------------


def _sites(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Site]:
    decides = any(word in ast.unparse(function.returns or ast.Constant(None)) for word in ("Reason", "bool", "Verdict"))
    for number, statement in enumerate(function.body):
        yield from _in(statement, (("body", number),), decides)


def _in(node: ast.AST, place: tuple[tuple[str, int | None], ...], decides: bool) -> Iterator[_Site]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield _Site("negated", ast.unparse(test), (*place, ("test", None)), _negated)
        case ast.comprehension(ifs=ifs):
            for number, test in enumerate(ifs):
                yield _Site("negated", ast.unparse(test), (*place, ("ifs", number)), _negated)
        case ast.BoolOp(values=values):
            for number, value in enumerate(values):
                yield _Site("left out", ast.unparse(value), place, _without(number))
        case ast.Compare(ops=[op]) if type(op) in _SHIFTED:
            yield _Site("shifted", ast.unparse(node), place, _shifted)
        case ast.Call(func=ast.Name(id="all" | "any")):
            yield _Site("swapped", ast.unparse(node), place, _swapped)
        case ast.Return(value=ast.Call() | ast.Await() as value) if decides:
            yield _Site("not asked", ast.unparse(value), (*place, ("value", None)), lambda _node: ast.Constant(None))
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield from _in(value, (*place, (field, None)), decides)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from _in(item, (*place, (field, number)), decides)


def _replace(root: ast.AST, place: tuple[tuple[str, int | None], ...], change: _Change) -> None:
    *way, (field, number) = place
    for step, index in way:
        inner = getattr(root, step)
        root = inner if index is None else inner[index]
    if number is None:
        setattr(root, field, change(getattr(root, field)))
    else:
        getattr(root, field)[number] = change(getattr(root, field)[number])


def _negated(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.expr)
    return ast.UnaryOp(ast.Not(), node)


def _without(number: int) -> _Change:
    def change(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.BoolOp)
        left = [value for index, value in enumerate(node.values) if index != number]
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    return change


def _shifted(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Compare)
    moved = copy.copy(node)
    moved.ops = [_SHIFTED[type(node.ops[0])]()]
    return moved


def _swapped(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return ast.Call(ast.Name("any" if node.func.id == "all" else "all", ast.Load()), node.args, node.keywords)
