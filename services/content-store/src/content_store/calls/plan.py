"""A call as the store carries it out: the request without its transport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from remit_contracts.actor import ActorContext
from remit_contracts.calls import ApplyRequest, OpenRequest, Operation, ShownChange, ToolEffect
from remit_contracts.records import WriteTarget
from remit_contracts.scope import EffectiveAssignmentScope

from content_store.calls.identity import request_hash


@dataclass(frozen=True)
class CallPlan:
    """One call.

    Attributes:
        call_id: names the outcome row.
        run_id: the run it belongs to; its fence is passed.
        epoch: of the worker's lease.
        actor: whose rights hold, and in which workspace.
        scope: held to; None where nobody asks for one.
        tool: name of the tool.
        effect: as declared; a call is held to its scope whatever it says (S-50).
        write_target: the record it names.
        operations: in order; empty for an open call.
        shown: what its card showed; None without a card.
        request_hash: tells the same request from another one under the same id.
    """

    call_id: UUID
    run_id: UUID
    epoch: int
    actor: ActorContext
    scope: EffectiveAssignmentScope | None
    tool: str
    effect: ToolEffect
    write_target: WriteTarget | None
    operations: Sequence[Operation]
    shown: Sequence[ShownChange] | None
    request_hash: str

    @classmethod
    def of(cls, call_id: UUID, request: ApplyRequest | OpenRequest) -> CallPlan:
        """From a request; a scope that is required and missing admits nothing (S-12)."""
        operations = request.operations if isinstance(request, ApplyRequest) else None
        return cls(
            call_id=call_id,
            run_id=request.run_id,
            epoch=request.lease_epoch,
            actor=request.actor,
            scope=armed_scope(request.scope, required=request.scope_required),
            tool=request.tool,
            effect=request.effect,
            write_target=request.write_target,
            operations=operations or (),
            shown=request.shown,
            request_hash=request_hash(request.actor, request.tool, request.effect, request.write_target, operations),
        )


def armed_scope(scope: EffectiveAssignmentScope | None, *, required: bool) -> EffectiveAssignmentScope | None:
    """The scope a call is armed with: none() where one is required and missing, also for a tool that says it reads."""
    return EffectiveAssignmentScope.none() if scope is None and required else scope
