from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from remit_contracts.actor import ActorContext, ActorRequest
from remit_contracts.records import MAX_UID, RecordReference
from remit_contracts.scope import (
    AssignmentScope,
    EffectiveAssignmentScope,
    PageRoot,
    effective_scope,
)

uids = st.integers(1, MAX_UID)
tables = st.from_regex(r"\A[a-z][a-z0-9_]{0,20}\Z")
scopes = st.builds(
    AssignmentScope,
    pages=st.lists(st.builds(PageRoot, page=uids, depth=st.integers(0, 99)), max_size=5).map(tuple),
    records=st.lists(st.builds(RecordReference, table=tables, uid=uids), max_size=5).map(tuple),
    tables=st.none() | st.lists(tables, max_size=3).map(tuple),
    languages=st.none() | st.lists(st.integers(-1, 20), max_size=3).map(tuple),
)


@pytest.mark.req("S-01", "S-09")
@given(scopes)
def test_a_scope_survives_the_stored_form_of_its_actor(scope: AssignmentScope) -> None:
    actor = ActorContext(user_uid=3, workspace_id=2).with_assignment_scope(scope)
    assert ActorContext.model_validate_json(actor.model_dump_json()) == actor


@pytest.mark.req("S-09", "S-10")
def test_an_actor_without_a_scope_has_no_key() -> None:
    actor = ActorContext(user_uid=3)
    assert "assignmentScope" not in actor.model_dump()
    assert ActorContext.model_validate(actor.model_dump()).assignment_scope is None


@pytest.mark.req("S-10")
@pytest.mark.parametrize(
    "unreadable",
    ["", "junk", 7, None, [], {"pages": "all"}, {"pages": [{"page": 0}]}, {"records": ["pages:+5"]}, {"tables": 5}],
)
def test_an_unreadable_key_admits_nothing(unreadable: Any) -> None:
    actor = ActorContext.model_validate({"userUid": 3, "assignmentScope": unreadable})
    assert actor.assignment_scope == AssignmentScope.none()
    assert "assignmentScope" in actor.model_dump(), "stored again, it is still a scope"


@pytest.mark.req("S-01", "S-11")
@pytest.mark.parametrize(
    "scope",
    [
        {"pages": [{"page": n + 1} for n in range(51)]},
        {"records": [f"pages:{n + 1}" for n in range(201)]},
        {"tables": [f"t{n}" for n in range(51)]},
        {"languages": list(range(51))},
        {"pages": [{"page": 1, "depth": 100}]},
        {"pages": [{"page": 1, "depth": -1}]},
        {"records": ["pages:0"]},
        {"records": ["pages:05"]},
        None,
        "everything",
    ],
)
def test_a_start_refuses_a_scope_it_cannot_read(scope: Any) -> None:
    with pytest.raises(ValidationError):
        ActorRequest.model_validate({"userUid": 3, "assignmentScope": scope if scope is not None else "null"})


@pytest.mark.req("S-01")
def test_a_start_takes_a_scope_at_its_limits() -> None:
    limits = {
        "pages": [{"page": n + 1, "depth": 99} for n in range(50)],
        "records": [f"pages:{n + 1}" for n in range(200)],
        "tables": [f"t{n}" for n in range(50)],
        "languages": list(range(50)),
    }
    actor = ActorRequest.model_validate({"userUid": 3, "assignmentScope": limits})
    assert actor.assignment_scope is not None
    assert len(actor.assignment_scope.records) == 200


@pytest.mark.req("S-02")
def test_the_builders_name_what_they_say() -> None:
    assert AssignmentScope.none().admits_nothing
    assert AssignmentScope(tables=("pages",)).admits_nothing
    assert AssignmentScope.for_page(5, 2).pages == (PageRoot(page=5, depth=2),)
    assert AssignmentScope.for_record("tt_content", 7).records == (RecordReference(table="tt_content", uid=7),)


@pytest.mark.req("S-12", "S-13", "S-14", "S-15")
@given(scopes, st.integers(0, 99))
def test_the_effective_scope_never_reaches_deeper_than_the_cap(scope: AssignmentScope, cap: int) -> None:
    effective = effective_scope(scope, required=False, max_depth=cap)
    assert effective is not None
    assert all(root.depth <= cap for root in effective.pages)
    assert [root.page for root in effective.pages] == [root.page for root in scope.pages]


@pytest.mark.req("S-12")
def test_a_required_scope_that_is_missing_admits_nothing() -> None:
    assert effective_scope(None, required=True, max_depth=99) == EffectiveAssignmentScope.none()
    assert effective_scope(None, required=False, max_depth=99) is None


@given(tables, uids)
def test_a_reference_reads_as_it_writes(table: str, uid: int) -> None:
    reference = RecordReference(table=table, uid=uid)
    assert RecordReference.parse(str(reference)) == reference


@pytest.mark.req("S-42")
@pytest.mark.parametrize(
    "text", ["", "pages", "pages:", "pages:0", "pages:+5", "pages:05", "pages:5 ", ":5", "pages:9999999999", "Pages:5"]
)
def test_a_reference_is_canonical(text: str) -> None:
    with pytest.raises(ValidationError):
        RecordReference.parse(text)


@pytest.mark.req("S-06", "S-10", "S-42")
@pytest.mark.parametrize(
    "wrong",
    [
        {"pages": [{"page": 14, "dpeth": 2}]},
        {"pages": [{"page": 14}], "langauges": [1]},
        {"pages": [{"page": 14}], "table": ["tt_content"]},
    ],
)
def test_a_misspelled_limit_is_refused_and_never_left_out(wrong: dict[str, object]) -> None:
    for kind in (AssignmentScope, EffectiveAssignmentScope):
        with pytest.raises(ValidationError):
            kind.model_validate(wrong)
    # Read back from where an actor is stored, it admits nothing.
    actor = ActorContext.model_validate({"userUid": 1, "assignmentScope": wrong})
    assert actor.assignment_scope == AssignmentScope.none()
