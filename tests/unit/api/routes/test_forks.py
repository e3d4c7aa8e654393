"""Routes that make a new execution out of another one."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.api.schemas.executions import DifferenceResponse, ExecutionCreated
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.ids import new_id
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
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


async def ended(calls: InProcessClient) -> str:
    """Run the plan to its end; give the path of its execution."""
    made = await calls.post_json("/api/run", {"prompt": "x"}, 202)
    await calls.service.wait(made["execution_id"])
    return f"/api/executions/{made['execution_id']}"


async def results(calls: InProcessClient, made: Any) -> dict[str, str]:
    ExecutionCreated.model_validate(made, extra="forbid")
    await calls.service.wait(made["execution_id"])
    return (await calls.get_json(f"/api/executions/{made['execution_id']}/result"))["node_results"]


async def test_a_retry_runs_what_failed_and_takes_over_the_rest() -> None:
    fails = FailsOnce()
    graph = make_graph(text_node("a", "one"), Node("f", "fails_once", "F"), edges=[("a", "f")])
    async with in_process_client(dependencies(graph, types=[fails])) as calls:
        path = await ended(calls)
        answer = await calls.post(f"{path}/retry")
        assert answer.status_code == 202
        made = answer.json()
        assert answer.headers["location"] == f"/api/executions/{made['execution_id']}"
        assert await results(calls, made) == {"a": "one", "f": "at last"}
        shown = await calls.get_json(f"/api/executions/{made['execution_id']}")
        assert shown["parent"]["execution_id"] == path.rpartition("/")[2]
        events = await calls.service.events(made["execution_id"])
        reused = {e.path: "reused" in e.data for e in events if e.type == "node.completed"}
        assert reused == {"a": True, "f": False}
        problem = await calls.expect_problem("POST", answer.headers["location"] + "/retry", 409)
        assert problem["code"] == "nothing-to-retry"


async def test_a_fork_is_made_with_its_changes_and_started_where_that_is_asked_for() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        path = await ended(calls)
        data = {"changes": {"b": {"data": {"text": "B {{ input }}"}}}}
        assert await results(calls, await calls.post_json(f"{path}/fork", data, 202)) == {
            "a": "one", "b": "B one",
        }  # fmt: skip
        outputs = {"changes": {"a": {"outputs": {"output": "two"}}}, "start": False}
        made = await calls.post_json(f"{path}/fork", outputs, 201)
        assert made["status"] == "starting"
        await calls.post_json(f"/api/execute/{made['execution_id']}/start", status=202)
        assert (await results(calls, made))["b"] == "b two"
        again = await calls.post_json(
            f"{path}/fork", {"rerun": ["a"], "options": {"run_to": ["a"]}}, 202
        )
        assert await results(calls, again) == {"a": "one"}
        assert (await calls.post_json(f"{path}/fork", status=202))["execution_id"]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"rerun": ["a", "zz"]}, "unknown-node", "/rerun/1"),
        ({"changes": {"zz": {"data": {}}}}, "unknown-node", "/changes/zz"),
        ({"changes": {"b": {}}}, "invalid-field", "/changes/b"),
        ({"changes": {"b": {"data": {"text": 5}}}}, "invalid-data", "/changes/b/data/text"),
    ],
)
async def test_every_fault_of_a_fork_is_shown_in_the_body(
    body: Any, code: str, pointer: str
) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        path = await ended(calls)
        problem = await calls.expect_problem("POST", f"{path}/fork", 422, body)
        assert [(each["code"], each["pointer"]) for each in problem["issues"]] == [(code, pointer)]
        assert len((await calls.get_json("/api/executions"))["executions"]) == 1


async def test_what_still_runs_is_neither_forked_nor_retried() -> None:
    held = HeldNode()
    async with in_process_client(
        dependencies(make_graph(Node("h", "held", "H")), types=[held])
    ) as calls:
        made = await calls.post_json("/api/run", {"prompt": "x"}, 202)
        path = f"/api/executions/{made['execution_id']}"
        await held.started.wait()
        for what in ("fork", "retry"):
            assert (await calls.expect_problem("POST", f"{path}/{what}", 409))[
                "code"
            ] == "still-running"
            await calls.expect_problem("POST", f"/api/executions/{new_id()}/{what}", 404)
        held.release.set()
        await calls.service.wait(made["execution_id"])


async def test_a_fork_sent_again_under_its_key_is_one() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        path = await ended(calls)
        headers = {"Idempotency-Key": "k"}
        made = [(await calls.post(f"{path}/fork", headers=headers)).json() for _ in range(2)]
        assert made[0] == made[1]
        assert len((await calls.get_json("/api/executions"))["executions"]) == 2
        await calls.service.wait(made[0]["execution_id"])


CHAIN_comparing = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])


async def ended_comparing(calls: InProcessClient, **body: Any) -> str:
    made = await calls.post_json("/api/execute", {**body, "start": True}, 202)
    await calls.service.wait(made["execution_id"])
    return made["execution_id"]


async def test_two_executions_are_compared() -> None:
    async with in_process_client(dependencies(CHAIN_comparing)) as calls:
        plan_id = (await calls.post_json("/api/plan", {"prompt": "do it"}, 201))["plan_id"]
        first = await ended_comparing(calls, plan_id=plan_id)
        second = await ended_comparing(calls, plan_id=plan_id, inputs={"a": {"output": "other"}})
        told = await calls.get_json(f"/api/executions/{first}/diff/{second}", DifferenceResponse)
        assert (told["a"], told["b"]) == (first, second)
        assert [node["path"] for node in told["nodes"]] == ["a"]
        await calls.expect_problem("GET", f"/api/executions/{first}/diff/{new_id()}", 404)
