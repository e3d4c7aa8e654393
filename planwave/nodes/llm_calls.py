"""One model call of a node, told as node events; shared by the types that ask a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Annotated, Final

from pydantic import AfterValidator

from planwave.errors import NodeError, PermanentError
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    Edge,
    Json,
    fixed_handles,
)
from planwave.graph.protocols import FlowContext, NodeEvent
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.conversation import readable_messages, strip_images
from planwave.nodes.services import services_of
from planwave.providers.protocols import CallScope, Delta, ModelReply, ModelRequest


def _text_or_none(text: str | None) -> str | None:
    return text if text and text.strip() else None


Prompt = Annotated[str | None, AfterValidator(_text_or_none)]
"""A prompt in ``data``; white space alone is no prompt, before and after templates are resolved."""


MESSAGES_FIELD: Final = "messages"
"""The data field, and so the socket, that takes what was said before."""
_UPSTREAM_VARIABLES: Final = ("input", "inputs", "nodes", "PREVIOUS_OUTPUT")
"""Where a template finds what earlier nodes gave, besides input handles by name."""
_MAX_NAMES_SHOWN: Final = 4


def has_prompt_input(view: NodeView, field: str) -> bool:
    """Return whether an edge brings the node its input, a conversation, or this prompt field."""
    return any(map(view.is_wired, (DEFAULT_TARGET_HANDLE, field, MESSAGES_FIELD)))


def check_unused_input(view: NodeView, field: str) -> Iterator[NodeFinding]:
    """Warn of inputs that do not reach the model, since the prompt does not use them.

    Args:
        view: A node whose data hold a prompt.
        field: The prompt's name.
    """
    if view.node.policy.join == "any" or view.is_wired(field):
        return
    handles = {edge.target_handle for edge in view.incoming}
    if any(use.root in _UPSTREAM_VARIABLES or use.root in handles for use in view.references):
        return
    given = (edge for edge in view.incoming if edge.target_handle == DEFAULT_TARGET_HANDLE)
    sources = list(dict.fromkeys(edge.source for edge in given if _carries_result(edge, view)))
    if sources:
        names = ", ".join(map(repr, sources[:_MAX_NAMES_SHOWN]))
        names += (
            f" and {len(sources) - _MAX_NAMES_SHOWN} more"
            if len(sources) > _MAX_NAMES_SHOWN
            else ""
        )
        message = f"what {names} gives never reaches the model: data.{field} does not use it"
        hint = f"add {{{{ input }}}} to data.{field}, or remove the edge"
        yield NodeFinding("unused-input", message, f"/data/{field}", hint, "warning")


def _carries_result(edge: Edge, view: NodeView) -> bool:
    """Return whether an edge carries content, not only a start signal (a choice, an error, an entry)."""
    facts = view.index.type_info_of(edge.source)
    if facts is None or edge.channel != FLOW:
        return False
    if facts.entry and not any(view.index.by_id[edge.source].data.values()):
        return False
    return {*(fixed_handles(facts.outputs) or (DEFAULT_SOURCE_HANDLE,))} == {edge.source_handle}


async def call_model(
    request: ModelRequest, node_type: str, context: FlowContext, *, deltas: bool = True
) -> AsyncGenerator[NodeEvent | ModelReply]:
    """Call a model and yield its events; the last item is the complete reply.

    Events, in order: a ``log`` warning if the model cannot see the images of the request, ``prompt``
    (the exact request without the data of images), ``delta`` for every piece of text, ``usage``, and a
    ``log`` warning if the reply was cut at the token limit.

    Raises:
        NodeError: The prompt is empty, the call failed, or it ended without a reply.
    """
    _require_prompt(request, context)

    def told(event_type: str, data: Json) -> NodeEvent:
        return NodeEvent(context.node_id, node_type, event_type, context.run_id, data)

    services = services_of(context)
    if not services.providers.profile(request.provider, request.model).images:
        request, left_out = strip_images(request)
        if left_out:
            warning = f"{request.model} cannot look at images: {left_out} left out"
            yield told("log", _warning_data(warning))
    yield told("prompt", _prompt_data(request))
    stream = services.models.stream(request, _scope_of(context))
    reply: ModelReply | None = None
    try:
        with context.own_work():
            async for item in stream:
                if isinstance(item, Delta):
                    if deltas:
                        yield told("delta", {"text": item.text, "kind": item.kind})
                else:
                    reply = item
    finally:
        # Close the connection when this generator is left early, not at garbage collection.
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    if reply is None:
        raise NodeError(
            f"{request.provider}/{request.model} ended without a reply",
            code="provider-error",
        )
    yield told("usage", _usage_data(reply))
    if reply.finish_reason == "length":
        warning = f"the reply was cut at {reply.usage.output_tokens} tokens; raise maxTokens"
        yield told("log", _warning_data(warning))
    yield reply


def _warning_data(message: str) -> dict[str, Json]:
    return {"message": message, "level": "warning"}


def _scope_of(context: FlowContext) -> CallScope:
    return CallScope(
        context.run_id, context.path, context.attempt, context.answers, context.time_left_s
    )


def _require_prompt(request: ModelRequest, context: FlowContext) -> None:
    last = request.messages[-1] if request.messages else None
    if request.prompt.strip() or (last and last.role == "user" and (last.text or last.images)):
        return
    why = "its prompt is empty" if last is None else "the conversation does not end with a question"
    raise PermanentError(
        f"node {context.node_id!r} has nothing to ask the model: {why}",
        code="empty-prompt",
        hint="write a prompt or a description, or connect an input that carries text",
    )


def _prompt_data(request: ModelRequest) -> dict[str, Json]:
    said = {"messages": readable_messages(request.messages)} if request.messages else {}
    return {
        **said,
        "system": request.system,
        "prompt": request.prompt,
        "provider": request.provider,
        "model": request.model,
    }


def _usage_data(reply: ModelReply) -> dict[str, Json]:
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
