"""Conversations as messages of pydantic-ai, and its replies as calls of tools, sources and JSON.

A reply is kept with all its parts (``ModelReply.native``), so that a later call can send back the
reasoning and the searches of the provider, which it accepts only unchanged and only as its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    WebCitationSource,
)
from pydantic_ai.messages import ModelRequest as SdkRequest

from planwave.providers.capabilities import Capabilities
from planwave.providers.protocols import Api, ModelRequest, PromptMessage, Source, ToolCall
from planwave.providers.reply_text import ReplyReader, calls_in_text

NO_RESULT: Final = "(no result)"
"""What a model is told of a tool that gives nothing."""
_NO_TEXT: Final = "(no text)"
REASONING_OF_TEXT: Final = "text"
"""The id of reasoning that a server left in the text of a reply; it is stored, and not sent back."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
_RESPONSE_FIELDS: Final = (
    "kind", "parts", "provider_name", "canonical_system", "model_name", "metadata"
)  # fmt: skip
"""What a provider needs of its own reply; times, its usage and the address are left out."""
_NATIVE_PARTS: Final = (ThinkingPart, ToolCallPart, NativeToolCallPart, NativeToolReturnPart)
"""The parts for which a reply is kept whole."""


DEFAULTS: Final = Capabilities()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reply came from; only there its reasoning and its searches are accepted."""

    provider: str
    api: Api


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text) if not text.isascii() else text


def sdk_messages(
    request: ModelRequest, origin: Origin, capabilities: Capabilities = DEFAULTS
) -> list[ModelMessage]:
    """Return the messages to send: the system prompt, the turns so far, the prompt.

    No message has a blank text, which APIs refuse: blank turns are left out, and an empty result of a
    tool is ``(no result)``.

    Args:
        request: The call.
        origin: Where it is sent. Of replies from elsewhere only text and calls of tools are sent.
        capabilities: What the server takes.
    """
    system, turns = _turns_to_send(request, capabilities)
    parts: list[ModelRequestPart] = []
    if system:
        parts.append(SystemPromptPart(replace_surrogates(system)))
    messages: list[ModelMessage] = []
    for turn in turns:
        match turn.role:
            case "system":
                parts.append(SystemPromptPart(replace_surrogates(turn.text)))
            case "user":
                parts.append(UserPromptPart(_content(turn)))
            case "tool":
                parts.append(_tool_result(turn, origin))
            case "assistant":
                if parts:
                    messages.append(SdkRequest(parts=parts))
                    parts = []
                messages.append(_response(turn, origin))
    if parts:
        messages.append(SdkRequest(parts=parts))
    return messages


def mark_beginning(messages: Sequence[ModelMessage], chars: int) -> None:
    """Mark the first characters of the first turn of the user for the cache of the provider."""
    parts = [part for message in messages for part in message.parts]
    turn = next((part for part in parts if isinstance(part, UserPromptPart)), None)
    if turn is None or not chars:
        return
    text, *more = [turn.content] if isinstance(turn.content, str) else turn.content
    if isinstance(text, str) and len(text) >= chars:
        rest = [text[chars:]] if text[chars:].strip() else []
        turn.content = [text[:chars] if rest else text, CachePoint(), *rest, *more]


def _turns_to_send(
    request: ModelRequest, capabilities: Capabilities
) -> tuple[str, list[PromptMessage]]:
    """Return the system prompt and the turns, without blank ones, as the server takes them."""
    prompt = (PromptMessage("user", request.prompt),) if request.prompt.strip() else ()
    turns = [turn for turn in (*request.messages, *prompt) if not _is_blank(turn)]
    system = [request.system] if request.system and request.system.strip() else []
    if capabilities.system_role == "user":
        turns = [replace(each, role="user") if each.role == "system" else each for each in turns]
        turns, system = _with_system_as_user(turns, system), []
    elif not capabilities.keeps_system_place:
        system += [turn.text for turn in turns if turn.role == "system"]
        turns = [turn for turn in turns if turn.role != "system"]
    if not capabilities.parallel_tool_calls:
        turns = [*_one_call_each(turns)]
    if not capabilities.repeated_roles:
        turns = _joined(turns)
    return "\n\n".join(system), turns or [PromptMessage("user", _NO_TEXT)]


def _is_blank(turn: PromptMessage) -> bool:
    has_more = turn.images or turn.tool_calls or turn.role == "tool"
    return not has_more and not turn.text.strip()


def _with_system_as_user(turns: list[PromptMessage], system: list[str]) -> list[PromptMessage]:
    """Put the system prompt before the first turn, as part of it if it is the user's."""
    if not system:
        return turns
    if not turns or turns[0].role != "user":
        return [PromptMessage("user", system[0]), *turns]
    first = replace(turns[0], text="\n\n".join(filter(str.strip, (system[0], turns[0].text))))
    return [first, *turns[1:]]


def _one_call_each(turns: Sequence[PromptMessage]) -> Iterator[PromptMessage]:
    """Yield each call of a turn as a turn of its own, followed by its result."""
    results = {turn.tool_call_id: turn for turn in turns if turn.role == "tool"}
    moved: set[str] = set()
    for turn in turns:
        if turn.role == "tool" and turn.tool_call_id in moved:
            continue
        if len(turn.tool_calls) < 2:
            yield turn
            continue
        for number, call in enumerate(turn.tool_calls):
            text = "" if number else turn.text
            yield replace(turn, text=text, tool_calls=(call,), native=None)
            if call.id in results:
                moved.add(call.id)
                yield results[call.id]


def _joined(turns: Iterable[PromptMessage]) -> list[PromptMessage]:
    """Join turns of one role that follow each other."""
    joined: list[PromptMessage] = []
    for turn in turns:
        last = joined[-1] if joined else None
        if last is None or last.role != turn.role or turn.role == "tool":
            joined.append(turn)
            continue
        joined[-1] = replace(
            last,
            text="\n\n".join(filter(str.strip, (last.text, turn.text))),
            images=(*last.images, *turn.images),
            tool_calls=(*last.tool_calls, *turn.tool_calls),
            native=None,
        )
    return joined


def _content(turn: PromptMessage) -> str | list[UserContent]:
    if not turn.images:
        return replace_surrogates(turn.text)
    images: list[UserContent] = [
        BinaryContent.from_data_uri(url) if url.startswith("data:") else ImageUrl(url=url)
        for url in turn.images
    ]
    return [replace_surrogates(turn.text), *images] if turn.text.strip() else images


def _tool_result(turn: PromptMessage, origin: Origin) -> ToolReturnPart[Any]:
    return ToolReturnPart(
        replace_surrogates(turn.tool_name),
        replace_surrogates(turn.text) if turn.text.strip() else NO_RESULT,
        _sent_id(turn.tool_call_id, origin),
        outcome="failed" if turn.is_error else "success",
    )


def _sent_id(call_id: str, origin: Origin) -> str:
    """Return the id of a call as it is sent: Anthropic accepts no ids such as ``functions.add:0``."""
    if origin.api == "messages":
        return _NOT_IN_IDS.sub("_", call_id)
    return replace_surrogates(call_id)


def _response(turn: PromptMessage, origin: Origin) -> ModelResponse:
    """Return a turn of the model: its native form if that is of this origin and agrees, else text and calls."""
    response = None if turn.native is None else _own_response(turn.native, origin)
    if response is not None:
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        sent = [part for part in response.parts if _is_sent(part)]
        if sent and text == turn.text and _are_same(tool_calls_of(response.parts), turn.tool_calls):
            return replace(response, parts=sent)
    parts: list[ModelResponsePart] = []
    if turn.text.strip():
        parts.append(TextPart(replace_surrogates(turn.text)))
    for call in turn.tool_calls:
        name, arguments = replace_surrogates(call.name), replace_surrogates(call.arguments)
        parts.append(ToolCallPart(name, arguments, _sent_id(call.id, origin)))
    return ModelResponse(parts=parts)


def _is_sent(part: ModelResponsePart) -> bool:
    """Return whether a part of a reply is sent back: not if blank, nor reasoning that was in its text."""
    if isinstance(part, TextPart):
        return bool(part.content.strip())
    if isinstance(part, ThinkingPart):
        is_signed = part.signature is not None or part.provider_details is not None
        return part.id != REASONING_OF_TEXT and (is_signed or bool(part.content.strip()))
    return True


def _are_same(first: Sequence[ToolCall], second: Sequence[ToolCall]) -> bool:
    """Return whether calls are the same; names of arguments may have been written anew."""
    return len(first) == len(second) and all(
        one == other
        or (one[:2] == other[:2] and _read(one.arguments) == _read(other.arguments) is not None)
        for one, other in zip(first, second, strict=True)
    )


def _read(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _own_response(native: Mapping[str, Any], origin: Origin) -> ModelResponse | None:
    """Return the response of a native form, or None if it is another provider's or unreadable."""
    metadata = native.get("metadata")
    if metadata != {"provider": origin.provider, "api": origin.api}:
        return None
    fields = {name: native[name] for name in _RESPONSE_FIELDS if name in native}
    try:
        (message,) = ModelMessagesTypeAdapter.validate_python([fields])
    except (ValidationError, TypeError):
        return None
    if not isinstance(message, ModelResponse):
        return None
    # The form may come from a user: nothing in it may refer to what the provider keeps for others.
    is_known = all(isinstance(part, (TextPart, *_NATIVE_PARTS)) for part in message.parts)
    return message if is_known else None


def tool_calls_of(parts: Iterable[ModelResponsePart]) -> tuple[ToolCall, ...]:
    """Return the calls of tools in a reply, in the order in which the model made them."""
    return tuple(
        ToolCall(part.tool_call_id, part.tool_name, _arguments(part))
        for part in parts
        if isinstance(part, ToolCallPart)
    )


def _arguments(part: ToolCallPart[Any]) -> str:
    """Return the arguments as the model wrote them; a call without any has an empty object."""
    if isinstance(part.args, str):
        return part.args or "{}"
    return json.dumps(part.args or {}, ensure_ascii=False)


def split_text_parts(
    parts: Sequence[ModelResponsePart], reader: ReplyReader
) -> list[ModelResponsePart]:
    """Return the parts of a reply, with the reasoning that was in its text as a part of its own."""
    if not reader.reasoning:
        return [*parts]
    text = replace_surrogates(reader.text)
    split: list[ModelResponsePart] = [ThinkingPart(reader.reasoning, id=REASONING_OF_TEXT)]
    split += [TextPart(text)] if text.strip() else []
    return [*split, *(part for part in parts if not isinstance(part, TextPart))]


def with_calls_in_text(
    text: str, parts: Sequence[ModelResponsePart], names: Container[str]
) -> tuple[str, list[ModelResponsePart]]:
    """Return text and parts of a reply, with the calls that a server left in its text as parts."""
    rest, calls = calls_in_text(text, names)
    if not calls:
        return text, [*parts]
    called = [
        ToolCallPart(name, arguments, f"call_{number}")
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    others = [part for part in parts if not isinstance(part, TextPart)]
    return rest, [*others, *([TextPart(rest)] if rest else []), *called]


def clean_parts(
    parts: Sequence[ModelResponsePart], output_tool: str | None, known_ids: Container[str]
) -> list[ModelResponsePart]:
    """Return the parts of a reply as they are kept.

    A reply that was given as the arguments of the output tool is a text, and the only one. A call
    whose id is used already, in the conversation or the reply, gets another one: its result could not be
    told from that of the other call. (Some servers number the calls of each reply from 0.)
    """
    is_output = any(isinstance(p, ToolCallPart) and p.tool_name == output_tool for p in parts)
    clean: list[ModelResponsePart] = []
    ids: set[str] = set()
    for part in parts:
        if not isinstance(part, ToolCallPart):
            if not (is_output and isinstance(part, TextPart)):
                clean.append(part)
            continue
        arguments = replace_surrogates(_arguments(part))
        if part.tool_name == output_tool:
            clean.append(TextPart(arguments))
            continue
        call_id = first = replace_surrogates(part.tool_call_id)
        number = 1
        while call_id in ids or call_id in known_ids:
            number += 1
            call_id = f"{first}-{number}"
        ids.add(call_id)
        name = replace_surrogates(part.tool_name)
        clean.append(replace(part, tool_name=name, args=arguments, tool_call_id=call_id))
    return clean


def sources_of(parts: Iterable[ModelResponsePart]) -> tuple[Source, ...]:
    """Return the pages that a reply cites, each once, in the order of their first citation."""
    sources: dict[str, Source] = {}
    for part in parts:
        for citation in (part.citations or ()) if isinstance(part, TextPart) else ():
            for source in citation.sources:
                if isinstance(source, WebCitationSource) and source.url:
                    title = replace_surrogates(source.title or "")
                    sources.setdefault(source.url, Source(replace_surrogates(source.url), title))
    return tuple(sources.values())


def native_of(
    response: ModelResponse, parts: Sequence[ModelResponsePart], origin: Origin
) -> dict[str, Any] | None:
    """Return the JSON that a reply is sent back from, or None if its text says it all."""
    if not any(isinstance(part, _NATIVE_PARTS) for part in parts):
        return None
    metadata = {"provider": origin.provider, "api": origin.api}
    whole = replace(response, parts=parts, metadata=metadata)
    (dumped,) = ModelMessagesTypeAdapter.dump_python([whole], mode="json", warnings=False)
    message = {name: dumped[name] for name in _RESPONSE_FIELDS if dumped.get(name) is not None}
    message["parts"] = [_pruned(part) for part in message["parts"]]
    return cast("dict[str, Any]", _without_surrogates(message))


def _pruned(part: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a part what says nothing, and when it came."""
    return {
        name: value for name, value in part.items() if value is not None and name != "timestamp"
    }


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _without_surrogates(item) for name, item in fields.items()}
    return value
