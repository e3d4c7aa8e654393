"""One attempt of one model call, made through pydantic-ai's direct request.

Retries, limits and recording are in ``client.py``, which imports this module at the first call.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, cast

from pydantic_ai import UsageExtractionFailedWarning
from pydantic_ai import messages as m
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponseStreamEvent,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as SdkRequest
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from planwave.errors import ProviderError
from planwave.providers.errors import provider_error
from planwave.providers.protocols import Delta, ModelRequest, PromptMessage, Usage, text_tokens
from planwave.providers.transport import SdkClient

_SURROGATE = re.compile("[\ud800-\udfff]")
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
    model = client.model(request.model)
    opening = model_request_stream(
        model,
        _conversation(request),
        model_settings=_settings(model, request, headers),
        model_request_parameters=_parameters(model, request),
    )
    in_text: list[str] = []
    in_tool: list[str] = []
    with _garbage_as_provider_error(request):
        async with opening as stream, aclosing(_events(stream)) as events:
            async for event in events:
                delta, is_tool = _delta_of(event)
                if delta is None or (is_tool and request.schema is None):
                    continue
                if delta.kind == "text":
                    (in_tool if is_tool else in_text).append(delta.text)
                yield delta
            # A model may write text before it calls the forced tool; then only the tool call counts.
            yield _finish(client, request, stream, "".join(in_tool or in_text))


def _conversation(request: ModelRequest) -> list[ModelMessage]:
    """Return the messages to send: the system prompt, the turns so far, the prompt."""
    turns = list(request.messages)
    if request.prompt or not turns:
        turns.append(PromptMessage("user", request.prompt))
    parts: list[ModelRequestPart] = []
    if request.system:
        parts.append(SystemPromptPart(replace_surrogates(request.system)))
    messages: list[ModelMessage] = []
    for turn in turns:
        if turn.role == "user":
            parts.append(UserPromptPart(_content(turn)))
            continue
        if parts:
            messages.append(SdkRequest(parts=parts))
            parts = []
        messages.append(ModelResponse(parts=[TextPart(replace_surrogates(turn.text))]))
    if parts:
        messages.append(SdkRequest(parts=parts))
    return messages


def _content(turn: PromptMessage) -> str | list[UserContent]:
    if not turn.images:
        return replace_surrogates(turn.text)
    images: list[UserContent] = [
        BinaryContent.from_data_uri(url) if url.startswith("data:") else ImageUrl(url=url)
        for url in turn.images
    ]
    return [replace_surrogates(turn.text), *images] if turn.text else images


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


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text) if not text.isascii() else text


def _settings(model: Model, request: ModelRequest, headers: Mapping[str, str]) -> ModelSettings:
    settings = ModelSettings(extra_headers=dict(headers))
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    if request.temperature is not None and _takes_temperature(model, request):
        settings["temperature"] = request.temperature
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
    if request.schema is None:
        return ModelRequestParameters()
    schema = dict(request.schema)
    native = bool(model.profile.get("supports_json_schema_output", False))
    strict = _is_strict(schema)
    if model.system == "anthropic":
        # Anthropic's native mode is always strict, which would empty every open object.
        native = native and strict
    if native:
        name = request.schema_name
        output = OutputObjectDefinition(json_schema=schema, name=name, strict=strict)
        return ModelRequestParameters(output_mode="native", output_object=output)
    tool = ToolDefinition(
        name=request.schema_name,
        description="Give the reply.",
        parameters_json_schema=schema,
        kind="output",
    )
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


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


def _delta_of(event: ModelResponseStreamEvent) -> tuple[Delta | None, bool]:
    """Return the delta of an event, and whether it belongs to a tool call."""
    text: object = None
    kind: Literal["text", "reasoning"] = "text"
    is_tool = False
    match event:
        case m.PartStartEvent(part=m.TextPart(content=text)):
            pass
        case m.PartStartEvent(part=m.ToolCallPart(args=text)):
            is_tool = True
        case m.PartDeltaEvent(delta=m.TextPartDelta(content_delta=text)):
            pass
        case m.PartDeltaEvent(delta=m.ToolCallPartDelta(args_delta=text)):
            is_tool = True
        case m.PartStartEvent(part=m.ThinkingPart(content=text)):
            kind = "reasoning"
        case m.PartDeltaEvent(delta=m.ThinkingPartDelta(content_delta=text)):
            kind = "reasoning"
        case _:
            pass
    delta = Delta(replace_surrogates(text), kind) if isinstance(text, str) and text else None
    return delta, is_tool


def _finish(
    client: SdkClient, request: ModelRequest, stream: StreamedResponse, text: str
) -> AttemptResult:
    """Return the result of a stream that ended without an error, or raise why it is invalid."""
    details = stream.provider_details or {}
    reason = details.get("finish_reason")
    if details.get("refusal") or reason == "refusal":
        raise _reply_error("refused", request, _text_or_none(details.get("refusal")))
    if stream.finish_reason == "content_filter":
        raise _reply_error("content-filtered", request)
    if _calls_other_tools(request, stream):
        raise _reply_error("unasked-tool-call", request)
    if reason is None:
        is_complete = client.strict_end and not text
        raise _reply_error("empty-reply" if is_complete else "stream-truncated", request)
    if not text.strip():
        raise _reply_error("empty-reply", request)
    if stream.finish_reason == "error" or stream.state != "complete":
        raise _reply_error("provider-error", request)
    is_cut = stream.finish_reason == "length"
    return AttemptResult(text, "length" if is_cut else "stop", _usage(request, stream, text))


def _calls_other_tools(request: ModelRequest, stream: StreamedResponse) -> bool:
    """Return whether a reply calls a tool other than the one for a JSON reply."""
    expected = None if request.schema is None else request.schema_name
    parts = stream.get().parts
    return any(isinstance(part, ToolCallPart) and part.tool_name != expected for part in parts)


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


def _usage(request: ModelRequest, stream: StreamedResponse, text: str) -> Usage:
    """Return the provider's token counts if plausible, else an estimate from the characters."""
    reported = stream.usage
    counts = (reported.input_tokens, reported.output_tokens)
    if all(0 < count <= _MAX_TOKENS for count in counts):
        return Usage(input_tokens=counts[0], output_tokens=counts[1])
    return Usage(
        input_tokens=text_tokens(*request.texts),
        output_tokens=text_tokens(text),
        estimated=True,
    )
