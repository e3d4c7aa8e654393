"""Forks and retries of executions whose nodes run graphs: what ran inside them is not lost."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, NodeError
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult, NodeEvent
from planwave.graph.reading.documents import read_graph
from planwave.nodes.services import NodeServices
from planwave.service.flows.flow_service import FlowResolver
from planwave.service.queries.explain import explain
from planwave.service.service import Service
from tests.support.graph.builders import make_graph
from tests.support.nodes.node_context import services_with
from tests.unit.service.executions.test_commands import executed, opened, outputs_of
from tests.unit.service.executions.test_fork_runs import reused


class Pays:
    """A node type that gives what came and what it is to say, and uses tokens for it.

    Attributes:
        runs: How often it ran, by path.
        broken: Paths where it fails, once ``after`` is set.
        held: Paths where it comes to no end; ``came`` is set by then.
    """

    node_type = "pays"
    template_fields = None

    def __init__(self, *broken: str) -> None:
        self.runs: Counter[str] = Counter()
        self.broken, self.held = set(broken), set[str]()
        self.came, self.after = asyncio.Event(), asyncio.Event()
        self.after.set()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.runs[context.path] += 1
        if context.path in self.held:
            self.came.set()
            await asyncio.Event().wait()
        if context.path in self.broken:
            await self.after.wait()
            raise NodeError("out of order")
        texts = [str(arrival.value.value) for arrival in inputs.arrivals]
        output = "+".join([*texts, str(data.get("say", context.node_id))])[data.get("cut", 0) :]
        used = {"provider": "p", "model": "m", "input_tokens": 10, "output_tokens": 1}
        event = NodeEvent(context.node_id, "pays", "usage", context.run_id, used)
        return ExecutionResult({"output": DataValue("text", output)}, [event])

    def paid(self) -> set[str]:
        """Give the paths it ran at since it was repaired or this was asked last; each once."""
        assert set(self.runs.values()) <= {1}, f"paid twice: {self.runs}"
        paid = set(self.runs)
        self.runs.clear()
        return paid

    def repair(self) -> None:
        """Let all go well from now on, and count anew."""
        self.broken.clear()
        self.held.clear()
        self.came.clear()
        self.runs.clear()


class Plans:
    """A node type that keeps a value, and then runs a graph that says it."""

    node_type = "plans"

    def __init__(self) -> None:
        self.made = 0

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        async def make() -> str:
            self.made += 1
            return f"plan {self.made}"

        plan = await context.runtime.once("plan", make)
        graph, _ = read_graph(body(step("n", say=plan)))
        await context.runtime.run_graph("k", graph, {})
        return ExecutionResult({"output": DataValue("text", plan)})


def step(node_id: str, kind: str = "pays", **data: Any) -> dict[str, Any]:
    return {"id": node_id, "name": node_id.upper(), "type": kind, "data": data}


def body(*nodes: Mapping[str, Any], edges: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    flow = {"data": {"channel": "flow"}}
    return {"nodes": list(nodes), "edges": [{"source": s, "target": t, **flow} for s, t in edges]}


TWO = body(step("a", say="{{ item }}"), step("b"), edges=[("a", "b")])
FIVE = ["v", "w", "x", "y", "z"]
SAID = [f"{item}+b" for item in FIVE]
ALL = {f"loop[{number}]/{node_id}" for number in range(5) for node_id in "ab"}


def loop(inside: Mapping[str, Any] = TWO, **data: Any) -> Graph:
    return make_graph(
        Node("loop", "loop", "L", data={"items": FIVE, "body": inside, **data}),
        Node("last", "text", "Last", data={"text": "{{ input }}"}),
        edges=[("loop", "last")],
    )


async def failed(service: Service) -> str:
    """Give an execution that has failed."""
    own = await executed(service)
    assert (await service.executions.wait(own)).status == "failed"
    return own


async def came_to(service: Service, own: str, node_id: str = "loop") -> Any:
    """Give what a node of an execution that completes came to."""
    assert (await service.executions.wait(own)).status == "completed"
    return (await outputs_of(service, own))[node_id]["output"]


async def retried(service: Service, own: str) -> str:
    return (await service.executions.retry(own)).execution_id


# -- what is taken over


async def test_loop_retry_pays_only_for_missing_calls(tmp_path: Path) -> None:
    work = Pays("loop[3]/b")
    async with opened(tmp_path, loop(parallel=1), work) as service:
        first = await failed(service)
        work.repair()
        own = await retried(service, first)
        assert await came_to(service, own) == SAID
        later = {"loop[4]/a", "loop[4]/b"}
        assert work.paid() == {"loop[3]/b"} | later
        assert await reused(service, own) == ALL - {"loop[3]/b"} - later
        assert (await service.executions.state(own)).usage.calls == 3, (
            "what was taken over is not charged"
        )


@pytest.mark.parametrize("on_item_error", ["skip", "null"])
async def test_retry_runs_items_again_that_a_loop_went_on_without(
    tmp_path: Path, on_item_error: str
) -> None:
    work = Pays("loop[1]/b", "loop[3]/b")
    async with opened(tmp_path, loop(onItemError=on_item_error), work) as service:
        own = await executed(service)
        assert await came_to(service, own) != SAID
        work.repair()
        work.broken = {"loop[3]/b"}
        own = await retried(service, own)
        assert len([said for said in await came_to(service, own) if said]) == 4
        assert work.paid() == {"loop[1]/b", "loop[3]/b"}
        work.repair()
        own = await retried(service, own)
        assert await came_to(service, own) == SAID
        assert work.paid() == {"loop[3]/b"}
        assert await came_to(service, own, "last") == str(SAID).replace("'", '"').replace(" ", "")
        with pytest.raises(Conflict):
            await service.executions.retry(own)


async def test_retry_runs_items_of_loops_inside_loops_again(tmp_path: Path) -> None:
    inner = step("each", "loop", items=[1, 2], body=body(step("a")), onItemError="skip")
    work = Pays("loop[2]/each[1]/a")
    async with opened(tmp_path, loop(body(inner)), work) as service:
        own = await executed(service)
        assert (await came_to(service, own))[2] == ["a"]
        work.repair()
        own = await retried(service, own)
        assert await came_to(service, own) == [["a", "a"]] * 5
        assert work.paid() == {"loop[2]/each[1]/a"}


@pytest.mark.parametrize("on_item_error", ["skip", "null"])
async def test_retry_of_a_fork_that_reused_a_loop_runs_its_failed_items_again(
    tmp_path: Path, on_item_error: str
) -> None:
    inner = step("each", "loop", items=[1], body=body(step("a")), onItemError=on_item_error)
    work = Pays("loop[1]/b", "loop[2]/each[0]/a")
    graph = loop(body(step("b"), inner), onItemError=on_item_error)
    async with opened(tmp_path, graph, work) as service:
        own = await executed(service)
        await came_to(service, own)
        for change in ({"text": "1 {{ input }}"}, {"text": "2 {{ input }}"}):
            fork = await service.executions.fork(own, changes={"last": {"data": change}})
            own = fork.execution_id
            await came_to(service, own)
            assert await reused(service, own) == {"loop"}
        work.repair()
        own = await retried(service, own)
        await came_to(service, own)
        assert work.paid() == {"loop[1]/b", "loop[2]/each[0]/a"}
        with pytest.raises(Conflict):
            await service.executions.retry(own)


async def test_results_of_cancelled_items_are_reused(
    tmp_path: Path,
) -> None:
    work = Pays("loop[3]/b")
    work.held, work.after = {"loop[4]/b"}, work.came
    async with opened(tmp_path, loop(), work) as service:
        first = await failed(service)
        work.repair()
        own = await retried(service, first)
        assert await came_to(service, own) == SAID
        assert {"loop[3]/b", "loop[4]/b"} <= work.paid()
        assert "loop[4]/a" in await reused(service, own)


async def test_reused_nodes_are_marked(tmp_path: Path) -> None:
    work = Pays("loop[3]/b")
    async with opened(tmp_path, loop(parallel=1), work) as service:
        first = await failed(service)
        work.repair()
        own = await retried(service, first)
        await came_to(service, own)
        shown = explain(await service.executions.events(own), "loop[0]/b")
        assert (shown["code"], shown["status"]) == ("reused", "completed")
        assert first in shown["reason"]
        document = json.loads((tmp_path / f"{own}.json").read_text("utf-8"))
        output = f"Completed node loop[0]/b (reused from execution {first})"
        assert output in document["execution_logs"]
        (node,) = [node for node in document["nodes"] if node["path"] == "loop[0]/b"]
        assert (node["name"], node["status"], node["result"]) == ("B", "completed", "v+b")


async def test_retry_of_retry_reuses_reused_results(tmp_path: Path) -> None:
    work = Pays("loop[1]/b")
    async with opened(tmp_path, loop(parallel=1), work) as service:
        own = await failed(service)
        work.repair()
        work.broken = {"loop[3]/a"}
        own = await retried(service, own)
        assert (await service.executions.wait(own)).status == "failed"
        work.repair()
        assert await came_to(service, await retried(service, own)) == SAID
        assert work.paid() == {"loop[3]/a", "loop[3]/b", "loop[4]/a", "loop[4]/b"}


async def test_interrupted_retry_still_reuses_results(tmp_path: Path) -> None:
    work = Pays("loop[3]/b")
    async with opened(tmp_path, loop(parallel=1), work) as service:
        first = await failed(service)
        work.repair()
        work.held = {"loop[3]/b"}
        own = await retried(service, first)
        await work.came.wait()
        assert work.paid() == {"loop[3]/b"}
    work.repair()
    async with opened(tmp_path, loop(parallel=1), work) as service:
        await service.recover()
        async for _ in service.executions.watch(own):
            pass
        assert await came_to(service, own) == SAID
        assert work.paid() == {"loop[3]/b", "loop[4]/a", "loop[4]/b"}


DEEP = body(
    step(
        "inner",
        "loop",
        items=["{{ item }}1", "{{ item }}2"],
        parallel=1,
        body=body(step("p", say="{{ item }}"), step("q"), edges=[("p", "q")]),
    )
)


async def test_results_two_levels_deep_are_reused(tmp_path: Path) -> None:
    work = Pays("loop[1]/inner[0]/q")
    async with opened(tmp_path, loop(DEEP, items=["x", "y"], parallel=1), work) as service:
        first = await failed(service)
        work.repair()
        own = await retried(service, first)
        assert await came_to(service, own) == [["x1+q", "x2+q"], ["y1+q", "y2+q"]]
        assert await reused(service, own) == {"loop[0]/inner", "loop[1]/inner[0]/p"}
        assert work.paid() == {"loop[1]/inner[0]/q", "loop[1]/inner[1]/p", "loop[1]/inner[1]/q"}


async def test_finished_rounds_of_a_while_loop_are_reused(tmp_path: Path) -> None:
    rounds = body(step("n", say="{{ value }}", cut=1))
    data = {"initial": "abcd", "condition": "value | length | bool", "body": rounds}
    work = Pays("loop[2]/n")
    async with opened(tmp_path, make_graph(Node("loop", "while", "W", data=data)), work) as service:
        first = await failed(service)
        work.repair()
        assert await came_to(service, await retried(service, first)) == ""
        assert work.paid() == {"loop[2]/n", "loop[3]/n"}


async def test_once_values_are_reused_by_retries_only(
    tmp_path: Path,
) -> None:
    plans, work = Plans(), Pays("p[k]/n")
    async with opened(tmp_path, make_graph(Node("p", "plans", "P")), plans, work) as service:
        first = await failed(service)
        work.repair()
        again = await retried(service, first)
        assert await came_to(service, again, "p") == "plan 1"
        assert (plans.made, work.paid()) == (1, {"p[k]/n"})
        anew = await service.executions.fork(first, rerun=["p"])
        assert await came_to(service, anew.execution_id, "p") == "plan 2"
        other = await service.executions.fork(first, changes={"p": {"data": {"more": 1}}})
        assert await came_to(service, other.execution_id, "p") == "plan 3"


async def test_nested_answers_are_reused_where_nodes_need_not_run(tmp_path: Path) -> None:
    asks = body(step("q", "approval", prompt="Send {{ item }}?"), step("b"), edges=[("q", "b")])
    asks["edges"][0]["sourceHandle"] = "approve"
    graph = loop(asks, items=["x", "y"], parallel=1)
    work = Pays("loop[1]/b")

    async def answers(service: Service, own: str, *paths: str) -> None:
        for path in paths:
            assert (await service.executions.wait(own)).status == "paused"
            (request,) = await service.executions.requests(own)
            assert request.path == path
            await service.executions.answer(own, request.request_id, {"decision": "approve"})

    async with opened(tmp_path, graph, work) as service:
        first = await executed(service)
        await answers(service, first, "loop[0]/q", "loop[1]/q")
        assert (await service.executions.wait(first)).status == "failed"
        work.repair()
        own = await retried(service, first)
        assert (await service.executions.wait(own)).status == "completed"
        assert work.paid() == {"loop[1]/b"}
        requested = {"q": {**asks["nodes"][0]["data"], "prompt": "Do send {{ item }}?"}}
        changed = {**asks, "nodes": [step("q", "approval", **requested["q"]), asks["nodes"][1]]}
        fork = await service.executions.fork(own, changes={"loop": {"data": {"body": changed}}})
        await answers(service, fork.execution_id, "loop[0]/q", "loop[1]/q")
        assert (await service.executions.wait(fork.execution_id)).status == "completed"


# -- what is not


async def test_rerun_node_runs_its_nested_nodes_again(tmp_path: Path) -> None:
    work = Pays()
    async with opened(tmp_path, loop(), work) as service:
        first = await executed(service)
        await came_to(service, first)
        work.repair()
        fork = await service.executions.fork(first, rerun=["loop"])
        assert await came_to(service, fork.execution_id) == SAID
        assert work.paid() == ALL


async def test_unchanged_loop_items_are_reused(tmp_path: Path) -> None:
    work = Pays()
    async with opened(tmp_path, loop(), work) as service:
        first = await executed(service)
        await came_to(service, first)
        work.repair()
        items = ["v", "W", "x", "y", "z", "more"]
        fork = await service.executions.fork(first, changes={"loop": {"data": {"items": items}}})
        assert await came_to(service, fork.execution_id) == [f"{item}+b" for item in items]
        assert work.paid() == {f"loop[{number}]/{n}" for number in (1, 5) for n in "ab"}


async def test_changed_nested_graph_reruns_only_affected_nodes(
    tmp_path: Path,
) -> None:
    work = Pays("loop[0]/b", "loop[2]/b")
    async with opened(tmp_path, loop(onItemError="null"), work) as service:
        first = await executed(service)
        await came_to(service, first)
        work.repair()
        mended = body(step("a", say="{{ item }}"), step("b", say="B"), edges=[("a", "b")])
        fork = await service.executions.fork(first, changes={"loop": {"data": {"body": mended}}})
        assert await came_to(service, fork.execution_id) == [f"{item}+B" for item in FIVE]
        assert work.paid() == {f"loop[{number}]/b" for number in range(5)}


@pytest.mark.parametrize("names_revision", [False, True])
@pytest.mark.parametrize("is_in_graph", [False, True])
async def test_changed_nested_flow_runs_again(
    tmp_path: Path, is_in_graph: bool, names_revision: bool
) -> None:
    def flow_of(say: str) -> dict[str, Any]:
        return body(step("n", say=say), step("m"), edges=[("n", "m")])

    def node_services(_: str) -> NodeServices:
        return replace(
            services, flows=FlowResolver(service._store, service.catalogue, service.limits)
        )

    outer = body(step("i", "inner", flow={"id": "f"}))
    flow = {"id": "g", "revision": 1} if names_revision else {"id": "g"}
    data = {"graph": body(step("i", "inner", flow=flow))} if is_in_graph else {"flow": flow}
    services, _ = services_with(lambda _: [])
    work, graph = Pays(), make_graph(Node("loop", "inner", "I", data=data))
    async with opened(tmp_path, graph, work, node_services=node_services) as service:
        await service.flows.create("F", graph=flow_of("old"), preassigned_id="f")
        await service.flows.create("G", graph=outer, preassigned_id="g")
        first = await executed(service)
        assert await came_to(service, first) == "old+m"
        assert work.paid()
        same = await service.executions.fork(first)
        assert await came_to(service, same.execution_id) == "old+m"
        assert work.paid() == set(), "what was paid for inside holds"
        await service.flows.update("f", graph=flow_of("new"))
        fork = await service.executions.fork(first)
        assert await came_to(service, fork.execution_id) == "new+m"


async def test_preset_of_a_node_does_not_apply_to_nested_node_with_its_id(tmp_path: Path) -> None:
    work = Pays()
    graph = make_graph(
        Node("a", "pays", "A"), Node("loop", "loop", "L", data={"items": ["x"], "body": TWO})
    )
    async with opened(tmp_path, graph, work) as service:
        first = await executed(service)
        await came_to(service, first)
        changes: Any = {"a": {"outputs": {"output": "set"}}, "loop": {"data": {"items": ["y"]}}}
        fork = await service.executions.fork(first, rerun=["loop"], changes=changes)
        assert await came_to(service, fork.execution_id) == ["y+b"]


@pytest.mark.parametrize("is_gone", [False, True])
async def test_deleted_parent_leaves_nothing_to_reuse_in_nested_nodes(
    tmp_path: Path, is_gone: bool
) -> None:
    work = Pays("loop[3]/b")
    async with opened(tmp_path, loop(parallel=1), work) as service:
        first = await failed(service)
        work.repair()
        own = (await service.executions.retry(first, start=False)).execution_id
        if is_gone:
            await service.maintenance.delete_execution(first)
        await service.executions.start(own)
        assert await came_to(service, own) == SAID
        lacks = {"loop[3]/b", "loop[4]/a", "loop[4]/b"}
        assert work.paid() == (ALL if is_gone else lacks)
