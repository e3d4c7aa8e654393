"""Models whose clients leave, come back, or send what no flow can take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx2
import pytest

from planwave.errors import ShuttingDown, SlowConsumer
from tests.support.llm.fake_llm_server import TextReply
from tests.support.polling import until
from tests.unit.api.routes.openai.test_answers import (
    AGENT,
    CHAT,
    ECHO,
    TOKEN,
    WEATHER,
    Models,
    Opens,
    models,
    said,
)

__all__ = ["models"]
PATH = "/v1/chat/completions"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "9 degrees"}
BAD_IMAGE = [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]


async def leave(
    made: Models, body: dict[str, Any], when: Callable[[], Awaitable[Any]], **headers: str
) -> None:
    """Send a request whose client leaves at a moment, before the end of the answer."""
    messages = [
        {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False},
    ]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await when()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    named = {"host": "127.0.0.1", **HEADERS, **headers}
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": PATH,
        "raw_path": PATH.encode(), "query_string": b"", "server": ("127.0.0.1", 80),
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 1),
    }  # fmt: skip
    assert isinstance(made.http._transport, httpx2.ASGITransport)
    await made.http._transport.app(scope, receive, send)


async def executions(made: Models) -> list[Any]:
    return (await made.send("GET", "/api/executions"))["executions"]


def json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "bird", "schema": schema}}


UNUSABLE: list[dict[str, Any]] = [
    {"messages": [RESULT]},
    {"messages": [*said("x"), RESULT, CALLING, *said("y")]},
    {"messages": [*said("x"), CALLING, *said("y")]},
    {"messages": [*said("x"), CALLING, RESULT, RESULT]},
    {"messages": [{"role": "user", "content": BAD_IMAGE}, *said("x")]},
    {"messages": said(" ")},
    {"messages": [{"role": "user", "content": []}]},
    {"reasoning_effort": "enormous"},
    {"tools": [WEATHER] * 129},
    {"response_format": json_schema({"properties": {"bird": {"type": "burd"}}})},
    {"response_format": json_schema({"$ref": "https://example.com/schema"})},
]


@pytest.mark.parametrize("graph", [AGENT, CHAT])
async def test_what_no_flow_can_take_starts_nothing(models: Opens, graph: dict[str, Any]) -> None:
    async with models() as made:
        await made.publish(graph)
        for index, change in enumerate(UNUSABLE):
            body = {"model": "triage", "messages": said("x"), "stream": index % 2 == 1, **change}
            answer = await made.http.post(PATH, json=body, headers=HEADERS)
            assert answer.status_code == 400, change
            assert answer.json()["error"]["type"] == "invalid_request_error"
        assert await executions(made) == []


async def test_stream_that_was_cut_is_repeated_with_its_key_and_runs_once(models: Opens) -> None:
    held = asyncio.Event()
    async with models(TextReply("one two", hold_until=held), TextReply("again")) as made:
        await made.publish(AGENT)
        body = {"model": "triage", "messages": said("x"), "stream": True}
        await leave(
            made, body, lambda: until(lambda: made.llm.requests), **{"Idempotency-Key": "k"}
        )
        held.set()
        headers = {**HEADERS, "Idempotency-Key": "k"}
        first, second = [
            await made.http.post(PATH, content=json.dumps(body), headers=headers) for _ in range(2)
        ]
        assert "one two" in _text_of(first.text)
        assert first.content == second.content
        (run,) = await executions(made)
        assert first.headers["x-planwave-execution-id"] == run["execution_id"]
        assert len(made.llm.requests) == 1


def _text_of(stream: str) -> str:
    lines = [line.removeprefix("data: ") for line in stream.splitlines() if "content" in line]
    return "".join(json.loads(line)["choices"][0]["delta"].get("content", "") for line in lines)


@pytest.mark.parametrize("on_disconnect", ["continue", "cancel"])
async def test_whole_answer_whose_client_leaves_is_cancelled_if_the_flow_says_so(
    models: Opens, on_disconnect: str
) -> None:
    held = asyncio.Event()
    async with models(TextReply("one two", hold_until=held)) as made:
        entry = {"id": "ask", "type": "chat_start", "data": {"onDisconnect": on_disconnect}}
        await made.publish({**CHAT, "nodes": [entry, CHAT["nodes"][1]]})
        has_left = asyncio.Event()

        async def when() -> None:
            await until(lambda: made.llm.requests)
            has_left.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(leave(made, {"model": "triage", "messages": said("x")}, when))
            await has_left.wait()
            if on_disconnect == "continue":
                held.set()
        ended = {"continue": "completed", "cancel": "cancelled"}[on_disconnect]
        assert [run["status"] for run in await executions(made)] == [ended]


async def test_stream_beyond_the_limit_starts_nothing(models: Opens) -> None:
    async with models() as made:
        await made.publish(ECHO)
        app: Any = made.http._transport.app  # type: ignore[attr-defined]
        state = app.state.planwave
        limit = state.settings.limits.socket_connections
        body = {"model": "triage", "messages": said("x"), "stream": True}
        with state.connection_limiter.slot("operator", 1):
            for _ in range(limit - 1):
                state.connection_limiter._open["operator"] += 1
            answer = await made.http.post(PATH, json=body, headers=HEADERS)
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                429, "too-many-requests",
            )  # fmt: skip
            state.connection_limiter._open["operator"] = 1
        assert await executions(made) == []


async def test_answer_that_is_cut_by_a_shutdown_is_not_repeated_by_clients(
    models: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with models() as made:
        await made.publish(ECHO)
        service = service_of(made)

        async def watch(*_: Any, **__: Any) -> AsyncGenerator[Any]:
            raise ShuttingDown
            yield

        body = json.dumps({"model": "triage", "messages": said("x")})
        with monkeypatch.context() as patched:
            patched.setattr(service.executions, "watch", watch)
            answers = [
                await made.http.post(PATH, content=body, headers={**HEADERS, **key})
                for key in ({}, {"Idempotency-Key": "k"})
            ]
        assert [answer.status_code for answer in answers] == [422, 503]
        assert [answer.headers.get("x-should-retry") for answer in answers] == ["false", None]
        again = await made.http.post(
            PATH, content=body, headers={**HEADERS, "Idempotency-Key": "k"}
        )
        assert again.json()["choices"][0]["message"]["content"] == "heard x"
        assert len(await executions(made)) == 2


async def test_client_that_reads_slowly_gets_the_whole_answer(
    models: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with models(TextReply("one two three", chunks=3)) as made:
        await made.publish(AGENT)
        service = service_of(made)
        watch, cut = service.executions.watch, [True]

        async def watch_slowly(execution_id: str, *, after: int = 0) -> AsyncGenerator[Any]:
            async for event in watch(execution_id, after=after):
                if event.type == "node.delta" and cut:
                    cut.clear()
                    yield event
                    raise SlowConsumer(after)
                yield event

        monkeypatch.setattr(service.executions, "watch", watch_slowly)
        body = {"model": "triage", "messages": said("x"), "stream": True}
        answer = await made.http.post(PATH, json=body, headers=HEADERS)
        assert (_text_of(answer.text), cut) == ("one two three", [])
        assert answer.text.endswith("data: [DONE]\n\n")


def service_of(made: Models) -> Any:
    app: Any = made.http._transport.app  # type: ignore[attr-defined]
    return app.state.planwave.service


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:1/x.png?q=1", "url-refused"), ("http://10.0.0.1/x.png", "address-refused"),
        ("http://user:word@x.example/y.png", "url-refused"), ("http://no.such.invalid/x", "host-unreachable"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_last", [True, False])
async def test_url_of_the_caller_that_cannot_be_used_is_a_400(
    models: Opens, url: str, code: str, is_last: bool
) -> None:
    image = {"type": "image_url", "image_url": {"url": url}}
    asked = [{"role": "user", "content": [{"type": "text", "text": "Which bird?"}, image]}]
    if not is_last:
        asked += [{"role": "assistant", "content": "A robin."}, *said("Sure?")]
    async with models() as made:
        plan_id = await made.publish(AGENT)
        chat_only = await made.token(plan_id, "chat")
        for token in (TOKEN, chat_only):
            body = {"model": "triage", "messages": asked}
            headers = {"Authorization": f"Bearer {token}"}
            answer = await made.http.post(PATH, json=body, headers=headers)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (400, code)
            assert (error["type"], error["param"]) == ("invalid_request_error", "messages")
            assert "word@" not in answer.text
