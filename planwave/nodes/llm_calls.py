"""One model call of a node, told as node events; shared by the types that ask a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Annotated, Final, cast

from pydantic import AfterValidator

from planwave.errors import LimitExceeded, NodeError, PermanentError, ProviderError
from planwave.events.types import REPLY_CUT, TEXT_DISCARDED
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    Edge,
    Json,
    fixed_handles,
)
from planwave.graph.protocols import Budget, FlowContext, NodeEvent, Reservation
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.conversation import readable_messages, strip_images
from planwave.nodes.recorded_calls import call_scope, record_call
from planwave.nodes.services import limits_of, outbound_of, services_of
from planwave.outbound.client import OutboundClient
from planwave.outbound.images import fetch_image
from planwave.providers.errors import is_request_error
from planwave.providers.protocols import (
    CallScope,
    Delta,
    ModelProfile,
    ModelReply,
    ModelRequest,
    PromptMessage,
    Providers,
    Usage,
    highest_price,
    reserved_reply,
    text_tokens,
)
from planwave.providers.recordings import usage_data
from planwave.redaction import Redactor


def _text_or_none(text: str | None) -> str | None:
    return text if text and text.strip() else None


Prompt = Annotated[str | None, AfterValidator(_text_or_none)]
"""A prompt in ``data``; white space alone is no prompt, before and after templates are resolved."""


MESSAGES_FIELD: Final = "messages"
"""The data field, and so the socket, that takes what was said before."""
_UPSTREAM_VARIABLES: Final = ("input", "inputs", "nodes", "PREVIOUS_OUTPUT")
"""Where a template finds what earlier nodes gave, besides input handles by name."""
PROMPT_EVENT: Final = "prompt"
"""The event with what is sent to a model."""
_DELTA: Final = "delta"
_WAS_REASONING: Final = "the text so far was reasoning, or a call of a tool"
_IMAGES: Final = "images"
"""Where an attempt keeps the images that it has fetched, by URL."""
_WARNED: Final = "warned"
"""Where an attempt keeps the warnings of replies, each of which is logged once."""
_MAX_NAMES_SHOWN: Final = 4
_UNPRICED: Final = "unpriced models"


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
    edges = (edge for edge in view.incoming if edge.target_handle == DEFAULT_TARGET_HANDLE)
    sources = list(dict.fromkeys(edge.source for edge in edges if _carries_result(edge, view)))
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
    if edge.source_handle == DEFAULT_SOURCE_HANDLE and not facts.chooses:
        return True
    return {*fixed_handles(facts.outputs)} == {edge.source_handle}


async def call_model(
    requests: Sequence[ModelRequest],
    node_type: str,
    context: FlowContext,
    *,
    deltas: bool = True,
    continue_cut: bool = False,
) -> AsyncGenerator[NodeEvent | ModelReply]:
    """Call a model and yield its events; the last item is the complete reply.

    Events, in order: ``log`` warnings of images that the model cannot see and of a price that the budget
    lacks, ``prompt`` (the exact request without the data of images), ``delta`` for every piece of text,
    ``usage``, and one if the reply was cut. Where a call has failed for good, not because of the request
    (``is_request_error``), the next model is called: after a ``log`` warning, and ``text_discarded``.

    Args:
        requests: The call, once for each model, in the order in which they are tried.
        node_type: The type of the node.
        context: The context of the node.
        deltas: Whether ``delta`` events are emitted.
        continue_cut: Whether a cut reply is continued once, if the model can (``ModelProfile``). The
            continuation is a call like any other: recorded, and counted.

    Raises:
        NodeError: The prompt is empty, the calls failed, or one ended without a reply.
    """
    scope = call_scope(context)
    event = partial(_event, context, node_type)
    failures: list[ProviderError] = []
    for number, request in enumerate(requests, 1):
        following = requests[number] if number < len(requests) else None
        scope.record_failures = following is not None
        has_streamed = False
        call = _call_one(request, scope, event, context, deltas=deltas, continue_cut=continue_cut)
        try:
            async with aclosing(call) as items:
                async for item in items:
                    has_streamed |= isinstance(item, NodeEvent) and item.event_type == _DELTA
                    yield item
            return
        except ProviderError as error:
            if following is None or is_request_error(error):
                if failures:
                    raise _with_earlier(error, failures) from error
                raise
            failures.append(error)
            warning = f"{_name(request)} failed ({error.code}); {_name(following)} is called next"
        if has_streamed:
            await context.record(TEXT_DISCARDED, {"message": warning})
        yield event("log", _warning_data(warning))


def request_facts(requests: Sequence[ModelRequest]) -> Json:
    """Return what replies depend on besides the data and inputs of the node, as JSON.

    That are the models that are asked, after the defaults of the settings, and the text that is made
    of planwave's own prompt templates.
    """
    return [
        {
            "model": [each.provider, each.model],
            "prompt": [each.system, each.prompt, each.grammar],
            "max_tokens": each.max_tokens,
        }
        for each in requests
    ]


def _name(request: ModelRequest) -> str:
    return f"{request.provider} ({request.model})"


def _with_earlier(last: ProviderError, earlier: Sequence[ProviderError]) -> ProviderError:
    """Return the last failure with a message that lists the others, any of which may pass."""
    tried = ", ".join(f"{each.provider} ({each.model}): {each.code}" for each in earlier)
    return ProviderError(
        f"{last.message} (tried before: {tried})",
        provider=last.provider,
        model=last.model,
        code=last.code,
        hint=last.hint,
        retryable=any(each.retryable for each in (last, *earlier)),
        status=last.status,
        retry_after_s=last.retry_after_s,
    )


async def _call_one(
    request: ModelRequest,
    scope: CallScope,
    event: Callable[[str, Json], NodeEvent],
    context: FlowContext,
    *,
    deltas: bool,
    continue_cut: bool,
) -> AsyncGenerator[NodeEvent | ModelReply]:
    """Call one model and yield its events, then the complete reply."""
    _require_prompt(request, context)
    _require_tokens(request, context)
    request = _without_secrets(request, services_of(context).redactor)
    providers = services_of(context).providers
    budget = CallBudget(context.budget, providers, scope)
    profile = providers.profile(request.provider, request.model)
    _require_tools(request, profile)
    if not profile.images:
        request, left_out = strip_images(request)
        if left_out:
            warning = f"{request.model} cannot look at images: {left_out} left out"
            yield event("log", _warning_data(warning))
    if (warning := _price_warning(request, context)) is not None:
        yield event("log", _warning_data(warning))
    yield event(PROMPT_EVENT, _prompt_data(request))
    request = await _with_image_data(request, context)
    replies: list[ModelReply] = []
    may_continue = continue_cut and profile.continues
    try:
        async with aclosing(_replies(request, scope, context, may_continue=may_continue)) as items:
            async for item in items:
                if isinstance(item, ModelReply):
                    replies.append(item)
                    yield event("usage", _usage_data(item))
                    budget.release()
                elif item.kind == "discarded":
                    await context.record(TEXT_DISCARDED, {"message": _WAS_REASONING})
                elif deltas:
                    yield event(_DELTA, {"text": item.text, "kind": item.kind})
    finally:
        budget.release()
    last = replies[-1]
    for entry in _log_of(replies, context):
        yield event("log", entry)
    if len(replies) > 1:
        last = replace(last, text="".join(reply.text for reply in replies), native=None)
    yield last


def _require_tokens(request: ModelRequest, context: FlowContext) -> None:
    """Check the limit of a reply's tokens, which a wire or a bundle of fields may have set.

    Raises:
        LimitExceeded: ``call_tokens``.
    """
    limits = limits_of(context)
    tokens = request.max_tokens
    if limits is not None and tokens is not None and tokens > limits.call_tokens:
        raise LimitExceeded(
            "call_tokens", limits.call_tokens, tokens, what=f"maxTokens of {context.node_id!r}",
            hint="make it smaller or raise the limit call_tokens",
        )  # fmt: skip


def _without_secrets(request: ModelRequest, redactor: Redactor) -> ModelRequest:
    """Return a request in which no text holds a secret, wherever the text comes from."""
    turns = tuple(
        turn if (text := redactor.text(turn.text)) == turn.text else replace(turn, text=text)
        for turn in request.messages
    )
    system = request.system and redactor.text(request.system)
    return replace(request, prompt=redactor.text(request.prompt), system=system, messages=turns)


def _log_of(replies: Sequence[ModelReply], context: FlowContext) -> Iterator[dict[str, Json]]:
    """Yield what the log says of replies; warnings that it has in this attempt only once."""
    earlier_warnings: set[str] = context.local.setdefault(_WARNED, set[str]())
    for warning in (each for reply in replies for each in reply.warnings):
        if warning not in earlier_warnings:
            earlier_warnings.add(warning)
            yield _warning_data(warning)
    if replies[-1].finish_reason == "length":
        tokens = sum(reply.usage.output_tokens for reply in replies)
        cut = f"the reply was cut at {tokens} tokens; raise maxTokens"
        yield {**_warning_data(cut), "kind": REPLY_CUT}


async def _with_image_data(request: ModelRequest, context: FlowContext) -> ModelRequest:
    """Return a request whose images are data; each URL is fetched once in an attempt, and recorded.

    Where providers fetch images, the URLs stay, and only their hosts are checked.

    Raises:
        NodeError: An image cannot be fetched, see ``fetch_image``; ``no-outbound``; ``url-refused``.
        LimitExceeded: An image is too large.
    """
    urls = [url for turn in request.messages for url in turn.images if not url.startswith("data:")]
    services = services_of(context)
    if services.providers_fetch_images:
        if services.outbound is not None:
            for url in urls:
                _client_for(url, context).check_host(url)
        return request
    data_by_url: dict[str, str] = context.local.setdefault(_IMAGES, {})
    for url in urls:
        if url not in data_by_url:
            data_by_url[url] = await _image_data(url, context)
    if not urls:
        return request
    turns = tuple(
        replace(turn, images=tuple(data_by_url.get(url, url) for url in turn.images))
        for turn in request.messages
    )
    return replace(request, messages=turns)


def _client_for(url: str, context: FlowContext) -> OutboundClient:
    """Return the client for an image.

    A URL that the node's own data name may lead to the services of the operator. Any other came with
    the conversation or over a wire, from whoever calls the flow, and leads to public addresses only.
    """
    client = outbound_of(context)
    own = context.runtime.get_node(context.node_id).data
    return client if _holds(own, url) else client.for_callers()


def _holds(value: object, text: str) -> bool:
    """Return whether a text is one of the texts in a JSON value."""
    if isinstance(value, Mapping):
        return any(_holds(item, text) for item in cast("Mapping[str, object]", value).values())
    if isinstance(value, list):
        return any(_holds(item, text) for item in cast("list[object]", value))
    return value == text


async def _image_data(url: str, context: FlowContext) -> str:
    client = _client_for(url, context)

    async def fetch() -> Json:
        return await fetch_image(client, url)

    request: dict[str, Json] = {"method": "GET", "url": url}
    return str(await record_call(context, "fetch", f"GET {url}", request, fetch))


async def _replies(
    request: ModelRequest, scope: CallScope, context: FlowContext, *, may_continue: bool
) -> AsyncGenerator[Delta | ModelReply]:
    """Yield the deltas and the reply of a call, then those of its continuation, if there is one."""
    reply: ModelReply | None = None
    async with aclosing(_call(request, scope, context)) as items:
        async for item in items:
            yield item
            reply = item if isinstance(item, ModelReply) else None
    if reply is None or reply.finish_reason != "length" or reply.tool_calls or not may_continue:
        return
    try:
        async with aclosing(_call(_continuation(request, reply), scope, context)) as items:
            async for item in items:
                yield item
    except ProviderError:
        return  # the text so far is a result, and the warning says that it was cut


def _continuation(request: ModelRequest, reply: ModelReply) -> ModelRequest:
    """Return the request that a model answers with the rest of a cut reply.

    Its conversation ends with the text so far. It has half the tokens: a model that repeats itself
    does not end with more of them either. A grammar describes the whole reply, so the rest has none.
    """
    question = (PromptMessage("user", request.prompt),) if request.prompt else ()
    so_far = PromptMessage("assistant", reply.text)
    limit = None if request.max_tokens is None else max(1, request.max_tokens // 2)
    messages = (*request.messages, *question, so_far)
    return replace(
        request, prompt="", messages=messages, max_tokens=limit, fixed_chars=0, grammar=None
    )


async def _call(
    request: ModelRequest, scope: CallScope, context: FlowContext
) -> AsyncGenerator[Delta | ModelReply]:
    """Yield the deltas of one call, then its reply."""
    stream = services_of(context).models.stream(request, scope)
    reply: ModelReply | None = None
    try:
        with context.own_work():
            async for item in stream:
                if isinstance(item, Delta):
                    yield item
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
    yield reply


def _event(context: FlowContext, node_type: str, event_type: str, data: Json) -> NodeEvent:
    return NodeEvent(context.node_id, node_type, event_type, context.run_id, data)


def _warning_data(message: str) -> dict[str, Json]:
    return {"message": message, "level": "warning"}


def _require_tools(request: ModelRequest, profile: ModelProfile) -> None:
    """Check that the model can call its tools; a graph from Python was not checked against models."""
    if request.tools and not profile.tools:
        raise PermanentError(
            f"{_name(request)} cannot call tools, and tools are linked to the agent",
            code="tools-unavailable",
            hint="choose another model, or remove the links",
        )


def _require_prompt(request: ModelRequest, context: FlowContext) -> None:
    spoken = [turn for turn in request.messages if turn.role != "system"]
    last = spoken[-1] if spoken else None
    if request.prompt.strip() or (last and _asks(last)):
        return
    why = "its prompt is empty" if last is None else "the conversation does not end with a question"
    raise PermanentError(
        f"node {context.node_id!r} has nothing to ask the model: {why}",
        code="empty-prompt",
        hint="write a prompt or a description, or connect an input that carries text",
    )


def _asks(last: PromptMessage) -> bool:
    """Return whether a model replies to a conversation that ends with this turn."""
    return last.role == "tool" or (last.role == "user" and bool(last.text or last.images))


def _prompt_data(request: ModelRequest) -> dict[str, Json]:
    messages = {"messages": readable_messages(request.messages)} if request.messages else {}
    return {
        **messages,
        "system": request.system,
        "prompt": request.prompt,
        "provider": request.provider,
        "model": request.model,
    }


def _usage_data(reply: ModelReply) -> dict[str, Json]:
    return {"provider": reply.provider, "model": reply.model, **usage_data(reply)}


# -- what calls reserve of the budget -------------------------------------------------------------


class CallBudget:
    """Reserves for each model call what it may use, until its ``usage`` event is emitted.

    A call that is served from its record reserves nothing. Without a budget nothing is done.

    Args:
        budget: That of the execution; None where nothing limits it.
        providers: They know the prices.
        scope: That of the calls.
    """

    __slots__ = ("_budget", "_open", "_providers")

    def __init__(self, budget: Budget | None, providers: Providers, scope: CallScope) -> None:
        self._budget, self._providers = budget, providers
        self._open: list[Reservation] = []
        if budget is not None:
            scope.reserve = self._reserve

    async def _reserve(self, request: ModelRequest) -> None:
        budget = self._budget
        if budget is None:
            return
        tokens = _expected(request)
        amounts = {"calls": 1.0, "tokens": float(tokens.input_tokens + tokens.output_tokens)}
        if "usd" in budget.amounts:
            amounts["usd"] = _price(request, self._providers) or 0.0
        self._open.append(await budget.reserve(amounts))

    def take(self) -> list[Reservation]:
        """Return what is reserved now, for the caller to release."""
        reservations, self._open = self._open, []
        return reservations

    def release(self) -> None:
        """Free what was reserved; the usage of the calls has been emitted, or they have failed."""
        for reservation in self.take():
            reservation.release()


def _price_warning(request: ModelRequest, context: FlowContext) -> str | None:
    """Return the warning of a model without a known price, once in a graph run."""
    if context.budget is None or "usd" not in context.budget.amounts:
        return None
    if _price(request, services_of(context).providers) is not None:
        return None
    name = f"{request.provider} ({request.model})"
    if context.runtime.cache_get(_UNPRICED, name):
        return None
    context.runtime.cache_set(_UNPRICED, name, True)
    return f"the price of {name} is not known: its calls count as $0 in the budget"


def _price(request: ModelRequest, providers: Providers) -> float | None:
    return highest_price(providers, request.provider, request.model, _expected(request))


def _expected(request: ModelRequest) -> Usage:
    """Return the tokens of the prompt and of a reply, as far as they are known before the call."""
    return Usage(text_tokens(*request.texts), reserved_reply(request.max_tokens))
