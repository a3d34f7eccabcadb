"""Layer one, operation by operation (S-20 to S-29)."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.calls.endpoints import answer_claims
from remit_contracts.claims import ClaimsRequest, ScopedClaim
from store_support.calls import TestStore

HALL: dict[str, Any] = {"pages": [{"page": 10, "depth": 1}]}
ENGLISH = {**HALL, "languages": [0]}


def claim(
    operation: str, *records: tuple[str, int], pages: tuple[tuple[int, str], ...] = (), **values: Any
) -> dict[str, Any]:
    return {
        "operation": operation,
        "records": [{"table": table, "uid": uid} for table, uid in records],
        "pages": [{"page": page, "table": table} for page, table in pages],
        **values,
    }


C9, C5, C7 = ("tt_content", 9), ("tt_content", 5), ("tt_content", 7)

CASES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (HALL, claim("update", C9), []),
    (HALL, claim("update", C7), ["outside_scope"]),
    (HALL, claim("update", ("tt_content", 4711)), ["scope_unresolvable"]),
    (HALL, claim("update"), ["scope_unresolvable"]),
    ({**HALL, "tables": ["pages"]}, claim("update", C9), ["table_not_allowed"]),
    ({**HALL, "tables": ["tt_content"]}, claim("update", C9, tables=["sys_file_reference"]), ["table_not_allowed"]),
    (ENGLISH, claim("update", ("tt_content", 8)), ["language_not_allowed"]),
    (HALL, claim("create", pages=((10, "tt_content"),)), []),
    (HALL, claim("create", pages=((20, "tt_content"),)), ["outside_scope"]),
    (HALL, claim("create", pages=((0, "sys_redirect"),)), ["outside_scope"]),
    (HALL, claim("create", pages=((100, "pages"),)), ["outside_scope"]),
    (HALL, claim("create", pages=((10, "pages"),)), []),
    (ENGLISH, claim("create", pages=((10, "tt_content"),), language=1), ["language_not_allowed"]),
    # The anchor of "insert after" is a record of the claim as well as a page (S-22).
    (HALL, claim("create", C7, pages=((10, "tt_content"),)), ["outside_scope"]),
    (HALL, claim("move", C9, pages=((100, "tt_content"),)), []),
    (HALL, claim("move", C9, pages=((20, "tt_content"),)), ["outside_scope"]),
    (HALL, claim("move", C9, C7, pages=((10, "tt_content"),)), ["outside_scope"]),
    ({"pages": [{"page": 10, "depth": 2}, {"page": 11, "depth": 1}]}, claim("move", ("pages", 100), pages=((11, "pages"),)), ["subtree_outside_scope"]),
    (ENGLISH, claim("move", C5, pages=((10, "tt_content"),)), ["language_not_allowed"]),
    (HALL, claim("copy", C9, pages=((10, "tt_content"),)), []),
    (HALL, claim("copy", C7, pages=((10, "tt_content"),)), ["outside_scope"]),
    (HALL, claim("copy", ("pages", 100), pages=((10, "pages"),), subtree=True), ["subtree_outside_scope"]),
    (HALL, claim("copy", ("pages", 100), pages=((10, "pages"),)), []),
    (ENGLISH, claim("localize", C9, language=1, sourceLanguage=0), ["language_not_allowed"]),
    (HALL, claim("localize", C9, language=1, sourceLanguage=0), []),
    ({**HALL, "languages": [1]}, claim("localize", ("tt_content", 8), language=1, sourceLanguage=0), ["language_not_allowed"]),
    (HALL, claim("delete", ("pages", 10), subtree=True), ["subtree_outside_scope"]),
    (HALL, claim("delete", ("pages", 10)), ["subtree_outside_scope"]),
    (HALL, claim("delete", ("pages", 100)), ["subtree_outside_scope"]),
    (HALL, claim("delete", ("pages", 1000)), ["outside_scope"]),
    (ENGLISH, claim("delete", C5), ["language_not_allowed"]),
    (HALL, claim("delete", C5), []),
    (HALL, claim("publish", C7), ["outside_scope"]),
    (HALL, claim("publish", C9), []),
    ({}, claim("clear_cache", touchesNoRecord=True), []),
    ({}, claim("update", C9), ["outside_scope"]),
    (HALL, claim("update", C9, writesFiles=True), ["scope_files_write"]),
    ({"records": ["tt_content:9"]}, claim("create", C9, pages=((10, "sys_file_reference"),)), []),
    ({"records": ["tt_content:9"]}, claim("create", C7, pages=((20, "sys_file_reference"),)), ["outside_scope"]),
    ({"records": ["sys_file:3"]}, claim("update", ("sys_file_metadata", 3)), []),
    ({"records": ["sys_file:3"]}, claim("create", ("sys_file", 3), pages=((0, "sys_file_metadata"),)), []),
    (HALL, claim("update", ("sys_file_metadata", 3)), ["outside_scope"]),
    (HALL, claim("create", pages=((10, "no_such_table"),)), ["scope_unresolvable"]),
]  # fmt: skip


@pytest.mark.req("S-20", "S-21", "S-22", "S-23", "S-27", "S-28", "S-29")
@pytest.mark.parametrize(("limits", "given", "reasons"), CASES)
async def test_each_operation_of_the_table(
    shared_store: TestStore, limits: dict[str, Any], given: dict[str, Any], reasons: list[str]
) -> None:
    body = ClaimsRequest.model_validate(
        {"scope": limits, "workspaceId": 0, "claims": [{"key": "a", "tool": "t", **given}]}
    )
    (answer,) = (await answer_claims(shared_store.env, shared_store.opens, body)).answers
    assert answer.key == "a"
    assert sorted({str(refusal.reason) for refusal in answer.refusals}) == reasons


@pytest.mark.req("S-24")
async def test_all_claims_of_a_turn_are_answered_in_order_with_the_refusals_as_data(shared_store: TestStore) -> None:
    claims = [{"key": str(i), **claim("update", record)} for i, record in enumerate((C9, C7, C5))]
    body = ClaimsRequest.model_validate({"scope": HALL, "claims": claims})
    answers = (await answer_claims(shared_store.env, shared_store.opens, body)).answers
    assert [(a.key, [(r.table, r.uid, r.pid) for r in a.refusals]) for a in answers] == [
        ("0", []),
        ("1", [("tt_content", 7, 20)]),
        ("2", []),
    ]


def test_a_claim_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown"):
        ScopedClaim.model_validate({"key": "a", "operation": "update", "unknown": 1})
