"""Planning during a run: the model call, the run of the plan, and the stored plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import planwave
from planwave.errors import ProviderError
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, Graph, Node
from planwave.graph.plan import Plan
from planwave.graph.protocols import WrittenBy
from planwave.graph.reading.documents import read_graph
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.planner import PlannerNode
from planwave.nodes.registry import Registry
from planwave.planner.planner import Planner
from planwave.planner.progress import PlanProgress
from planwave.providers.protocols import CallScope, CallSettings
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import planner_reply, reply_edge
from tests.support.llm.planner_replies import reply_node as step
from tests.support.llm.watched_model import WatchedModel, in_pieces
from tests.support.nodes.nested_graphs import (
    errors_of,
    graph_document,
    node_document,
    registry_with,
    run_to_end,
)
from tests.support.nodes.node_context import OneStepPlanner, context_for, services_with
from tests.support.virtual_loop import virtual_time


@virtual_time
async def test_a_goal_is_planned_and_the_plan_is_run() -> None:
    planner = OneStepPlanner()
    services, _ = services_with(lambda _: [], planner=planner)
    data = {"goal": "find it", "allowedNodeTypes": ["text"], "maxNodes": 3, "model": "n"}
    data |= {"temperature": 0.5, "maxTokens": 900, "reasoningEffort": "low"}
    result = await run_to_end(
        graph_document(node_document("n", "planner", **data)), services=services
    )
    outputs = {handle: value.value for handle, value in result.outputs["n"].items()}
    assert outputs["output"] == "done: find it"
    assert (outputs["plan"]["goal"], outputs["plan"]["title"]) == ("find it", "Say it")
    assert [each["id"] for each in outputs["plan"]["nodes"]] == ["say"]
    (request,) = planner.requests
    scope, _ = request.pop("scope"), request.pop("on_progress")
    assert isinstance(scope, CallScope)
    assert (scope.execution_id, scope.path, scope.attempt) == (result.execution_id, "n", 1)
    assert request == {
        "prompt": "find it", "provider": "openai", "model": "n", "node_types": ["text"],
        "max_nodes": 3, "settings": CallSettings(0.5, 900, "low"),
    }  # fmt: skip


class AskingPlanner(OneStepPlanner):
    """Plans under an answer that it assumes."""

    async def create_plan(self, *request: Any, **more: Any) -> Plan:
        plan = await super().create_plan(*request, **more)
        return replace(plan, questions=[ASSUMED])


ASSUMED = {"question": "Where?", "answer": "here", "assumed": True, "options": []}


@virtual_time
async def test_nobody_is_asked_during_a_run_and_the_plan_says_what_is_assumed() -> None:
    services, _ = services_with(lambda _: [], planner=AskingPlanner())
    document = graph_document(node_document("n", "planner", goal="find it"))
    result = await run_to_end(document, services=services)
    outputs = result.outputs["n"]
    assert outputs["output"].value == "done: find it"
    assert outputs["plan"].value["questions"] == [ASSUMED]


class PlannerOfPlanners(OneStepPlanner):
    """Plans a node that plans, and then one step."""

    async def create_plan(
        self, prompt: str, provider: str | None = None, model: str | None = None, **rules: Any
    ) -> Plan:
        plan = await super().create_plan(prompt, provider, model, **rules)
        if len(self.requests) > 1:
            return plan
        graph, _ = read_graph(graph_document(node_document("again", "planner", goal="inside")))
        return replace(plan, graph=graph)


@virtual_time
async def test_a_plan_inside_a_plan_may_not_have_more_types() -> None:
    planner = PlannerOfPlanners()
    services, _ = services_with(lambda _: [], planner=planner)
    data = {"goal": "g", "allowedNodeTypes": ["planner", "text"]}
    await run_to_end(graph_document(node_document("n", "planner", **data)), services=services)
    types = [each["node_types"] for each in planner.requests]
    assert types == [["planner", "text"]] * 2


async def test_the_key_of_a_result_has_the_types_that_the_plan_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services, _ = services_with(lambda _: [])
    context = context_for(Node("n", "planner", "n", data={"goal": "g"}), services=services)
    keys = []
    for around in (None, WrittenBy(), WrittenBy(node_types=("text",))):
        monkeypatch.setattr(type(context.runtime), "written_by", around)
        key = await PlannerNode().result_depends_on({"goal": "g"}, Inputs(()), context)
        keys.append(key)
    assert keys[0] == keys[1]
    assert keys[1] != keys[2]


@virtual_time
async def test_a_linked_model_plans_with_its_settings() -> None:
    planner = OneStepPlanner()
    services, _ = services_with(lambda _: [], planner=planner)
    graph = graph_document(
        node_document("m", "model", model="n", temperature=0),
        node_document("n", "planner", goal="g"),
    )
    graph["edges"] = [
        {"source": "m", "target": "n", "targetHandle": "model", "data": {"channel": "link"}}
    ]
    result = await run_to_end(graph, services=services)
    assert result.outputs["n"]["output"].value == "done: g"
    (request,) = planner.requests
    assert (request["provider"], request["model"]) == ("openai", "n")
    assert request["settings"] == CallSettings(temperature=0)


PLANS = graph_document(node_document("n", "planner", goal="g"))


def run_planning(planner: Any, *, providers: Any = None) -> planwave.Run:
    """Run a graph of one node that plans the goal ``g`` with this planner."""
    services, _ = services_with(lambda _: [], providers, planner=planner)
    return planwave.run(PLANS, registry=registry_with(), services=services)


class WaitingPlanner:
    """A planner that reports part of a plan, then waits until the test has seen it."""

    def __init__(self) -> None:
        self.seen = asyncio.Event()
        self.was_cancelled = False

    async def create_plan(
        self, *request: Any, on_progress: Callable[[PlanProgress], None], **more: Any
    ) -> Any:
        on_progress(PlanProgress("delta", {"text": "Well. ", "reasoning": True}))
        on_progress(PlanProgress("delta", {"text": '{"title": "T"', "reasoning": False}))
        on_progress(PlanProgress("title", {"title": "T"}))
        try:
            await self.seen.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return await OneStepPlanner().create_plan(*request, **more)


@virtual_time
async def test_parts_of_the_plan_are_emitted_while_it_is_written() -> None:
    planner = WaitingPlanner()
    run = run_planning(planner)
    deltas: list[Any] = []
    emitted: list[Any] = []
    async for event in run:
        if event.type == "node.delta":
            deltas.append((event.data["kind"], event.data["text"]))
        elif event.type == "node.event" and event.data["event_type"] in ("planning", "plan"):
            emitted.append((event.data["event_type"], event.data["data"]))
            planner.seen.set()
    assert run.result().status == "completed"
    assert deltas == [("reasoning", "Well. ")], "the text of a plan is not text of the node"
    assert emitted == [
        ("planning", {"kind": "title", "title": "T"}),
        ("plan", {"title": "Say it", "hash": "h", "nodes": 1}),
    ]


@virtual_time
async def test_a_cancel_stops_the_planning() -> None:
    planner = WaitingPlanner()
    run = run_planning(planner)
    async for event in run:
        if event.type == "node.event":
            run.cancel("enough")
    assert run.result().status == "cancelled"
    assert planner.was_cancelled


@virtual_time
async def test_closing_the_stream_of_the_node_stops_the_planning() -> None:
    planner = WaitingPlanner()
    services, _ = services_with(lambda _: [], planner=planner)
    context = context_for(Node("n", "planner", "n"), services=services)
    events: Any = PlannerNode().execute({"goal": "g"}, Inputs(), context)
    assert (await anext(events)).event_type == "delta"
    await events.aclose()
    assert planner.was_cancelled


@virtual_time
async def test_the_goal_may_be_a_template_or_the_input() -> None:
    graph = graph_document(
        node_document("s", "start", initialInput="the moon"), node_document("a", "planner"),
        node_document("b", "planner", goal="Reach {{ input }}"),
        edges=[("s", "a"), ("s", "b")],
    )  # fmt: skip
    result = await run_to_end(graph)
    assert result.outputs["a"]["output"].value == "done: the moon"
    assert result.outputs["b"]["output"].value == "done: Reach the moon"


@virtual_time
async def test_usage_is_reported_before_the_plan_is_stored() -> None:
    """Otherwise a process that ends in between leaves a plan whose calls were not counted."""
    events = [event async for event in run_planning(OneStepPlanner())]
    (usage,) = [event.data for event in events if event.type == "usage"]
    assert (usage["provider"], usage["model"], usage["input_tokens"]) == ("openai", "m", 3)
    types = [event.type for event in events]
    assert "usage" in types[: types.index("once.stored")]
    assert [e.path for e in events if e.type == "node.completed"] == ["n[plan]/say", "n"]


@virtual_time
async def test_the_goal_of_the_steps_is_the_goal_of_the_node() -> None:
    plan = planner_reply(step("a"), step("b"), edges=[reply_edge("a", "b")])
    models, providers = WatchedModel([plan, "first", "second"]), FakeProviders()
    services, _ = services_with(
        lambda _: [],
        planner=Planner(models, providers, library_registry(providers)),
        goal="the whole",
    )
    services = type(services)(models, providers, "the whole", planner=services.planner)
    graph = graph_document(node_document("n", "planner", goal="the part"))
    result = await run_to_end(graph, services=services, goal="the whole")
    assert result.error is None
    assert result.outputs["n"]["output"].value == "second"
    _, first, second = models.requests
    assert "the part" in first.prompt
    assert "the part" in second.prompt
    assert "the whole" not in first.prompt
    assert [scope and scope.path for scope in models.scopes] == ["n", "n[plan]/a", "n[plan]/b"]


async def fails_to_plan(replies: list[Any]) -> tuple[str, list[int]]:
    """Plan with these replies; return the code of the failure and the input tokens reported."""
    models, providers = WatchedModel(replies), FakeProviders()
    planner = Planner(models, providers, library_registry(providers))
    run = run_planning(planner, providers=providers)
    events = [event async for event in run]
    error = run.result().error
    assert error is not None
    return error["code"], [e.data["input_tokens"] for e in events if e.type == "usage"]


@virtual_time
async def test_a_goal_that_cannot_be_planned_fails_the_node_with_the_reason() -> None:
    code, paid = await fails_to_plan([in_pieces("no plan") for _ in range(3)])
    assert (code, paid) == ("plan-invalid", [11] * 3), "all are paid"


@virtual_time
async def test_calls_before_a_failed_call_are_reported_too() -> None:
    broken = ProviderError("out of order", provider="openai")
    replies = [in_pieces("no plan"), in_pieces("none either"), broken]
    code, paid = await fails_to_plan(replies)
    assert (code, paid) == ("provider-error", [11] * 2)


@virtual_time
async def test_a_run_without_a_planner_fails_the_node() -> None:
    services, _ = services_with(lambda _: [], planner=None)
    result = await run_to_end(PLANS, services=services)
    assert result.error is not None
    assert result.error["code"] == "no-planner"


@pytest.mark.parametrize(
    ("data", "findings"),
    [
        ({}, [("missing-required-input", "/nodes/0/data/goal")]),
        ({"goal": " "}, [("missing-required-input", "/nodes/0/data/goal")]),
        ({"goal": "g", "maxNodes": 0}, [("invalid-data", "/nodes/0/data/maxNodes")]),
        ({"goal": "g", "allowedNodeTypes": "text"}, [("invalid-data", "/nodes/0/data/allowedNodeTypes")]),
        ({"goal": "g"}, []),
    ],
)  # fmt: skip
def test_invalid_data_are_found(data: dict[str, Any], findings: list[tuple[str, str]]) -> None:
    assert errors_of(graph_document(node_document("n", "planner", **data))) == findings


def test_a_linked_model_with_a_fallback_is_an_error() -> None:
    node = Node("n", "planner", "N", data={"goal": "g"})
    link = make_edge("m", "n", channel=LINK, target_handle="model")
    for fallback, codes in [([{"model": "x"}], ["type-mismatch"]), ([], [])]:
        model = Node("m", "model", "M", data={"fallback": fallback})
        found = Registry(LIBRARY).check(node, Graph((model, node), (link,)))
        assert [each.code for each in found] == codes
