"""A process that ends while it processes a delivery: the repetition gets the one answer there is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.recovery.crash_points import KILLED
from tests.support.recovery.crash_server import crash_server
from tests.support.server.server_process import ServerProcess
from tests.support.triggers.hook_sender import hook_flow, signed, text

REPLY = {"id": "reply", "type": "webhook_reply", "data": {"status": 201}}
FLOW = hook_flow(text("t", "order {{ input.body }}"), REPLY)


def call(server: ServerProcess, path: str, body: Any = None) -> Any:
    method = "GET" if body is None else "POST"
    answer = httpx2.request(method, server.url + path, json=body, timeout=60, trust_env=False)
    assert answer.is_success, answer.text
    return answer.json()


def send(server: ServerProcess, hook: str, content: str = "1") -> httpx2.Response:
    headers = signed(content, "msg")
    url = f"{server.url}/hooks/{hook}"
    return httpx2.post(url, content=content, headers=headers, timeout=60, trust_env=False)


def listening(directory: Path) -> str:
    """Save the flow and listen for its webhook, in a process of its own."""
    with crash_server(directory) as server:
        flow = call(server, "/api/flows", {"name": "F", "graph": FLOW})
        trigger_id: str = call(server, "/api/triggers", {"flow_id": flow["flow_id"]})["trigger_id"]
        return trigger_id


@pytest.mark.parametrize(
    "point",
    [
        "before:triggers.claim:1",
        "after:triggers.claim:1",
        "before:create_execution:1",
        "after:create_execution:1",
        "before:append:1",
        "after:append:1",
        "before:append:1:node.completed",
        "after:append:1:execution.completed",
        "before:triggers.settle:1",
        "after:triggers.settle:1",
    ],
)
def test_delivery_is_processed_once_wherever_the_process_ends(tmp_path: Path, point: str) -> None:
    hook = listening(tmp_path)
    with crash_server(tmp_path, point) as server:
        with suppress(httpx2.TransportError):  # the answer may have come before the end
            send(server, hook)
        assert server.wait_for_exit() == KILLED
    with crash_server(tmp_path) as server:
        answers = [send(server, hook, content) for content in ("1", "2")]
        assert {(each.status_code, each.text) for each in answers} == {(201, "order 1")}
        (listed,) = call(server, "/api/triggers")["triggers"]
        (delivery,) = listed["deliveries"]
        (execution,) = call(server, "/api/executions")["executions"]
        assert (delivery["outcome"], delivery["execution_id"]) == (
            "started", execution["execution_id"],
        )  # fmt: skip
