"""Steps of the loop. Pure: from what happened to the drafts the journal stores (T-08, T-09, W-03, C-02)."""

from __future__ import annotations

from remit_contracts.steps import StepKind, ToolPayload, ToolWritePayload

from agent_runtime.loop.executed import Executed
from agent_runtime.loop.fitting import Fitted
from agent_runtime.models.port import Message, ModelReply, ToolSpec
from agent_runtime.runs.models import StepDraft


def tool_steps(executed: Executed, round_: int) -> tuple[StepDraft, ...]:
    """The tool step, then the write step, then the change list of a call."""
    result, call = executed.result, executed.call
    payload = ToolPayload(
        tool_name=call.name,
        call_id=call.call_id,
        is_error=result.is_error,
        refusal=result.refusal,
        outcome=result.outcome.value,
        arguments=call.arguments if isinstance(call.arguments, dict) else None,
        result=result.content,
        artifacts=list(result.artifacts) or None,
        store_call_id=executed.store_call_id,
    )
    steps = [
        StepDraft(
            kind=StepKind.TOOL,
            payload=payload.model_dump(mode="json", by_alias=True, exclude_none=True),
            round=round_,
            duration_ms=executed.duration_ms,
            call_id=call.call_id,
        )
    ]
    if result.write_target is not None and not result.is_error:
        write = ToolWritePayload(
            tool_name=call.name,
            call_id=call.call_id,
            table=result.write_target.table,
            uid=result.write_target.uid,
            completeness=result.completeness,
            hook_failed_after_write=result.hook_failed_after_write,
        )
        steps.append(
            StepDraft(
                kind=StepKind.TOOL_WRITE,
                payload=write.model_dump(mode="json", by_alias=True),
                round=round_,
                call_id=call.call_id,
            )
        )
    if executed.changes is not None:
        changes = executed.changes.model_dump(mode="json", by_alias=True)
        steps.append(StepDraft(StepKind.TOOL_CHANGES, changes, round_, call_id=call.call_id))
    return tuple(steps)


def tool_message(executed: Executed) -> Message:
    """What the model reads of a call; artifacts never reach it."""
    return Message(
        role="tool",
        content=executed.result.content,
        call_id=executed.call.call_id,
        name=executed.call.name,
        is_error=executed.result.is_error,
    )


def request_steps(fit: Fitted, tools: list[ToolSpec], round_: int) -> tuple[StepDraft, ...]:
    """Before the model is asked: the context arithmetic, what was left out, the request."""
    context = {"estimatedTokens": fit.estimate, "window": fit.window, "remaining": fit.window - fit.estimate}
    steps = [StepDraft(StepKind.CONTEXT, context, round_)]
    if fit.dropped:
        steps.append(StepDraft(StepKind.DROPPED, {"messages": fit.dropped, "reason": "window"}, round_))
    messages = [{"role": message.role, "content": message.content} for message in fit.messages or ()]
    payload = {"messages": messages, "toolSpecs": [tool.name for tool in tools]}
    return (*steps, StepDraft(StepKind.REQUEST, payload, round_))


def llm_step(reply: ModelReply, round_: int, duration_ms: float) -> StepDraft:
    """After the model answered."""
    payload = {
        "content": reply.content,
        "thinking": reply.thinking,
        "finishReason": reply.finish_reason,
        "promptTokens": reply.input_tokens,
        "completionTokens": reply.output_tokens,
        "totalTokens": reply.input_tokens + reply.output_tokens,
        "requestedCalls": [
            {"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in reply.calls
        ],
    }
    return StepDraft(StepKind.LLM, payload, round_, duration_ms)
