"""The engine runs node types with any combination of methods, wired in any way.

Random graphs mix every combination of ``execute``, ``materialize`` and ``resume`` with flow
and link edges; a short recursion (``tests/support/engine/node_type_matrix.py``) gives the expected results.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planwave
from planwave.errors import GraphInvalid
from planwave.graph.checking.checker import check
from planwave.graph.model import FLOW, LINK, Edge, Graph, Node
from planwave.nodes.library import LIBRARY
from tests.support.engine.node_type_matrix import (
    EXECUTE_FORMS,
    OUTPUT_HANDLES,
    CallLog,
    ExpectedResults,
    run_with_answers_from,
    type_name,
)
from tests.support.engine.random_schedules import ByteChoices
from tests.support.examples import examples
from tests.support.graph.builders import make_edge
from tests.support.virtual_loop import VirtualLoop, virtual_time

COMBINATIONS = [
    (form, makes, goes_on)
    for form, makes, goes_on in product(EXECUTE_FORMS, (False, True), (False, True))
    if form or makes
]
EAGER, WAVES = (planwave.RunOptions(scheduling=way) for way in ("eager", "waves"))


def matrix_node(node_id: str, kind: tuple[str, bool, bool], **data: Any) -> Node:
    return Node(node_id, type_name(*kind), node_id, data={k: v for k, v in data.items() if v})


def flow(source: str, target: str, leaves: str = "p", enters: str = "x") -> Edge:
    name = f"{source}.{leaves}-{target}.{enters}"
    return make_edge(source, target, source_handle=leaves, target_handle=enters, edge_id=name)


def link(source: str, target: str, leaves: str = "m", enters: str = "t") -> Edge:
    name = f"{source}.{leaves}_{target}.{enters}"
    return make_edge(
        source, target, channel=LINK, source_handle=leaves, target_handle=enters, edge_id=name
    )


def random_graph(choices: ByteChoices) -> tuple[Graph, dict[str, list[Any]]]:
    """A random graph in which everything can run, and what its nodes are answered."""
    kinds = [COMBINATIONS[choices.below(len(COMBINATIONS))] for _ in range(2 + choices.below(7))]
    answers: dict[str, list[Any]] = {}
    nodes: list[Node] = []
    for number, kind in enumerate(kinds):
        asks = choices.below(3) if kind[0] and kind[2] else 0
        node = matrix_node(f"n{number}", kind, asks=asks, delay=choices.below(3))
        answers[node.id] = [choices.below(9) for _ in range(asks)]
        nodes.append(node)
    edges: dict[str, Edge] = {}
    fed: set[int] = set()
    for _ in range(choices.below(3 * len(kinds))):
        first = choices.below(len(kinds) - 1)
        second = first + 1 + choices.below(len(kinds) - 1 - first)
        (form, makes, _), handles = kinds[first], (choices.below(2), choices.below(2))
        source, target = f"n{first}", f"n{second}"
        # A node that is executed and materialized too may be materialized at any time, so it gets no flow edge.
        both = bool(form) and makes and first in fed
        if makes and not both and (not form or choices.one_in(2)):
            edge = link(source, target, "mn"[handles[0]], "tu"[handles[1]])
        elif form:
            edge = flow(source, target, OUTPUT_HANDLES[handles[0]], "xy"[handles[1]])
        else:
            continue
        if not (kinds[second][0] and kinds[second][1]):
            fed.add(second)
        elif second in {int(e.source[1:]) for e in edges.values() if e.channel == LINK}:
            continue
        else:
            fed.add(second)
        edges.setdefault(edge.id, edge)
    return Graph(tuple(nodes), tuple(edges.values())), answers


def run_alone(work: Any) -> Any:
    """Run a coroutine on a virtual loop, where a run that stalls fails at once."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


@given(st.binary(min_size=150, max_size=200))
@settings(max_examples=examples(150))
def test_every_mix_of_types_and_edges_gives_the_expected_results(source: bytes) -> None:
    choices = ByteChoices(source)
    graph, answers = random_graph(choices)
    expected_results = ExpectedResults(graph, answers)
    expected = expected_results.outputs()
    for options in (EAGER, WAVES):
        call_log = CallLog()
        result = run_alone(
            run_with_answers_from(
                graph, call_log.registry(), options, answers, 1 + choices.below(3)
            )
        )
        assert (result.status, result.error) == ("completed", None)
        outputs = {n: {h: v.value for h, v in o.items()} for n, o in result.outputs.items()}
        assert outputs == expected
        assert call_log.executed == dict.fromkeys(expected, 1)
        assert call_log.resumed == {n: len(a) for n, a in answers.items() if a and n in expected}
        assert call_log.materialized == dict.fromkeys(expected_results.requested_artifacts, 1)
        for received in call_log.received_artifacts.values():
            assert len({id(made) for made in received}) == 1


def test_the_random_graphs_cover_every_type_and_wiring() -> None:
    """Else the test above would show little."""
    seen: set[str] = set()
    for number in range(300):
        source = bytes((number * 7 + place * place * 31) % 251 for place in range(200))
        graph, answers = random_graph(ByteChoices(source))
        expected_results = ExpectedResults(graph, answers)
        expected_results.outputs()
        runs = {node.id for node in graph.nodes} - expected_results.linked
        makers = {node for node, _ in expected_results.requested_artifacts}
        seen |= {node.type for node in graph.nodes}
        feeds = {e.target for e in graph.edges if e.channel == FLOW}
        uses = {e.target for e in graph.edges if e.channel == LINK}
        seen |= {"run and made"} if runs & makers else set()
        seen |= {"gate"} if feeds & expected_results.linked else set()
        seen |= {"nested"} if uses & makers else set()
        seen |= (
            {"shared"} if len(expected_results.requested_artifacts) < len(graph.edges) else set()
        )
        seen |= {"waits and uses"} if uses & {n for n in runs if answers[n]} else set()
    expected_types = {type_name(*kind) for kind in COMBINATIONS}
    assert seen == expected_types | {"run and made", "gate", "nested", "shared", "waits and uses"}


@pytest.mark.parametrize("kind", COMBINATIONS, ids=lambda kind: type_name(*kind))
@virtual_time
async def test_a_type_with_any_combination_of_methods_uses_all_of_them(
    kind: tuple[str, bool, bool],
) -> None:
    form, makes, goes_on = kind
    plain = ("coroutine", False, False)
    nodes = [matrix_node("a", plain), matrix_node("z", kind, asks=2 if form and goes_on else 0)]
    nodes += [matrix_node("u", plain), matrix_node("v", plain)]
    edges = [flow("z", "v")] if form else []
    edges += [link("z", "u")] if makes else []
    edges += [flow("a", "u"), flow("a", "v")]
    graph, answers = Graph(tuple(nodes), tuple(edges)), {"z": ["yes", {"no": 1}]}
    if not (form and goes_on):
        answers = {}
    call_log = CallLog()
    result = await run_with_answers_from(graph, call_log.registry(), EAGER, answers)
    expected = ExpectedResults(graph, answers).outputs()
    assert {n: {h: v.value for h, v in o.items()} for n, o in result.outputs.items()} == expected
    assert call_log.executed["z"] == bool(form)
    assert call_log.materialized["z", "m"] == makes
    assert call_log.resumed["z"] == len(answers.get("z", ()))


@virtual_time
async def test_concurrent_callers_share_one_artifact_at_any_depth() -> None:
    plain, maker = ("coroutine", False, False), ("", True, False)
    nodes = [
        matrix_node("deep", maker, delay=2),
        matrix_node("left", maker),
        matrix_node("right", maker),
    ]
    nodes += [matrix_node(f"u{n}", plain) for n in range(20)]
    edges = [link("deep", "left"), link("deep", "right", enters="other")]
    edges += [link(side, f"u{n}") for n in range(20) for side in ("left", "right")]
    call_log = CallLog()
    result = await run_with_answers_from(
        Graph(tuple(nodes), tuple(edges)), call_log.registry(), EAGER, {}
    )
    assert result.status == "completed"
    assert call_log.materialized == {("deep", "m"): 1, ("left", "m"): 1, ("right", "m"): 1}
    assert (
        len(
            {
                id(made)
                for key, all_ in call_log.received_artifacts.items()
                for made in all_
                if key[1] == "deep"
            }
        )
        == 1
    )


class Nest:
    """Runs a nested graph, and returns the values of its nodes."""

    node_type = "nest"
    template_fields = ()

    def __init__(self, inside: Graph) -> None:
        self.inside = inside

    async def execute(self, data: Any, inputs: Any, context: Any) -> planwave.ExecutionResult:
        outputs = await context.runtime.run_graph("k", self.inside, {})
        values = {node: {h: v.value for h, v in given.items()} for node, given in outputs.items()}
        return planwave.ExecutionResult({"output": planwave.DataValue("json", values)})


@given(st.binary(min_size=150, max_size=200))
@settings(max_examples=50)
def test_a_nested_graph_gives_the_expected_results(source: bytes) -> None:
    choices = ByteChoices(source)
    inside, answers = random_graph(choices)
    expected_results = ExpectedResults(inside, answers)
    expected = expected_results.outputs()
    call_log = CallLog()
    nested = {f"z[k]/{node}": given for node, given in answers.items()}
    outside = Graph((Node("z", "nest", "z"),), ())
    registry = call_log.registry()
    registry.register(Nest(inside))
    result = run_alone(
        run_with_answers_from(outside, registry, EAGER, nested, 1 + choices.below(3))
    )
    assert (result.status, result.error) == ("completed", None)
    assert result.outputs["z"]["output"].value == expected
    assert call_log.executed == dict.fromkeys(expected, 1)
    assert call_log.resumed == {n: len(a) for n, a in answers.items() if a and n in expected}
    assert call_log.materialized == dict.fromkeys(expected_results.requested_artifacts, 1)


def test_the_engine_imports_no_node_type_and_the_matrix_uses_types_of_its_own() -> None:
    code = (
        "import sys, planwave.executor.driver.execution, planwave.graph.checking.checker\n"
        "print(*{m.split('.')[1] for m in sys.modules if m.startswith('planwave.')})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = set(done.stdout.split())
    assert {"executor", "graph", "events"} <= rooms
    assert not rooms & {"nodes", "providers", "planner", "prompts", "storage", "service"}
    assert not {type_name(*kind) for kind in COMBINATIONS} & set(planwave.Registry(LIBRARY).names())


# -- cycles


def random_cyclic_graph(choices: ByteChoices, channels: tuple[str, ...]) -> Graph:
    """A random graph with cycles or without, of nodes that can do everything."""
    size = 2 + choices.below(5)
    nodes = tuple(matrix_node(f"n{n}", ("coroutine", True, False)) for n in range(size))
    edges: dict[str, Edge] = {}
    for _ in range(1 + choices.below(2 * size)):
        source, target = f"n{choices.below(size)}", f"n{choices.below(size)}"
        make = link if channels[choices.below(len(channels))] == LINK else flow
        edge = make(source, target)
        edges.setdefault(edge.id, edge)
    return Graph(nodes, tuple(edges.values()))


def has_cycle(graph: Graph) -> bool:
    """Whether some node can be reached from itself."""
    ways = {(edge.source, edge.target) for edge in graph.edges}
    for _ in graph.nodes:
        ways |= {(a, d) for a, b in ways for c, d in ways if b == c}
    return any(a == b for a, b in ways)


def errors_of(graph: Graph) -> list[Any]:
    return [d for d in check(graph, CallLog().registry()) if d.severity == "error"]


@given(st.binary(max_size=40))
def test_the_check_finds_every_link_cycle_with_its_whole_path(source: bytes) -> None:
    graph = random_cyclic_graph(ByteChoices(source), (LINK,))
    found = [d for d in errors_of(graph) if d.code == "link-cycle"]
    assert bool(found) == has_cycle(graph)
    wires = {(edge.source, edge.target) for edge in graph.edges}
    for diagnostic in found:
        assert diagnostic.path[0] == diagnostic.path[-1]
        assert set(pairwise(diagnostic.path)) <= wires
        assert " -> ".join(diagnostic.path[:2]) in diagnostic.message


@given(st.binary(max_size=60))
@settings(max_examples=examples(150))
def test_a_graph_of_flows_and_links_is_rejected_for_a_cycle_or_completes(
    source: bytes,
) -> None:
    graph = random_cyclic_graph(ByteChoices(source), (FLOW, LINK))
    errors = errors_of(graph)
    wires = {(edge.source, edge.target) for edge in graph.edges}
    for diagnostic in errors:
        assert diagnostic.code in ("flow-cycle", "link-cycle")
        assert diagnostic.path[0] == diagnostic.path[-1]
        assert set(pairwise(diagnostic.path)) <= wires
    if errors:
        with pytest.raises(GraphInvalid):
            planwave.build(graph, registry=CallLog().registry())
        return
    for options in (EAGER, WAVES):  # on a virtual loop, what waits for itself fails at once
        assert (
            run_alone(run_with_answers_from(graph, CallLog().registry(), options, {})).status
            == "completed"
        )


class Nosy:
    """Materialises by asking for the links of another node, which no check can see."""

    node_type = "nosy"
    inputs = ()
    outputs = (planwave.Port("m", channel=LINK),)

    async def materialize(self, data: Any, output_handle: str, context: Any) -> Any:
        await asyncio.sleep(1)
        return await context.runtime.resolve_links(data["of"], "t")


class Curious:
    """Asks for its links when it is run."""

    node_type = "curious"
    inputs = (planwave.Port("t", channel=LINK),)

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any:
        await context.runtime.resolve_links(context.node_id, "t")


@virtual_time
async def test_a_link_cycle_that_arises_in_a_run_fails_it_with_the_whole_path() -> None:
    registry = planwave.Registry([Nosy, Curious])
    nodes = (
        Node("one", "nosy", "one", data={"of": "v"}),
        Node("two", "nosy", "two", data={"of": "u"}),
        Node("u", "curious", "u"),
        Node("v", "curious", "v"),
    )
    graph = Graph(nodes, (link("one", "u"), link("two", "v")))
    assert [d.code for d in check(graph, registry)] == []
    result = await planwave.run(graph, registry=registry, check=False)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["code"] == "link-cycle"
    steps = ["resolve(u.t)", "materialize(one.m)", "resolve(v.t)", "materialize(two.m)"]
    values = result.error["message"].partition("cycle detected: ")[2].split(" -> ")
    assert values[0] == values[-1]
    assert set(values) == set(steps)
    start = steps.index(values[0])
    assert values[:-1] == steps[start:] + steps[:start]
