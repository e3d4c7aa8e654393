"""A process that ends while it processes a delivery: the repetition gets the one answer there is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.service.service import Service
from planwave.storage.sqlite.store import SqliteStore
from tests.support.polling import until
from tests.support.recovery.crash_points import KILLED
from tests.support.recovery.crash_server import crash_server
from tests.support.server.server_process import ServerProcess
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import hook_flow, signed, text

pytestmark = pytest.mark.slow

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
        trigger_id: str = call(server, "/api/triggers", {"plan_id": flow["plan_id"]})["trigger_id"]
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


async def _schedule(directory: Path) -> None:
    """Store a schedule that was created four minutes ago; no process has listened for it yet."""

    def now() -> datetime:
        return datetime.now(UTC) - timedelta(minutes=4)

    parts = dependencies(store=SqliteStore.open(directory / "storage"), now=now)
    async with Service(parts) as service:
        schedule = {"id": "at", "type": "schedule", "data": {"cron": "* * * * *"}}
        echo = text("t", "{{ input.slot }}")
        edge = {"source": "at", "target": "t", "data": {"channel": "flow"}}
        flow = await service.flows.create("F", graph={"nodes": [schedule, echo], "edges": [edge]})
        await service.triggers.create(flow.plan_id, ["schedule"])


@pytest.mark.parametrize(
    "point",
    [
        "before:triggers.claim:1",
        "after:triggers.claim:1",
        "before:create_execution:1",
        "after:create_execution:1",
        "before:triggers.settle:1",
        "after:triggers.settle:1",
        "before:triggers.set_position:1",
        "after:triggers.set_position:1",
    ],
)
def test_time_of_a_schedule_starts_one_execution_wherever_the_process_ends(
    tmp_path: Path, point: str
) -> None:
    asyncio.run(_schedule(tmp_path))
    with crash_server(tmp_path, point) as server:
        assert server.wait_for_exit() == KILLED
    with crash_server(tmp_path) as server:
        asyncio.run(until(lambda: call(server, "/api/executions")["executions"]))
        executions = call(server, "/api/executions")["executions"]
        slots = [
            call(server, f"/api/executions/{each['execution_id']}")["inputs"]["at"]["output"][
                "slot"
            ]
            for each in executions
        ]
        assert len(set(slots)) == len(slots), "no time twice"
        (listed,) = call(server, "/api/triggers")["triggers"]
        started = {each["execution_id"] for each in listed["deliveries"]} - {None}
        assert started >= {each["execution_id"] for each in executions}
