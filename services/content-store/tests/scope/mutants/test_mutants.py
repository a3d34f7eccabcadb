"""The mutants themselves: each can be put in place and is taken back, and none is excused that is not there."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from content_store.scope import checker
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.places import Places
from remit_contracts.scope import EffectiveAssignmentScope, ScopeReason
from store_support.mutants.memory import Memory, Reach
from store_support.mutants.mutation import MODULES, Mutant, applied, lines_of, mutants_of
from store_support.mutants.report import EQUIVALENT, Verdict, write_report


@pytest.mark.parametrize("module", MODULES)
def test_every_mutant_of_a_module_changes_its_function_and_is_taken_back(module: str) -> None:
    mutants = mutants_of(module)
    assert len({mutant.label for mutant in mutants}) == len(mutants) > 20
    for mutant in mutants:
        with applied(mutant):
            pass


def test_a_mutant_reaches_whoever_holds_the_class_already() -> None:
    narrow = AssignmentScopeChecker(EffectiveAssignmentScope(tables=("pages",)))
    mutant = Mutant("checker", "AssignmentScopeChecker.table", "left out", "table in self._tables")
    assert narrow.table("pages") is None
    with applied(mutant):
        assert narrow.table("pages") is ScopeReason.TABLE_NOT_ALLOWED
    assert narrow.table("pages") is None
    assert checker.AssignmentScopeChecker is AssignmentScopeChecker
    assert not narrow.page(1, Places())


def test_what_is_not_there_is_no_mutant() -> None:
    with pytest.raises(LookupError), applied(Mutant("checker", "AssignmentScopeChecker.table", "negated", "nothing")):
        pass


def test_only_mutants_that_are_there_are_excused() -> None:
    labels = {mutant.label for module in MODULES for mutant in mutants_of(module)}
    assert EQUIVALENT.keys() <= labels


def test_the_lines_of_a_mutant_are_those_of_its_statement_and_of_none_inside_it() -> None:
    source = inspect.getsource(checker).splitlines()
    (loop,) = [
        m for m in mutants_of("checker") if m.function.endswith("_placed_with") and m.source == "companion is None"
    ]
    assert [source[line - 1].strip() for line in lines_of(loop)] == [
        "if companion is None or not self.contains(companion, places):"
    ]
    for module in MODULES:
        for mutant in mutants_of(module):
            assert 0 < len(lines_of(mutant)) < 20, mutant.label


KILLER = "services/content-store/tests/scope/test_checker.py::test_none_admits_nothing"


def test_what_was_found_is_known_to_the_next_run(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.remember_reach(Reach(KILLER, 0.5, {"checker": [1, 2]}))
    memory.remember_verdict("killed", KILLER)
    memory.remember_verdict("alive", None)
    later = Memory(tmp_path)
    assert later.reached() == {KILLER: Reach(KILLER, 0.5, {"checker": [1, 2]})}
    assert later.verdicts() == {"killed": KILLER, "alive": None}
    assert Memory(tmp_path, fresh=True).verdicts() == {}


def test_what_was_found_with_other_sources_is_a_hint_only(tmp_path: Path) -> None:
    Memory(tmp_path).remember_verdict("killed", KILLER)
    file = tmp_path / "verdicts.jsonl"
    text = file.read_text(encoding="utf-8").replace('{"on": "', '{"on": "other')
    # The last line of a run that was stopped while it wrote.
    file.write_text(text + text[:20], encoding="utf-8")
    memory = Memory(tmp_path)
    assert memory.verdicts() == {}
    assert memory.hints() == {"killed": KILLER}


def test_the_report_names_the_killer_and_whoever_lives_on(tmp_path: Path) -> None:
    killed, alive = mutants_of("checker")[:2]
    write_report(tmp_path / "mutants.md", [Verdict(killed, KILLER), Verdict(alive, None)])
    text = (tmp_path / "mutants.md").read_text(encoding="utf-8")
    assert "| `test_checker.py::test_none_admits_nothing` |" in text
    assert text.count("**nobody**") == 1
    assert f"| all | {2 + len(EQUIVALENT)} | 1 | 1 | {len(EQUIVALENT)} |" in text
