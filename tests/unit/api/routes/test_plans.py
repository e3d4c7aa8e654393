from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import PlanInvalid
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Node
from planwave.ids import new_id
from planwave.settings import Limits
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import FixedPlanner, dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])
AGENT_OFF = Node("n", "agent", "n", "do it", data={"provider": "off"})
GRAPH = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}


class NewPlans:
    """A planner that makes a new plan each time."""

    async def create_plan(self, prompt: str, *_: Any, **__: Any) -> Any:
        created = await FixedPlanner(make_plan(CHAIN, new_id())).create_plan(prompt)
        return created


async def plans(calls: InProcessClient, *goals: str) -> list[str]:
    """Plan goals one after the other; give the plans' ids."""
    return [(await calls.post_json("/api/plan", {"prompt": g}, 201))["plan_id"] for g in goals]


async def test_created_plan_is_found_at_its_location() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        answer = await calls.post("/api/plan", json={"prompt": "do it"})
        assert answer.status_code == 201
        created = answer.json()
        assert (created["user_prompt"], created["status"]) == ("do it", "draft")
        assert [node["id"] for node in created["nodes"]] == ["a", "b"]
        shown = await calls.get(answer.headers["location"])
        assert shown.json() == created
        assert answer.headers["etag"] == shown.headers["etag"] == f'"{created["hash"]}"'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"prompt": "  "}, "empty-goal"),
        ({"prompt": "x", "provider": "nobody"}, "unknown-provider"),
        ({"prompt": "x", "provider": "off"}, "unavailable-provider"),
        ({"prompt": 5}, "invalid-body"),
        ({"prompt": "x", "goal": "y"}, "invalid-body"),
        ({}, "invalid-body"),
    ],
)
async def test_invalid_goal_is_rejected(body: Any, code: str) -> None:
    from planwave.planner.planner import Planner
    from tests.support.llm.fake_providers import FakeProviders, library_registry
    from tests.support.llm.planner_replies import DIAMOND_REPLY
    from tests.support.llm.watched_model import WatchedModel

    planner = Planner(WatchedModel([DIAMOND_REPLY]), FakeProviders(), library_registry())
    async with in_process_client(dependencies(planner=planner)) as calls:
        problem = await calls.expect_problem("POST", "/api/plan", 422, body)
        assert problem["code"] == code
        assert (await calls.get_json("/api/plans"))["plans"] == []


async def test_unrepairable_plan_returns_issues_and_attempts() -> None:
    class Wrong:
        async def create_plan(self, *_: Any, **__: Any) -> Any:
            found = [Diagnostic("flow-cycle", "error", "a, b, a", "/edges/1", path=("a", "b", "a"))]
            raise PlanInvalid(found, [{"reply": "{}", "finish_reason": "stop", "diagnostics": []}])

    async with in_process_client(dependencies(planner=Wrong())) as calls:
        problem = await calls.expect_problem("POST", "/api/plan", 422, {"prompt": "x"})
        assert problem["code"] == "plan-invalid"
        assert problem["hint"] == "rephrase the goal, or choose a stronger model"
        assert [issue["code"] for issue in problem["issues"]] == ["flow-cycle"]
        assert problem["attempts"][0]["reply"] == "{}"


async def test_plans_are_listed_newest_first_with_status() -> None:
    async with in_process_client(dependencies(planner=NewPlans())) as calls:
        first, second, third = await plans(calls, "one", "two", "three")
        record = await calls.service.executions.execute(second)
        await calls.service.executions.wait(record.execution_id)
        page = await calls.get_json("/api/plans", limit=2)
        assert [(p["plan_id"], p["status"], p["node_count"]) for p in page["plans"]] == [
            (third, "draft", 2),
            (second, "completed", 2),
        ]
        last = await calls.get_json("/api/plans", limit=2, cursor=page["next_cursor"])
        assert [p["plan_id"] for p in last["plans"]] == [first]
        assert last["next_cursor"] is None


async def test_list_continues_after_listed_items_were_deleted() -> None:
    async with in_process_client(dependencies(planner=NewPlans())) as calls:
        expected, seen, cursor = await plans(calls, "one", "two", "three"), [], {}
        while cursor is not None:
            page = await calls.get_json("/api/plans", limit=1, **cursor)
            for plan in page["plans"]:
                seen.append(plan["plan_id"])
                assert (await calls.delete(f"/api/plans/{plan['plan_id']}")).status_code == 204
            cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
        assert seen == expected[::-1]


async def test_plans_are_filtered_by_text() -> None:
    async with in_process_client(dependencies(planner=NewPlans())) as calls:
        _, wanted = await plans(calls, "a house", "a Boat")
        found = await calls.get_json("/api/plans", q="boat")
        assert [p["plan_id"] for p in found["plans"]] == [wanted]


async def test_plans_with_a_name_and_without_are_one_list() -> None:
    async with in_process_client(dependencies(planner=NewPlans())) as calls:
        unnamed, named = await plans(calls, "a house", "a boat")
        about = {"plan_id": named, "name": "Boat", "description": "Floats"}
        await calls.post_json("/api/flows", about, 201)
        tool = await calls.put(f"/api/flows/{named}/publication", json={"tool": True})
        assert tool.status_code == 200

        async def listed(**query: str) -> list[str]:
            return [p["plan_id"] for p in (await calls.get_json("/api/plans", **query))["plans"]]

        assert await listed() == [named, unnamed]
        assert await listed(named="true") == await listed(name="BOAT") == await listed(q="floats")
        assert await listed(named="true") == [named]
        assert await listed(named="false") == [unnamed]
        assert await listed(named="false", q="floats") == []
        flow, plan = (await calls.get_json("/api/plans"))["plans"]
        shown = ("name", "description", "published", "error_count")
        assert [flow[each] for each in shown] == ["Boat", "Floats", ["tool"], 0]
        assert [plan[each] for each in shown] == [None, "", [], 0]


async def test_list_shows_the_newest_revision_with_its_errors_and_editor() -> None:
    wrong = {"op": "add_node", "node": {"id": "new", "type": "gone"}}
    async with in_process_client(dependencies(planner=NewPlans())) as calls:
        (plan_id,) = await plans(calls, "a house")
        body = {"operations": [wrong]}
        path = f"/api/plans/{plan_id}"
        edited = await calls.patch(path, json=body, headers={"If-Match": "*"})
        assert edited.status_code == 200
        (shown,) = (await calls.get_json("/api/plans"))["plans"]
        newest = (await calls.get_json(f"{path}/revisions"))["revisions"][0]
        same = ("revision", "hash", "title", "node_count", "error_count")
        assert {each: shown[each] for each in same} == {each: newest[each] for each in same}
        assert (shown["updated_at"], shown["updated_by"]) == (
            newest["created_at"],
            newest["created_by"],
        )
        assert (shown["revision"], shown["live_revision"], shown["error_count"]) == (2, 1, 1)


async def test_deleted_plan_is_gone_and_its_executions_stay() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        (plan_id,) = await plans(calls, "do it")
        record = await calls.service.executions.execute(plan_id)
        await calls.service.executions.wait(record.execution_id)
        answer = await calls.delete(f"/api/plans/{plan_id}")
        assert (answer.status_code, answer.content) == (204, b"")
        await calls.expect_problem("GET", f"/api/plans/{plan_id}", 404)
        assert (await calls.get_json(f"/api/executions/{record.execution_id}"))[
            "plan_id"
        ] == plan_id


async def test_stored_plan_is_validated_against_current_providers() -> None:
    async with in_process_client(dependencies(make_graph(AGENT_OFF))) as calls:
        (plan_id,) = await plans(calls, "do it")
        report = await calls.post_json(f"/api/plans/{plan_id}/validate")
        assert report["valid"] is False
        assert [d["code"] for d in report["diagnostics"]] == ["unavailable-provider"]
        assert report["forecast"]["calls"] == 1


async def test_forecast_returns_waves_nodes_and_calls() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        (plan_id,) = await plans(calls, "do it")
        found = await calls.get_json(f"/api/plans/{plan_id}/forecast")
        assert (found["waves"], found["nodes"], found["calls"]) == (2, 2, 0)
        assert found["critical_path"] == ["a", "b"]


async def test_check_reports_all_errors_and_stores_nothing() -> None:
    wrong = {
        "nodes": [{"id": "a", "type": "text"}, {"id": "b", "type": "nonsense"}],
        "edges": [
            {"source": "a", "target": "b", "data": {"channel": "flow"}},
            {"source": "b", "target": "a", "data": {"channel": "flow"}},
        ],
    }
    async with in_process_client(dependencies()) as calls:
        report = await calls.post_json("/api/check", {"graph": wrong})
        assert report["valid"] is False
        assert {d["code"] for d in report["diagnostics"]} >= {"flow-cycle", "unknown-node-type"}
        assert report["forecast"] is None
        assert (await calls.get_json("/api/plans"))["plans"] == []


async def test_valid_graph_and_plan_pass_check() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        report = await calls.post_json("/api/check", {"graph": GRAPH})
        forecast = report.pop("forecast")
        assert report == {
            "valid": True,
            "diagnostics": [],
            "graph": {**GRAPH, "nodes": [{**node, "name": node["id"]} for node in GRAPH["nodes"]]},
            "ports": {},
        }
        assert (forecast["waves"], forecast["critical_path"]) == (1, ["a"])
        plan = await calls.post_json("/api/plan", {"prompt": "do it"}, 201)
        assert (await calls.post_json("/api/check", {"graph": plan}))["valid"] is True


async def test_check_gives_the_ports_of_configured_nodes() -> None:
    approval = {"prompt": "Send it?", "actions": ["send", "drop"]}
    graph = {
        "nodes": [
            {"id": "a", "type": "text", "data": {"text": "x"}},
            {"id": "ask", "type": "approval", "data": approval},
        ],
        "edges": [{"source": "a", "target": "ask", "data": {"channel": "flow"}}],
    }
    async with in_process_client(dependencies()) as calls:
        report = await calls.post_json("/api/check", {"graph": graph})
        assert list(report["ports"]) == ["ask"]
        outputs = report["ports"]["ask"]["outputs"]
        assert [(port["name"], port["label"]) for port in outputs] == [
            ("send", "send"),
            ("drop", "drop"),
        ]
        unreadable = {"nodes": [{"id": 1}], "edges": []}
        assert (await calls.post_json("/api/check", {"graph": unreadable}))["ports"] == {}


async def test_graph_deeper_than_the_limit_is_reported() -> None:
    def graph(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels - 4):  # document, nodes, node, data
            value = [value]
        return {"nodes": [{"id": "a", "type": "text", "data": {"text": value}}], "edges": []}

    async with in_process_client(dependencies(limits=Limits(json_depth=8))) as calls:
        fine = await calls.post_json("/api/check", {"graph": graph(8)})
        assert "limit-exceeded" not in [d["code"] for d in fine["diagnostics"]]
        report = await calls.post_json("/api/check", {"graph": graph(9)})
        assert [d["code"] for d in report["diagnostics"]] == ["limit-exceeded"]


async def test_draining_service_rejects_planning() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        await calls.service.drain(0)
        for path, body in (
            ("/api/plan", {"prompt": "x"}),
            ("/api/plan?stream=1", {"prompt": "x"}),
            ("/api/run", {"prompt": "x"}),
            ("/api/execute", {"graph": GRAPH}),
        ):
            problem = await calls.expect_problem("POST", path, 503, body)
            assert problem["code"] == "server-draining"
        assert (await calls.get_json("/api/plans"))["plans"] == []
