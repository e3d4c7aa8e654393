"""Chats over HTTP: the routes, their streams, and several windows on one chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.chat.chats import agent, applied, chat_flow, chat_parts, story, texts_of
from tests.support.chat.golden_chats import APPROVAL, SIMPLE
from tests.support.llm.fake_llm_server import FakeLLMServer, TextReply, ToolCallReply
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.server.loop_server import LoopServer, loop_server

REFUND = ToolCallReply([("refund", {"order": "A-1", "amount": 5})])


@asynccontextmanager
async def chatting() -> AsyncGenerator[tuple[InProcessClient, FakeLLMServer, str]]:
    """Give a client of a service with one chat, and the model behind it."""
    async with chat_parts() as (parts, llm), in_process_client(parts) as calls:
        made = await calls.post_json("/api/chats", {"config": {}}, 201)
        yield calls, llm, f"/api/chats/{made['chat_id']}"


def frames(text: str) -> list[dict[str, Any]]:
    """Give the events of a stream; the name and the id of each are those of its data."""
    found: list[dict[str, Any]] = []
    for part in filter(None, text.split("\n\n")):
        fields = dict(line.split(": ", 1) for line in part.split("\n"))
        event = json.loads(fields["data"])
        assert fields["event"] == event["event"]
        assert fields.get("id") == (str(event["seq"]) if "seq" in event else None)
        found.append(event)
    return found


async def test_turn_over_http() -> None:
    async with chatting() as (calls, llm, chat):
        llm.add(TextReply("Hello, Ada.", chunks=3))
        turn = await calls.post_json(f"{chat}/messages", {"message": "Hello"}, 202)
        message = f"{chat}/messages/{turn['message']['message_id']}"
        told = frames((await calls.get(f"{message}/events")).text)
        assert story(told) == list(SIMPLE)
        whole = await calls.get_json(chat)
        assert [each["role"] for each in whole["messages"]] == ["user", "assistant"]
        shown = await calls.get_json(message)
        assert shown["status"] == "completed"
        assert texts_of(shown["blocks"]) == applied(told)
        assert shown["cursor"] == told[-1]["seq"]
        (listed,) = (await calls.get_json("/api/chats"))["chats"]
        assert (listed["title"], listed["status"], listed["head"]) == (
            "Hello", "completed", shown["message_id"],
        )  # fmt: skip
        over = await calls.get(f"{message}/events", params={"after": shown["cursor"]})
        assert over.status_code == 204


async def test_stream_continues_after_a_cursor() -> None:
    async with chatting() as (calls, llm, chat):
        llm.add(TextReply("Hello."))
        turn = await calls.post_json(f"{chat}/messages", {"message": "Hello"}, 202)
        path = f"{chat}/messages/{turn['message']['message_id']}/events"
        whole = frames((await calls.get(path)).text)
        at = next(n for n, each in enumerate(whole) if each["event"] == "FlowNodeCompleted")
        seq = whole[at]["seq"]
        by_query = frames((await calls.get(path, params={"after": seq})).text)
        by_header = frames((await calls.get(path, headers={"Last-Event-ID": str(seq)})).text)
        assert by_query == by_header
        assert by_query[-1] == whole[-1]
        assert applied([*whole[: at + 1], *by_query]) == applied(whole)
        await calls.expect_problem("GET", path, 422, after="x")


async def test_branches_over_http() -> None:
    async with chatting() as (calls, llm, chat):
        llm.add(*(TextReply(f"{number}.") for number in range(4)))
        turn = await calls.post_json(f"{chat}/messages", {"message": "Hello"}, 202)
        reply = f"{chat}/messages/{turn['message']['message_id']}"
        await calls.get(f"{reply}/events")
        retried = await calls.post_json(f"{reply}/retry", None, 202)
        again = f"{chat}/messages/{retried['message']['message_id']}"
        assert len(retried["message"]["siblings"]) == 2
        await calls.get(f"{again}/events")
        continued = await calls.post_json(f"{again}/continue", None, 202)
        assert continued["message"]["origin"] == "continue"
        await calls.get(f"{chat}/messages/{continued['message']['message_id']}/events")
        user = f"{chat}/messages/{turn['user_message']['message_id']}"
        edited = await calls.post_json(f"{user}/edit", {"message": "Hi"}, 202)
        assert len(edited["user_message"]["siblings"]) == 2
        await calls.get(f"{chat}/messages/{edited['message']['message_id']}/events")
        assert len((await calls.get_json(chat))["messages"]) == 6
        problem = await calls.expect_problem("POST", f"{reply}/cancel", 409)
        assert problem["code"] == "already-ended"
        problem = await calls.expect_problem("POST", f"{user}/retry", 409)
        assert problem["code"] == "wrong-role"
        shown = (
            await calls.patch(chat, json={"title": "T", "head": reply.rpartition("/")[2]})
        ).json()
        assert (shown["title"], shown["head"]) == ("T", reply.rpartition("/")[2])
        assert (await calls.delete(chat)).status_code == 204
        await calls.expect_problem("GET", chat, 404)


async def test_repeated_request_begins_one_turn() -> None:
    async with chatting() as (calls, llm, chat):
        llm.add(TextReply("Hello."))
        key = {"Idempotency-Key": "k"}
        sent = [
            await calls.post(f"{chat}/messages", json={"message": "Hello"}, headers=key)
            for _ in range(2)
        ]
        assert sent[0].json() == sent[1].json()
        await calls.get(f"{sent[0].headers['location']}/events")
        assert len((await calls.get_json(chat))["messages"]) == 2
        assert len(llm.requests) == 1


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/api/chats", {"plan_id": "x"}, "not-found"),
        ("/api/chats", {"config": {"modell": "x"}}, "invalid-body"),
        ("/api/chats", {"config": {"tools": ["none"]}}, "graph-invalid"),
        ("messages", {}, "invalid-message"),
        ("messages", {"message": "x", "parent_id": "x"}, "not-found"),
        ("messages", {"message": "x", "images": ["file:///x"]}, "invalid-input"),
        ("messages", {"message": 1}, "invalid-body"),
    ],
)
async def test_bad_requests_say_what_is_wrong(path: str, body: Any, code: str) -> None:
    async with chatting() as (calls, _, chat):
        where = path if path.startswith("/") else f"{chat}/{path}"
        answer = await calls.post(where, json=body)
        problem = answer.json()
        assert 400 <= answer.status_code < 500
        assert problem["code"] == code, problem
        assert len((await calls.get_json(chat))["messages"]) == 0


async def sse(client: httpx2.AsyncClient, path: str) -> AsyncGenerator[dict[str, Any]]:
    """Yield the events of a stream as they come."""
    async with client.stream("GET", path) as answer:
        data = ""
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                data = line.removeprefix("data: ")
            elif not line and data:
                yield json.loads(data)
                data = ""


async def socket_events(server: LoopServer, path: str) -> list[dict[str, Any]]:
    """Give all events of a WebSocket up to its end."""
    found: list[dict[str, Any]] = []
    async with connect(f"{server.ws_url}{path}", proxy=None) as socket:
        try:
            while True:
                found += json.loads(await socket.recv())
        except ConnectionClosed:
            assert socket.close_code == 1000
            return found


async def test_windows_share_a_chat_and_an_approval() -> None:
    """One window follows by SSE, one by WebSocket; a third learns of the reply by the chat."""
    async with chat_parts() as (parts, llm), loop_server(parts) as server:
        calls = server.client
        flow = chat_flow(agent("agent-1"), kit_of=["agent-1"])
        saved = (await calls.post("/api/flows", json={"name": "F", "graph": flow})).json()
        made = (await calls.post("/api/chats", json={"plan_id": saved["plan_id"]})).json()
        chat, chat_id = f"/api/chats/{made['chat_id']}", made["chat_id"]
        changes = sse(calls, f"{chat}/events")
        assert (await anext(changes))["chat"]["head"] is None
        llm.add(REFUND, TextReply("Refunded.", chunks=2))
        turn = (await calls.post(f"{chat}/messages", json={"message": "Refund it"})).json()
        changed = await anext(changes)
        assert changed["chat"]["head"] == turn["message"]["message_id"]
        message_id = turn["message"]["message_id"]
        told: list[dict[str, Any]] = []

        async def first_window() -> None:
            stream = sse(calls, f"{chat}/messages/{message_id}/events")
            async with aclosing(stream) as events:
                async for event in events:
                    told.append(event)
                    if event["event"] == "ApprovalRequired":
                        await approve(calls, event["tool"])

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(first_window())
            second = tasks.create_task(
                socket_events(server, f"/ws/chats/{chat_id}/messages/{message_id}")
            )
        assert story(told) == list(APPROVAL)
        assert story(second.result()) == list(APPROVAL)
        while changed["chat"]["status"] != "completed":
            changed = await anext(changes)
        await changes.aclose()
        async with connect(f"{server.ws_url}/ws/chats/{chat_id}", proxy=None) as socket:
            (event,) = json.loads(await socket.recv())
            assert event["chat"]["status"] == "completed"


async def approve(calls: httpx2.AsyncClient, asked: dict[str, Any]) -> None:
    """Approve a call, with a smaller amount."""
    path = f"/api/executions/{asked['runId']}/requests/{asked['requestId']}"
    edited = {"order": "A-1", "amount": 3}
    answer = {"decision": "approve", "note": "ok", "value": edited}
    assert (await calls.post(path, json=answer)).status_code == 200


@pytest.mark.parametrize("on_disconnect", ["continue", "cancel"])
async def test_client_that_leaves(on_disconnect: str) -> None:
    async with chat_parts() as (parts, llm), loop_server(parts) as server:
        calls = server.client
        config = {"on_disconnect": on_disconnect}
        made = (await calls.post("/api/chats", json={"config": config})).json()
        chat = f"/api/chats/{made['chat_id']}"
        gate = asyncio.Event()
        llm.add(TextReply("Once upon a time.", chunks=2, gates={2: gate}))
        turn = (await calls.post(f"{chat}/messages", json={"message": "Tell me"})).json()
        message = f"{chat}/messages/{turn['message']['message_id']}"
        events = sse(calls, f"{message}/events")
        while (await anext(events))["event"] != "RunContent":
            pass
        await events.aclose()
        if on_disconnect == "continue":
            gate.set()
        wanted = {"continue": "completed", "cancel": "cancelled"}[on_disconnect]
        async with aclosing(sse(calls, f"{chat}/events")) as changes:
            while (event := await anext(changes))["chat"]["status"] == "executing":
                pass
        assert event["chat"]["status"] == wanted


async def test_the_title_of_a_chat_ends_with_a_whole_word() -> None:
    async with chatting() as (calls, llm, chat):
        llm.add(TextReply("Here."))
        text = "Which of the seven hills of Lisbon has the best view of the river Tagus?"
        await calls.post_json(f"{chat}/messages", {"message": text}, 202)
        title = (await calls.get_json(chat))["title"]
        assert title == "Which of the seven hills of Lisbon has the best view of the…"
