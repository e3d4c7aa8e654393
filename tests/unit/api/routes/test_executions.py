from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planwave.api.routes.executions import log_response
from planwave.events import Event
from planwave.graph.model import Node
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


async def execute_to_end(calls: InProcessClient, body: Mapping[str, Any]) -> str:
    """Execute something to its end; give the execution's id."""
    created = await calls.post_json("/api/execute", {**body, "start": True}, 202)
    await calls.service.executions.wait(created["execution_id"])
    return created["execution_id"]


async def test_execution_is_created_then_started() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = await planned(calls)
        answer = await calls.post("/api/execute", json={"plan_id": plan_id})
        created = answer.json()
        assert (answer.status_code, created["status"], created["plan_id"]) == (
            201,
            "starting",
            plan_id,
        )
        shown = await calls.get_json(answer.headers["location"])
        assert (shown["status"], shown["node_states"]) == (
            "starting",
            {"a": "pending", "b": "pending"},
        )
        state = await calls.get_json(f"/api/executions/{created['execution_id']}")
        assert state["wave"] == {"current": 1, "total": 2}
        path = f"/api/execute/{created['execution_id']}/start"
        assert (await calls.post_json(path, status=202))["execution_id"] == created["execution_id"]
        await calls.service.executions.wait(created["execution_id"])
        assert (await calls.expect_problem("POST", path, 409))["code"] == "already-started"


async def test_completed_execution_is_shown() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls, "my goal")})
        shown = await calls.get_json(f"/api/executions/{execution_id}")
        assert (shown["status"], shown["user_prompt"]) == ("completed", "my goal")
        assert shown["node_states"] == {"a": "completed", "b": "completed"}
        assert shown["wave"] == {"current": 2, "total": 2}
        assert shown["logs"][0] == "Starting execution..."
        assert shown["logs"][-1] == "Execution completed. Status: completed"
        assert (shown["error"], shown["queue_position"]) == (None, None)


async def test_executed_graph_is_stored_as_plan() -> None:
    async with in_process_client(dependencies()) as calls:
        execution_id = await execute_to_end(calls, {"graph": GRAPH})
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
async def test_invalid_execution_is_rejected_with_pointer_and_not_created(
    body: Any, code: str, pointer: str
) -> None:
    async with in_process_client(dependencies()) as calls:
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert problem["code"] == code
        assert pointer in [issue["pointer"] for issue in problem["issues"]]
        assert (await calls.get_json("/api/plans"))["plans"] == []
        assert (await calls.get_json("/api/executions"))["executions"] == []


async def test_option_beyond_a_limit_is_rejected_and_nothing_is_created() -> None:
    async with in_process_client(dependencies()) as calls:
        body = {"graph": GRAPH, "options": {"max_parallel": 10**30}}
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert problem["code"] == "invalid-option"
        assert "at most 64 is allowed (limit parallel_nodes)" in problem["detail"]
        assert problem["hint"] == "ask for less, or raise the limit parallel_nodes"
        assert (await calls.get_json("/api/executions"))["executions"] == []


@pytest.mark.parametrize("start", [False, True])
async def test_unavailable_provider_is_rejected_and_nothing_is_created(start: bool) -> None:
    agent = {"id": "n", "type": "agent", "description": "x", "data": {"provider": "off"}}
    body = {"graph": {"nodes": [agent], "edges": []}, "start": start}
    async with in_process_client(dependencies()) as calls:
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert (problem["code"], problem["hint"]) == ("unavailable-provider", "set OFF_KEY")
        assert (await calls.get_json("/api/plans"))["plans"] == []
        assert (await calls.get_json("/api/executions"))["executions"] == []


@pytest.mark.parametrize(
    ("retry", "message"),
    [
        ({"attempts": 2}, "ValueError: it broke (attempt 2 of 2)"),
        ({"attempts": 2, "on": ["ValueError"]}, "ValueError: it broke (attempt 2 of 2)"),
        (
            {"attempts": 2, "notOn": ["ValueError"]},
            "ValueError: it broke (attempt 1 of 2, not retried: retry.notOn names 'ValueError')",
        ),
    ],
)
async def test_failure_is_retried_as_the_policy_says(retry: Any, message: str) -> None:
    broken = {"id": "b", "type": "broken"}
    in_graph = {"graph": {"nodes": [{**broken, "policy": {"retry": retry}}], "edges": []}}
    in_options = {
        "graph": {"nodes": [broken], "edges": []},
        "options": {"policies": {"b": {"retry": retry}}},
    }
    async with in_process_client(dependencies(types=[FailingNode()])) as calls:
        for body in (in_graph, in_options):
            execution_id = await execute_to_end(calls, body)
            shown = await calls.get_json(f"/api/executions/{execution_id}")
            assert shown["error"]["message"] == f"node 'b' failed: {message}"


async def test_retry_that_can_never_happen_is_a_warning() -> None:
    step = {**GRAPH["nodes"][0], "policy": {"retry": {"attempts": 2}}}
    async with in_process_client(dependencies()) as calls:
        found = await calls.post_json("/api/check", {"graph": {"nodes": [step], "edges": []}})
        assert [(issue["code"], issue["severity"]) for issue in found["diagnostics"]] == [
            ("unused-retry", "warning")
        ]


async def test_options_and_policies_apply_to_the_execution_only() -> None:
    options = {
        "scheduling": "waves",
        "on_failure": "stop",
        "max_parallel": 2,
        "policies": {"a": {"timeoutS": 5}},
    }
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = await planned(calls)
        execution_id = await execute_to_end(calls, {"plan_id": plan_id, "options": options})
        shown = (await calls.get_json(f"/api/executions/{execution_id}"))["options"]
        assert (shown["scheduling"], shown["on_failure"], shown["max_parallel"]) == (
            "waves",
            "stop",
            2,
        )
        document = await calls.get_json(f"/api/executions/{execution_id}/document")
        assert document["graph"]["nodes"][0]["policy"] == {"timeoutS": 5}
        assert "policy" not in (await calls.get_json(f"/api/plans/{plan_id}"))["nodes"][0]


async def test_run_to_and_run_from_select_nodes() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = await planned(calls)
        body = {"plan_id": plan_id, "options": {"run_to": ["a"], "run_from": ["a"]}}
        found = await calls.get_json(f"/api/executions/{await execute_to_end(calls, body)}")
        assert found["node_states"] == {"a": "completed", "b": "not_reached"}
        assert found["options"]["run_to"] == found["options"]["run_from"] == ["a"]


async def test_preset_inputs_replace_nodes() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        body = {"plan_id": await planned(calls), "inputs": {"a": {"output": "given"}}}
        execution_id = await execute_to_end(calls, body)
        result = await calls.get_json(f"/api/executions/{execution_id}/result")
        assert result["node_results"] == {"a": "given", "b": "two"}
        shown = await calls.get_json(f"/api/executions/{execution_id}")
        assert shown["inputs"] == {"a": {"output": "given"}}
        body["inputs"] = {"nobody": {"output": 1}}
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert problem["code"] == "unknown-input-node"


async def test_queued_execution_has_position_and_full_queue_rejects() -> None:
    held = HeldNode()
    limits = Limits(concurrent_executions=1, queued_executions=2)
    async with in_process_client(dependencies(HELD, types=[held], limits=limits)) as calls:
        body = {"plan_id": await planned(calls), "start": True}
        created = [await calls.post_json("/api/execute", body, 202) for _ in range(3)]
        assert [each["position"] for each in created] == [None, 1, 2]
        last = created[-1]["execution_id"]
        assert (await calls.get_json(f"/api/executions/{last}"))["queue_position"] == 2
        answer = await calls.post("/api/execute", json={"graph": GRAPH, "start": True})
        assert (answer.status_code, answer.json()["code"]) == (429, "queue-full")
        assert int(answer.headers["retry-after"]) > 0
        assert len((await calls.get_json("/api/executions"))["executions"]) == 3
        assert len((await calls.get_json("/api/plans"))["plans"]) == 1
        held.release.set()
        for each in created:
            await calls.service.executions.wait(each["execution_id"])


async def test_run_plans_and_executes_a_goal() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        created = await calls.post_json("/api/run", {"prompt": "do it", "options": {}}, 202)
        await calls.service.executions.wait(created["execution_id"])
        result = await calls.get_json(f"/api/executions/{created['execution_id']}/result")
        assert (result["status"], result["node_results"]["b"]) == ("completed", "two")
        assert (await calls.get_json(f"/api/plans/{created['plan_id']}"))["user_prompt"] == "do it"


async def test_full_queue_rejects_before_planning() -> None:
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


async def test_plan_is_kept_when_its_execution_is_rejected() -> None:
    agent = Node("n", "agent", "n", "do it", data={"provider": "off"})
    async with in_process_client(dependencies(make_graph(agent))) as calls:
        problem = await calls.expect_problem("POST", "/api/run", 422, {"prompt": "do it"})
        (plan,) = (await calls.get_json("/api/plans"))["plans"]
        assert problem["code"] == "unavailable-provider"
        assert plan["plan_id"] in problem["hint"]


async def test_executions_are_filtered_by_status_text_time_and_plan() -> None:
    parts = dependencies(CHAIN, types=[FailingNode()])
    async with in_process_client(parts) as calls:
        plan_id = await planned(calls, "a boat")
        good = await execute_to_end(calls, {"plan_id": plan_id})
        broken = {"nodes": [{"id": "x", "type": "broken"}], "edges": []}
        bad = await execute_to_end(calls, {"graph": broken})

        async def found(**query: Any) -> list[str]:
            page = await calls.get_json("/api/executions", **query)
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
async def test_invalid_list_filter_is_rejected(query: Any, code: str) -> None:
    async with in_process_client(dependencies()) as calls:
        assert (await calls.expect_problem("GET", "/api/executions", 422, **query))["code"] == code


async def test_failed_execution_reports_its_error() -> None:
    body = {
        "nodes": [
            {"id": "x", "type": "broken"},
            {"id": "y", "type": "text", "data": {"text": "never"}},
        ],
        "edges": [],
    }
    body["edges"] = [{"source": "x", "target": "y", "data": {"channel": "flow"}}]
    async with in_process_client(dependencies(types=[FailingNode()])) as calls:
        execution_id = await execute_to_end(calls, {"graph": body})
        shown = await calls.get_json(f"/api/executions/{execution_id}")
        assert (shown["status"], shown["failures"]) == ("failed", ["x"])
        assert "it broke" in shown["error"]["message"]
        assert shown["node_states"] == {"x": "failed", "y": "blocked"}
        result = await calls.get_json(f"/api/executions/{execution_id}/result")
        assert (result["node_results"], result["error"]) == ({}, shown["error"])
        why = await calls.get_json(f"/api/executions/{execution_id}/explain/y")
        assert (why["path"], why["status"]) == ("y", "blocked")


async def test_document_equals_the_stored_file(tmp_path: Path) -> None:
    async with in_process_client(dependencies(CHAIN, directory=tmp_path)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls)})
        document = await calls.get_json(f"/api/executions/{execution_id}/document")
        assert document == json.loads((tmp_path / f"{execution_id}.json").read_text("utf-8"))


async def test_running_execution_shows_partial_result_and_can_be_cancelled() -> None:
    held = HeldNode()
    graph = make_graph(text_node("a", "one"), Node("h", "held", "H"), edges=[("a", "h")])
    async with in_process_client(dependencies(graph, types=[held])) as calls:
        created = await calls.post_json("/api/run", {"prompt": "x"}, 202)
        path = f"/api/executions/{created['execution_id']}"
        await held.started.wait()
        result = await calls.get_json(f"{path}/result")
        assert (result["status"], result["node_results"]) == ("executing", {"a": "one"})
        assert (await calls.expect_problem("DELETE", path, 409))["code"] == "execution-running"
        answer = await calls.post_json(f"{path}/cancel")
        assert answer["status"] == "cancelled"
        shown = await calls.get_json(path)
        assert (shown["status"], shown["cause"]) == ("cancelled", "cancelled by request")
        assert (await calls.expect_problem("POST", f"{path}/cancel", 409))[
            "code"
        ] == "already-ended"


async def test_queued_execution_can_be_cancelled() -> None:
    held = HeldNode()
    limits = Limits(concurrent_executions=1)
    async with in_process_client(dependencies(HELD, types=[held], limits=limits)) as calls:
        first, second = [await calls.post_json("/api/run", {"prompt": "x"}, 202) for _ in range(2)]
        await calls.post_json(f"/api/executions/{second['execution_id']}/cancel")
        shown = await calls.get_json(f"/api/executions/{second['execution_id']}")
        assert (shown["status"], shown["queue_position"]) == ("cancelled", None)
        held.release.set()
        await calls.service.executions.wait(first["execution_id"])


async def test_a_word_in_place_of_an_id_comes_with_the_route_that_lists_ids() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        for path, kind in (("executions/last/result", "execution"), ("plans/x", "plan")):
            problem = await calls.expect_problem("GET", f"/api/{path}", 404)
            assert problem["hint"] == f"GET /api/{kind}s lists the {kind}s and their ids"


async def test_deleted_execution_is_gone_with_its_document(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    async with in_process_client(dependencies(CHAIN, directory=tmp_path, store=store)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls)})
        assert f"{execution_id}.json" in os.listdir(tmp_path)
        answer = await calls.delete(f"/api/executions/{execution_id}")
        assert (answer.status_code, answer.content) == (204, b"")
        await calls.expect_problem("GET", f"/api/executions/{execution_id}", 404)
        assert f"{execution_id}.json" not in os.listdir(tmp_path)


async def test_explain_of_unknown_node_is_not_found() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls)})
        for path in ("nobody", "a/b/c", "%2e%2e"):
            await calls.expect_problem("GET", f"/api/executions/{execution_id}/explain/{path}", 404)


async def test_execution_of_unknown_plan_is_not_found() -> None:
    async with in_process_client(dependencies()) as calls:
        for plan_id in (new_id(), "../x", "", "x" * 10_000):
            problem = await calls.expect_problem("POST", "/api/execute", 404, {"plan_id": plan_id})
            assert problem["code"] == "not-found"
            assert len(problem["detail"]) < 200


async def test_typed_log_continues_after_cursor() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls)})
        whole = json.loads((await log_response(calls.service.executions, execution_id)).body)
        assert [(e["nodeId"], e["type"], e["content"]) for e in whole["entries"]] == [
            ("a", "step_start", "text node"),
            ("b", "step_start", "text node"),
        ]
        events = await calls.service.executions.events(execution_id)
        started = next(e.seq for e in events if e.type == "node.started")
        rest = json.loads(
            (await log_response(calls.service.executions, execution_id, started)).body
        )
        assert (rest["entries"], rest["last_seq"]) == (whole["entries"][1:], whole["last_seq"])


async def test_unreadable_events_are_reported_as_conflict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls)})
        _, *rest = await calls.service.executions.events(execution_id)

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


async def test_a_query_parameter_given_twice_is_refused() -> None:
    async with in_process_client(dependencies()) as calls:
        problem = await calls.expect_problem("GET", "/api/executions", 422, limit=[1, 2])
        assert (problem["code"], problem["detail"]) == (
            "invalid-request",
            "query parameter 'limit' is given 2 times",
        )
        assert problem["issues"][0]["parameter"] == "limit"


async def test_a_list_tells_how_far_executions_are_where_it_is_asked_to() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        await execute_to_end(calls, {"plan_id": await planned(calls)})
        (plain,) = (await calls.get_json("/api/executions"))["executions"]
        assert "digest" not in plain
        found = await calls.get_json("/api/executions", digest=1)
        assert found["executions"][0]["digest"] == {
            "steps": 2,
            "waves": [{"completed": 1}, {"completed": 1}],
            "models": [],
            "usage": {
                "calls": 0,
                "input_tokens": 0,
                "output_tokens": 0,
                "cost_usd": None,
                "estimated": False,
            },
            "parent": None,
            "inputs": "",
            "waitingForInput": False,
        }


async def test_one_node_is_told_as_the_document_has_it() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls)})
        path = f"/api/executions/{execution_id}"
        document = await calls.get_json(f"{path}/document")
        for node in document["nodes"]:
            assert await calls.get_json(f"{path}/nodes/{node['path']}") == node
        problem = await calls.expect_problem("GET", f"{path}/nodes/a[1]/b", 404)
        assert "a[1]/b" in problem["detail"]


async def test_stored_events_are_given_as_json_without_waiting() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        execution_id = await execute_to_end(calls, {"plan_id": await planned(calls)})
        path = f"/api/executions/{execution_id}/events"
        found = await calls.get_json(path, format="json", after=2)
        assert [each["seq"] for each in found["events"]] == list(range(3, found["last_seq"] + 1))
        assert found["events"][-1]["type"] == "execution.completed"
        rest = await calls.get_json(path, format="json", after=found["last_seq"])
        assert (rest["events"], rest["last_seq"]) == ([], found["last_seq"])
