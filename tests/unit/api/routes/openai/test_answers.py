"""Published flows as models, asked by OpenAI's own client, in process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from pydantic import BaseModel, SecretStr

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import Settings
from planwave.storage.sql.store import Store
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    TextReply,
    ToolCallReply,
    tool_results_of,
    tools_of,
)
from tests.support.llm.planner_replies import planner_reply
from tests.support.polling import until
from tests.support.server.in_process_client import asgi_client

TOKEN = "the operator's"
FLOW = {"channel": "flow"}
ECHO: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "echo", "type": "text", "data": {"text": "heard {{ input }}"}},
    ],
    "edges": [{"source": "s", "target": "echo", "data": FLOW}],
}
AGENT: dict[str, Any] = {
    "nodes": [
        {"id": "ask", "type": "user_input"},
        {"id": "a", "type": "agent", "data": {}},
    ],
    "edges": [
        {"source": "ask", "target": "a", "sourceHandle": "message", "targetHandle": "userPrompt", "data": FLOW},
        {"source": "ask", "target": "a", "sourceHandle": "images", "targetHandle": "images", "data": FLOW},
        {"source": "ask", "target": "a", "sourceHandle": "extras", "targetHandle": "caller", "data": FLOW},
    ],
}  # fmt: skip
CHAT: dict[str, Any] = {
    "nodes": [{"id": "ask", "type": "chat_start"}, {"id": "a", "type": "agent"}],
    "edges": [
        {"source": "ask", "target": "a", "sourceHandle": "messages", "targetHandle": "messages", "data": FLOW},
        {"source": "ask", "target": "a", "sourceHandle": "variables", "targetHandle": "caller", "data": FLOW},
    ],
}  # fmt: skip
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}


class Models:
    """A service whose flows are models, and clients of it."""

    def __init__(self, http: httpx2.AsyncClient, llm: FakeLLMServer) -> None:
        self.http, self.llm = http, llm

    def client(self, token: str = TOKEN) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            base_url="http://127.0.0.1/v1", api_key=token, http_client=self.http, max_retries=0
        )

    async def send(self, method: str, path: str, body: Any = None, token: str = TOKEN) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        answer = await self.http.request(method, path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def publish(self, graph: Mapping[str, Any], name: str = "triage") -> str:
        flow = await self.send("POST", "/api/flows", {"name": name, "graph": graph})
        path = f"/api/flows/{flow['plan_id']}/publication"
        await self.send("PUT", path, {"model": True})
        return flow["plan_id"]

    async def token(self, plan_id: str, *scopes: str) -> str:
        body = {"name": "t", "scopes": list(scopes), "flows": [plan_id]}
        return (await self.send("POST", "/api/tokens", body))["token"]


Opens = Callable[..., AbstractAsyncContextManager[Models]]


@pytest.fixture
def models(tmp_path: Path) -> Opens:
    """Open a service whose provider gives these replies."""

    @asynccontextmanager
    async def opened(*replies: Any) -> AsyncGenerator[Models]:
        async with FakeLLMServer() as llm:
            llm.add(*replies)
            settings = Settings(
                token=SecretStr(TOKEN),
                openai_api_key=SecretStr("sk-test"),
                openai_base_url=llm.openai_url,
                storage_dir=tmp_path,
            )
            async with asgi_client(create_app(settings, open_service)) as http:
                yield Models(http, llm)

    return opened


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def test_flow_with_a_start_node_answers_the_last_message(models: Opens) -> None:
    async with models() as made:
        await made.publish(ECHO)
        raw = await made.client().chat.completions.with_raw_response.create(
            model="triage", messages=[{"role": "system", "content": "Be kind."}, *said("hello")]
        )
        answer = raw.parse()
        assert answer.choices[0].message.content == "heard hello"
        assert answer.choices[0].finish_reason == "stop"
        execution_id = raw.headers["x-planwave-execution-id"]
        assert answer.id == f"chatcmpl-{execution_id}"
        shown = await made.send("GET", f"/api/executions/{execution_id}")
        assert (shown["status"], shown["title"]) == ("completed", "triage")


async def test_conversation_images_and_usage_reach_the_agent(models: Opens) -> None:
    async with models(TextReply("A robin.", reasoning="Red breast.")) as made:
        await made.publish(AGENT)
        image = "data:image/png;base64,iVBORw0KGgo="
        answer = await made.client().chat.completions.create(
            model="triage",
            messages=[
                {"role": "developer", "content": "You know birds."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Which bird?"},
                        {"type": "image_url", "image_url": {"url": image}},
                    ],
                },
            ],
            max_completion_tokens=77,
        )
        message = answer.choices[0].message
        assert message.content == "A robin."
        assert message.model_dump()["reasoning_content"] == "Red breast."
        assert answer.usage is not None
        assert answer.usage.total_tokens == (
            answer.usage.prompt_tokens + answer.usage.completion_tokens
        )
        assert answer.usage.completion_tokens > 0
        (asked,) = made.llm.requests
        text = json.dumps(asked.body)
        assert [word in text for word in ("You know birds.", "Hello", "Which bird?", image)] == (
            [True] * 4
        )
        assert 77 in asked.body.values()


async def test_stream_has_text_reasoning_and_usage(models: Opens) -> None:
    async with models(TextReply("one two three", reasoning="hm", chunks=3)) as made:
        await made.publish(AGENT)
        text, reasoning, finish, usage = "", "", [], []
        stream = await made.client().chat.completions.create(
            model="triage",
            messages=said("Count"),
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            if chunk.usage is not None:
                usage.append(chunk.usage)
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reasoning += choice.delta.model_dump().get("reasoning_content") or ""
                finish += [choice.finish_reason] if choice.finish_reason else []
        assert (text, reasoning, finish) == ("one two three", "hm", ["stop"])
        assert len(usage) == 1
        assert usage[0].completion_tokens > 0


async def test_without_usage_asked_for_every_chunk_has_a_choice(models: Opens) -> None:
    async with models() as made:
        await made.publish(ECHO)
        stream = await made.client().chat.completions.create(
            model="triage", messages=said("x"), stream=True
        )
        chunks = [chunk async for chunk in stream]
        assert all(len(chunk.choices) == 1 and chunk.usage is None for chunk in chunks)


async def test_stream_helper_of_chat_completions(models: Opens) -> None:
    async with models(TextReply("one two", chunks=2)) as made:
        await made.publish(AGENT)
        client = made.client()
        async with client.chat.completions.stream(model="triage", messages=said("x")) as stream:
            kinds = [event.type async for event in stream]
            done = await stream.get_final_completion()
        assert "content.delta" in kinds
        assert kinds[-1] == "content.done" or "content.done" in kinds
        assert done.choices[0].message.content == "one two"


async def test_tools_of_the_client_are_passed_through_and_continued(models: Opens) -> None:
    replies = (ToolCallReply([("weather", {"place": "Kiel"})], "Let me see."), TextReply("Rain."))
    for streams in (False, True):
        async with models(*replies) as made:
            await made.publish(AGENT, f"triage {streams}")
            client, asked = made.client(), said("Weather in Kiel?")
            ask: Any = {"model": f"triage {streams}", "tools": [WEATHER]}
            if streams:
                async with client.chat.completions.stream(messages=asked, **ask) as stream:
                    answer: Any = await stream.get_final_completion()
            else:
                answer = await client.chat.completions.create(messages=asked, **ask)
            choice = answer.choices[0]
            assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me see.")
            (call,) = choice.message.tool_calls
            assert (call.function.name, json.loads(call.function.arguments)) == (
                "weather", {"place": "Kiel"},
            )  # fmt: skip
            assert "weather" in tools_of(made.llm.requests[0].body)
            result = {"role": "tool", "tool_call_id": call.id, "content": "9 degrees"}
            turn = {
                "role": "assistant",
                "content": choice.message.content,
                "tool_calls": [call.model_dump(include={"id", "type", "function"})],
            }
            last = await client.chat.completions.create(messages=[*asked, turn, result], **ask)
            assert last.choices[0].message.content == "Rain."
            assert list(tool_results_of(made.llm.requests[1].body).values()) == ["9 degrees"]


async def test_call_that_the_client_insists_on_is_asked_of_the_model(models: Opens) -> None:
    call = ToolCallReply([("weather", {"place": "Kiel"})])
    async with models(call, call, TextReply("Fine.")) as made:
        await made.publish(AGENT)
        ask: Any = {"model": "triage", "messages": said("Hello"), "tools": [WEATHER]}
        one = {"type": "function", "function": {"name": "weather"}}
        client = made.client()
        for choice in ("required", one):
            answer = await client.chat.completions.create(**ask, tool_choice=choice)
            assert answer.choices[0].finish_reason == "tool_calls"
            sent = made.llm.requests[-1].body
            assert (list(tools_of(sent)), sent["tool_choice"]) == (["weather"], "required")
        await client.chat.completions.create(**ask)
        assert made.llm.requests[-1].body.get("tool_choice") in (None, "auto")


async def test_answer_fits_the_schema_of_the_client(models: Opens) -> None:
    class Bird(BaseModel):
        name: str

    async with models(TextReply('{"name": "robin"}'), TextReply('{"name": "wren"}')) as made:
        await made.publish(AGENT)
        client = made.client()
        answer = await client.chat.completions.parse(
            model="triage", messages=said("Which?"), response_format=Bird
        )
        assert answer.choices[0].message.parsed == Bird(name="robin")
        response = await client.responses.parse(model="triage", input="Which?", text_format=Bird)
        assert response.output_parsed == Bird(name="wren")


async def test_stop_ends_the_answer(models: Opens) -> None:
    async with models(TextReply("one END two", chunks=4), TextReply("one END", chunks=3)) as made:
        await made.publish(AGENT)
        client = made.client()
        ask: Any = {"model": "triage", "messages": said("x"), "stop": ["END"]}
        answer = await client.chat.completions.create(**ask)
        assert answer.choices[0].message.content == "one "
        stream = await client.chat.completions.create(**ask, stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(texts) == "one "


async def test_answer_that_the_model_did_not_finish_says_so(models: Opens) -> None:
    replies = [TextReply("A rob", finish="length") for _ in range(4)]
    async with models(*replies) as made:
        await made.publish(AGENT)
        client = made.client()
        ask: Any = {"model": "triage", "messages": said("Which?")}
        answer = await client.chat.completions.create(**ask)
        assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == (
            "length",
            "A rob",
        )
        stream = await client.chat.completions.create(**ask, stream=True)
        assert [chunk.choices[0].finish_reason async for chunk in stream][-1] == "length"
        whole = await client.responses.create(model="triage", input="Which?")
        stream = await client.responses.create(model="triage", input="Which?", stream=True)
        last = [event async for event in stream][-1]
        assert last.type == "response.incomplete"
        for response in (whole, last.response):
            assert (response.status, response.output_text) == ("incomplete", "A rob")
            assert response.incomplete_details is not None
            assert response.incomplete_details.reason == "max_output_tokens"


async def test_responses_whole_and_as_a_stream(models: Opens) -> None:
    replies = [TextReply("A robin.", reasoning="Red.", chunks=2) for _ in range(2)]
    async with models(*replies) as made:
        await made.publish(AGENT)
        client = made.client()
        ask: Any = {"model": "triage", "input": "Which?", "instructions": "You know birds."}
        whole = await client.responses.create(**ask)
        assert (whole.output_text, whole.status) == ("A robin.", "completed")
        assert [item.type for item in whole.output] == ["reasoning", "message"]
        assert whole.usage is not None
        assert whole.usage.output_tokens > 0
        async with client.responses.stream(**ask) as stream:
            events = [event async for event in stream]
            done = await stream.get_final_response()
        assert done.output_text == "A robin."
        assert [item.type for item in done.output] == ["reasoning", "message"]
        numbers = [event.sequence_number for event in events if hasattr(event, "sequence_number")]
        assert numbers == sorted(numbers)
        assert "You know birds." in json.dumps(made.llm.requests[1].body)


async def test_responses_pass_tools_through(models: Opens) -> None:
    replies = (ToolCallReply([("weather", {"place": "Kiel"})]), TextReply("Rain."))
    for streams in (False, True):
        async with models(*replies) as made:
            await made.publish(AGENT, f"triage {streams}")
            client = made.client()
            tool = {"type": "function", "strict": False, **WEATHER["function"]}
            ask: Any = {"model": f"triage {streams}", "tools": [tool]}
            asked: list[Any] = [{"role": "user", "content": "Weather?"}]
            if streams:
                async with client.responses.stream(input=asked, **ask) as stream:
                    response: Any = await stream.get_final_response()
            else:
                response = await client.responses.create(input=asked, **ask)
            (call,) = response.output
            assert (call.type, call.name, call.arguments) == (
                "function_call", "weather", '{"place": "Kiel"}',
            )  # fmt: skip
            output = {"type": "function_call_output", "call_id": call.call_id, "output": "9"}
            items = [*asked, call.model_dump(exclude_none=True), output]
            last = await client.responses.create(input=items, **ask)
            assert last.output_text == "Rain."


@pytest.mark.parametrize("stream", [False, True])
async def test_failed_flow_is_an_error_that_is_not_retried(models: Opens, stream: bool) -> None:
    async with models(*[ErrorReply(400, "invalid_request_error", "no")] * 2) as made:
        plan_id = await made.publish(AGENT)
        tokens = {TOKEN: True, await made.token(plan_id, "chat"): False}
        for token, shows in tokens.items():
            http = made.client(token).with_options(max_retries=2)
            ask: Any = {"model": "triage", "messages": said("x"), "stream": stream}

            async def read(client: openai.AsyncOpenAI = http, ask: Any = ask) -> None:
                answer = await client.chat.completions.create(**ask)
                assert [chunk async for chunk in answer]

            with pytest.raises(openai.APIError) as caught:
                await read()
            assert caught.value.code
            assert ("no" in str(caught.value)) is shows
            assert (caught.value.type, caught.value.param) == ("server_error", None)
        assert len(made.llm.requests) == 2


async def test_failed_response_has_the_status_failed(models: Opens) -> None:
    async with models(ErrorReply(400, "invalid_request_error", "no")) as made:
        await made.publish(AGENT)
        stream = await made.client().responses.create(model="triage", input="x", stream=True)
        last = [event async for event in stream][-1]
        assert last.type == "response.failed"
        assert last.response.error is not None
        assert last.response.status == "failed"


async def test_errors_have_the_form_and_status_of_openai(models: Opens) -> None:
    async with models() as made:
        await made.publish(ECHO)
        client = made.client()
        asked: Any = {"model": "triage", "messages": said("x")}
        cases: list[tuple[Any, int, str, str | None]] = [
            ({"model": "none"}, 404, "model_not_found", "model"),
            ({"messages": []}, 400, "invalid-body", "messages"),
            ({"messages": [{"role": "bird", "content": "x"}]}, 400, "invalid-body", "messages[0].role"),
            ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "invalid-parameter", "messages"),
            ({"reasoning_effort": "huge"}, 400, "invalid-body", "reasoning_effort"),
            ({"n": 2}, 400, "invalid-parameter", "n"),
            ({"tool_choice": "required"}, 400, "invalid-parameter", "tool_choice"),
            ({"tools": [WEATHER]}, 400, "unsupported-by-flow", None),
        ]  # fmt: skip
        for change, status, code, param in cases:
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(**{**asked, **change})
            found = caught.value
            assert (found.status_code, found.code, found.param) == (status, code, param), change
            assert found.type
        for method, path, status in (
            ("GET", "/v1", 404),
            ("GET", "/v1/none", 404),
            ("GET", "/v1/chat/completions", 405),
            ("POST", "/v1/models", 405),
        ):
            headers = {"Authorization": f"Bearer {TOKEN}"}
            answer = await made.http.request(method, path, headers=headers)
            assert (answer.status_code, set(answer.json()["error"])) == (
                status, {"message", "type", "param", "code"},
            )  # fmt: skip
        with pytest.raises(openai.AuthenticationError) as refused:
            await made.client("wrong").models.list()
        assert refused.value.code == "unauthorized"
        large = await made.http.post(
            "/v1/responses",
            content=b"x" * 3_000_000,
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        )
        assert (large.status_code, large.json()["error"]["code"]) == (413, "limit-exceeded")


async def test_models_are_the_published_flows_that_a_token_has(models: Opens) -> None:
    async with models() as made:
        ours = await made.publish(ECHO, "ours")
        theirs = [await made.publish(ECHO, name) for name in ("theirs", "planwave/planner")]
        await made.send("POST", "/api/flows", {"name": "private", "graph": ECHO})
        listed = [model.id async for model in await made.client().models.list()]
        assert listed == ["planwave/planner", *sorted([theirs[1], "ours", "theirs"])]
        assert (await made.client().models.retrieve("planwave/planner")).owned_by == "planwave"
        client = made.client(await made.token(ours, "chat"))
        assert [model.id async for model in await client.models.list()] == ["ours"]
        for name in ("planwave/planner", theirs[0], "private"):
            with pytest.raises(openai.NotFoundError):
                await client.chat.completions.create(model=name, messages=said("x"))
        answer = await client.chat.completions.create(model=ours, messages=said("x"))
        assert answer.choices[0].message.content == "heard x"
        reader = made.client(await made.token(ours, "read"))
        with pytest.raises(openai.PermissionDeniedError):
            await reader.models.list()


async def test_a_request_reads_its_flow_once_by_name_and_no_list_of_flows(
    models: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def counted(read: Any) -> Any:
        @wraps(read)
        async def noted(*args: Any, **named: Any) -> Any:
            reads.append(f"{read.__name__} {named.get('name')}")
            return await read(*args, **named)

        return noted

    for name in ("plan", "plans"):
        monkeypatch.setattr(Store, name, counted(getattr(Store, name)))
    async with models() as made:
        await made.publish(ECHO, "ours")
        client = made.client()
        reads.clear()
        answer = await client.chat.completions.create(model="ours", messages=said("x"))
        assert (answer.choices[0].message.content, reads) == ("heard x", ["plans ours"])
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("OURS")


async def test_flow_without_a_node_for_messages_is_no_model(models: Opens) -> None:
    async with models() as made:
        graph = {"nodes": [ECHO["nodes"][1] | {"data": {"text": "x"}}], "edges": []}
        flow = await made.send("POST", "/api/flows", {"name": "f", "graph": graph})
        path = f"/api/flows/{flow['plan_id']}/publication"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = await made.http.put(path, json={"model": True}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "not-a-model")


async def test_repeated_request_with_its_key_gets_the_first_answer(models: Opens) -> None:
    async with models(TextReply("one"), TextReply("two"), TextReply("three")) as made:
        await made.publish(AGENT)
        create = made.client().chat.completions.with_raw_response.create
        ask: Any = {"model": "triage", "messages": said("x")}
        for stream in (False, True):
            headers = {"Idempotency-Key": f"key {stream}"}
            first, again = [
                await create(**ask, stream=stream, extra_headers=headers) for _ in range(2)
            ]
            assert await first.http_response.aread() == await again.http_response.aread()
            same = "x-planwave-execution-id"
            assert first.headers[same] == again.headers[same]
        assert len(made.llm.requests) == 2


async def test_planner_answers_a_goal_with_the_result_of_its_plan(models: Opens) -> None:
    step = {"id": "note", "name": "Note", "type": "text", "data": {"text": "Water boils."}}
    async with models(TextReply(planner_reply(step, title="A note"))) as made:
        client = made.client()
        answer = await client.chat.completions.create(
            model="planwave/planner", messages=said("Write a note about water")
        )
        assert answer.choices[0].message.content == "Water boils."
        (plan,) = (await made.send("GET", "/api/plans"))["plans"]
        assert plan["user_prompt"] == "Write a note about water"
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(
                model="planwave/planner", messages=said("x"), tools=[WEATHER]
            )


async def test_client_that_leaves_does_not_cancel(models: Opens) -> None:
    held = asyncio.Event()
    async with models(TextReply("one two", hold_until=held)) as made:
        await made.publish(AGENT)
        ask: Any = {"model": "triage", "messages": said("x")}
        create = made.client().chat.completions.with_raw_response.create
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(create(**ask))
            await until(lambda: made.llm.requests)
            asking.cancel()
        held.set()
        (run,) = (await made.send("GET", "/api/executions"))["executions"]
        events = await made.http.get(
            f"/api/executions/{run['execution_id']}/events",
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        assert "event: execution.completed" in events.text


async def test_chat_start_takes_the_conversation_and_the_tools(models: Opens) -> None:
    replies = (ToolCallReply([("weather", {"place": "Kiel"})]), TextReply("Rain."))
    async with models(*replies) as made:
        await made.publish(CHAT)
        client = made.client()
        asked: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            *said("Weather?"),
        ]
        ask: Any = {"model": "triage", "tools": [WEATHER]}
        answer = await client.chat.completions.create(messages=asked, **ask)
        message = answer.choices[0].message
        assert message.tool_calls is not None
        (call,) = message.tool_calls
        first = json.dumps(made.llm.requests[0].body)
        assert all(text in first for text in ("Be brief.", "Hello", "Weather?"))
        turn: Any = {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}
        result: Any = {"role": "tool", "tool_call_id": call.id, "content": "9 degrees"}
        last = await client.chat.completions.create(messages=[*asked, turn, result], **ask)
        assert last.choices[0].message.content == "Rain."
        assert list(tool_results_of(made.llm.requests[1].body).values()) == ["9 degrees"]


@pytest.mark.parametrize("on_disconnect", ["continue", "cancel"])
async def test_stream_whose_client_leaves_is_cancelled_if_the_flow_says_so(
    models: Opens, on_disconnect: str
) -> None:
    held = asyncio.Event()
    async with models(TextReply("one two", hold_until=held)) as made:
        entry = {"id": "ask", "type": "chat_start", "data": {"onDisconnect": on_disconnect}}
        await made.publish({**CHAT, "nodes": [entry, CHAT["nodes"][1]]})
        body = json.dumps({"model": "triage", "messages": said("x"), "stream": True}).encode()
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await until(lambda: made.llm.requests)
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            pass

        headers = {"host": "127.0.0.1", "authorization": f"Bearer {TOKEN}"}
        headers["content-type"] = "application/json"
        path = "/v1/chat/completions"
        scope = {
            "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": path,
            "raw_path": path.encode(), "query_string": b"", "server": ("127.0.0.1", 80),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
        }  # fmt: skip
        assert isinstance(made.http._transport, httpx2.ASGITransport)
        await made.http._transport.app(scope, receive, send)
        held.set()
        (run,) = (await made.send("GET", "/api/executions"))["executions"]
        shown = f"/api/executions/{run['execution_id']}"
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        await made.http.get(f"{shown}/events", headers=bearer)
        ended = {"continue": "completed", "cancel": "cancelled"}[on_disconnect]
        assert (await made.send("GET", shown))["status"] == ended
