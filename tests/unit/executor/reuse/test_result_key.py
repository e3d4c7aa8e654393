"""The identity of a result: the same for the same reasons, another for any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import TemplateError
from planwave.executor.node_api.host import NodeHost
from planwave.executor.program import Program
from planwave.executor.reuse.result_key import result_key
from planwave.executor.values import GraphValues
from planwave.graph.model import (
    DEFAULT_POLICY,
    FLOW,
    LINK,
    DataValue,
    Edge,
    Graph,
    Json,
    Node,
    Policy,
)
from planwave.graph.protocols import NodeTypeInfo
from tests.support.engine.generic_nodes import OPEN_AND_LINK_PORTS, GenericNodeTypes
from tests.support.graph.builders import make_edge


class Kinds(GenericNodeTypes):
    """Types ``step``, ``other`` and ``asker`` (reads the goal), of a version."""

    def __init__(self, version: int = 1) -> None:
        super().__init__({})
        self._facts |= {
            name: NodeTypeInfo(
                name,
                "",
                OPEN_AND_LINK_PORTS,
                OPEN_AND_LINK_PORTS,
                materializes=True,
                version=version,
                reads_goal=reads,
            )
            for name, reads in (("step", False), ("other", False), ("asker", True))
        }


@dataclass(frozen=True)
class Scene:
    """All that the result of node ``n`` can follow from, and some that it cannot.

    ``deep`` is linked into ``near``, which is linked into ``n``; ``source`` feeds ``n``, ``feed``
    feeds ``near``.
    """

    kind: str = "asker"
    version: int = 1
    data: Mapping[str, Json] | None = None
    description: str = "Compare"
    value: Json = 1
    handle: str = "input"
    source: str = "source"
    source_name: str = "Source"
    near: Mapping[str, Json] | None = None
    near_handle: str = "helpers"
    deep: Mapping[str, Json] | None = None
    deep_kind: str = "step"
    fed: Json = "f"
    goal: str = "the goal"
    trigger: Json = None
    name: str = "N"
    kind_of_value: str = "any"
    policy: Policy = DEFAULT_POLICY

    def graph(self) -> Graph:
        nodes = (
            Node("feed", "step", "Feed"),
            Node(self.source, "step", self.source_name),
            Node("deep", self.deep_kind, "Deep", data=self.deep or {}),
            Node("near", "step", "Near", data=self.near or {}),
            Node("n", self.kind, self.name, self.description, self.data or {}, self.policy),
        )
        edges = (
            make_edge(self.source, "n", target_handle=self.handle),
            make_edge("feed", "near"),
            make_edge("near", "n", channel=LINK, target_handle=self.near_handle),
            make_edge("deep", "near", channel=LINK),
        )
        return Graph(nodes, edges)

    async def key(self) -> str:
        outputs = {self.source: self.value, "feed": self.fed}
        return await key_in(
            self.graph(),
            outputs,
            version=self.version,
            kind=self.kind_of_value,
            variables={"goal": self.goal, "trigger": self.trigger},
        )


async def key_in(
    graph: Graph,
    outputs: Mapping[str, Json],
    *,
    node: str = "n",
    version: int = 1,
    kind: str = "any",
    variables: Mapping[str, Json] | None = None,
    winner: int | None = None,
) -> str:
    program = Program(graph, Kinds(version))
    host = NodeHost("x1", None, None, None, None, None)
    values = GraphValues(program, variables=variables or {})
    for source, value in outputs.items():
        given = {"output": DataValue(kind, value)}
        values.outputs[program.topology.index[source]] = given
    if winner is not None:
        values.join_winners[program.topology.index[node]] = winner
    return await result_key(host, values, program.topology.index[node])


LEAVES = st.sampled_from([None, True, False, 0, 1, 1.0, -0.5, 10**20, "", "a", "1", "é"])
JSON = LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(st.sampled_from("abc"), LEAVES)
OBJECTS = st.dictionaries(st.sampled_from("xyz"), JSON, max_size=3)
TEXTS = st.text("ab", max_size=3)
NAMES = st.sampled_from(["p", "q", "r"])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "kind": st.just("asker"),
    "version": st.integers(1, 3),
    "data": OBJECTS,
    "description": TEXTS,
    "value": JSON,
    "handle": NAMES,
    "source": NAMES,
    "source_name": NAMES,
    "near": OBJECTS,
    "near_handle": NAMES,
    "deep": OBJECTS,
    "deep_kind": st.sampled_from(["step", "other"]),
    "fed": JSON,
    "goal": TEXTS,
}
SCENES = st.builds(Scene, **FIELDS)


def written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@settings(deadline=None)
@given(SCENES, st.sampled_from(sorted(FIELDS)), st.data())
async def test_any_single_change_changes_the_key(
    scene: Scene, field: str, data: st.DataObject
) -> None:
    changed = replace(scene, **{field: data.draw(FIELDS[field])})
    is_same = written(getattr(scene, field) or None) == written(getattr(changed, field) or None)
    if field in ("value", "fed", "description", "goal"):
        is_same = written(getattr(scene, field)) == written(getattr(changed, field))
    assert (await scene.key() == await changed.key()) is is_same


@settings(deadline=None)
@given(st.dictionaries(st.text("abc", max_size=2), JSON, min_size=2), st.randoms())
async def test_the_order_of_object_keys_does_not_change_the_key(
    values: dict[str, Json], shuffler: Any
) -> None:
    items = list(values.items())
    shuffler.shuffle(items)
    other = dict(items)
    scenes = Scene(data=values, value=values), Scene(data=other, value=other)
    assert await scenes[0].key() == await scenes[1].key()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Another"},
        {"kind_of_value": "text"},
        {"policy": Policy(timeout_s=3)},
        {"trigger": {"from": "somewhere"}},
    ],
    ids=str,
)
async def test_properties_that_a_node_cannot_read_do_not_change_the_key(
    change: dict[str, Any],
) -> None:
    assert await Scene().key() == await Scene(**change).key()


async def test_the_goal_changes_the_key_only_if_the_type_reads_it() -> None:
    keys = {(kind, goal): await Scene(kind=kind, goal=goal).key() for kind in ("asker", "step")
            for goal in ("a", "b")}  # fmt: skip
    assert keys["asker", "a"] != keys["asker", "b"]
    assert keys["step", "a"] == keys["step", "b"]


@pytest.mark.parametrize("variable", ["goal", "trigger"])
async def test_the_key_contains_resolved_templates(variable: str) -> None:
    naming = Scene(kind="step", data={"text": f"about {{{{ {variable} }}}}"})
    first, second = replace(naming, **{variable: "a"}), replace(naming, **{variable: "b"})
    assert await first.key() != await second.key()
    written_out = Scene(kind="step", data={"text": "about a"})
    assert await first.key() == await written_out.key()


async def test_a_template_that_cannot_be_resolved_has_no_key() -> None:
    with pytest.raises(TemplateError, match=r"data\.text"):
        await Scene(data={"text": "{{ input.missing.more }}"}).key()


async def test_the_winner_of_a_join_any_changes_the_key() -> None:
    nodes = tuple(Node(name, "step", name, policy=Policy(join="any")) for name in "abn")
    graph = Graph(nodes, (make_edge("a", "n"), make_edge("b", "n")))
    outputs = {"a": 1, "b": 1}
    keys = [await key_in(graph, outputs, winner=winner) for winner in (0, 1, 0)]
    assert keys[0] == keys[2] != keys[1]
    assert keys[0] == await key_in(graph, {"a": 1}, winner=0)


async def test_nodes_that_do_not_feed_the_node_do_not_change_the_key() -> None:
    small = Graph((Node("a", "step", "a"), Node("n", "step", "n")), (make_edge("a", "n"),))
    more = (Node("x", "step", "x"), *small.nodes, Node("y", "step", "y"))
    large = Graph(more, (make_edge("x", "y"), *small.edges, make_edge("n", "y")))
    assert await key_in(small, {"a": 1}) == await key_in(large, {"x": 2, "a": 1})


def chain(length: int, link: Callable[[int], Sequence[Edge]]) -> Graph:
    nodes = tuple(Node(f"n{i}", "step", "n") for i in range(length))
    return Graph(nodes, tuple(edge for i in range(length - 1) for edge in link(i)))


@pytest.mark.parametrize("wires", [1, 2])
async def test_keys_of_long_and_branching_links_take_linear_time(wires: int) -> None:
    """Counted by paths, the second would be 2 to the power of 4999."""

    def link(i: int) -> list[Edge]:
        ends = [(f"n{i + 1}", f"n{i}", f"in{wire}") for wire in range(wires)]
        return [make_edge(s, t, channel=LINK, target_handle=h) for s, t, h in ends]

    graph = chain(5000, link)
    last = graph.nodes[-1]
    changed = Graph((*graph.nodes[:-1], last._replace(data={"x": 1})), graph.edges)
    assert await key_in(graph, {}, node="n0") != await key_in(changed, {}, node="n0")


async def test_a_link_and_a_flow_edge_give_different_keys() -> None:
    nodes = (Node("a", "step", "a"), Node("n", "step", "n"))
    keys = {
        await key_in(Graph(nodes, (make_edge("a", "n", channel=channel),)), {"a": 1})
        for channel in (FLOW, LINK)
    }
    assert len(keys) == 2
