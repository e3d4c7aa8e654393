"""Waves, depth, width and critical path."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import GraphInvalid
from planwave.graph.checking.cycles import cycle_diagnostics
from planwave.graph.model import Graph, Node
from planwave.graph.shape import GraphShape, measure
from planwave.graph.topology import Topology
from tests.support.graph.builders import make_edge
from tests.support.graph.fake_node_types import parse_graph
from tests.support.paths import SHARED

SHAPES = SHARED / "data" / "shapes.jsonl"


def test_a_diamond_has_three_waves() -> None:
    graph = parse_graph(
        "end start left right", "start>left", "start>right", "left>end", "right>end"
    )
    assert measure(graph, {"right": 5.0}) == GraphShape(
        waves=[["start"], ["left", "right"], ["end"]],
        depth=3,
        width=2,
        critical_path=["start", "right", "end"],
        critical_path_s=7.0,
    )


def test_an_empty_graph_has_no_waves() -> None:
    assert measure(Graph((), ())) == GraphShape([], 0, 0, [], 0.0)


def test_of_equal_paths_the_first_in_graph_order_is_critical() -> None:
    assert measure(parse_graph("a b c d", "b>d", "a>d", "a>c")).critical_path == ["a", "c"]


def test_a_gate_is_in_no_wave_but_delays_its_consumers() -> None:
    graph = parse_graph("a g u b", "a>g", "g~u", "b>u")
    measured = measure(graph, {"a": 3.0, "g": 100.0})
    assert measured.waves == [["a", "b"], ["u"]]
    assert (measured.critical_path, measured.critical_path_s) == (["a", "u"], 4.0)


def test_a_node_that_only_materializes_is_in_no_wave() -> None:
    assert measure(parse_graph("a g"), linked={"g"}).waves == [["a"]]


def test_a_graph_with_a_cycle_has_no_shape() -> None:
    with pytest.raises(GraphInvalid, match="a -> b -> a"):
        measure(parse_graph("a b", "a>b", "b>a"))


@given(st.data())
def test_waves_and_critical_path_match_their_definitions(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 8))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    order = data.draw(st.permutations(range(size)))
    wires = {(order[min(p)], order[max(p)]) for p in data.draw(st.lists(pairs)) if p[0] != p[1]}
    seconds = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    nodes = tuple(Node(f"n{i}", "step", "n") for i in range(size))
    graph = Graph(nodes, tuple(make_edge(f"n{a}", f"n{b}") for a, b in sorted(wires)))

    @cache
    def depth(node: int) -> int:
        return max((depth(a) + 1 for a, b in wires if b == node), default=1)

    @cache
    def finish(node: int) -> int:
        return seconds[node] + max((finish(a) for a, b in wires if b == node), default=0)

    measured = measure(graph, {f"n{i}": float(s) for i, s in enumerate(seconds)})
    assert measured.waves == [
        [f"n{i}" for i in range(size) if depth(i) == wave]
        for wave in range(1, max(map(depth, range(size))) + 1)
    ]
    assert measured.depth == len(measured.waves)
    assert measured.width == max(map(len, measured.waves))
    assert measured.critical_path_s == max(map(finish, range(size)))
    steps = [int(one[1:]) for one in measured.critical_path]
    assert sum(seconds[i] for i in steps) == measured.critical_path_s
    assert all(step in wires for step in itertools.pairwise(steps))


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SHAPES.read_text("utf-8").splitlines()]


def graph_from(line: dict[str, Any]) -> Graph:
    nodes = tuple(Node(f"n{i}", "step", "n") for i in range(line["n"]))
    return Graph(nodes, tuple(make_edge(f"n{a}", f"n{b}") for a, b in line["edges"]))


@pytest.mark.skipif(not SHAPES.exists(), reason="the recorded shapes are not here")
def test_the_critical_path_of_recorded_task_graphs_is_their_optimum() -> None:
    timed = [line for line in recorded() if line.get("optimal_s") is not None]
    wrong: list[str] = []
    for line in timed:
        durations = {f"n{i}": float(s) for i, s in enumerate(line["dur"])}
        measured = measure(graph_from(line), durations).critical_path_s
        if not math.isclose(measured, line["optimal_s"]):
            wrong.append(line["id"])
    assert len(timed) > 700
    assert len(wrong) <= 2, wrong


@pytest.mark.skipif(not SHAPES.exists(), reason="the recorded shapes are not here")
def test_recorded_graphs_are_measured_or_reported_as_cyclic() -> None:
    cyclic = 0
    for line in recorded():
        graph = graph_from(line)
        try:
            measured = measure(graph)
        except GraphInvalid as error:
            cyclic += 1
            codes = {d.code for d in error.diagnostics}
            assert codes == {"flow-cycle"}
        else:
            assert sum(map(len, measured.waves)) == line["n"]
            assert cycle_diagnostics(Topology(graph)) == []
    assert cyclic > 0
