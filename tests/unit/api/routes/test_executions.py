from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planwave.api.routes.executions import log_response
from planwave.api.schemas.executions import (
    DocumentResponse,
    ExecutionCreated,
    ExecutionResponse,
    ExecutionsResponse,
    ExplainResponse,
    LogEntriesResponse,
    ResultResponse,
)
from planwave.events import Event
from planwave.graph.inputs import Inputs
from planwave.graph.model import Node
from planwave.graph.protocols import FlowContext, Suspension
from planwave.ids import new_id
from planwave.settings import Limits
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import FixedPlanner, dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])
HELD = make_graph(Node("h", "held", "H"))
GRAPH = {"nodes": [{"id": "g", "type": "text", "data": {"text": "x"}}], "edges": []}


async def planned(calls: InProcessClient, goal: str = "do it") -> str:
    return (await calls.post_json("/api/plan", {"prompt": goal}, 201))["plan_id"]


async def ended(calls: InProcessClient, body: Mapping[str, Any]) -> str:
    """Execute something to its end; give the execution's id."""
    made = await calls.post_json("/api/execute", {**body, "start": True}, 202)
    await calls.service.wait(made["execution_id"])
    return made["execution_id"]


async def test_an_execution_is_made_first_and_started_then() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = await planned(calls)
        answer = await calls.post("/api/execute", json={"plan_id": plan_id})
        made = answer.json()
        ExecutionCreated.model_validate(made, extra="forbid")
        assert (answer.status_code, made["status"], made["plan_id"]) == (201, "starting", plan_id)
        shown = await calls.get_json(answer.headers["location"], ExecutionResponse)
        assert (shown["status"], shown["node_states"]) == (
            "starting",
            {"a": "pending", "b": "pending"},
        )
        path = f"/api/execute/{made['execution_id']}/start"
        assert (await calls.post_json(path, status=202))["execution_id"] == made["execution_id"]
        await calls.service.wait(made["execution_id"])
        assert (await calls.expect_problem("POST", path, 409))["code"] == "already-started"


async def test_an_execution_that_was_started_can_be_looked_at_when_it_has_ended() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await ended(calls, {"plan_id": await planned(calls, "my goal")})
        shown = await calls.get_json(f"/api/executions/{execution_id}", ExecutionResponse)
        assert (shown["status"], shown["user_prompt"]) == ("completed", "my goal")
        assert shown["node_states"] == {"a": "completed", "b": "completed"}
        assert shown["wave"] == {"current": 2, "total": 2}
        assert shown["logs"][0] == "Starting execution..."
        assert shown["logs"][-1] == "Execution completed. Status: completed"
        assert (shown["error"], shown["queue_position"]) == (None, None)


async def test_a_graph_becomes_a_plan_when_it_is_executed() -> None:
    async with in_process_client(dependencies()) as calls:
        execution_id = await ended(calls, {"graph": GRAPH})
        (plan,) = (await calls.get_json("/api/plans"))["plans"]
        shown = await calls.get_json(f"/api/executions/{execution_id}")
        assert (shown["plan_id"], plan["status"]) == (plan["plan_id"], "completed")


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"graph": {"nodes": [], "edges": [{}]}}, "graph-invalid", "/graph/edges/0/source"),
        ({"graph": {"nodes": []}}, "graph-invalid", "/graph/edges"),
        ({"graph": {**GRAPH, "policies": {}}}, "graph-invalid", "/graph/policies"),
        ({}, "invalid-body", ""),
        ({"plan_id": "p", "graph": GRAPH}, "invalid-body", ""),
        ({"graph": GRAPH, "start": "yes"}, "invalid-body", "/start"),
        ({"graph": GRAPH, "options": {"speed": 1}}, "invalid-body", "/options/speed"),
        ({"graph": GRAPH, "options": {"max_parallel": 0}}, "invalid-body", "/options/max_parallel"),
        (
            {"graph": GRAPH, "options": {"policies": {"x": {"join": "any"}}}},
            "graph-invalid",
            "/options/policies/x",
        ),
    ],
)
async def test_what_cannot_be_executed_is_refused_with_its_place_and_nothing_is_made(
    body: Any, code: str, pointer: str
) -> None:
    async with in_process_client(dependencies()) as calls:
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert problem["code"] == code
        assert pointer in [issue["pointer"] for issue in problem["issues"]]
        assert (await calls.get_json("/api/plans"))["plans"] == []
        assert (await calls.get_json("/api/executions"))["executions"] == []


@pytest.mark.parametrize("start", [False, True])
async def test_a_provider_that_is_not_there_is_named_and_nothing_is_made(start: bool) -> None:
    agent = {"id": "n", "type": "agent", "description": "x", "data": {"provider": "off"}}
    body = {"graph": {"nodes": [agent], "edges": []}, "start": start}
    async with in_process_client(dependencies()) as calls:
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert (problem["code"], problem["hint"]) == ("unavailable-provider", "set OFF_KEY")
        assert (await calls.get_json("/api/plans"))["plans"] == []
        assert (await calls.get_json("/api/executions"))["executions"] == []


async def test_options_and_policies_are_those_of_the_execution() -> None:
    options = {
        "scheduling": "waves",
        "on_failure": "stop",
        "max_parallel": 2,
        "policies": {"a": {"timeoutS": 5}},
    }
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = await planned(calls)
        execution_id = await ended(calls, {"plan_id": plan_id, "options": options})
        shown = (await calls.get_json(f"/api/executions/{execution_id}"))["options"]
        assert (shown["scheduling"], shown["on_failure"], shown["max_parallel"]) == (
            "waves",
            "stop",
            2,
        )
        document = await calls.get_json(f"/api/executions/{execution_id}/document")
        assert document["graph"]["nodes"][0]["policy"] == {"timeoutS": 5}
        assert "policy" not in (await calls.get_json(f"/api/plans/{plan_id}"))["nodes"][0]


async def test_options_choose_the_part_that_runs() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = await planned(calls)
        body = {"plan_id": plan_id, "options": {"run_to": ["a"], "run_from": ["a"]}}
        found = await calls.get_json(f"/api/executions/{await ended(calls, body)}")
        assert found["node_states"] == {"a": "completed", "b": "not_reached"}
        assert found["options"]["run_to"] == found["options"]["run_from"] == ["a"]


async def test_inputs_settle_nodes_that_then_do_not_run() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        body = {"plan_id": await planned(calls), "inputs": {"a": {"output": "given"}}}
        execution_id = await ended(calls, body)
        result = await calls.get_json(f"/api/executions/{execution_id}/result", ResultResponse)
        assert result["node_results"] == {"a": "given", "b": "two"}
        shown = await calls.get_json(f"/api/executions/{execution_id}")
        assert shown["inputs"] == {"a": {"output": "given"}}
        body["inputs"] = {"nobody": {"output": 1}}
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert problem["code"] == "unknown-input-node"


async def test_what_waits_says_its_place_and_one_too_many_is_turned_away() -> None:
    held = HeldNode()
    limits = Limits(concurrent_executions=1, queued_executions=2)
    async with in_process_client(dependencies(HELD, types=[held], limits=limits)) as calls:
        body = {"plan_id": await planned(calls), "start": True}
        made = [await calls.post_json("/api/execute", body, 202) for _ in range(3)]
        assert [each["position"] for each in made] == [None, 1, 2]
        last = made[-1]["execution_id"]
        assert (await calls.get_json(f"/api/executions/{last}"))["queue_position"] == 2
        answer = await calls.post("/api/execute", json={"graph": GRAPH, "start": True})
        assert (answer.status_code, answer.json()["code"]) == (429, "queue-full")
        assert int(answer.headers["retry-after"]) > 0
        assert len((await calls.get_json("/api/executions"))["executions"]) == 3
        assert len((await calls.get_json("/api/plans"))["plans"]) == 1
        held.release.set()
        for each in made:
            await calls.service.wait(each["execution_id"])


async def test_a_goal_is_planned_and_run_in_one_step() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        made = await calls.post_json("/api/run", {"prompt": "do it", "options": {}}, 202)
        ExecutionCreated.model_validate(made, extra="forbid")
        await calls.service.wait(made["execution_id"])
        result = await calls.get_json(f"/api/executions/{made['execution_id']}/result")
        assert (result["status"], result["node_results"]["b"]) == ("completed", "two")
        assert (await calls.get_json(f"/api/plans/{made['plan_id']}"))["user_prompt"] == "do it"


async def test_no_model_is_asked_for_a_plan_that_could_not_be_queued() -> None:
    planner, held = FixedPlanner(make_plan(HELD)), HeldNode()
    limits = Limits(concurrent_executions=1, queued_executions=0)
    async with in_process_client(
        dependencies(planner=planner, types=[held], limits=limits)
    ) as calls:
        await calls.post_json("/api/run", {"prompt": "first"}, 202)
        problem = await calls.expect_problem("POST", "/api/run", 429, {"prompt": "second"})
        assert problem["code"] == "queue-full"
        assert planner.goals == ["first"]
        held.release.set()


async def test_a_plan_that_was_paid_for_is_kept_though_it_cannot_run() -> None:
    agent = Node("n", "agent", "n", "do it", data={"provider": "off"})
    async with in_process_client(dependencies(make_graph(agent))) as calls:
        problem = await calls.expect_problem("POST", "/api/run", 422, {"prompt": "do it"})
        (plan,) = (await calls.get_json("/api/plans"))["plans"]
        assert problem["code"] == "unavailable-provider"
        assert plan["plan_id"] in problem["hint"]


async def test_executions_are_listed_by_status_text_time_and_plan() -> None:
    parts = dependencies(CHAIN, types=[FailingNode()])
    async with in_process_client(parts) as calls:
        plan_id = await planned(calls, "a boat")
        good = await ended(calls, {"plan_id": plan_id})
        broken = {"nodes": [{"id": "x", "type": "broken"}], "edges": []}
        bad = await ended(calls, {"graph": broken})

        async def found(**query: Any) -> list[str]:
            page = await calls.get_json("/api/executions", ExecutionsResponse, **query)
            return [each["execution_id"] for each in page["executions"]]

        assert await found() == [bad, good]
        assert await found(status="failed") == [bad]
        assert await found(q="BOAT") == [good]
        assert await found(plan_id=plan_id) == [good]
        made_at = (await calls.get_json(f"/api/executions/{bad}"))["created_at"]
        assert await found(since=made_at) == [bad]
        assert await found(since="2001-01-01", status="completed") == [good]
        (listed,) = (await calls.get_json("/api/executions", status="failed"))["executions"]
        assert listed["timestamp"] == listed["created_at"] == made_at


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"status": "done"}, "invalid-request"),
        ({"since": "yesterday"}, "invalid-time"),
        ({"plan_id": "p"}, "invalid-request"),
        ({"q": "x" * 1_001}, "invalid-request"),
    ],
)
async def test_a_list_of_what_cannot_be_is_refused(query: Any, code: str) -> None:
    async with in_process_client(dependencies()) as calls:
        assert (await calls.expect_problem("GET", "/api/executions", 422, **query))["code"] == code


async def test_executions_come_in_pages_that_do_not_overlap() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = await planned(calls)
        made = [await ended(calls, {"plan_id": plan_id}) for _ in range(5)]
        seen: list[str] = []
        query: dict[str, Any] = {"limit": 2}
        while True:
            page = await calls.get_json("/api/executions", **query)
            seen += [each["execution_id"] for each in page["executions"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert seen == made[::-1]


async def test_a_failure_says_why() -> None:
    body = {
        "nodes": [
            {"id": "x", "type": "broken"},
            {"id": "y", "type": "text", "data": {"text": "never"}},
        ],
        "edges": [],
    }
    body["edges"] = [{"source": "x", "target": "y", "data": {"channel": "flow"}}]
    async with in_process_client(dependencies(types=[FailingNode()])) as calls:
        execution_id = await ended(calls, {"graph": body})
        shown = await calls.get_json(f"/api/executions/{execution_id}", ExecutionResponse)
        assert (shown["status"], shown["failures"]) == ("failed", ["x"])
        assert "it broke" in shown["error"]["message"]
        assert shown["node_states"] == {"x": "failed", "y": "blocked"}
        result = await calls.get_json(f"/api/executions/{execution_id}/result", ResultResponse)
        assert (result["node_results"], result["error"]) == ({}, shown["error"])
        why = await calls.get_json(f"/api/executions/{execution_id}/explain/y", ExplainResponse)
        assert (why["path"], why["status"]) == ("y", "blocked")


async def test_an_open_question_is_shown_with_its_node() -> None:
    class Asks:
        node_type = "asks"

        async def execute(self, data: Any, inputs: Inputs, context: FlowContext) -> Suspension:
            return Suspension("May I?")

        async def resume(self, *_: Any) -> Any:
            raise AssertionError

    async with in_process_client(
        dependencies(make_graph(Node("q", "asks", "Q")), types=[Asks()])
    ) as calls:
        made = await calls.post_json("/api/run", {"prompt": "x"}, 202)
        async for event in calls.service.watch(made["execution_id"]):
            if event.type == "execution.paused":
                break
        shown = await calls.get_json(f"/api/executions/{made['execution_id']}", ExecutionResponse)
        assert (shown["status"], shown["waitingForInput"]) == ("paused", True)
        assert (shown["currentNodeId"], shown["reason"]) == ("q", "waiting for an answer")
        await calls.post_json(f"/api/executions/{made['execution_id']}/cancel")


async def test_the_document_is_the_file_that_is_kept(tmp_path: Path) -> None:
    async with in_process_client(dependencies(CHAIN, directory=tmp_path)) as calls:
        execution_id = await ended(calls, {"plan_id": await planned(calls)})
        document = await calls.get_json(
            f"/api/executions/{execution_id}/document", DocumentResponse
        )
        assert document == json.loads((tmp_path / f"{execution_id}.json").read_text("utf-8"))


async def test_a_running_execution_shows_what_there_is_and_is_cancelled_for_good() -> None:
    held = HeldNode()
    graph = make_graph(text_node("a", "one"), Node("h", "held", "H"), edges=[("a", "h")])
    async with in_process_client(dependencies(graph, types=[held])) as calls:
        made = await calls.post_json("/api/run", {"prompt": "x"}, 202)
        path = f"/api/executions/{made['execution_id']}"
        await held.started.wait()
        result = await calls.get_json(f"{path}/result")
        assert (result["status"], result["node_results"]) == ("executing", {"a": "one"})
        assert (await calls.expect_problem("DELETE", path, 409))["code"] == "execution-running"
        answer = await calls.post_json(f"{path}/cancel")
        ExecutionCreated.model_validate(answer, extra="forbid")
        assert answer["status"] == "cancelled"
        shown = await calls.get_json(path, ExecutionResponse)
        assert (shown["status"], shown["cause"]) == ("cancelled", "cancelled by request")
        assert (await calls.expect_problem("POST", f"{path}/cancel", 409))["code"] == "conflict"


async def test_an_execution_that_waits_is_cancelled_where_it_waits() -> None:
    held = HeldNode()
    limits = Limits(concurrent_executions=1)
    async with in_process_client(dependencies(HELD, types=[held], limits=limits)) as calls:
        first, second = [await calls.post_json("/api/run", {"prompt": "x"}, 202) for _ in range(2)]
        await calls.post_json(f"/api/executions/{second['execution_id']}/cancel")
        shown = await calls.get_json(f"/api/executions/{second['execution_id']}")
        assert (shown["status"], shown["queue_position"]) == ("cancelled", None)
        held.release.set()
        await calls.service.wait(first["execution_id"])


async def test_a_deleted_execution_is_gone_with_its_document(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    async with in_process_client(dependencies(CHAIN, directory=tmp_path, store=store)) as calls:
        execution_id = await ended(calls, {"plan_id": await planned(calls)})
        assert f"{execution_id}.json" in os.listdir(tmp_path)
        answer = await calls.delete(f"/api/executions/{execution_id}")
        assert (answer.status_code, answer.content) == (204, b"")
        await calls.expect_problem("GET", f"/api/executions/{execution_id}", 404)
        assert f"{execution_id}.json" not in os.listdir(tmp_path)


ROUTES = [
    ("POST", "/api/execute/{}/start"),
    ("GET", "/api/executions/{}"),
    ("GET", "/api/executions/{}/result"),
    ("GET", "/api/executions/{}/document"),
    ("GET", "/api/executions/{}/explain/a"),
    ("GET", "/api/executions/{}/diff/{}"),
    ("POST", "/api/executions/{}/cancel"),
    ("DELETE", "/api/executions/{}"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_an_execution_there_is_not_is_not_found(method: str, path: str) -> None:
    async with in_process_client(dependencies()) as calls:
        for name in (new_id(), "abc", "..", "x%00.json", "caf%C3%A9", new_id() + "%0A"):
            assert (await calls.expect_problem(method, path.format(name, name), 404))[
                "code"
            ] == "not-found"


async def test_a_node_there_is_not_is_not_explained() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await ended(calls, {"plan_id": await planned(calls)})
        for path in ("nobody", "a/b/c", "%2e%2e"):
            await calls.expect_problem("GET", f"/api/executions/{execution_id}/explain/{path}", 404)


async def test_a_plan_there_is_not_cannot_be_executed() -> None:
    async with in_process_client(dependencies()) as calls:
        for plan_id in (new_id(), "../x", "", "x" * 10_000):
            problem = await calls.expect_problem("POST", "/api/execute", 404, {"plan_id": plan_id})
            assert problem["code"] == "not-found"
            assert len(problem["detail"]) < 200


async def test_the_typed_log_goes_on_after_what_is_known() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await ended(calls, {"plan_id": await planned(calls)})
        whole = json.loads((await log_response(calls.service, execution_id)).body)
        LogEntriesResponse.model_validate(whole, extra="forbid")
        assert [(e["nodeId"], e["type"], e["content"]) for e in whole["entries"]] == [
            ("a", "step_start", "text node"),
            ("b", "step_start", "text node"),
        ]
        events = await calls.service.events(execution_id)
        started = next(e.seq for e in events if e.type == "node.started")
        rest = json.loads((await log_response(calls.service, execution_id, started)).body)
        assert (rest["entries"], rest["last_seq"]) == (whole["entries"][1:], whole["last_seq"])


async def test_a_request_sent_again_under_its_key_makes_one_execution() -> None:
    planner = FixedPlanner(make_plan(CHAIN))
    async with in_process_client(dependencies(planner=planner)) as calls:
        headers = {"Idempotency-Key": "k1"}
        answers = [
            (await calls.post("/api/run", json={"prompt": "x"}, headers=headers)).json()
            for _ in range(2)
        ]
        assert answers[0]["execution_id"] == answers[1]["execution_id"]
        assert planner.goals == ["x"]
        assert len((await calls.get_json("/api/executions"))["executions"]) == 1


async def test_what_makes_no_sense_is_said_to_be_unreadable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await ended(calls, {"plan_id": await planned(calls)})
        _, *rest = await calls.service.events(execution_id)

        async def without_the_first(
            _: str, *, after: int = 0, limit: int | None = None
        ) -> list[Event]:
            return rest

        monkeypatch.setattr(calls.service._store, "events", without_the_first)
        where = f"/api/executions/{execution_id}"
        for path in (
            where,
            f"/api/execution/{execution_id}/status",
            f"{where}/events?format=log",
            f"{where}/requests",
            f"{where}/diff/{execution_id}",
        ):
            answer = await calls.get(path)
            assert (answer.status_code, answer.json()["code"]) == (409, "unreadable"), path
