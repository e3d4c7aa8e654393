"""One attempt of one model call, made through pydantic-ai's direct request.

Retries, limits and recording are in ``client.py``, which imports this module at the first call.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
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
from planwave.graph.plan import canonical_json
from planwave.providers.capabilities import Capabilities
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
from planwave.providers.reply_text import ReplyReader
from planwave.providers.resilience.prompt_cache import NO_MARKS, CacheMarks
from planwave.providers.sdk_messages import (
    Origin,
    clean_parts,
    mark_beginning,
    native_of,
    replace_surrogates,
    sdk_messages,
    sources_of,
    split_text_parts,
    tool_calls_of,
    with_calls_in_text,
)
from planwave.providers.streams.finish_reasons import FinishReason
from planwave.providers.streams.readers import StreamReader
from planwave.providers.streams.usage import TokenCounts
from planwave.providers.tool_schemas import adapted_tools, dialect_of
from planwave.providers.transport import Exchange, SdkClient
from planwave.setting_tables import StructuredOutput

_MAX_SEGMENTS = 10
"""Requests for one reply: a provider may pause in the middle of a long search of the web."""
_MAX_TOKENS = 100_000_000
_JSON_MODE = {"response_format": {"type": "json_object"}}
_SCHEMA_IN_WORDS = (
    "Reply with one JSON object and nothing else. It has to fit this JSON Schema:\n{}"
)
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
    warnings: tuple[str, ...] = ()
    response_id: str = ""
    response_model: str = ""


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
    client: SdkClient,
    request: ModelRequest,
    headers: Mapping[str, str],
    exchange: Exchange,
    marks: CacheMarks = NO_MARKS,
) -> AsyncGenerator[Delta | AttemptResult, None]:
    """Stream one attempt: deltas, then ``AttemptResult``.

    Raises:
        ProviderError: The stream ended without a valid reply.
        Exception: Any exception of the SDK and the transport; see ``errors.classify``.
    """
    model = client.model(request.model, web_search=request.web_search)
    capabilities = exchange.capabilities
    origin = Origin(request.provider, exchange.api)
    tools = adapted_tools(request.tools, dialect_of(capabilities.tool_schema, request.model))
    request = tools.applied_to(request)
    form = _json_form(model, request, capabilities)
    marks = marks if _takes_marks(exchange) else NO_MARKS
    messages = sdk_messages(_with_schema_in_words(request, form), origin, capabilities)
    mark_beginning(messages, marks.prompt_chars)
    parameters = _parameters(model, request, form, capabilities)
    text = ReplyReader(begins_inside=capabilities.begins_in_reasoning)
    reply = _Reply(request, _output_tool(request), exchange.readers, text)
    with _garbage_as_provider_error(request):
        for number in range(_MAX_SEGMENTS):
            sent = {**_segment_headers(headers, number), **exchange.headers}
            settings = _settings(model, request, sent, form, capabilities, marks)
            opening = model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            )
            async with opening as stream, aclosing(_events(stream)) as events:
                async for event in events:
                    for delta in reply.read(event):
                        yield delta
            segment = reply.end(stream)
            if stream.state != "suspended":
                break
            messages = [*messages, segment]
        for delta in reply.text_reader.end():
            yield delta
        if reply.text_reader.has_lone_end:
            client.capabilities.learn(exchange.api, request.model, {"begins_in_reasoning": True})
        result = _finish(client, reply, origin)
        if result.text != reply.text:
            yield Delta("", "discarded")
            yield Delta(result.text)
        calls = tools.restored(result.tool_calls)
        yield replace(result, tool_calls=calls, warnings=tools.warnings)


def _takes_marks(exchange: Exchange) -> bool:
    """Return whether beginnings are marked for the cache; OpenAI keeps them by itself."""
    return exchange.api == "messages" and exchange.capabilities.prompt_cache


@dataclass(slots=True)
class _Reply:
    """A reply as it arrives, in one segment or, if the provider pauses, in several.

    Attributes:
        request: The call.
        output_tool: The tool by which a JSON reply may be given; None without a schema.
        readers: The readers of its segments.
        text_reader: Reads its text.
        in_output: The pieces of the arguments of the output tool. A model may write text before it calls
            this tool; then only the call counts.
        streams: Its segments.
        parts: The parts of these.
    """

    request: ModelRequest
    output_tool: str | None
    readers: Sequence[StreamReader]
    text_reader: ReplyReader
    in_output: list[str] = field(default_factory=list[str])
    streams: list[StreamedResponse] = field(default_factory=list[StreamedResponse])
    parts: list[ModelResponsePart] = field(default_factory=list[ModelResponsePart])
    _outputs: set[int] = field(default_factory=set[int])

    def read(self, event: ModelResponseStreamEvent) -> Iterator[Delta]:
        """Yield the deltas of an event; the arguments of a tool that is offered are none."""
        content, kind, call = _content_of(event)
        if call is not None and not self._is_output(call, event):
            return
        if not isinstance(content, str) or not content:
            return
        delta = Delta(replace_surrogates(content), kind)
        if kind == "reasoning":
            yield delta
        elif call is None:
            yield from self.text_reader.feed(delta.text)
        else:
            self.in_output.append(delta.text)
            yield delta

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
    def finish_reason(self) -> FinishReason | None:
        """Why it ended."""
        return self.readers[-1].finish_reason if self.readers else None

    @property
    def text(self) -> str:
        """Its text; the arguments of the output tool where the model has called it."""
        return "".join(self.in_output) or self.text_reader.text


def _segment_headers(headers: Mapping[str, str], number: int) -> Mapping[str, str]:
    """Return the headers of one segment; no two segments have the same idempotency key."""
    key = headers.get(IDEMPOTENCY_HEADER)
    return {**headers, IDEMPOTENCY_HEADER: f"{key}+{number}"} if key and number else headers


def _output_tool(request: ModelRequest) -> str | None:
    """Return the name of the tool by which a JSON reply may be given: none of those offered."""
    if request.schema is None:
        return None
    name, tool_names = request.schema_name, {tool.name for tool in request.tools}
    while name in tool_names:
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


def _settings(
    model: Model,
    request: ModelRequest,
    headers: Mapping[str, str],
    form: StructuredOutput | None,
    capabilities: Capabilities,
    marks: CacheMarks,
) -> ModelSettings:
    settings = _cache_settings(marks)
    settings["extra_headers"] = dict(headers)
    if request.max_tokens is not None:
        settings["max_tokens"] = _max_tokens(request, request.max_tokens, capabilities)
    extra: dict[str, Any] = {} if request.grammar is None else {"grammar": request.grammar}
    if form == "json":
        extra |= _JSON_MODE
    if extra:
        settings["extra_body"] = extra
    takes_temperature = capabilities.temperature and _takes_temperature(model, request)
    if request.temperature is not None and takes_temperature:
        settings["temperature"] = request.temperature
    if request.must_call and capabilities.required_tool_choice:
        settings["tool_choice"] = "required"
    if request.tools and not capabilities.parallel_tool_calls:
        settings["parallel_tool_calls"] = False
    effort = request.reasoning_effort
    if effort in (None, "") or not capabilities.reasoning_effort:
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


def _cache_settings(marks: CacheMarks) -> ModelSettings:
    marked = {
        "anthropic_cache_instructions": marks.fixed,
        "anthropic_cache_tool_definitions": marks.fixed,
        "anthropic_cache_messages": marks.turns,
    }
    return cast("ModelSettings", {name: True for name, is_set in marked.items() if is_set})


def _max_tokens(request: ModelRequest, limit: int, capabilities: Capabilities) -> int:
    """Return the limit of a reply: no more than the prompt leaves of the context window."""
    if capabilities.context_window is None:
        return limit
    room = capabilities.context_window - text_tokens(*request.texts)
    return max(1, min(limit, room))


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


def _json_form(
    model: Model, request: ModelRequest, capabilities: Capabilities
) -> StructuredOutput | None:
    """Return how to ask for a JSON reply; None for text."""
    if request.schema is None:
        return None
    form = capabilities.structured_output
    if form == "schema":
        native = bool(model.profile.get("supports_json_schema_output", False))
        if model.system == "anthropic":
            # Anthropic's native mode is always strict, which would empty every open object, and it
            # does not go with citations, which its web search always has.
            native = native and _is_strict(request.schema) and not request.web_search
        form = "schema" if native else "tool"
    if form in ("schema", "json") and request.tools and not capabilities.tools_beside_schema:
        return "tool"
    return form


def _with_schema_in_words(request: ModelRequest, form: StructuredOutput | None) -> ModelRequest:
    """Return a request that says in words which JSON is wanted, where the server takes no schema."""
    if form not in ("json", "none") or request.schema is None:
        return request
    words = _SCHEMA_IN_WORDS.format(canonical_json(dict(request.schema)))
    return replace(request, system="\n\n".join(filter(None, (request.system, words))))


def _parameters(
    model: Model,
    request: ModelRequest,
    form: StructuredOutput | None,
    capabilities: Capabilities,
) -> ModelRequestParameters:
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
    if request.schema is None or name is None or form not in ("schema", "tool"):
        return parameters
    schema = dict(request.schema)
    if form == "schema":
        output = OutputObjectDefinition(
            json_schema=schema, name=request.schema_name, strict=_is_strict(schema)
        )
        return replace(parameters, output_mode="native", output_object=output)
    tool = ToolDefinition(
        name=name, description="Give the reply.", parameters_json_schema=schema, kind="output"
    )
    may_write = not capabilities.required_tool_choice
    return replace(parameters, output_mode="tool", output_tools=[tool], allow_text_output=may_write)


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
    parts = split_text_parts(reply.parts, reply.text_reader)
    text = reply.text
    if request.tools and not any(isinstance(part, m.ToolCallPart) for part in parts):
        text, parts = with_calls_in_text(text, parts, {tool.name for tool in request.tools})
    parts = clean_parts(parts, reply.output_tool, known_ids)
    calls = tool_calls_of(parts)
    _require_valid(client, reply, calls)
    return AttemptResult(
        text,
        "length" if reply.finish_reason == "length" else "stop",
        _usage(reply, calls),
        calls,
        sources_of(parts),
        native_of(stream.get(), parts, origin),
        response_id=stream.provider_response_id or "",
        response_model=stream.model_name or "",
    )


def _require_valid(client: SdkClient, reply: _Reply, calls: tuple[ToolCall, ...]) -> None:
    """Raise why a reply is invalid, if it is."""
    request, text, reason = reply.request, reply.text, reply.finish_reason
    stream = reply.streams[-1]
    refusal = (stream.provider_details or {}).get("refusal")
    if refusal or reason == "refusal":
        raise _reply_error("refused", request, _text_or_none(refusal))
    if reason == "content_filter":
        raise _reply_error("content-filtered", request)
    if calls and not request.tools:
        raise _reply_error("unasked-tool-call", request)
    if reason is None:
        is_complete = client.strict_end and not text and not calls
        raise _reply_error("empty-reply" if is_complete else "stream-truncated", request)
    needs_call = not text.strip() or request.must_call or reply.readers[-1].has_calls
    if reason == "tool_calls" and not calls and not reply.in_output and needs_call:
        # A call without a name is no part of a reply.
        raise _reply_error("stream-garbage", request, "a call of a tool without its name")
    if reason == "error" or stream.state != "complete":
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
    counts = [reader.usage.counts for reader in reply.readers]
    numbers = [count or 0 for each in counts for count in (each.input_tokens, each.output_tokens)]
    if numbers and all(0 < count <= _MAX_TOKENS for count in numbers):
        cached = [_of_the_cache(each) for each in counts]
        return Usage(
            sum(numbers[::2]),
            sum(numbers[1::2]),
            cache_read_tokens=sum(read for read, _ in cached),
            cache_write_tokens=sum(written for _, written in cached),
            reasoning_tokens=sum(
                min(each.reasoning or 0, each.output_tokens or 0) for each in counts
            ),
        )
    thoughts = (part.content for part in reply.parts if isinstance(part, m.ThinkingPart))
    called = (text for call in calls for text in (call.name, call.arguments))
    return Usage(
        input_tokens=text_tokens(*reply.request.texts),
        output_tokens=text_tokens(reply.text, *thoughts, *called),
        estimated=True,
    )


def _of_the_cache(counts: TokenCounts) -> tuple[int, int]:
    """Return the tokens read from the cache and written to it: never more than the prompt has."""
    prompt_tokens = counts.input_tokens or 0
    read = min(max(counts.cache_read or 0, 0), prompt_tokens)
    return read, min(max(counts.cache_write or 0, 0), prompt_tokens - read)
