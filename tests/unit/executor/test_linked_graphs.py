"""A linked node that is run as a stage inside the node that it is linked to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.events import fold
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph, Policy, Retry
from tests.support.engine.behaviors import asks, forever
from tests.support.engine.event_histories import created_event
from tests.support.engine.event_invariants import check_events
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.engine.recovered_runs import recovered
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


def runs(node_id: str, *keys: str, **inputs: Any) -> Any:
    """A node that runs a linked node under some keys, one after the other."""

    async def act(_: Inputs, context: Context) -> Any:
        found = [await context.runtime.run_linked(key, node_id, inputs) for key in keys]
        return result_with([{h: v.value for h, v in each.items()} for each in found])

    return act


async def shows(inputs: Inputs, context: Context) -> Any:
    """A node that returns what arrived at it, and what its links bring."""
    tools = await context.runtime.resolve_links(context.node_id, "t")
    arrived = {a.target_handle: [a.source_id, a.value.value] for a in inputs.arrivals}
    return result_with([arrived, tools])


def with_data(graph: Graph, **data: Mapping[str, Any]) -> Graph:
    """The graph with data for some of its nodes."""
    return Graph(
        tuple(n._replace(data=data[n.id]) if n.id in data else n for n in graph.nodes), graph.edges
    )


def result_of(harness: ExecutionHarness, node_id: str = "lead") -> Any:
    return harness.execution.outputs[node_id]["output"].value


@virtual_time
async def test_a_linked_node_runs_as_a_stage_with_all_that_is_linked_into_it() -> None:
    made: list[str] = []

    async def make(data: Any, context: Context) -> Any:
        made.append(context.path)
        return [context.node_id, *await context.runtime.resolve_links(context.node_id, "in")]

    graph = parse_graph("deep:vein tool:vein m lead end", "deep~tool.in", "tool~m.t", "m~lead.t",
                        "lead>end")  # fmt: skip
    acts = {"m": shows, "lead": runs("m", "one", input="do", n=2), "tool:make": make,
            "deep:make": make}  # fmt: skip
    harness = ExecutionHarness(graph, acts, last_seq=1)
    assert await harness.run() == "completed", harness.execution.error
    arrived = {"input": ["lead", "do"], "n": ["lead", 2]}
    assert result_of(harness) == [{"output": [arrived, [["tool", ["deep"]]]]}]
    assert made == ["lead[one]/tool", "lead[one]/deep"]
    assert harness.event_names("node.started", "node.completed") == [
        "node.started lead", "node.completed lead[one]/lead", "node.started lead[one]/m",
        "node.completed lead[one]/m", "node.completed lead", "node.started end",
        "node.completed end",
    ]  # fmt: skip
    check_events([created_event(graph), *harness.stored])


@virtual_time
async def test_prerequisites_of_linked_nodes_are_there_with_their_values() -> None:
    async def make(data: Any, context: Context) -> Any:
        return [data, [a.value.value for a in context.runtime.arrivals(context.node_id)]]

    graph = parse_graph(
        "a b door:door m tool lead", "a>b", "door>tool.doc", "b>m.x", "b.none>m.y", "tool~m.t",
        "m~lead.t",
    )  # fmt: skip
    graph = with_data(graph, tool={"d": "{{ inputs.doc }}"}, m={"from": '{{ nodes["a"].output }}'})
    acts = {"m": shows, "lead": runs("m", "k", input=1), "tool:make": make}
    harness = ExecutionHarness(graph, acts)
    assert await harness.run() == "completed", harness.execution.error
    ((found,),) = (each.values() for each in result_of(harness))
    assert found == [
        {"x": ["b", "b"], "input": ["lead", 1]}, [[{"d": "door"}, ["door"]]]
    ]  # fmt: skip
    given = harness.event_names("node.completed")
    assert "node.completed lead[k]/b" in given
    assert "node.completed lead[k]/a" not in given  # no edge brings its value


@virtual_time
async def test_what_the_caller_gives_takes_the_place_of_flow_edges() -> None:
    graph = parse_graph("a m lead", "a>m", "a>m.x", "m~lead.t")
    harness = ExecutionHarness(graph, {"m": shows, "lead": runs("m", "k", input=1)})
    assert await harness.run() == "completed", harness.execution.error
    ((found, _),) = (each["output"] for each in result_of(harness))
    assert found == {"x": ["a", "a"], "input": ["lead", 1]}


@virtual_time
async def test_a_stage_after_its_caller_runs_for_it_with_what_it_is_given() -> None:
    graph = parse_graph("a lead m", "a>lead", "lead>m", "a>m.x", "m~lead.t")
    harness = ExecutionHarness(graph, {"m": shows, "lead": runs("m", "k", input=1)})
    assert await harness.run() == "completed", harness.execution.error
    (of_run,) = result_of(harness)
    assert of_run["output"] == [{"input": ["lead", 1], "x": ["a", "a"]}, []]
    assert result_of(harness, "m")[0] == {"input": ["lead", result_of(harness)], "x": ["a", "a"]}
    assert harness.event_names("node.started") == [
        f"node.started {path}" for path in ("a", "lead", "lead[k]/m", "m")
    ]


@virtual_time
async def test_expressions_of_the_node_see_its_input_and_the_nodes_before_it() -> None:
    texts = {
        "plain": '{{ nodes["a"].output }} {{ input }}',
        "computed": "{{ nodes[input].output }}",
    }
    for name, text in texts.items():
        seen: list[Any] = []
        graph = with_data(parse_graph("a b m lead", "a>b", "b>m.x", "m~lead.t"), m={"text": text})
        harness = ExecutionHarness(graph, {"lead": runs("m", "k", input="a")})
        node = harness.program.steps[0].implementation
        execute = node.execute
        node.execute = lambda data, inputs, context, seen=seen, execute=execute: (
            seen.append(data) if context.node_id == "m" else None,
            execute(data, inputs, context),
        )[1]
        if name == "plain":
            assert await harness.run() == "completed", harness.execution.error
            assert seen == [{"text": "a a"}]
        else:  # it needs the render worker; the values are there
            assert await harness.run() == "failed"
            assert "render worker" in str(harness.execution.error)


@virtual_time
async def test_a_known_key_returns_the_stored_result_and_others_run_again() -> None:
    ran: list[str] = []

    async def m(inputs: Inputs, context: Context) -> Any:
        ran.append(context.path)
        return result_with(len(ran))

    graph = parse_graph("m lead", "m~lead.t")
    harness = ExecutionHarness(graph, {"m": m, "lead": runs("m", "a", "a", "b")})
    assert await harness.run() == "completed"
    assert result_of(harness) == [{"output": 1}, {"output": 1}, {"output": 2}]
    assert ran == ["lead[a]/m", "lead[b]/m"]


@virtual_time
async def test_the_same_node_may_be_a_stage_too() -> None:
    graph = parse_graph("x m lead end", "x>m", "m>end", "m~lead.t",
                        policies={"m": Policy(join="any")})  # fmt: skip
    harness = ExecutionHarness(graph, {"m": shows, "lead": runs("m", "k", input=1, other=2)})
    assert await harness.run() == "completed", harness.execution.error
    (of_run,) = result_of(harness)
    assert of_run["output"] == [{"input": ["lead", 1], "other": ["lead", 2]}, []]
    assert result_of(harness, "m") == [{"input": ["x", "x"]}, []]


@virtual_time
async def test_a_linked_node_of_an_entry_type_runs_whatever_else_has_a_value() -> None:
    graph = parse_graph("start:door m:door tool lead", "start>m.x", "m~lead.t", "start>lead")
    harness = ExecutionHarness(
        graph, {"lead": runs("m", "k", input=1), "m": shows}, inputs={"start": {"output": "hi"}}
    )
    assert await harness.run() == "completed", harness.execution.error
    assert result_of(harness) == [
        {"output": [{"x": ["start", "hi"], "input": ["lead", 1]}, []]}
    ]  # fmt: skip


@virtual_time
async def test_a_linked_node_runs_without_inputs_and_its_policy_holds() -> None:
    tries: list[int] = []

    async def m(inputs: Inputs, context: Context) -> Any:
        tries.append(context.attempt)
        if len(tries) == 1:
            raise NodeError("not yet", retryable=True)
        return result_with("done")

    graph = parse_graph("m lead", "m~lead.t", policies={"m": Policy(retry=Retry(2))})
    harness = ExecutionHarness(graph, {"m": m, "lead": runs("m", "k")})
    assert await harness.run() == "completed", harness.execution.error
    assert tries == [1, 2]


@virtual_time
async def test_a_failure_in_it_is_that_of_a_nested_run() -> None:
    async def m(inputs: Inputs, context: Context) -> Any:
        raise NodeError("boom")

    harness = ExecutionHarness(parse_graph("m lead", "m~lead.t"), {"m": m, "lead": runs("m", "k")})
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed", "lead")
    assert failed["error"]["code"] == "nested-run-failed"
    assert "'lead[k]/m' failed: boom" in failed["error"]["message"]


@pytest.mark.parametrize(
    ("graph", "node_id", "code"),
    [
        (parse_graph("m lead", "m~lead.t"), "ghost", "unknown-node"),
        (parse_graph("m lead", "m>lead.t"), "m", "not-linked"),
        (parse_graph("m lead", "m~lead.t"), "lead", "not-linked"),
        (parse_graph("m:vein lead", "m~lead.t"), "m", "channel-mismatch"),
    ],
    ids=["unknown", "a flow edge", "itself", "it only materializes"],
)
@virtual_time
async def test_what_cannot_be_run_is_refused(graph: Graph, node_id: str, code: str) -> None:
    harness = ExecutionHarness(graph, {"lead": runs(node_id, "k")})
    assert await harness.run() == "failed"
    assert harness.data_of("node.failed", "lead")[0]["error"]["code"] == code


@pytest.mark.parametrize("inputs", [{"input": {1, 2}}, {"input": float("nan")}, ["input"]])
@virtual_time
async def test_inputs_that_are_no_values_by_handle_are_refused(inputs: Any) -> None:
    async def lead(_: Inputs, context: Context) -> Any:
        return result_with(await context.runtime.run_linked("k", "m", inputs))

    harness = ExecutionHarness(parse_graph("m lead", "m~lead.t"), {"lead": lead})
    assert await harness.run() == "failed"
    assert harness.data_of("node.failed", "lead")[0]["error"]["code"] == "invalid-inputs"


@virtual_time
async def test_a_node_linked_over_another_one_can_be_run() -> None:
    graph = parse_graph("m helper lead", "m~helper.t", "helper~lead.t")
    harness = ExecutionHarness(graph, {"lead": runs("m", "k", input=1)})
    assert await harness.run() == "completed", harness.execution.error
    assert result_of(harness) == [{"output": "m"}]


@virtual_time
async def test_runs_nest_and_their_depth_is_limited() -> None:
    graph = parse_graph("c b lead", "c~b.t", "b~lead.t")
    acts = {"lead": runs("b", "k", input=1), "b": runs("c", "k", input=2)}
    harness = ExecutionHarness(graph, acts)
    assert await harness.run() == "completed", harness.execution.error
    assert "node.completed lead[k]/b[k]/c" in harness.event_names()
    harness = ExecutionHarness(graph, acts, RunOptions(max_depth=1))
    assert await harness.run() == "failed"
    assert "graphs inside graphs is 1" in str(harness.execution.error)


@virtual_time
async def test_cancelling_the_execution_cancels_the_linked_node() -> None:
    graph = parse_graph("m lead", "m~lead.t")
    harness = ExecutionHarness(graph, {"m": forever, "lead": runs("m", "k")})
    asyncio.get_running_loop().call_later(1, harness.execution.cancel, "enough")
    assert await harness.run() == "cancelled"
    assert harness.event_names("node.cancelled") == [
        "node.cancelled lead[k]/m", "node.cancelled lead",
    ]  # fmt: skip


@pytest.mark.parametrize("join_any", [False, True])
@virtual_time
async def test_a_crash_resumes_it_with_the_same_values(join_any: bool) -> None:
    """Where a node may begin before all has settled, later values do not change what it runs."""
    ran: list[str] = []

    async def m(inputs: Inputs, context: Context) -> Any:
        ran.append(context.path)
        if len(ran) == 1:
            await forever()
        return await shows(inputs, context)

    async def late(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(0.5)
        return result_with("late")

    graph = parse_graph(
        "now late m lead", "now>m.x", "late>m.x", "m~lead.t",
        policies={"m": Policy(join="any" if join_any else "all")},
    )  # fmt: skip
    acts = {"m": m, "late": late, "lead": runs("m", "k", input=1)}
    harness = ExecutionHarness(graph, acts, journal=MemoryJournal(), last_seq=1)
    harness.interrupt_after(1)
    assert await harness.run() == "interrupted"
    again = recovered(harness, [created_event(graph), *harness.stored])
    assert await again.run() == "completed", again.execution.error
    assert ran == ["lead[k]/m", "lead[k]/m"]
    all_events = [created_event(graph), *harness.stored, *again.stored]
    assert fold(all_events).status == "completed"


@virtual_time
async def test_a_request_in_it_parks_its_caller_until_it_is_answered() -> None:
    graph = parse_graph("m lead", "m~lead.t")
    harness = ExecutionHarness(
        graph, {"m": asks(), "lead": runs("m", "k")}, journal=MemoryJournal()
    )
    harness.answer_after(5, "yes")
    assert await harness.run() == "completed", harness.execution.error
    assert result_of(harness) == [{"output": [None, "yes"]}]
    assert harness.event_names("node.parked") == ["node.parked lead"]


@virtual_time
async def test_what_a_node_of_another_graph_is_linked_to_cannot_be_run() -> None:
    caught: list[Any] = []

    async def lead(_: Inputs, context: Context) -> Any:
        outer = context.runtime

        async def inner(_: Inputs, context: Context) -> Any:
            with pytest.raises(NodeError, match="another graph") as error:
                await outer.run_linked("k", "m", {})
            caught.append(error.value.code)
            return result_with(1)

        harness.behaviors["i"] = inner
        await context.runtime.run_graph("g", parse_graph("i"), {})
        return result_with(1)

    harness = ExecutionHarness(parse_graph("m lead", "m~lead.t"), {"lead": lead})
    harness.program.steps[0].implementation.behaviors = harness.behaviors
    assert await harness.run() == "completed", harness.execution.error
    assert caught == ["not-linked"]
