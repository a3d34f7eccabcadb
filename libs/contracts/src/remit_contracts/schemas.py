"""JSON Schemas of the public contracts: ``python -m remit_contracts.schemas`` writes them, ``--check`` compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from remit_contracts import (
    actor,
    calls,
    changes,
    claims,
    conversations,
    events,
    records,
    runs,
    scope,
    steps,
    visibility,
)

PUBLIC: tuple[type[BaseModel], ...] = (
    actor.ActorContext,
    scope.AssignmentScope,
    scope.EffectiveAssignmentScope,
    records.RecordReference,
    changes.RecordChange,
    changes.RefusedWrite,
    changes.ObservedChangeSet,
    calls.ApplyRequest,
    calls.OpenRequest,
    calls.OperationsRequest,
    calls.CallResult,
    calls.CallResolution,
    calls.RehearsalRequest,
    calls.RehearsalResult,
    claims.ClaimsRequest,
    claims.ClaimsAnswer,
    steps.Step,
    steps.ToolPayload,
    steps.ToolWritePayload,
    runs.RunStart,
    runs.RunView,
    runs.PendingTurn,
    runs.PendingCallView,
    runs.DecisionRequest,
    events.RunStepEvent,
    events.RecordChanged,
    visibility.VisibilityRequest,
    visibility.VisibilityAnswer,
    conversations.ConversationCreate,
    conversations.MessageCreate,
    conversations.MessagesView,
    conversations.ChangeList,
    conversations.RunRecordEntry,
)


def folder() -> Path:
    """Where the committed schemas lie: beside the package's sources."""
    return Path(__file__).resolve().parents[2] / "schemas"


def schema_texts() -> dict[str, str]:
    """File name -> JSON text of every public contract."""
    return {
        f"{model.__name__}.json": json.dumps(model.model_json_schema(by_alias=True), indent=2, sort_keys=True) + "\n"
        for model in PUBLIC
    }


def outdated(target: Path) -> list[str]:
    """Names of files that are missing, differ or belong to no contract."""
    texts = schema_texts()
    stored = {path.name: path.read_text() for path in target.glob("*.json")}
    return sorted(name for name in texts.keys() | stored.keys() if texts.get(name) != stored.get(name))


def main(arguments: list[str]) -> int:
    """Write the schemas, or with ``--check`` say which ones are not up to date (exit code 1)."""
    target = folder()
    if "--check" in arguments:
        names = outdated(target)
        for name in names:
            sys.stdout.write(f"not up to date: {name}\n")
        return 1 if names else 0
    target.mkdir(exist_ok=True)
    texts = schema_texts()
    for path in target.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (target / name).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
