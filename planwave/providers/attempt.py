"""One attempt of one model call, made through pydantic-ai's direct request.

Retries, limits and recording are in ``client.py``, which imports this module at the first call.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, cast

from pydantic_ai import UsageExtractionFailedWarning
from pydantic_ai import messages as m
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponse, ModelResponsePart, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from planwave.errors import ProviderError
from planwave.providers.errors import provider_error
from planwave.providers.protocols import (
    Delta,
    ModelRequest,
    Source,
    ToolCall,
    Usage,
    text_tokens,
)
from planwave.providers.recordings import IDEMPOTENCY_HEADER
from planwave.providers.sdk_messages import (
    Origin,
    clean_parts,
    native_of,
    replace_surrogates,
    sdk_messages,
    sources_of,
    tool_calls_of,
)
from planwave.providers.transport import SdkClient

_MAX_SEGMENTS = 10
"""Requests for one reply: a provider may pause in the middle of a long search of the web."""
_MAX_TOKENS = 100_000_000
_STRICT_WORDS = frozenset(
    [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "const",
        "title",
        "description",
        "$ref",
        "$defs",
    ]
)
_EFFORTS = frozenset({"minimal", "low", "medium", "high", "xhigh", "max"})


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """A completed attempt."""

    text: str
    finish_reason: Literal["stop", "length"]
    usage: Usage
    tool_calls: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    native: Mapping[str, Any] | None = None


def load_sdk(kind: str) -> None:
    """Import the SDK of a kind of provider. Call it in a thread: it may take seconds."""
    if kind == "anthropic":
        import_module("pydantic_ai.models.anthropic")
    else:
        import_module("pydantic_ai.models.openai")
        import_module("pydantic_ai.providers.openai_compatible")
    # Missing token counts are estimated; the warning does not help the user.
    warnings.simplefilter("ignore", UsageExtractionFailedWarning)


async def stream_attempt(
    client: SdkClient, request: ModelRequest, headers: Mapping[str, str]
) -> AsyncGenerator[Delta | AttemptResult, None]:
    """Stream one attempt: deltas, then :class:`AttemptResult`.

    Raises:
        ProviderError: The stream ended without a valid reply.
        Exception: Any exception of the SDK and the transport; see ``errors.classify``.
    """
    model = client.model(request.model, web_search=request.web_search)
    origin = Origin(request.provider, client.api(web_search=request.web_search))
    messages = sdk_messages(request, origin)
    parameters = _parameters(model, request)
    reply = _Reply(request, _output_tool(request))
    with _garbage_as_provider_error(request):
        for number in range(_MAX_SEGMENTS):
            settings = _settings(model, request, _segment_headers(headers, number))
            opening = model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            )
            async with opening as stream, aclosing(_events(stream)) as events:
                async for event in events:
                    delta = reply.read(event)
                    if delta is not None:
                        yield delta
            segment = reply.end(stream)
            if stream.state != "suspended":
                break
            messages = [*messages, segment]
        yield _finish(client, reply, origin)


@dataclass(slots=True)
class _Reply:
    """A reply as it arrives, in one segment or, if the provider pauses, in several.

    Attributes:
        request: The call.
        output_tool: The tool by which a JSON reply may be given; None without a schema.
        in_text: The pieces of its text.
        in_output: The pieces of the arguments of the output tool. A model may write text before it calls
            this tool; then only the call counts.
        streams: Its segments.
        parts: The parts of these.
    """

    request: ModelRequest
    output_tool: str | None
    in_text: list[str] = field(default_factory=list[str])
    in_output: list[str] = field(default_factory=list[str])
    streams: list[StreamedResponse] = field(default_factory=list[StreamedResponse])
    parts: list[ModelResponsePart] = field(default_factory=list[ModelResponsePart])
    _outputs: set[int] = field(default_factory=set[int])

    def read(self, event: ModelResponseStreamEvent) -> Delta | None:
        """Return the delta of an event; the arguments of a tool that is offered are none."""
        content, kind, call = _content_of(event)
        if call is not None and not self._is_output(call, event):
            return None
        if not isinstance(content, str) or not content:
            return None
        delta = Delta(replace_surrogates(content), kind)
        if kind == "text":
            (self.in_text if call is None else self.in_output).append(delta.text)
        return delta

    def _is_output(
        self, call: m.ToolCallPart[Any] | m.ToolCallPartDelta, event: ModelResponseStreamEvent
    ) -> bool:
        index: int = getattr(event, "index", -1)
        if isinstance(call, m.ToolCallPart) and call.tool_name == self.output_tool:
            self._outputs.add(index)
        return index in self._outputs

    def end(self, stream: StreamedResponse) -> ModelResponse:
        """Add a segment that has ended."""
        segment = stream.get()
        self.streams.append(stream)
        self.parts += segment.parts
        self._outputs.clear()
        return segment

    @property
    def text(self) -> str:
        """Its text; the arguments of the output tool where the model has called it."""
        return "".join(self.in_output or self.in_text)


def _segment_headers(headers: Mapping[str, str], number: int) -> Mapping[str, str]:
    """Return the headers of one segment; no two segments have the same idempotency key."""
    key = headers.get(IDEMPOTENCY_HEADER)
    return {**headers, IDEMPOTENCY_HEADER: f"{key}+{number}"} if key and number else headers


def _output_tool(request: ModelRequest) -> str | None:
    """Return the name of the tool by which a JSON reply may be given: none of those offered."""
    if request.schema is None:
        return None
    name, taken = request.schema_name, {tool.name for tool in request.tools}
    while name in taken:
        name += "_"
    return name


@contextmanager
def _garbage_as_provider_error(request: ModelRequest) -> Generator[None, None, None]:
    """Raise a ``ProviderError`` where an SDK fails on an event of an unexpected shape."""
    try:
        yield
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _reply_error("stream-garbage", request) from error


async def _events(stream: StreamedResponse) -> AsyncGenerator[ModelResponseStreamEvent, None]:
    async for event in stream:
        yield event


def _settings(model: Model, request: ModelRequest, headers: Mapping[str, str]) -> ModelSettings:
    settings = ModelSettings(extra_headers=dict(headers))
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    if request.grammar is not None:
        settings["extra_body"] = {"grammar": request.grammar}
    if request.temperature is not None and _takes_temperature(model, request):
        settings["temperature"] = request.temperature
    if request.must_call:
        settings["tool_choice"] = "required"
    effort = request.reasoning_effort
    if effort in (None, ""):
        return settings
    if effort == "none":
        settings["thinking"] = False
    elif effort in _EFFORTS:
        settings["thinking"] = cast("Any", effort)
    else:
        raise provider_error(
            "bad-request",
            provider=request.provider,
            model=request.model,
            detail=f"reasoning effort {effort!r} is not one of none, {', '.join(sorted(_EFFORTS))}",
        )
    return settings


def _takes_temperature(model: Model, request: ModelRequest) -> bool:
    """Return whether the model accepts a temperature; others reject it or warn."""
    profile = cast("Mapping[str, Any]", model.profile)
    if profile.get("anthropic_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    can_stop = bool(profile.get("openai_supports_reasoning_effort_none"))
    thinks = bool(profile.get("thinking_enabled_by_default")) or request.reasoning_effort
    return can_stop and (request.reasoning_effort == "none" or not thinks)


def _parameters(model: Model, request: ModelRequest) -> ModelRequestParameters:
    can_search = WebSearchTool in model.profile.get("supported_native_tools", ())
    if request.web_search and not can_search:
        raise provider_error(
            "bad-request",
            provider=request.provider,
            model=request.model,
            detail="it has no web search of its own",
        )
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
            )
            for tool in request.tools
        ],
        native_tools=[WebSearchTool()] if request.web_search else [],
    )
    name = _output_tool(request)
    if request.schema is None or name is None:
        return parameters
    schema = dict(request.schema)
    native = bool(model.profile.get("supports_json_schema_output", False))
    strict = _is_strict(schema)
    if model.system == "anthropic":
        # Anthropic's native mode is always strict, which would empty every open object, and it
        # does not go with citations, which its web search always has.
        native = native and strict and not request.web_search
    if native:
        output = OutputObjectDefinition(json_schema=schema, name=request.schema_name, strict=strict)
        return replace(parameters, output_mode="native", output_object=output)
    tool = ToolDefinition(
        name=name, description="Give the reply.", parameters_json_schema=schema, kind="output"
    )
    return replace(parameters, output_mode="tool", output_tools=[tool], allow_text_output=False)


def _is_strict(schema: object) -> bool:
    """Return whether a schema fits the strict modes; other schemas are sent as guidance.

    Every object requires all its fields and forbids others; no length or pattern limits.
    Source: OpenAI's and Anthropic's guides to structured outputs.
    """
    if not isinstance(schema, dict):
        return False
    fields = cast("dict[str, Any]", schema)
    if not fields.keys() <= _STRICT_WORDS:
        return False
    properties = cast("dict[str, Any]", fields.get("properties", {}))
    if fields.get("type") == "object":
        closed = fields.get("additionalProperties") is False
        if not closed or set(fields.get("required", ())) != properties.keys():
            return False
    inner = [*properties.values(), *fields.get("anyOf", ()), *fields.get("$defs", {}).values()]
    if "items" in fields:
        inner.append(fields["items"])
    return all(_is_strict(part) for part in inner)


def _content_of(
    event: ModelResponseStreamEvent,
) -> tuple[object, Literal["text", "reasoning"], m.ToolCallPart[Any] | m.ToolCallPartDelta | None]:
    """Return what an event adds to a reply, and the tool call that it belongs to, if it does."""
    content: object = None
    match event:
        case m.PartStartEvent(part=m.TextPart(content=content)):
            pass
        case m.PartStartEvent(part=m.ToolCallPart(args=content) as call):
            return content, "text", call
        case m.PartDeltaEvent(delta=m.TextPartDelta(content_delta=content)):
            pass
        case m.PartDeltaEvent(delta=m.ToolCallPartDelta(args_delta=content) as call):
            return content, "text", call
        case m.PartStartEvent(part=m.ThinkingPart(content=content)):
            return content, "reasoning", None
        case m.PartDeltaEvent(delta=m.ThinkingPartDelta(content_delta=content)):
            return content, "reasoning", None
        case _:
            pass
    return content, "text", None


def _finish(client: SdkClient, reply: _Reply, origin: Origin) -> AttemptResult:
    """Return the result of streams that ended without an error, or raise why it is invalid."""
    request, stream = reply.request, reply.streams[-1]
    known_ids = {call.id for message in request.messages for call in message.tool_calls}
    parts = clean_parts(reply.parts, reply.output_tool, known_ids)
    calls = tool_calls_of(parts)
    _require_valid(client, reply, calls)
    is_cut = stream.finish_reason == "length"
    return AttemptResult(
        reply.text,
        "length" if is_cut else "stop",
        _usage(reply, calls),
        calls,
        sources_of(parts),
        native_of(stream.get(), parts, origin),
    )


def _require_valid(client: SdkClient, reply: _Reply, calls: tuple[ToolCall, ...]) -> None:
    """Raise why a reply is invalid, if it is."""
    request, stream, text = reply.request, reply.streams[-1], reply.text
    details = stream.provider_details or {}
    reason = details.get("finish_reason")
    if details.get("refusal") or reason == "refusal":
        raise _reply_error("refused", request, _text_or_none(details.get("refusal")))
    if stream.finish_reason == "content_filter":
        raise _reply_error("content-filtered", request)
    if calls and not request.tools:
        raise _reply_error("unasked-tool-call", request)
    if reason is None:
        is_complete = client.strict_end and not text and not calls
        raise _reply_error("empty-reply" if is_complete else "stream-truncated", request)
    if stream.finish_reason == "tool_call" and not calls and not reply.in_output:
        # A call without a name is no part of a reply.
        raise _reply_error("stream-garbage", request, "a call of a tool without its name")
    if stream.finish_reason == "error" or stream.state != "complete":
        raise _reply_error("provider-error", request)
    if not text.strip() and not calls:
        raise _reply_error("empty-reply", request)


def _reply_error(code: str, request: ModelRequest, detail: str | None = None) -> ProviderError:
    is_permanent = code in ("refused", "content-filtered")
    return provider_error(
        code,
        provider=request.provider,
        model=request.model,
        detail=detail,
        retryable=not is_permanent,
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _usage(reply: _Reply, calls: tuple[ToolCall, ...]) -> Usage:
    """Return the provider's token counts if plausible, else an estimate from the characters."""
    counts = [(each.usage.input_tokens, each.usage.output_tokens) for each in reply.streams]
    if all(0 < count <= _MAX_TOKENS for pair in counts for count in pair):
        return Usage(sum(given for given, _ in counts), sum(made for _, made in counts))
    thoughts = (part.content for part in reply.parts if isinstance(part, m.ThinkingPart))
    called = (text for call in calls for text in (call.name, call.arguments))
    return Usage(
        input_tokens=text_tokens(*reply.request.texts),
        output_tokens=text_tokens(reply.text, *thoughts, *called),
        estimated=True,
    )
