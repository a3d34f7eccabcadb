"""Every public contract: round trip, camelCase, and what an unknown key does."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError
from remit_contracts import schemas
from remit_contracts.base import RequestContract, StoredContract
from remit_contracts.calls import ApplyRequest, CallResult
from remit_contracts.conversations import ConversationCreate, MessageCreate, RunRecordEntry
from remit_contracts.events import RunStepEvent
from remit_contracts.runs import DecisionRequest, RunStart, RunView
from remit_contracts.visibility import VisibilityRequest

RUN = "0193e3f6-5a5e-7c3e-8a51-2f5b6f1f0a01"
CALL = "0193e3f6-5a5e-7c3e-8a51-2f5b6f1f0a02"
EXAMPLES: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (
        ApplyRequest,
        {
            "runId": RUN,
            "leaseEpoch": 1,
            "actor": {"userUid": 3},
            "tool": "update_page_metadata",
            "effect": "write",
            "writeTarget": {"table": "pages", "uid": 5},
            "scope": {"pages": [{"page": 5, "depth": 1}]},
            "operations": [
                {"op": "datamap", "datamap": {"pages": {"5": {"title": "+5"}}}},
                {"op": "read", "table": "pages", "uids": [5, "NEW1"]},
            ],
            "shown": [{"table": "pages", "action": "updated", "record": "5", "pid": "1"}],
        },
    ),
    (CallResult, {"callId": CALL, "outcome": "committed"}),
    (
        RunStart,
        {
            "actor": {"userUid": 3, "assignmentScope": {"pages": [{"page": 5}]}},
            "configuration": "default",
            "messages": [{"role": "user", "content": "hello"}],
            "conversationId": RUN,
        },
    ),
    (
        RunView,
        {
            "id": RUN,
            "status": "queued",
            "configuration": "default",
            "ownerUid": 3,
            "createdAt": "2026-11-30T12:00:00Z",
        },
    ),
    (DecisionRequest, {"turnDigest": "ab", "decisions": {"c1": "approve", "c2": "decline"}}),
    (
        RunStepEvent,
        {
            "runId": RUN,
            "userUid": 3,
            "runStatus": "running",
            "step": {
                "runId": RUN,
                "sequence": 1,
                "segment": 1,
                "round": 0,
                "kind": "tool_changes",
                "at": "2026-11-30T12:00:00Z",
            },
        },
    ),
    (VisibilityRequest, {"records": [{"table": "pages", "uid": 3, "liveUid": 2}]}),
    (ConversationCreate, {"assignmentScope": {"records": ["tt_content:7"]}}),
    (MessageCreate, {"content": "hello", "viewContext": {"pageId": 3}}),
    (RunRecordEntry, {"outcome": "completed", "run": RUN}),
]


@pytest.mark.parametrize(("model", "data"), EXAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_round_trip(model: type[BaseModel], data: dict[str, Any]) -> None:
    value = model.model_validate(data)
    wire = json.loads(value.model_dump_json())
    assert model.model_validate(wire) == value
    assert not [key for key in wire if "_" in key]


@pytest.mark.parametrize(("model", "data"), EXAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_an_unknown_key(model: type[BaseModel], data: dict[str, Any]) -> None:
    extended = {**data, "laterKey": {"a": 1}}
    if issubclass(model, RequestContract):
        with pytest.raises(ValidationError):
            model.model_validate(extended)
        return
    value = model.model_validate(extended)
    kept = json.loads(value.model_dump_json()).get("laterKey")
    assert kept == ({"a": 1} if issubclass(model, StoredContract) else None)


@pytest.mark.req("S-42")
def test_values_of_a_datamap_stay_raw() -> None:
    data = dict(EXAMPLES[0][1])
    raw = {"pages": {"+5": {"title": 5, "x": [1, {"y": None}]}, " 5 ": "nonsense"}}
    data["operations"] = [{"op": "datamap", "datamap": raw}]
    operation = ApplyRequest.model_validate(data).operations[0]
    assert operation.model_dump()["datamap"] == raw


@pytest.mark.parametrize(
    "change",
    [
        {"leaseEpoch": "1"},
        {"leaseEpoch": 0},
        {"runId": "not-a-uuid"},
        {"operations": []},
        {"operations": [{"op": "sql", "sql": "DROP TABLE pages"}]},
        {"writeTarget": {"table": "pages", "uid": "5 "}},
        {"effect": "harmless"},
        {"scope": {"pages": [{"page": -1}]}},
    ],
)
def test_an_unknown_value_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ApplyRequest.model_validate({**EXAMPLES[0][1], **change})


@pytest.mark.req("S-11")
def test_a_start_has_no_scope_of_its_own() -> None:
    assert "assignment_scope" not in RunStart.model_fields
    with pytest.raises(ValidationError):
        RunStart.model_validate({**EXAMPLES[2][1], "assignmentScope": {"pages": []}})


def test_ids_are_uuids() -> None:
    assert RunView.model_validate(EXAMPLES[3][1]).id == UUID(RUN)


@pytest.mark.req("T-72")
def test_the_committed_schemas_are_those_of_the_models() -> None:
    assert schemas.outdated(schemas.folder()) == []


@pytest.mark.req("T-72")
def test_a_stale_schema_is_noticed(tmp_path: Any) -> None:
    for name, text in schemas.schema_texts().items():
        (tmp_path / name).write_text(text)
    assert schemas.outdated(tmp_path) == []
    (tmp_path / "RunView.json").write_text("{}")
    (tmp_path / "Gone.json").write_text("{}")
    assert schemas.outdated(tmp_path) == ["Gone.json", "RunView.json"]
