"""A model provider on loopback: real HTTP, real protocols, scripted behaviour.

Speaks OpenAI chat completions and responses, and Anthropic messages, streaming or not. What it does
is a queue of steps; when the queue is empty it answers with ``reply_to(body)`` or "ok".

A test that wants answers computed from the request (``prompt_of`` gives all text of a request,
``schema_of`` the JSON schema it asks for or None)::

    async with FakeLLMServer(reply_to=lambda body: "about " + prompt_of(body)[:20]) as llm:
        settings = Settings(openai_api_key="sk-test", openai_base_url=llm.openai_url)
        ...
        assert len(llm.requests) == 3
        assert llm.requests[0].body["model"] == "gpt-5.6-luna"

``reply_to`` gets the JSON body and gives a text, a step, or an awaitable of either: awaiting an
``asyncio.Event`` or ``asyncio.Barrier`` in it holds that one call without sleeping. Where a schema
is asked for, the text has to be JSON. A scripted test queues steps instead::

    llm.add(ErrorReply(429, "rate_limit_exceeded", headers={"retry-after": "2"}), TextReply("fine", chunks=3))

A model that calls tools is a list of steps too; ``tools_of``, ``tool_calls_of`` and ``tool_results_of``
read from a request what was offered, what the model is told it called, and what came of it::

    llm.add(ToolCallReply([("add", {"a": 1, "b": 2})]), TextReply("It is 3."))
    ...
    assert tools_of(llm.requests[0].body) == {"add": {"type": "object", ...}}
    assert tool_results_of(llm.requests[1].body) == {"call_1": "3"}

What the real APIs refuse is refused here too (``refusals.py``), and what this server ``lacks``.

Steps: ``TextReply`` (a reply and all the ways it can end badly), ``ToolCallReply`` (the same, and calls
of tools, several in parallel), ``ErrorReply`` (an HTTP error), ``NoReply``
(accepts and never answers), ``DroppedConnection`` (closes before any answer), ``RawReply`` (raw bytes).
Code that runs its own event loop (``asyncio.run``, a CLI runner, a subprocess in a plain test) uses
``with fake_llm_in_thread(...) as llm:``, the same server in a thread; there, ``reply_to`` runs in that thread.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tests.support.llm.fake_llm_protocols import (
    LlmProtocol,
    ReplyContent,
    ScriptedCall,
    error_body,
    error_event,
    offered_tools,
    reply_tool,
    response_body,
    stream_chunks,
)
from tests.support.llm.refusals import lacking, refusal_of
from tests.support.llm.tool_refusals import tool_refusal

_PATHS: dict[str, LlmProtocol] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "anthropic",
}


@dataclass
class TextReply(ReplyContent):
    """Answer with a text; see ``ReplyContent`` for its content.

    ``before`` holds the answer back until it is set; ``gates[i]`` holds back piece i of the stream
    (0 is the opening, 1 … are the text chunks). ``cut_after`` ends the connection after so many
    pieces, with a FIN or a reset. ``insert[i]`` puts raw bytes before piece i. ``error_after``
    sends an SSE error of kind ``error_kind`` after so many pieces and stops. ``tears`` sends every
    byte of a character that has several by itself.
    """

    hold_until: asyncio.Event | None = None
    gates: dict[int, asyncio.Event] = field(default_factory=dict)
    cut_after: int | None = None
    cut_by: Literal["fin", "rst"] = "fin"
    insert: dict[int, bytes] = field(default_factory=dict)
    error_after: int | None = None
    error_kind: str = "overloaded_error"
    split_characters: bool = False
    content_type: str = "text/event-stream"


class ToolCallReply(TextReply):
    """Call tools, in this order, after a text and reasoning where there are any.

    Args:
        calls: ``("name", {"argument": 1})`` each, and an id as third where it matters.
        text: What is said before the calls.
        reasoning: What is thought before that.
        more: Anything else of a ``TextReply``.
    """

    def __init__(
        self, calls: Sequence[ScriptedCall], text: str = "", reasoning: str = "", **more: Any
    ) -> None:
        super().__init__(text, calls=calls, reasoning=reasoning or None, **more)


@dataclass
class ErrorReply:
    """Answer with an HTTP error in the provider's shape."""

    status: int
    kind: str = "server_error"
    message: str = "scripted failure"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class NoReply:
    """Read the request and never answer."""


@dataclass
class DroppedConnection:
    """Close the connection before any answer."""


@dataclass
class RawReply:
    """Answer with these raw bytes as the body, then close."""

    body: bytes
    content_type: str = "text/event-stream"
    status: int = 200
    headers: Sequence[str] = ()


ReplyStep = TextReply | ErrorReply | NoReply | DroppedConnection | RawReply
ReplyToRequest = Callable[[dict[str, Any]], str | ReplyStep | Awaitable[str | ReplyStep]]


@dataclass(frozen=True)
class ReceivedRequest:
    """One request: path, lower-cased headers (repeated ones joined by ", "), JSON body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class FakeLLMServer:
    """The server; an async context manager. ``requests`` holds all that came, in order."""

    def __init__(
        self,
        *steps: ReplyStep,
        reply_to: ReplyToRequest | None = None,
        lacks: Collection[str] = (),
    ) -> None:
        self.lacks = lacks
        """The features that this server refuses, of ``refusals.FEATURES``."""
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self.open_requests = 0
        self.max_open_requests = 0
        self.early_disconnects = 0
        """Clients that hung up while an answer was held back or under way."""
        self._steps: deque[ReplyStep] = deque(steps)
        self._reply_to = reply_to
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def add(self, *steps: ReplyStep) -> None:
        """Queue more steps, one a request."""
        self._steps.extend(steps)

    @property
    def port(self) -> int:
        assert self._server is not None, "use it as `async with FakeLLM() as llm`"
        return self._server.sockets[0].getsockname()[1]

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve_connection, "127.0.0.1", 0, limit=64 * 1024 * 1024
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        for task in list(self._tasks):
            with suppress(asyncio.CancelledError):
                await task

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; True keeps the connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = _headers_in(lines)
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        path = first.split(" ")[1].partition("?")[0]
        shape = _PATHS.get(path)
        if shape is None:
            writer.write(
                _http_response(404, error_body("chat", "not_found_error", f"no route {path}"))
            )
            await writer.drain()
            return True
        body = json.loads(raw)
        self.requests.append(ReceivedRequest(path, headers, body))
        self.open_requests += 1
        self.max_open_requests = max(self.max_open_requests, self.open_requests)
        try:
            refused = refusal_of(shape, body) or lacking(body, self.lacks)
            if refused is not None:
                error = error_body(shape, "invalid_request_error", refused.message)
                writer.write(_http_response(refused.status, refused.body or error))
                await writer.drain()
                return True
            step = await self._next_step(body)
            if isinstance(step, TextReply) and (refusal := tool_refusal(shape, body)):
                step = ErrorReply(400, "invalid_request_error", refusal)
            return await _perform(step, shape, body, reader, writer)
        except ConnectionError:
            self.early_disconnects += 1
            raise
        finally:
            self.open_requests -= 1

    async def _next_step(self, body: dict[str, Any]) -> ReplyStep:
        if self._steps:
            return self._steps.popleft()
        if self._reply_to is None:
            return TextReply()
        given = self._reply_to(body)
        answer = await given if inspect.isawaitable(given) else given
        return TextReply(answer) if isinstance(answer, str) else answer


def _headers_in(lines: list[str]) -> dict[str, str]:
    """Read header lines; a later one does not hide an earlier one of the same name."""
    headers: dict[str, str] = {}
    for line in filter(None, lines):
        name, _, value = line.partition(":")
        before = headers.get(name.lower())
        headers[name.lower()] = value.strip() if before is None else f"{before}, {value.strip()}"
    return headers


async def _perform(
    step: ReplyStep,
    shape: LlmProtocol,
    body: dict[str, Any],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    match step:
        case ErrorReply():
            error = error_body(shape, step.kind, step.message)
            writer.write(_http_response(step.status, error, step.headers))
            await writer.drain()
            return True
        case NoReply():
            await _hold(asyncio.Event(), reader)
        case DroppedConnection():
            _reset(writer)
        case RawReply():
            writer.write(
                _head(step.status, step.content_type, "connection: close", *step.headers)
                + step.body
            )
            await writer.drain()
        case TextReply():
            if step.hold_until is not None:
                await _hold(step.hold_until, reader)
            if body.get("stream"):
                return await _stream(step, shape, body, reader, writer)
            writer.write(_http_response(200, response_body(shape, step, body)))
            await writer.drain()
            return True
    return False


async def _hold(gate: asyncio.Event, reader: asyncio.StreamReader) -> None:
    """Wait for the gate, or fail because the client hung up meanwhile."""
    opened = asyncio.ensure_future(gate.wait())  # noqa: TID251 - a race of two waits, both ended here
    gone = asyncio.ensure_future(reader.read(1))  # noqa: TID251
    try:
        await asyncio.wait((opened, gone), return_when=asyncio.FIRST_COMPLETED)
        if not gate.is_set():
            raise ConnectionResetError("the client hung up")
    finally:
        for wait in (opened, gone):
            wait.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await wait


async def _stream(
    step: TextReply,
    shape: LlmProtocol,
    body: dict[str, Any],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    writer.write(_head(200, step.content_type, "transfer-encoding: chunked"))
    for number, piece in enumerate(stream_chunks(shape, step, body)):
        if number in step.gates:
            await writer.drain()
            await _hold(step.gates[number], reader)
        if number == step.cut_after:
            await writer.drain()
            if step.cut_by == "rst":
                _reset(writer)
            return False
        if number in step.insert:
            writer.write(_chunked(step.insert[number]))
        if number == step.error_after:
            writer.write(
                _chunked(error_event(shape, step.error_kind, "scripted in-stream failure"))
            )
            break
        for part in _split_characters(piece) if step.split_characters else (piece,):
            writer.write(_chunked(part))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _split_characters(data: bytes) -> list[bytes]:
    """Cut UTF-8 inside every character of more than one byte: a chunk of HTTP comes by itself."""
    return re.findall(rb"[\x80-\xff]|[\x00-\x7f]+", data)


def _chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _head(status: int, content_type: str, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _http_response(
    status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> bytes:
    raw = json.dumps(body).encode()
    more = [f"{name}: {value}" for name, value in (headers or {}).items()]
    return _head(status, "application/json", f"content-length: {len(raw)}", *more) + raw


def _reset(writer: asyncio.StreamWriter) -> None:
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextmanager
def fake_llm_in_thread(
    *steps: ReplyStep, reply_to: ReplyToRequest | None = None
) -> Iterator[FakeLLMServer]:
    """Run a server in a thread of its own, for code that owns its event loop."""
    llm = FakeLLMServer(*steps, reply_to=reply_to)
    ready, loops = threading.Event(), list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serve() -> None:
        stop = asyncio.Event()
        async with llm:
            loops.append((asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="fake-llm")
    thread.start()
    try:
        assert ready.wait(10), "the fake server did not start"
        yield llm
    finally:
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def prompt_of(body: dict[str, Any]) -> str:
    """Give all text of a request, system first, joined by newlines, whatever its protocol."""
    texts = [body.get("system"), body.get("instructions")]
    given = body.get("messages") or body.get("input") or []
    texts += [given] if isinstance(given, str) else [message.get("content") for message in given]
    return "\n".join(text for text in map(_text_of, texts) if text)


def task_of(body: dict[str, Any]) -> str:
    """Give the text of the first turn of the user."""
    given = body.get("messages") or body.get("input") or []
    if isinstance(given, str):
        return given
    return _text_of(next(turn["content"] for turn in given if turn.get("role") == "user"))


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def tools_of(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the tools that a request offers, by name, with the schemas of their arguments.

    The search of the web has none; the tool that a JSON reply is given in is among them.
    """
    return {
        tool.get("name", tool.get("type")): tool.get("parameters") or tool.get("input_schema") or {}
        for tool in offered_tools(body)
    }


def tool_calls_of(body: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Give the calls that a conversation holds, in order: ``(id, name, arguments)``."""
    calls: list[tuple[str, str, Any]] = []
    for turn in _turns_of(body):
        if turn.get("type") == "function_call":
            calls.append((turn["call_id"], turn["name"], json.loads(turn["arguments"])))
        for call in turn.get("tool_calls") or []:
            called = call["function"]
            calls.append((call["id"], called["name"], json.loads(called["arguments"])))
        calls += [(b["id"], b["name"], b["input"]) for b in _blocks_of(turn, "tool_use")]
    return calls


def tool_results_of(body: dict[str, Any]) -> dict[str, str]:
    """Give the results of tools that a conversation holds, in order: the text by the id of the call."""
    results: dict[str, str] = {}
    for turn in _turns_of(body):
        if turn.get("type") == "function_call_output":
            results[turn["call_id"]] = _text_of(turn["output"])
        if turn.get("role") == "tool":
            results[turn["tool_call_id"]] = _text_of(turn["content"])
        for block in _blocks_of(turn, "tool_result"):
            results[block["tool_use_id"]] = _text_of(block.get("content"))
    return results


def _turns_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("messages") or body.get("input") or []
    return [] if isinstance(given, str) else given


def _blocks_of(turn: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = turn.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if block.get("type") == kind]


def schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """Give the JSON schema a request asks its reply to follow, or None."""
    asked = body.get("response_format") or (body.get("output_config") or {}).get("format") or {}
    if not asked and "input" in body:
        asked = (body.get("text") or {}).get("format") or {}
    if asked.get("type") == "json_schema":
        return asked["json_schema"]["schema"] if "json_schema" in asked else asked["schema"]
    tool = reply_tool(body)
    return None if tool is None else tools_of(body)[tool]


def asks_for_plan(body: dict[str, Any]) -> bool:
    """Return whether a request asks for a JSON reply other than the change of a plan."""
    schema = schema_of(body)
    return schema is not None and "operations" not in schema.get("properties", {})
