"""Edges that never deliver in the same run, however far behind the choice they are."""

from __future__ import annotations

import pytest

from planwave.graph.capabilities import NodeFacts
from planwave.graph.check import check
from planwave.graph.choices import Choices
from planwave.graph.model import Graph, Policy, Port
from planwave.graph.topology import Topology
from tests.fakes.catalogue import FakeCatalogue, graph_of


class Judges(FakeCatalogue):
    """Has types whose outputs are named by the node: one sends through all, one through one."""

    def facts(self, node_type: str) -> NodeFacts | None:
        if node_type not in ("judge", "herald"):
            return super().facts(node_type)
        chooses = node_type == "judge"
        ports = (Port("input", multiple=True),), (Port("{name}"),)
        return NodeFacts(node_type, "", *ports, chooses=chooses)


CONTINUE = Policy(on_error="continue")


def codes(graph: Graph) -> list[str]:
    return [d.code for d in check(graph, Judges()) if d.severity == "error"]


@pytest.mark.parametrize(
    "graph",
    [
        graph_of("f:fork a b c", "f.way-0>a", "f.else>b", "a>c.only", "b>c.only"),
        graph_of("j:judge c", "j.yes>c.only", "j.no>c.only"),
        graph_of("f:fork a c", "f.way-0>a", "a>c.only", "f.else>c.only"),
        graph_of("f:fork c d", "f.way-0>c.only", "f.else>c.only", "f.way-0>d.only", "f.else>d.only"),
        graph_of("f:fork a a2 b c", "f.way-0>a", "a>a2", "f.way-1>b", "a2>c.only", "b>c.only"),
        graph_of("a h c", "a>c.only", "a.error>h", "h>c.only", policies={"a": CONTINUE}),
        graph_of(
            "f:fork g:fork a b c",
            "f.way-0>g", "g.way-0>a", "g.way-1>b", "a>c.only", "b>c.only", "f.else>c.only",
        ),
        graph_of(
            "f:fork a b m c", "f.way-0>a", "f.way-0>b", "a>m", "b>m", "m>c.only", "f.else>c.only"
        ),
    ],
)  # fmt: skip
def test_branches_of_one_choice_may_meet_at_a_port_for_one(graph: Graph) -> None:
    assert codes(graph) == []


@pytest.mark.parametrize(
    "graph",
    [
        graph_of("f:fork a b c", "f.way-0>a", "f.way-0>b", "a>c.only", "b>c.only"),
        graph_of("f:fork x a b c", "f.way-0>a", "x>a", "f.else>b", "a>c.only", "b>c.only"),
        graph_of("f:fork a b c", "f.way-0>a", "f.else>b", "f.way-1>b", "a>c.only", "b>c.only", "f.else>a"),
        graph_of("h:herald c", "h.yes>c.only", "h.no>c.only"),
        graph_of("p:pair a b c", "p.left>a", "p.right>b", "a>c.only", "b>c.only"),
        graph_of("f:fork g:fork a b c", "f.way-0>a", "g.else>b", "a>c.only", "b>c.only"),
    ],
)  # fmt: skip
def test_branches_that_can_both_be_taken_are_too_many(graph: Graph) -> None:
    assert codes(graph) == ["too-many-inputs"]


def test_what_a_linked_node_waits_for_is_no_choice_of_its_consumers() -> None:
    graph = graph_of(
        "f:fork g:gear u:user c", "f.way-0>g", "g~u.motor", "u>c.only", "f.else>c.only"
    )
    assert "too-many-inputs" in codes(graph)


def test_choices_beyond_the_memory_are_lost_and_the_nearest_kept() -> None:
    forks = 70
    names = " ".join(f"f{n}:fork" for n in range(forks))
    chain = [f"f{n}.way-0>f{n + 1}" for n in range(forks - 1)]
    near = graph_of(f"{names} a b c", *chain, f"f{forks - 1}.way-0>a", f"f{forks - 1}.else>b")
    facts = {kind: FakeCatalogue().facts(kind) for kind in {n.type for n in near.nodes}}
    last = len(near.edges) - 1
    assert Choices(Topology(near), facts).are_exclusive([last, last - 1])
    far = graph_of(f"{names} a b c", "f0.else>a", *chain, f"f{forks - 1}.way-0>b")
    assert not Choices(Topology(far), facts).are_exclusive([0, len(far.edges) - 1])
