"""A process that ends during a turn of a chat: no message is lost, and none is there twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx2
import pytest

from tests.support.recovery.crash_points import KILLED
from tests.support.recovery.crash_server import crash_server
from tests.support.server.server_process import ServerProcess

pytestmark = pytest.mark.slow

FLOW: Final = {
    "nodes": [
        {"id": "asked", "type": "chat_start", "data": {}},
        {"id": "may", "type": "approval", "data": {"prompt": "May I?"}},
        {"id": "told", "type": "text", "data": {"text": "You said {{ input }}."}},
    ],
    "edges": [
        {
            "source": "asked",
            "sourceHandle": "message",
            "target": "may",
            "data": {"channel": "flow"},
        },
        {
            "source": "may",
            "sourceHandle": "approve",
            "target": "told",
            "data": {"channel": "flow"},
        },
    ],
}
PLAIN: Final = {
    "nodes": [FLOW["nodes"][0], FLOW["nodes"][2]],
    "edges": [{**FLOW["edges"][0], "target": "told"}],
}


def call(server: ServerProcess, path: str, body: Any = None, key: str | None = None) -> Any:
    method = "GET" if body is None else "POST"
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = httpx2.request(
        method, server.url + path, json=body, headers=headers, timeout=60, trust_env=False
    )
    assert answer.is_success, answer.text
    return answer.json()


def chat_with(directory: Path, graph: dict[str, Any]) -> str:
    """Save a flow and create a chat with it, in a process of its own; give its path."""
    with crash_server(directory) as server:
        flow = call(server, "/api/flows", {"name": "F", "graph": graph})
        made = call(server, "/api/chats", {"plan_id": flow["plan_id"]})
        return f"/api/chats/{made['chat_id']}"


def wait_for(condition: Callable[[], Any]) -> Any:
    """Ask again until something holds; each question is a request."""
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end
    return found


def send(server: ServerProcess, chat: str, number: int = 1) -> Any:
    return call(server, f"{chat}/messages", {"message": f"Hello {number}"}, f"key {number}")


def approve(server: ServerProcess, chat: str) -> None:
    """Approve what the newest reply asks, if that was not done before."""

    def asked() -> dict[str, Any] | None:
        blocks = call(server, chat)["messages"][-1]["blocks"]
        return next((block for block in blocks if block["type"] == "approval"), None)

    block = wait_for(asked)
    if block["status"] == "open":
        path = f"/api/executions/{block['executionId']}/requests/{block['requestId']}"
        call(server, path, {"decision": "approve", "note": ""})


def assert_one_turn(server: ServerProcess, chat: str) -> None:
    """The chat has one message and one reply, which says what it should, as does its stream."""
    wait_for(lambda: call(server, chat)["status"] == "completed")
    user, reply = call(server, chat)["messages"]
    assert [block["text"] for block in user["blocks"]] == ["Hello 1"]
    said = [block["text"] for block in reply["blocks"] if block["type"] == "text"]
    assert said == ["You said Hello 1."]
    (execution,) = call(server, "/api/executions")["executions"]
    assert execution["execution_id"] == reply["execution_id"]
    events = f"{server.url}{chat}/messages/{reply['message_id']}/events"
    stream = httpx2.get(events, timeout=60, trust_env=False).text
    assert stream.count("event: RunContent") == stream.count("event: RunCompleted") == 1


@pytest.mark.parametrize(
    "point",
    [
        "before:chats.add:1",
        "after:chats.add:1",
        "before:create_execution:1",
        "after:create_execution:1",
        "before:append:1",
        "after:append:1:execution.completed",
        "before:chats.project:1",
        "after:chats.project:1",
        "before:store_response:1",
    ],
)
def test_turn_happens_once_wherever_the_process_ends(tmp_path: Path, point: str) -> None:
    chat = chat_with(tmp_path, PLAIN)
    with crash_server(tmp_path, point) as server:
        with suppress(httpx2.TransportError):  # the answer may have come before the end
            send(server, chat)
        assert server.wait_for_exit() == KILLED
    with crash_server(tmp_path) as server:
        send(server, chat)
        assert_one_turn(server, chat)


@pytest.mark.parametrize(
    "point",
    [
        "after:append:1:execution.paused",
        "before:append:1:node.answered",
        "after:append:1:node.answered",
        "before:append:1:execution.completed",
    ],
)
def test_approval_is_asked_and_answered_once(tmp_path: Path, point: str) -> None:
    chat = chat_with(tmp_path, FLOW)
    with crash_server(tmp_path, point) as server:
        with suppress(httpx2.TransportError):
            send(server, chat)
            approve(server, chat)
        assert server.wait_for_exit() == KILLED
    with crash_server(tmp_path) as server:
        send(server, chat)
        approve(server, chat)
        assert_one_turn(server, chat)


def test_cancelled_reply_stays_cancelled(tmp_path: Path) -> None:
    chat = chat_with(tmp_path, FLOW)
    with crash_server(tmp_path, "before:append:1:execution.cancelled") as server:
        turn = send(server, chat)
        message = f"{chat}/messages/{turn['message']['message_id']}"
        with suppress(httpx2.TransportError):
            call(server, f"{message}/cancel", {})
        assert server.wait_for_exit() == KILLED
    with crash_server(tmp_path) as server:
        wait_for(lambda: call(server, chat)["status"] == "cancelled")


def test_killed_again_and_again_no_message_is_lost_and_none_is_there_twice(tmp_path: Path) -> None:
    random, sent = Random(7), 0  # noqa: S311 - a seed
    chat = chat_with(tmp_path, PLAIN)
    for _ in range(12):
        with crash_server(tmp_path) as server:
            for _ in range(random.randint(1, 6)):
                wait_for(lambda: call(server, chat)["status"] in (None, "completed"))
                sent += 1
                send(server, chat, sent)  # the process is killed at once after the last one
    with crash_server(tmp_path) as server:
        send(server, chat, sent)
        wait_for(lambda: call(server, chat)["status"] == "completed")
        texts = [
            block["text"] for each in call(server, chat)["messages"] for block in each["blocks"]
        ]
        assert texts == [
            text
            for number in range(1, sent + 1)
            for text in (f"Hello {number}", f"You said Hello {number}.")
        ]
