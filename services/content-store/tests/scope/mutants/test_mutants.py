"""The mutants themselves: each can be put in place and is taken back, and none is excused that is not there."""

from __future__ import annotations

import pytest
from content_store.scope import checker
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.places import Places
from remit_contracts.scope import EffectiveAssignmentScope, ScopeReason
from store_support.mutants.mutation import MODULES, Mutant, applied, mutants_of
from store_support.mutants.report import EQUIVALENT


@pytest.mark.parametrize("module", MODULES)
def test_every_mutant_of_a_module_changes_its_function_and_is_taken_back(module: str) -> None:
    mutants = mutants_of(module)
    assert len({mutant.label for mutant in mutants}) == len(mutants) > 30
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
