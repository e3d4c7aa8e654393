"""Edges that never deliver in the same run, however far behind the choice they are."""

from __future__ import annotations

import pytest

from planwave.graph.checking.checker import check
from planwave.graph.checking.exclusive import ExclusiveBranches
from planwave.graph.model import Graph, Policy, Port
from planwave.graph.protocols import NodeTypeInfo
from planwave.graph.topology import Topology
from tests.support.graph.fake_node_types import FakeNodeTypes, parse_graph


class BranchingNodeTypes(FakeNodeTypes):
    """Has types whose outputs are named by the node: one sends through all, one through one."""

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        if node_type not in ("judge", "herald"):
            return super().type_info(node_type)
        chooses = node_type == "judge"
        ports = (Port("input", multiple=True),), (Port("{name}"),)
        return NodeTypeInfo(node_type, "", *ports, chooses=chooses)


CONTINUE = Policy(on_error="continue")


def codes(graph: Graph) -> list[str]:
    return [d.code for d in check(graph, BranchingNodeTypes()) if d.severity == "error"]


@pytest.mark.parametrize(
    "graph",
    [
        parse_graph("f:fork a b c", "f.way-0>a", "f.else>b", "a>c.only", "b>c.only"),
        parse_graph("j:judge c", "j.yes>c.only", "j.no>c.only"),
        parse_graph("f:fork a c", "f.way-0>a", "a>c.only", "f.else>c.only"),
        parse_graph("f:fork c d", "f.way-0>c.only", "f.else>c.only", "f.way-0>d.only", "f.else>d.only"),
        parse_graph("f:fork a a2 b c", "f.way-0>a", "a>a2", "f.way-1>b", "a2>c.only", "b>c.only"),
        parse_graph("a h c", "a>c.only", "a.error>h", "h>c.only", policies={"a": CONTINUE}),
        parse_graph(
            "f:fork g:fork a b c",
            "f.way-0>g", "g.way-0>a", "g.way-1>b", "a>c.only", "b>c.only", "f.else>c.only",
        ),
        parse_graph(
            "f:fork a b m c", "f.way-0>a", "f.way-0>b", "a>m", "b>m", "m>c.only", "f.else>c.only"
        ),
    ],
)  # fmt: skip
def test_branches_of_one_choice_may_meet_at_a_port_for_one(graph: Graph) -> None:
    assert codes(graph) == []


@pytest.mark.parametrize(
    "graph",
    [
        parse_graph("f:fork a b c", "f.way-0>a", "f.way-0>b", "a>c.only", "b>c.only"),
        parse_graph("f:fork x a b c", "f.way-0>a", "x>a", "f.else>b", "a>c.only", "b>c.only"),
        parse_graph("f:fork a b c", "f.way-0>a", "f.else>b", "f.way-1>b", "a>c.only", "b>c.only", "f.else>a"),
        parse_graph("h:herald c", "h.yes>c.only", "h.no>c.only"),
        parse_graph("p:pair a b c", "p.left>a", "p.right>b", "a>c.only", "b>c.only"),
        parse_graph("f:fork g:fork a b c", "f.way-0>a", "g.else>b", "a>c.only", "b>c.only"),
    ],
)  # fmt: skip
def test_branches_that_can_both_be_taken_are_too_many(graph: Graph) -> None:
    assert codes(graph) == ["too-many-inputs"]


def test_a_branch_into_a_gate_does_not_exclude_its_consumers() -> None:
    graph = parse_graph(
        "f:fork g:gear u:user c", "f.way-0>g", "g~u.motor", "u>c.only", "f.else>c.only"
    )
    assert "too-many-inputs" in codes(graph)


def test_beyond_the_bound_only_the_nearest_choices_are_tracked() -> None:
    forks = 70
    names = " ".join(f"f{n}:fork" for n in range(forks))
    chain = [f"f{n}.way-0>f{n + 1}" for n in range(forks - 1)]
    near = parse_graph(f"{names} a b c", *chain, f"f{forks - 1}.way-0>a", f"f{forks - 1}.else>b")
    facts = {kind: FakeNodeTypes().type_info(kind) for kind in {n.type for n in near.nodes}}
    last = len(near.edges) - 1
    assert ExclusiveBranches(Topology(near), facts).are_exclusive([last, last - 1])
    far = parse_graph(f"{names} a b c", "f0.else>a", *chain, f"f{forks - 1}.way-0>b")
    assert not ExclusiveBranches(Topology(far), facts).are_exclusive([0, len(far.edges) - 1])
