"""One model call of a node, told as node events; shared by the types that ask a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from pydantic import AfterValidator

from planwave.errors import NodeError
from planwave.graph.capabilities import FlowContext, NodeEvent
from planwave.graph.model import DEFAULT_TARGET_HANDLE, Json
from planwave.nodes.services import services_of
from planwave.nodes.wiring import Wiring
from planwave.providers.api import CallScope, Delta, ModelReply, ModelRequest


def _text_or_none(text: str | None) -> str | None:
    return text if text and text.strip() else None


Prompt = Annotated[str | None, AfterValidator(_text_or_none)]
"""A prompt in ``data``; white space alone is no prompt, before and after templates are resolved."""


def is_fed(wiring: Wiring, field: str) -> bool:
    """Say whether an edge brings a node its input, or the prompt of this field."""
    return wiring.is_wired(DEFAULT_TARGET_HANDLE) or wiring.is_wired(field)


async def model_call(
    request: ModelRequest, node_type: str, context: FlowContext, *, deltas: bool = True
) -> AsyncGenerator[NodeEvent | ModelReply]:
    """Ask a model and tell what happens; the last item is the finished reply.

    Events, in order: ``prompt`` (exactly what is sent), ``delta`` for every piece, ``usage``, and a
    ``log`` warning where the reply was cut at its token limit.

    Raises:
        NodeError: The prompt is empty, the call failed, or it ended without a reply.
    """
    _refuse_empty(request, context)

    def told(event_type: str, data: Json) -> NodeEvent:
        return NodeEvent(context.node_id, node_type, event_type, context.run_id, data)

    yield told(
        "prompt",
        {
            "system": request.system,
            "prompt": request.prompt,
            "provider": request.provider,
            "model": request.model,
        },
    )
    scope = CallScope(context.run_id, context.path, context.attempt)
    stream = services_of(context).models.stream(request, scope)
    reply: ModelReply | None = None
    try:
        async for item in stream:
            if isinstance(item, Delta):
                if deltas:
                    yield told("delta", {"text": item.text, "kind": item.kind})
            else:
                reply = item
    finally:
        # A generator that is left early must free its connection now, not when it is collected.
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    if reply is None:
        raise NodeError(
            f"{request.provider}/{request.model} ended without a reply",
            code="provider-error",
            retryable=True,
        )
    yield told("usage", _usage(reply))
    if reply.finish_reason == "length":
        message = f"the reply was cut at {reply.usage.output_tokens} tokens; raise maxTokens"
        yield told("log", {"message": message, "level": "warning"})
    yield reply


def _refuse_empty(request: ModelRequest, context: FlowContext) -> None:
    if not request.prompt.strip():
        raise NodeError(
            f"node {context.node_id!r} has nothing to ask the model: its prompt is empty",
            code="empty-prompt",
            hint="write a prompt or a description, or connect an input that carries text",
        )


def _usage(reply: ModelReply) -> dict[str, Json]:
    usage = reply.usage
    told: dict[str, Json] = {
        "provider": reply.provider,
        "model": reply.model,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "estimated": usage.estimated,
    }
    if reply.recorded:
        told["recorded"] = True
    return told
