"""A catalogue of made-up node types, and short ways to write graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from planwave.graph.capabilities import NodeFacts
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import FLOW, LINK, Channel, Edge, Graph, Node, Port
from tests.fakes.wires import make_edge

MANY = Port("input", multiple=True)
ANY_OUT = Port("output")

FACTS = {
    facts.node_type: facts
    for facts in (
        NodeFacts("step", "does a step", (MANY, Port("only")), (ANY_OUT,)),
        NodeFacts("source", "begins", (), (ANY_OUT,), entry=True),
        NodeFacts("fork", "chooses", (MANY,), (Port("way-{i}"), Port("else"))),
        NodeFacts("pair", "gives two", (MANY,), (Port("left"), Port("right"))),
        NodeFacts("strict", "needs one", (Port("need", "number", required=True),), (ANY_OUT,)),
        NodeFacts("number", "gives a number", (MANY,), (Port("output", "number"),)),
        NodeFacts("words", "gives text", (MANY,), (Port("output", "text"),)),
        NodeFacts("open", "takes all names", (Port("{name}", multiple=True),), (ANY_OUT,)),
        NodeFacts(
            "gear",
            "is used by others",
            (MANY, Port("gears", channel=LINK, multiple=True)),
            (Port("gear", channel=LINK),),
            executes=False,
            materializes=True,
        ),
        NodeFacts(
            "user",
            "uses gears",
            (MANY, Port("gears", channel=LINK, multiple=True), Port("motor", channel=LINK)),
            (ANY_OUT, Port("gear", channel=LINK)),
            materializes=True,
        ),
        NodeFacts("catcher", "has its own error output", (MANY,), (ANY_OUT, Port("error"))),
    )
}


class FakeCatalogue:
    """Satisfies ``Catalogue``; ``says`` stands for what node types find in their nodes."""

    def __init__(
        self, says: Callable[[Node, Graph], Iterable[Diagnostic]] = lambda node, graph: ()
    ) -> None:
        self.says = says

    def facts(self, node_type: str) -> NodeFacts | None:
        return FACTS.get(node_type)

    def implementation(self, node_type: str) -> Any:
        raise KeyError(node_type)

    def names(self) -> Sequence[str]:
        return sorted(FACTS)

    def accepts(self, target_type: str, source_type: str) -> bool:
        return target_type == source_type or "any" in (target_type, source_type)

    def check(self, node: Node, graph: Graph) -> Iterable[Diagnostic]:
        return self.says(node, graph)


def graph_of(nodes: str, *edges: str, policies: Mapping[str, Any] | None = None) -> Graph:
    """Write a graph in short: ``graph_of("a:step b:step", "a>b", "g.gear~a.gears")``.

    A node is ``id`` or ``id:type`` (``step`` if left out); an edge is ``source.handle>target.handle``
    for flow, with ``~`` for a link; ``policies`` holds a ``Policy`` by node id.
    """
    given = policies or {}
    made: list[Node] = []
    for word in nodes.split():
        node_id, _, kind = word.partition(":")
        node = Node(node_id, kind or "step", node_id)
        made.append(node._replace(policy=given[node_id]) if node_id in given else node)
    return Graph(tuple(made), tuple(_edge(text, n) for n, text in enumerate(edges, 1)))


def _edge(text: str, number: int) -> Edge:
    channel: Channel = LINK if "~" in text else FLOW
    source, target = text.split("~" if channel == LINK else ">")
    source_id, _, source_handle = source.partition(".")
    target_id, _, target_handle = target.partition(".")
    return make_edge(
        source_id,
        target_id,
        channel=channel,
        source_handle=source_handle or "output",
        target_handle=target_handle or "input",
        edge_id=f"e{number}",
    )
