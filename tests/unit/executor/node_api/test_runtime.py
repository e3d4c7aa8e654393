"""The runtime of a node: lookups, arrivals, links and caches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.errors import InputError, NodeError
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph, Policy
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


async def answer_of(graph: Graph, question: Any, acts: Any = None, **more: Any) -> Any:
    """Run a graph in which node ``u`` calls its runtime; return the result of the call."""
    got: list[Any] = []

    async def u(inputs: Inputs, context: Context) -> Any:
        found = question(context.runtime)
        got.append(await found if hasattr(found, "__await__") else found)
        return result_with(1)

    harness = ExecutionHarness(graph, {"u": u, **(acts or {})}, **more)
    assert await harness.run() == "completed", harness.execution.error
    return got[0]


# -- lookups


@virtual_time
async def test_nodes_and_edges_can_be_looked_up_in_graph_order() -> None:
    graph = parse_graph("a b g u z", "b>u.x", "g~u.x", "a.k>u.y", "u.o>z", "u.p>z.q")
    assert (await answer_of(graph, lambda r: r.get_node("a"))).id == "a"

    async def ids(question: Any) -> list[str]:
        return [edge.id for edge in await answer_of(graph, question)]

    assert await ids(lambda r: r.incoming_edges("u")) == ["e1", "e2", "e3"]
    assert await ids(lambda r: r.incoming_edges("u", channel="flow")) == ["e1", "e3"]
    assert await ids(lambda r: r.incoming_edges("u", target_handle="x")) == ["e1", "e2"]
    one = await ids(lambda r: r.incoming_edges("u", channel="link", target_handle="y"))
    assert one == []
    assert await ids(lambda r: r.outgoing_edges("u")) == ["e4", "e5"]
    assert await ids(lambda r: r.outgoing_edges("u", source_handle="p")) == ["e5"]
    assert await ids(lambda r: r.outgoing_edges("g", channel="link")) == ["e2"]


@virtual_time
async def test_an_unknown_node_is_named() -> None:
    async def u(inputs: Inputs, context: Context) -> Any:
        for ask in (context.runtime.get_node, context.runtime.arrivals):
            with pytest.raises(InputError, match="'ghost'"):
                ask("ghost")
        return result_with(1)

    assert await ExecutionHarness(parse_graph("u"), {"u": u}).run() == "completed"


@virtual_time
async def test_arrivals_follow_edge_order_not_finishing_order() -> None:
    async def slow(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(5)
        return result_with("slow")

    graph = parse_graph("b a u", "a>u.x", "b>u.y", "a>u.y", "a.none>u.x")
    found = await answer_of(graph, lambda r: r.arrivals("u"), {"a": slow})
    assert [(a.edge_id, a.source_id, a.target_handle, a.value.value) for a in found] == [
        ("e1", "a", "x", "slow"), ("e2", "b", "y", "b"), ("e3", "a", "y", "slow"),
    ]  # fmt: skip
    found = await answer_of(graph, lambda r: r.arrivals("u", "y"), {"a": slow})
    assert [a.edge_id for a in found] == ["e2", "e3"]


@virtual_time
async def test_a_join_any_starts_with_the_input_of_the_first_delivery_only() -> None:
    async def slow(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(5)
        return result_with("slow")

    got: list[Any] = []

    async def u(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(9)
        got.append([a.edge_id for a in context.runtime.arrivals("u")])
        got.append([a.edge_id for a in inputs.arrivals])
        return result_with(1)

    graph = parse_graph("a b u", "a>u", "b>u", policies={"u": Policy(join="any")})
    harness = ExecutionHarness(graph, {"a": slow, "u": u})
    assert await harness.run() == "completed"
    assert got == [["e2"], ["e2"]]
    assert harness.data_of("node.started", "u") == [{"wave": 2, "via": "e2"}]
    assert harness.data_of("node.started", "a") == [{"wave": 1}]


@virtual_time
async def test_cached_values_last_for_the_run() -> None:
    async def a(inputs: Inputs, context: Context) -> Any:
        assert context.runtime.cache_get("n", "k") is None
        context.runtime.cache_set("n", "k", {1})
        return result_with(1)

    graph = parse_graph("a u", "a>u")
    assert await answer_of(graph, lambda r: r.cache_get("n", "k"), {"a": a}) == {1}


# -- links


def counts(calls: list[str], value: Any = None) -> Any:
    async def make(data: Any, context: Context) -> Any:
        calls.append(context.node_id)
        await asyncio.sleep(1)
        return value or f"tool {context.node_id}"

    return make


async def uses(inputs: Inputs, context: Context) -> Any:
    """A node that returns what the links into its handle ``t`` bring."""
    return result_with(await context.runtime.resolve_links(context.node_id, "t"))


@virtual_time
async def test_links_are_resolved_in_edge_order_and_materialized_once() -> None:
    calls: list[str] = []
    graph = parse_graph("g h u", "h~u.t", "g~u.t", "g~u.other")

    async def twice(runtime: Any) -> Any:
        return await runtime.resolve_links("u", "t"), await runtime.resolve_links("u", "t")

    first, second = await answer_of(
        graph, twice, {"g:make": counts(calls), "h:make": counts(calls)}
    )
    assert first == second == ["tool h", "tool g"]
    assert calls == ["h", "g"]


@virtual_time
async def test_concurrent_callers_share_one_call() -> None:
    calls: list[str] = []
    graph = parse_graph("g u v", "g~u.t", "g~v.t")
    harness = ExecutionHarness(graph, {"u": uses, "v": uses, "g:make": counts(calls)})
    assert await harness.run() == "completed"
    assert [harness.execution.outputs[n]["output"].value for n in "uv"] == [["tool g"]] * 2
    assert calls == ["g"]
    assert asyncio.get_running_loop().time() == 1


@virtual_time
async def test_each_handle_is_materialized_separately() -> None:
    calls: list[str] = []
    graph = parse_graph("g u", "g.x~u.t", "g.y~u.t")
    assert await answer_of(
        graph, lambda r: r.resolve_links("u", "t"), {"g:make": counts(calls)}
    ) == ["tool g", "tool g"]  # fmt: skip
    assert calls == ["g", "g"]


@virtual_time
async def test_a_failed_materialize_fails_all_its_callers_and_is_repeated_later() -> None:
    calls: list[str] = []

    async def make(data: Any, context: Context) -> Any:
        calls.append("try")
        await asyncio.sleep(1)
        if len(calls) == 1:
            raise NodeError("not yet", retryable=True)
        return "tool"

    policies = {"v": Policy(on_error="continue")}
    graph = parse_graph("g u v w", "g~u.t", "g~v.t", "g~w.t", "v.error>w", policies=policies)
    harness = ExecutionHarness(graph, {"u": uses, "v": uses, "w": uses, "g:make": make})
    assert await harness.run() == "failed"
    assert sorted(harness.event_names("node.failed")) == ["node.failed u", "node.failed v"]
    assert harness.execution.outputs["w"]["output"].value == ["tool"]
    assert calls == ["try", "try"]


@virtual_time
async def test_cancelling_the_first_caller_of_a_materialize_does_not_fail_the_others() -> None:
    calls: list[str] = []

    async def make(data: Any, context: Context) -> Any:
        calls.append("try")
        await asyncio.sleep(10)
        return "tool"

    graph = parse_graph("g u v", "g~u.t", "g~v.t", policies={"u": Policy(timeout_s=1)})
    harness = ExecutionHarness(graph, {"u": uses, "v": uses, "g:make": make})
    assert await harness.run() == "failed"
    assert harness.event_names("node.failed", "node.completed") == [
        "node.failed u",
        "node.completed v",
    ]
    assert calls == ["try", "try"]


@virtual_time
async def test_cancelling_a_later_caller_of_a_materialize_does_not_fail_the_first() -> None:
    calls: list[str] = []

    graph = parse_graph("g u v", "g~u.t", "g~v.t", policies={"v": Policy(timeout_s=0.5)})
    harness = ExecutionHarness(graph, {"u": uses, "v": uses, "g:make": counts(calls)})
    assert await harness.run() == "failed"
    assert harness.event_names("node.failed", "node.completed") == [
        "node.failed v",
        "node.completed u",
    ]
    assert calls == ["g"]


def links_on(handles: dict[str, str]) -> Any:
    async def make(data: Any, context: Context) -> Any:
        await asyncio.sleep(0)
        handle = handles[context.node_id]
        return [context.node_id, *await context.runtime.resolve_links(context.node_id, handle)]

    return make


@virtual_time
async def test_linked_nodes_may_have_links_themselves() -> None:
    make = links_on({"g": "in", "h": "none"})
    graph = parse_graph("h g u", "h~g.in", "g~u.t")
    got = await answer_of(
        graph, lambda r: r.resolve_links("u", "t"), {"g:make": make, "h:make": make}
    )
    assert got == [["g", ["h"]]]


@pytest.mark.parametrize(
    ("graph", "answer_of", "makes", "cycle"),
    [
        (
            parse_graph("a2 a3 end", "a3.input~a2.tools", "a2.input~a3.tools", "a2>end"),
            ("a2", "tools"), {"a2": ("a2", "tools"), "a3": ("a3", "tools")},
            "resolve(a2.tools) -> materialize(a3.input) -> resolve(a3.tools) -> "
            "materialize(a2.input) -> resolve(a2.tools)",
        ),
        (
            parse_graph("a2 a3 a4", "a3.one~a2.tools", "a4.out~a3.input", "a3.two~a4.input"),
            ("a2", "tools"), {"a3": ("a3", "input"), "a4": ("a4", "input")},
            "resolve(a3.input) -> materialize(a4.out) -> resolve(a4.input) -> "
            "materialize(a3.two) -> resolve(a3.input)",
        ),
        (
            parse_graph("g u", "g~u.t", "g~u.again"),
            ("u", "t"), {"g": ("u", "again")},
            "materialize(g.output) -> resolve(u.again) -> materialize(g.output)",
        ),
    ],
    ids=["through the asking node", "among linked nodes", "back to the asking node"],
)  # fmt: skip
@virtual_time
async def test_a_cycle_of_links_fails_the_node_with_the_whole_path(
    graph: Graph, answer_of: tuple[str, str], makes: dict[str, tuple[str, str]], cycle: str
) -> None:
    def resolves(place: tuple[str, str]) -> Any:
        async def resolve(_: Any, context: Context) -> Any:
            return await context.runtime.resolve_links(*place)

        return resolve

    acts = {f"{node}:make": resolves(place) for node, place in makes.items()}
    harness = ExecutionHarness(graph, {answer_of[0]: resolves(answer_of), **acts})
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed")
    assert failed["error"]["code"] == "link-cycle"
    assert failed["error"]["message"] == f"Link dependency cycle detected: {cycle}"


@virtual_time
async def test_two_tasks_that_wait_for_each_others_links_fail_with_a_link_cycle() -> None:
    make = links_on({"g": "in", "h": "in"})

    graph = parse_graph("g h u v", "g~h.in", "h~g.in", "g~u.t", "h~v.t")
    harness = ExecutionHarness(graph, {"u": uses, "v": uses, "g:make": make, "h:make": make})
    assert await harness.run() == "failed"
    assert len(harness.data_of("node.failed")) == 2
    assert all(d["error"]["code"] == "link-cycle" for d in harness.data_of("node.failed"))


@virtual_time
async def test_a_node_that_waits_for_several_links_at_once_is_found_in_any_cycle() -> None:
    async def two_at_once(data: Any, context: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(context.runtime.resolve_links("g", "first"))
            await asyncio.sleep(0.5)
            group.create_task(context.runtime.resolve_links("g", "second"))

    async def back(data: Any, context: Context) -> Any:
        await asyncio.sleep(2)
        return await context.runtime.resolve_links("h", "in")

    async def slow(data: Any, context: Context) -> Any:
        await asyncio.sleep(9)

    edges = ("h~g.first", "k~g.second", "g~h.in", "h~v.t", "k~w.t", "g~u.t")
    graph = parse_graph("v w u g h k", *edges)
    acts = {"u": uses, "v": uses, "w": uses, "g:make": two_at_once, "h:make": back}
    harness = ExecutionHarness(graph, {**acts, "k:make": slow})
    assert await harness.run() == "failed"
    (told,) = {d["error"]["message"] for d in harness.data_of("node.failed")}
    assert told == (
        "Link dependency cycle detected: materialize(g.output) -> resolve(g.first) -> "
        "materialize(h.output) -> resolve(h.in) -> materialize(g.output)"
    )
    assert "node.completed w" in harness.event_names()


@virtual_time
async def test_a_link_from_a_type_without_materialize_fails_the_node() -> None:
    harness = ExecutionHarness(parse_graph("g:plain u", "g~u.t"), {"u": uses})
    assert await harness.run() == "failed"
    error = harness.data_of("node.failed")[0]["error"]
    assert error["code"] == "channel-mismatch"
    assert "'g'" in error["message"]


@virtual_time
async def test_a_materialized_node_has_its_flow_inputs() -> None:
    async def make(data: Any, context: Context) -> Any:
        return [data, [a.value.value for a in context.runtime.arrivals("g")]]

    graph = parse_graph("a g u", "a>g.doc", "g~u.t")
    nodes = [n._replace(data={"x": "{{ inputs.doc }}"}) if n.id == "g" else n for n in graph.nodes]
    graph = Graph(tuple(nodes), graph.edges)
    got = await answer_of(graph, lambda r: r.resolve_links("u", "t"), {"g:make": make})
    assert got == [[{"x": "a"}, ["a"]]]


@virtual_time
async def test_the_context_has_ids_path_attempt_and_services() -> None:
    seen: list[Any] = []

    async def look(inputs: Inputs, context: Context) -> Any:
        seen.append((context.node_id, context.run_id, context.path, context.attempt))
        seen.append((context.chat_id, context.state, context.services))
        return result_with(1)

    async def nests(inputs: Inputs, context: Context) -> Any:
        await context.runtime.run_graph("2", parse_graph("i"), {})
        return result_with(1)

    harness = ExecutionHarness(
        parse_graph("a"),
        {"a": nests, "i": look},
        RunOptions(),
        chat_id="c",
        state={"s": 1},
        services="services",
    )
    assert await harness.run() == "completed"
    assert seen == [("i", "x1", "a[2]/i", 1), ("c", {"s": 1}, "services")]
