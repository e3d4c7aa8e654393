"""The event streams of the three APIs, brought into the form that their SDKs expect.

A reader takes each event of a server and gives the events that an SDK reads. Here, and nowhere else,
is what servers do otherwise than their APIs say: fragments of tool calls, finish reasons and counts of
tokens in other forms, errors in the place of events, missing deltas.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final, cast

from planwave.providers.error_bodies import has_words
from planwave.providers.protocols import Api
from planwave.providers.streams.errors import ReportedError, StreamCut, StreamGarbage
from planwave.providers.streams.events import (
    ServerEvent,
    event_bytes,
    object_in,
    require_object,
)
from planwave.providers.streams.finish_reasons import FinishReason, finish_reason_of
from planwave.providers.streams.tool_calls import CallFragment, ToolCallJoiner, arguments_text
from planwave.providers.streams.usage import UsageReader
from planwave.setting_tables import UsageCounting

_log = logging.getLogger(__name__)

_DONE: Final = "[DONE]"
_CONTENT: Final = frozenset({"choices", "content", "output", "response", "delta"})
_SAID: Final = frozenset(
    {"message", "msg", "detail", "errors", "error_message", "error_msg", "errormessage", "errormsg",
     "error_code", "fault", "base_resp", "reason"}
)  # fmt: skip
"""Fields of an error that has no ``error``."""
_EVENT_TYPES: Final = ("message_", "content_block_", "response.", "ping")


class StreamReader(ABC):
    """Reads one reply.

    Args:
        names: The tools that the request offers.
        own_reasons: Words for the end of a reply that the server has of its own.
        counting: How it counts tokens.
        must_end: Whether a stream without its last event is cut. Some servers send none; then the
            finish reason decides.

    Attributes:
        usage: The tokens that are reported.
        finish_reason: Why the reply ended; None where the server has not said it.
        has_calls: Whether any tool was called, also without a name.
        unknown_reason: A word for the end of the reply that is in no table; it counts as ``stop``.
    """

    _excludes_cache: ClassVar[bool] = False

    def __init__(
        self,
        names: Collection[str] = (),
        own_reasons: Mapping[str, FinishReason] | None = None,
        counting: UsageCounting = "so_far",
        *,
        must_end: bool = True,
    ) -> None:
        self.usage = UsageReader(excludes_cache=self._excludes_cache, counting=counting)
        self.finish_reason: FinishReason | None = None
        self.has_calls = False
        self.unknown_reason: str | None = None
        self._calls = ToolCallJoiner(names)
        self._own_reasons = own_reasons
        self._must_end = must_end
        self._has_ended = False

    def read(self, event: ServerEvent) -> Iterator[bytes]:
        """Yield the events that an SDK gets for one of the server.

        Raises:
            ReportedError: It reports an error.
            StreamGarbage: It is none of this API.
        """
        if not event.data.strip() or self._has_ended:
            return
        if event.data.strip().strip('"').upper() == _DONE:
            self._has_ended = self._ends_with_done
            yield from self._done()
            return
        data = _parsed(event)
        if _is_error(event, data):
            raise ReportedError(data)
        yield from self._read(require_object(data, "an event"))

    def end(self) -> None:
        """Check that the stream is complete, where its end can be told.

        Raises:
            StreamCut: It is not.
        """
        if self._must_end and not self._has_ended:
            raise StreamCut("the stream ended without its last message")

    _ends_with_done: ClassVar[bool] = False

    def _done(self) -> Iterator[bytes]:
        yield from ()

    @abstractmethod
    def _read(self, data: dict[str, Any]) -> Iterator[bytes]: ...

    def _reason(self, word: object) -> FinishReason | None:
        """Return the reason that a word names, and keep it; None for no word."""
        if not isinstance(word, str) or not word.strip():
            return None
        reason = finish_reason_of(word, self._own_reasons)
        if reason is None and self.unknown_reason is None:
            self.unknown_reason = word[:80]
            _log.warning("a reply ended for the unknown reason %r; taken as its end", word[:80])
        self.finish_reason = reason or "stop"
        return self.finish_reason


def _parsed(event: ServerEvent) -> object:
    """Return the data of an event; text in the place of JSON is what the server has to say."""
    try:
        return json.loads(event.data)
    except (ValueError, RecursionError) as error:
        is_text = event.name == "error" or event.data.lstrip()[:1] not in ("{", "[", '"')
        if is_text:
            raise ReportedError(event.data) from error
        raise StreamGarbage("an event that is not JSON") from error


def _is_error(event: ServerEvent, data: object) -> bool:
    if event.name == "error" or isinstance(data, str):
        return True
    if isinstance(data, list):
        items = cast("list[object]", data)
        return bool(items) and all("error" in object_in(item) for item in items)
    fields = object_in(data)
    if fields.get("error") and fields.get("object") != "response":
        return True
    if fields.get("type") == "error" or fields.get("object") == "error":
        return True
    names = {name.lower() for name in fields}
    kind = str(fields.get("type", ""))
    is_event = kind.startswith(_EVENT_TYPES) or not names.isdisjoint(_CONTENT)
    return not is_event and not names.isdisjoint(_SAID)


class ChatReader(StreamReader):
    """OpenAI's chat completions, and what other servers make of them."""

    _ends_with_done = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._has_text = self._has_empty_reason = False

    def _read(self, data: dict[str, Any]) -> Iterator[bytes]:
        self.usage.read(data.pop("usage", None))
        choices = data.get("choices")
        first_choices: list[dict[str, Any]] = []
        for choice in cast("list[Any]", choices) if isinstance(choices, list) else ():
            fields = require_object(choice, "a choice")
            self.usage.read(fields.pop("usage", None))
            if fields.get("index") in (0, None):
                self._read_choice(fields)
                first_choices.append(fields)
        yield event_bytes({**data, "choices": first_choices})

    def _read_choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        delta = choice.pop("message", None) if delta is None else delta
        fields = require_object({} if delta is None else delta, "a delta")
        calls = fields.pop("tool_calls", None)
        if (called := fields.pop("function_call", None)) and not calls:
            calls = [{"index": 0, "type": "function", "function": called}]  # until 2023
        self.usage.read(fields.pop("usage", None))
        if thought := _thought_of(fields):
            fields["reasoning_content"] = thought
        self._has_text |= bool(fields.get("content"))
        if isinstance(calls, list):
            joined = [self._joined(call) for call in cast("list[Any]", calls)]
            fields["tool_calls"] = [call for call in joined if call is not None]
            self.has_calls |= bool(joined)
        word = choice.get("finish_reason")
        self._has_empty_reason |= word == ""
        choice |= {"index": 0, "delta": fields, "finish_reason": self._reason(word)}

    def _joined(self, fragment: object) -> dict[str, Any] | None:
        fields = require_object(fragment, "a call of a tool")
        called = require_object(fields.get("function") or {}, "a function")
        joined = self._calls.add(
            fields.get("index"), fields.get("id"), called.get("name"), called.get("arguments")
        )
        return None if joined is None else {**fields, **_chat_fragment(joined)}

    def _done(self) -> Iterator[bytes]:
        is_silent = self.finish_reason is None and self._has_empty_reason
        if is_silent and (self._has_text or self.has_calls):
            reason = self._reason("tool_calls" if self.has_calls else "stop")
            yield event_bytes({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        yield event_bytes(_DONE)


def _thought_of(delta: dict[str, Any]) -> str:
    """Return the reasoning in a delta that has it in no field that the SDKs know."""
    if delta.get("reasoning_content") or delta.get("reasoning"):
        return ""
    thought = delta.get("thinking")
    if isinstance(thought, str):
        return thought
    texts: list[str] = []
    for name in ("reasoning_details", "content"):
        parts = delta.get(name)
        for part in cast("list[Any]", parts) if isinstance(parts, list) else ():
            fields = object_in(part)
            inner = fields.get("thinking" if name == "content" else "text")
            texts += _texts_in(inner)
    return "".join(texts)


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in cast("list[Any]", value) if isinstance(value, list) else ():
        yield str(object_in(part).get("text") or "")


def _chat_fragment(fragment: CallFragment) -> dict[str, Any]:
    function = {"name": fragment.name or None, "arguments": fragment.arguments}
    return {
        "index": fragment.number,
        "id": fragment.id or None,
        "type": "function" if fragment.begins else None,
        "function": function,
    }


class MessagesReader(StreamReader):
    """Anthropic's messages."""

    _excludes_cache = True
    _STOP_REASONS: ClassVar[Mapping[FinishReason, str]] = {
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "refusal": "refusal",
    }
    _OWN_WORDS: ClassVar[frozenset[str]] = frozenset(
        [
            "end_turn",
            "max_tokens",
            "stop_sequence",
            "tool_use",
            "pause_turn",
            "refusal",
            "compaction",
            "model_context_window_exceeded",
        ]
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._blocks: dict[object, int] = {}
        self._open: dict[object, dict[str, Any]] = {}
        self._begun = 0

    def _read(self, data: dict[str, Any]) -> Iterator[bytes]:
        match data.get("type"):
            case "message_start":
                self.usage.read(object_in(data.get("message")).get("usage"))
            case "content_block_start":
                yield from self._start_block(data)
                return
            case "content_block_delta":
                data["index"] = self._blocks.get(data.get("index"), data.get("index"))
            case "content_block_stop":
                self._open.pop(data.get("index"), None)
                data["index"] = self._blocks.get(data.get("index"), data.get("index"))
            case "message_delta":
                self.usage.read(data.get("usage"))
                data.setdefault("usage", {"output_tokens": 0})
                self._read_end(data)
            case "message_stop":
                self._has_ended = True
            case _:
                pass
        yield event_bytes(data, str(data.get("type", "")))

    def _start_block(self, data: dict[str, Any]) -> Iterator[bytes]:
        """Number each block anew, and close one that another replaces under the same index."""
        index = data.get("index")
        fields = require_object(data.get("content_block"), "a block")
        is_call = fields.get("type") == "tool_use"
        before = self._open.get(index)
        if before is not None:
            identity = fields.get("id")
            if is_call and identity and identity == before.get("id"):
                return
            stop = {"type": "content_block_stop", "index": self._blocks[index]}
            yield event_bytes(stop, "content_block_stop")
        self._open[index] = fields
        number = self._blocks[index] = self._begun
        self._begun += 1
        self.has_calls |= is_call
        arguments = fields.get("input") if is_call else None
        if arguments:
            data["content_block"] = {**fields, "input": {}}
        yield event_bytes({**data, "index": number}, "content_block_start")
        if arguments:
            delta = {"type": "input_json_delta", "partial_json": arguments_text(arguments)}
            whole = {"type": "content_block_delta", "index": number, "delta": delta}
            yield event_bytes(whole, "content_block_delta")

    def _read_end(self, data: dict[str, Any]) -> None:
        fields = data["delta"] = object_in(data.get("delta"))
        word = fields.get("stop_reason")
        if word == "":
            word = "tool_use" if self.has_calls else "end_turn"
        reason = self._reason(word)
        if reason is not None and word not in self._OWN_WORDS:
            word = self._STOP_REASONS.get(reason, "end_turn")
        fields["stop_reason"] = word


class ResponsesReader(StreamReader):
    """OpenAI's responses."""

    _ENDS: ClassVar[frozenset[object]] = frozenset(
        {"response.completed", "response.incomplete", "response.failed"}
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ids: dict[object, str] = {}
        self._items: dict[str, object] = {}

    def _read(self, data: dict[str, Any]) -> Iterator[bytes]:
        kind, item = data.get("type"), object_in(data.get("item"))
        if kind == "response.output_item.added":
            self._add_item(data.get("output_index"), item)
        item_id = self._ids.get(data.get("output_index"))
        if item_id is not None:
            if "item_id" in data:
                data["item_id"] = item_id
            if item:
                item["id"] = item_id
        self._read_response(object_in(data.get("response")))
        self._has_ended = kind in self._ENDS
        if self._has_ended and self.finish_reason is None:
            self._reason(str(kind).rpartition(".")[2].replace("incomplete", "stop"))
        yield event_bytes(data, str(kind or ""))

    def _add_item(self, index: object, item: dict[str, Any]) -> None:
        """Give a call an id of its own: its fragments are joined by it."""
        if item.get("type") != "function_call":
            self._ids.pop(index, None)
            return
        self.has_calls = True
        call = item.get("call_id") or index
        first = item_id = str(item.get("id") or f"fc_{index}")
        number = 1
        while self._items.get(item_id, call) != call:
            number += 1
            item_id = f"{first}-{number}"
        self._items[item_id] = call
        self._ids[index] = item["id"] = item_id

    def _read_response(self, response: dict[str, Any]) -> None:
        self.usage.read(response.get("usage"))
        details = object_in(response.get("incomplete_details"))
        reason = self._reason(details.get("reason"))
        if reason in ("length", "content_filter"):
            details["reason"] = "max_output_tokens" if reason == "length" else reason


READERS: Final[Mapping[Api, type[StreamReader]]] = {
    "chat": ChatReader,
    "messages": MessagesReader,
    "responses": ResponsesReader,
}


def body_error(text: str) -> ReportedError | StreamGarbage:
    """Return the error for a body that is no event stream, with what it says."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return StreamGarbage("answered text instead of an event stream", text)
    is_whole = not _CONTENT.isdisjoint(object_in(data))
    if _is_error(ServerEvent("", text), data) or (not is_whole and has_words(data)):
        return ReportedError(data)
    if is_whole:
        return StreamGarbage("answered a whole reply instead of an event stream")
    return StreamGarbage("answered JSON instead of an event stream", text)
