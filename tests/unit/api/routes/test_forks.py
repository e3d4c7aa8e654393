"""Routes that make a new execution out of another one."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.ids import new_id
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "b {{ input }}"), edges=[("a", "b")])


class FailsOnce:
    node_type = "fails_once"

    def __init__(self) -> None:
        self.runs = 0

    async def execute(self, data: Any, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        self.runs += 1
        if self.runs == 1:
            raise ValueError("not today")
        return ExecutionResult({"output": DataValue("text", "at last")})


async def run_to_end(calls: InProcessClient) -> str:
    """Run the plan to its end; give the path of its execution."""
    created = await calls.post_json("/api/run", {"prompt": "x"}, 202)
    await calls.service.executions.wait(created["execution_id"])
    return f"/api/executions/{created['execution_id']}"


async def results(calls: InProcessClient, made: Any) -> dict[str, str]:
    await calls.service.executions.wait(made["execution_id"])
    return (await calls.get_json(f"/api/executions/{made['execution_id']}/result"))["node_results"]


async def test_retry_runs_failed_nodes_and_reuses_the_rest() -> None:
    fails = FailsOnce()
    graph = make_graph(text_node("a", "one"), Node("f", "fails_once", "F"), edges=[("a", "f")])
    async with in_process_client(dependencies(graph, types=[fails])) as calls:
        path = await run_to_end(calls)
        answer = await calls.post(f"{path}/retry")
        assert answer.status_code == 202
        created = answer.json()
        assert answer.headers["location"] == f"/api/executions/{created['execution_id']}"
        assert await results(calls, created) == {"a": "one", "f": "at last"}
        shown = await calls.get_json(f"/api/executions/{created['execution_id']}")
        assert shown["parent"]["execution_id"] == path.rpartition("/")[2]
        events = await calls.service.executions.events(created["execution_id"])
        reused = {e.path: "reused" in e.data for e in events if e.type == "node.completed"}
        assert reused == {"a": True, "f": False}
        problem = await calls.expect_problem("POST", answer.headers["location"] + "/retry", 409)
        assert problem["code"] == "nothing-to-retry"


async def test_fork_applies_changes_and_starts_unless_told_not_to() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        path = await run_to_end(calls)
        data = {"changes": {"b": {"data": {"text": "B {{ input }}"}}}}
        assert await results(calls, await calls.post_json(f"{path}/fork", data, 202)) == {
            "a": "one", "b": "B one",
        }  # fmt: skip
        outputs = {"changes": {"a": {"outputs": {"output": "two"}}}, "start": False}
        created = await calls.post_json(f"{path}/fork", outputs, 201)
        assert created["status"] == "starting"
        await calls.post_json(f"/api/execute/{created['execution_id']}/start", status=202)
        assert (await results(calls, created))["b"] == "b two"
        again = await calls.post_json(
            f"{path}/fork", {"rerun": ["a"], "options": {"run_to": ["a"]}}, 202
        )
        assert await results(calls, again) == {"a": "one"}
        assert (await calls.post_json(f"{path}/fork", status=202))["execution_id"]


async def test_fork_runs_a_new_graph_and_its_preview_makes_nothing() -> None:
    c = {"id": "c", "type": "text", "name": "C", "data": {"text": "C {{ input }}"}}
    whole = CHAIN.to_document()
    edge = {"source": "b", "target": "c", "data": {"channel": "flow"}}
    graph = {"nodes": [*whole["nodes"], c], "edges": [*whole["edges"], edge]}
    async with in_process_client(dependencies(CHAIN)) as calls:
        path = await run_to_end(calls)
        preview = await calls.post_json(f"{path}/fork/preview", {"graph": graph})
        assert preview == {"reused": ["a", "b"], "runs": ["c"], "undecided": []}
        assert (await calls.post_json(f"{path}/fork/preview"))["reused"] == ["a", "b"]
        assert len((await calls.get_json("/api/executions"))["executions"]) == 1
        made = await calls.post_json(f"{path}/fork", {"graph": graph}, 202)
        last = (await results(calls, made))["c"]
        assert last.startswith("C b")


LOOSE = {"nodes": [{"id": "a", "type": "text", "data": {"text": 5}}], "edges": []}


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"graph": LOOSE}, "invalid-data", "/graph/nodes/0/data/text"),
        ({"graph": {"nodes": [], "edges": []}, "rerun": ["a"]}, "empty-graph", "/graph/nodes"),
        ({"rerun": ["a", "zz"]}, "unknown-node", "/rerun/1"),
        ({"changes": {"zz": {"data": {}}}}, "unknown-node", "/changes/zz"),
        ({"changes": {"b": {}}}, "invalid-field", "/changes/b"),
        ({"changes": {"b": {"data": {"text": 5}}}}, "invalid-data", "/changes/b/data/text"),
        ({"changes": {"b": {"task": "x"}}}, "unknown-field", "/changes/b/task"),
        ({"changes": {"b": {"description": 5}}}, "invalid-field", "/changes/b/description"),
    ],
)
async def test_invalid_fork_is_rejected_with_pointers(body: Any, code: str, pointer: str) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        path = await run_to_end(calls)
        problem = await calls.expect_problem("POST", f"{path}/fork", 422, body)
        assert [(each["code"], each["pointer"]) for each in problem["issues"]] == [(code, pointer)]
        assert len((await calls.get_json("/api/executions"))["executions"]) == 1


async def test_diff_lists_nodes_that_differ() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        path = await run_to_end(calls)
        changes = {"changes": {"a": {"outputs": {"output": "two"}}}}
        fork = (await calls.post_json(f"{path}/fork", changes, 202))["execution_id"]
        await calls.service.executions.wait(fork)
        diff = await calls.get_json(f"{path}/diff/{fork}")
        assert (diff["a"], diff["b"]) == (path.rpartition("/")[2], fork)
        assert [node["path"] for node in diff["nodes"]] == ["a", "b"]
        await calls.expect_problem("GET", f"{path}/diff/{new_id()}", 404)
