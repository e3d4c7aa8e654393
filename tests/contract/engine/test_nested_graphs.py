"""Library nodes with nested graphs over a store: waits, interruptions and restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from planwave.events import TERMINAL
from planwave.graph.model import DataValue, Graph
from planwave.graph.plan import Plan
from planwave.graph.protocols import ExecutionResult
from planwave.graph.reading.documents import read_graph
from planwave.nodes.authoring.node_type import NodeData
from planwave.nodes.services import NodeServices
from planwave.planner.planner import Planner
from planwave.providers.protocols import CallScope
from planwave.service.flows.flow_service import FlowResolver
from planwave.service.service import Service
from tests.support.graph.builders import make_plan
from tests.support.llm.client_harness import MODELS, model_client_harness
from tests.support.llm.fake_llm_server import TextReply
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.notebook import Notebook
from tests.support.llm.planner_replies import planner_reply
from tests.support.llm.planner_replies import reply_node as step
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import services_with
from tests.support.service.dependencies import dependencies
from tests.support.storage.either_database import Place


class Notes:
    """Returns the value of its data, and counts its runs over all services."""

    node_type = "notes"
    template_fields = None

    class Data(NodeData):
        """Any value."""

        value: Any = None

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.runs[context.path] += 1
        return ExecutionResult({"output": DataValue("any", data.get("value"))})


class PlansOnce:
    """Plans any goal as one graph; a second time is one too many."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.asked = graph, 0

    async def create_plan(self, prompt: str, *who: Any, **rules: Any) -> Plan:
        self.asked += 1
        made = make_plan(self.graph)
        return Plan(made.plan_id, prompt, "Planned", made.graph, made.hash, made.created_at)


@asynccontextmanager
async def opened(
    place: Place, graph: dict[str, Any], *types: Any, **services: Any
) -> AsyncGenerator[Service]:
    """Open a service over what is stored in a place; leaving it cuts off what runs."""
    store = place.open()
    found, _ = services_with(lambda _: ["reply"], **services)

    def node_services(goal: str) -> NodeServices:
        return replace(found, flows=FlowResolver(store, parts.catalogue, parts.limits))

    parts = dependencies(
        read_graph(graph)[0], directory=place.documents, store=store, types=types,
        node_services=node_services,
    )  # fmt: skip
    async with Service(parts) as service:
        try:
            yield service
        finally:
            await service.drain(0)


async def paused(service: Service) -> str:
    plan = await service.plans.create("do it")
    execution_id = (await service.executions.execute(plan.plan_id)).execution_id
    assert (await service.executions.wait(execution_id)).status == "paused"
    assert service.load.running == 0
    return execution_id


async def decide(service: Service, execution_id: str, value: str, decision: str) -> None:
    """Answer the open request about what begins so."""
    requests = await service.executions.requests(execution_id)
    (asked,) = [r for r in requests if str(r.request["value"]).startswith(value)]
    await service.executions.answer(execution_id, asked.request_id, {"decision": decision})


async def rested(service: Service, execution_id: str, *paths: str) -> None:
    """Wait until all these nodes have waited for an answer, and the execution rests after that."""
    missing = set(paths)
    async for event in service.executions.watch(execution_id):
        if event.type == "node.waiting":
            missing.discard(event.path or "")
        elif event.type == "execution.paused" and not missing:
            return
    raise AssertionError("it ended")


async def ended(service: Service, execution_id: str) -> str:
    """Wait for the end of an execution."""
    async for event in service.executions.watch(execution_id):
        if event.type in TERMINAL:
            return event.type
    raise AssertionError("it never ended")


async def waiting_for(service: Service, execution_id: str) -> list[tuple[str, Any]]:
    requests = await service.executions.requests(execution_id)
    return [(request.path, request.request["value"]) for request in requests]


async def outputs_of(service: Service, execution_id: str, path: str) -> dict[str, Any]:
    outputs = (await service.executions.state(execution_id)).nodes[path].outputs or {}
    return {handle: each["value"] for handle, each in outputs.items()}


ASKED = graph_document(
    node_document("s", "start"), node_document("before", "notes", value="{{ item }}"),
    node_document("ask", "approval", prompt="Keep it?"),
    node_document("kept", "notes", value="{{ input }}!"), node_document("not", "notes", value=None),
    edges=[("s", "before"), ("before", "ask"), ("ask", "kept", "approve"), ("ask", "not", "reject")],
)  # fmt: skip


async def test_a_loop_is_paused_while_its_items_wait_and_continues_after_a_restart(
    place: Place,
) -> None:
    notes = Notes()
    graph = graph_document(
        node_document("each", "loop", items=["a", "b", "c"], parallel=2, body=ASKED),
        node_document("all", "notes", value="{{ input }}"),
        edges=[("each", "all")],
    )
    async with opened(place, graph, notes) as service:
        execution_id = await paused(service)
        state = await service.executions.state(execution_id)
        assert (state.nodes["each"].status, state.current_node_id) == ("waiting", "each[0]/ask")
        assert await waiting_for(service, execution_id) == [
            ("each[0]/ask", "a"), ("each[1]/ask", "b"),
        ]  # fmt: skip
        await decide(service, execution_id, "b", "reject")
        await rested(service, execution_id, "each[0]/ask", "each[2]/ask")
        assert await waiting_for(service, execution_id) == [
            ("each[0]/ask", "a"), ("each[2]/ask", "c"),
        ], "the next item has taken the place of the one that was decided"  # fmt: skip
    async with opened(place, graph, notes) as service:
        await service.recover()
        await decide(service, execution_id, "c", "approve")
    async with opened(place, graph, notes) as service:
        await service.recover()
        await decide(service, execution_id, "a", "approve")
        assert await ended(service, execution_id) == "execution.completed"
        assert await outputs_of(service, execution_id, "all") == {"output": ["a!", None, "c!"]}
    assert set(notes.runs.values()) == {1}, "nothing that was settled ran again"
    assert len(notes.runs) == 7


async def test_a_while_continues_after_a_restart_in_the_round_that_waited(place: Place) -> None:
    notes = Notes()
    body = graph_document(
        node_document("n", "notes", value="{{ value.next }}"), node_document("ask", "approval", prompt="On?"),
        node_document("e", "end"),
        edges=[("n", "ask"), ("ask", "e", "approve")],
    )  # fmt: skip
    value: Any = {"goes": False}
    for name in ("second", "first"):
        value = {"goes": True, "name": name, "next": value}
    graph = graph_document(
        node_document("w", "while", condition="value.goes", initial=value, body=body)
    )
    async with opened(place, graph, notes) as service:
        execution_id = await paused(service)
        ((path, _),) = await waiting_for(service, execution_id)
        assert path == "w[0]/ask"
    async with opened(place, graph, notes) as service:
        await decide(service, execution_id, "{'goes': True, 'name': 'second', 'next'", "approve")
        await rested(service, execution_id, "w[1]/ask")
    async with opened(place, graph, notes) as service:
        await decide(service, execution_id, "{'goes': False}", "approve")
        assert await ended(service, execution_id) == "execution.completed"
        given = await outputs_of(service, execution_id, "w")
    assert given == {"output": {"goes": False}, "iterations": 2}
    assert notes.runs == {"w[0]/n": 1, "w[1]/n": 1}


async def test_a_plan_made_during_a_run_is_made_once_and_used_after_a_restart(
    place: Place,
) -> None:
    asking = graph_document(
        node_document("draft", "notes", value="a draft"), node_document("ask", "approval", prompt="Good?"),
        node_document("done", "notes", value="{{ input }}, done"),
        edges=[("draft", "ask"), ("ask", "done", "approve")],
    )  # fmt: skip
    planner, notes = PlansOnce(read_graph(asking)[0]), Notes()
    graph = graph_document(node_document("p", "planner", goal="write"))
    async with opened(place, graph, notes, planner=planner) as service:
        execution_id = await paused(service)
        assert await waiting_for(service, execution_id) == [("p[plan]/ask", "a draft")]
    planner.graph = read_graph(graph_document(node_document("other", "notes")))[0]
    async with opened(place, graph, notes, planner=planner) as service:
        await decide(service, execution_id, "a draft", "approve")
        assert await ended(service, execution_id) == "execution.completed"
        given = await outputs_of(service, execution_id, "p")
        assert given["output"] == "a draft, done"
        assert [each["id"] for each in given["plan"]["nodes"]] == ["draft", "ask", "done"]
    assert planner.asked == 1
    assert set(notes.runs.values()) == {1}


async def test_a_run_keeps_the_revision_of_a_flow_that_was_current_when_it_started(
    place: Place,
) -> None:
    first, second = (
        graph_document(
            node_document("s", "start"), node_document("ask", "approval", prompt="?"),
            node_document("t", "notes", value=f"{{{{ input }}}} {n}"),
            edges=[("s", "ask"), ("ask", "t", "approve")],
        )
        for n in (1, 2)
    )  # fmt: skip
    notes = Notes()
    graph = graph_document(
        node_document("s", "notes", value="x"),
        node_document("n", "inner", flow={"id": "f"}),
        edges=[("s", "n")],
    )
    async with opened(place, graph, notes) as service:
        await service.flows.create("F", graph=first, preassigned_id="f")
        execution_id = await paused(service)
        await service.flows.update("f", graph=second)
    async with opened(place, graph, notes) as service:
        await decide(service, execution_id, "x", "approve")
        assert await ended(service, execution_id) == "execution.completed"
        assert await outputs_of(service, execution_id, "n") == {"output": "x 1"}


async def test_a_flow_that_runs_itself_fails_at_the_nesting_limit(place: Place) -> None:
    itself = graph_document(node_document("n", "inner", flow={"id": "f"}))
    async with opened(place, itself) as service:
        await service.flows.create("F", graph=itself, preassigned_id="f")
        plan = await service.plans.create("do it")
        execution_id = (await service.executions.execute(plan.plan_id)).execution_id
        assert await ended(service, execution_id) == "execution.failed"
        error = (await service.executions.state(execution_id)).error
    assert error is not None
    assert "limit nested_depth for graphs inside graphs is 5, met 6" in error["message"]


async def test_an_interrupted_planning_gets_the_recorded_replies_of_its_calls() -> None:
    good = planner_reply(step("a"), step("b"))
    async with model_client_harness(
        TextReply("no plan at all"), TextReply(good), recorder=Notebook()
    ) as harness:
        planner = Planner(harness.client, FakeProviders(), library_registry())

        async def planned() -> Plan:
            scope = CallScope("execution", "n", 1)
            return await planner.create_plan("do it", "openai", MODELS["openai"], scope=scope)

        first = await planned()
        again = await planned()
        assert len(harness.llm.requests) == 2, (
            "the faulty reply and its repair, each asked for once"
        )
    assert again.graph == first.graph
    assert [attempt["usage"].get("recorded") for attempt in first.attempts] == [None, None]
    assert [attempt["usage"].get("recorded") for attempt in again.attempts] == [True, True]
