"""Questions inside nodes that run graphs: asked, answered and explained wherever the execution is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, Gone, NodeError
from planwave.events import TERMINAL
from planwave.graph.model import Node, Policy, Retry
from planwave.service.service import Service
from tests.support.graph.builders import make_graph, text_node
from tests.unit.service.executions.test_commands import (
    Counts,
    executed,
    opened,
    outputs_of,
    reached,
)


class Shaky(Counts):
    """Fails for the second item at first, but not for good."""

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any:
        if context.path == "loop[1]/n" and context.attempt == 1:
            raise NodeError("not this time", retryable=True)
        return await super().execute(data, inputs, context)


BODY: dict[str, Any] = {
    "nodes": [
        {"id": "ask", "name": "Ask them", "type": "approval", "data": {"prompt": "Send {{ item }}?"}},
        {"id": "sent", "type": "text", "data": {"text": "sent {{ item }}"}},
    ],
    "edges": [
        {
            "source": "ask", "sourceHandle": "approve", "target": "sent",
            "data": {"channel": "flow"},
        }
    ],
}  # fmt: skip
DEEP: dict[str, Any] = {
    "nodes": [
        {"id": "each", "type": "loop", "data": {"items": ["a", "b"], "body": BODY}},
    ],
    "edges": [],
}
LOOP = make_graph(
    Node("loop", "loop", "L", data={"items": ["x", "y", "z"], "parallel": 2, "body": BODY}),
    text_node("t", "{{ input }}"),
    edges=[("loop", "t")],
)
TWO_DEEP = make_graph(Node("in", "inner", "I", data={"graph": DEEP}))


async def rests(service: Service, execution_id: str) -> list[tuple[str, str]]:
    """Wait until it rests; give its open requests, by path and id."""
    assert (await service.executions.wait(execution_id)).status == "paused"
    return [
        (each.path, each.request_id) for each in await service.executions.requests(execution_id)
    ]


async def approve(service: Service, execution_id: str, request_id: str) -> None:
    await service.executions.answer(execution_id, request_id, {"decision": "approve"})


@pytest.mark.parametrize("restarts", [False, True])
async def test_loop_asks_for_its_parallel_items_and_continues_after_each_answer(
    tmp_path: Path, restarts: bool
) -> None:
    async with opened(tmp_path, LOOP) as service:
        own = await executed(service)
        first = await rests(service, own)
        assert [path for path, _ in first] == ["loop[0]/ask", "loop[1]/ask"]
        document = json.loads((tmp_path / f"{own}.json").read_text("utf-8"))
        statuses = {node["id"]: node["status"] for node in document["nodes"]}
        assert statuses["loop"] == "waiting"
        assert {n["name"] for n in document["nodes"] if n["id"] == "ask"} == {"Ask them"}
        assert "Starting node loop[1]/ask: Ask them" in document["execution_logs"]
        assert document["waitingForInput"] is True
        assert document["currentNodeId"] == "loop[0]/ask"
        if not restarts:
            await approve(service, own, first[1][1])
            await service.executions.wait(own)
    async with opened(tmp_path, LOOP) as service:
        await service.recover()
        if restarts:
            await approve(service, own, first[1][1])
        second = await rests(service, own)
        assert [path for path, _ in second] == ["loop[0]/ask", "loop[2]/ask"]
        with pytest.raises(Conflict, match="already"):
            await approve(service, own, first[1][1])
        for _, request_id in second:
            await approve(service, own, request_id)
        async with asyncio.timeout(30):
            await reached(service, own, lambda e: e.type in TERMINAL)
        given = await outputs_of(service, own)
        assert given["loop"]["output"] == ["sent x", "sent y", "sent z"]
        requested = [e for e in await service.executions.events(own) if e.type == "node.waiting"]
        assert len(requested) == 3, "each question is asked once"


async def test_requests_two_levels_deep_are_answered_after_restart(tmp_path: Path) -> None:
    async with opened(tmp_path, TWO_DEEP) as service:
        own = await executed(service)
        await rests(service, own)
    async with opened(tmp_path, TWO_DEEP) as service:
        for path, request_id in [
            (each.path, each.request_id) for each in await service.executions.requests(own)
        ]:
            assert "/each[" in path
            await approve(service, own, request_id)
        async with asyncio.timeout(30):
            await reached(service, own, lambda e: e.type in TERMINAL)
        assert (await outputs_of(service, own))["in"]["output"] == ["sent a", "sent b"]


async def test_document_lists_nested_nodes(tmp_path: Path) -> None:
    async with opened(tmp_path, TWO_DEEP) as service:
        own = await executed(service)
        await rests(service, own)
    async with opened(tmp_path, TWO_DEEP) as service:  # another process goes on with it
        for request in await service.executions.requests(own):
            await approve(service, own, request.request_id)
        await reached(service, own, lambda e: e.type in TERMINAL)
        document = await service.executions.document(own)
        explained = await service.executions.explain(own, "in[graph]/each[1]/sent")
        events = await service.executions.events(own)
    nodes = {each["path"]: each for each in document["nodes"]}
    assert {path: each["type"] for path, each in nodes.items()} == {
        "in": "inner", "in[graph]/each": "loop",
        **{f"in[graph]/each[{n}]/ask": "approval" for n in range(2)},
        **{f"in[graph]/each[{n}]/sent": "text" for n in range(2)},
    }  # fmt: skip
    sent = nodes["in[graph]/each[1]/sent"]
    assert sent["dependencies"] == ["in[graph]/each[1]/ask"]
    assert sent["inputs"] == explained_values(explained)
    assert sent["result"] == "sent b"
    opened_ = [e.data["data"] for e in events if e.data.get("event_type") == "run_graph"]
    assert len([output for output in opened_ if "document" in output]) == 2, (
        "each graph is told once"
    )


def explained_values(explained: dict[str, Any]) -> dict[str, Any]:
    return {
        handle: {"type": each["arrivals"][0]["type"], "value": each["arrivals"][0]["value"]}
        for handle, each in explained["inputs"].items()
    }


async def test_cancel_closes_nested_requests_of_paused_execution(tmp_path: Path) -> None:
    async with opened(tmp_path, TWO_DEEP) as service:
        own = await executed(service)
        requests = await rests(service, own)
    async with opened(tmp_path, TWO_DEEP) as service:
        assert (await service.executions.cancel(own)).status == "cancelled"
        assert await service.executions.requests(own) == []
        state = await service.executions.state(own)
        assert {node.status for node in state.nodes.values()} == {"cancelled"}
        with pytest.raises(Gone):
            await approve(service, own, requests[0][1])


async def test_parked_node_two_levels_deep_can_be_cancelled(tmp_path: Path) -> None:
    async with opened(tmp_path, TWO_DEEP) as service:
        own = await executed(service)
        await rests(service, own)
        await service.executions.cancel(own, node="in[graph]/each")
        async with asyncio.timeout(30):
            await reached(service, own, lambda e: e.type in TERMINAL)
        state = await service.executions.state(own)
        assert state.requests == {}
        received = {path: node.status for path, node in state.nodes.items()}
        assert received == {
            "in": "failed",
            "in[graph]/each": "cancelled",
            "in[graph]/each[0]/ask": "cancelled",
            "in[graph]/each[1]/ask": "cancelled",
        }


async def test_one_of_concurrent_nested_answers_is_accepted(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, TWO_DEEP) as service:
        own = await executed(service)
        (_, first), _ = await rests(service, own)
        received: list[str] = []

        async def answers() -> None:
            try:
                await approve(service, own, first)
            except (Conflict, Gone) as error:
                received.append(error.code)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(answers())
        assert received == ["request-answered"] * 2


async def test_one_item_of_a_paused_loop_can_be_cancelled(tmp_path: Path) -> None:
    data = {"items": ["x", "y"], "onItemError": "null", "body": BODY}
    graph = make_graph(Node("loop", "loop", "L", data=data))
    async with opened(tmp_path, graph) as service:
        own = await executed(service)
        requests = await rests(service, own)
    async with opened(tmp_path, graph) as service:
        await service.executions.cancel(own, node="loop[0]/ask")
        await approve(service, own, requests[1][1])
        async with asyncio.timeout(30):
            await reached(service, own, lambda e: e.type in TERMINAL)
        assert (await service.executions.get(own)).status == "completed"
        assert (await outputs_of(service, own))["loop"]["output"] == [None, "sent y"]


async def test_loop_with_retryable_item_failure_is_retried(tmp_path: Path) -> None:
    body = {"nodes": [{"id": "n", "type": "counts", "data": {}}], "edges": []}
    data = {"items": [1, 2], "parallel": 1, "body": body}
    retry = {"policy": Policy(retry=Retry(2)), "policy_document": {"retry": {"attempts": 2}}}
    graph = make_graph(Node("loop", "loop", "L", data=data, **retry))
    async with opened(tmp_path, graph, Shaky()) as service:
        own = await executed(service)
        assert (await service.executions.wait(own)).status == "completed"
        state = await service.executions.state(own)
        attempts = {path: node.attempt for path, node in state.nodes.items()}
        assert attempts == {"loop": 2, "loop[0]/n": 1, "loop[1]/n": 2}
