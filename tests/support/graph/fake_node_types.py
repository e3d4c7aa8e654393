"""A catalogue of made-up node types, and short ways to write graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import FLOW, LINK, Channel, Edge, Graph, Node, Port
from planwave.graph.protocols import NodeTypeInfo, SchemaOutput
from tests.support.graph.builders import make_edge

MULTIPLE_INPUT = Port("input", multiple=True)
ANY_OUTPUT = Port("output")

NODE_TYPES = {
    facts.node_type: facts
    for facts in (
        NodeTypeInfo("step", "does a step", (MULTIPLE_INPUT, Port("only")), (ANY_OUTPUT,)),
        NodeTypeInfo("source", "begins", (), (ANY_OUTPUT,), entry=True),
        NodeTypeInfo(
            "fork",
            "chooses",
            (MULTIPLE_INPUT,),
            (Port("way-{i}"), Port("else")),
            decided_by_edges=lambda data, leaving: [*leaving],
        ),
        NodeTypeInfo("reply", "replies", (MULTIPLE_INPUT,), (ANY_OUTPUT,), gives_reply=True),
        NodeTypeInfo("pair", "gives two", (MULTIPLE_INPUT,), (Port("left"), Port("right"))),
        NodeTypeInfo(
            "strict", "needs one", (Port("need", "number", required=True),), (ANY_OUTPUT,)
        ),
        NodeTypeInfo("number", "gives a number", (MULTIPLE_INPUT,), (Port("output", "number"),)),
        NodeTypeInfo("words", "gives text", (MULTIPLE_INPUT,), (Port("output", "text"),)),
        NodeTypeInfo(
            "sized",
            "gives text and its length",
            (MULTIPLE_INPUT,),
            (Port("output", "text"), Port("length", "number")),
        ),
        NodeTypeInfo(
            "writer",
            "gives text, or JSON of a schema in its data",
            (MULTIPLE_INPUT,),
            (Port("output", "text"), Port("pages", "json", schema={"type": "array"})),
            schema_output=SchemaOutput("schema", Port("output", "json")),
        ),
        NodeTypeInfo(
            "taker",
            "takes an object with a sum",
            (Port("need", "json", schema={"type": "object", "required": ["sum"]}),),
            (ANY_OUTPUT,),
        ),
        NodeTypeInfo("open", "takes all names", (Port("{name}", multiple=True),), (ANY_OUTPUT,)),
        NodeTypeInfo(
            "gear",
            "is used by others",
            (MULTIPLE_INPUT, Port("gears", channel=LINK, multiple=True)),
            (Port("gear", channel=LINK),),
            executes=False,
            materializes=True,
        ),
        NodeTypeInfo(
            "user",
            "uses gears",
            (
                MULTIPLE_INPUT,
                Port("gears", channel=LINK, multiple=True),
                Port("motor", channel=LINK),
            ),
            (ANY_OUTPUT, Port("gear", channel=LINK)),
            materializes=True,
        ),
        NodeTypeInfo(
            "mechanic",
            "uses screws and gears",
            (MULTIPLE_INPUT, Port("screws", "screw", channel=LINK), Port("gears", channel=LINK)),
            (ANY_OUTPUT,),
        ),
        NodeTypeInfo(
            "guild",
            "is run by its users",
            (MULTIPLE_INPUT,),
            (ANY_OUTPUT, Port("gear", channel=LINK)),
            materializes=True,
            materializes_unresolved=True,
        ),
        NodeTypeInfo(
            "catcher", "has its own error output", (MULTIPLE_INPUT,), (ANY_OUTPUT, Port("error"))
        ),
    )
}


class FakeNodeTypes:
    """Satisfies ``NodeTypes``; ``says`` stands for what node types find in their nodes."""

    def __init__(
        self,
        find_diagnostics: Callable[[Node, Graph], Iterable[Diagnostic]] = lambda node, graph: (),
    ) -> None:
        self.find_diagnostics = find_diagnostics

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        return NODE_TYPES.get(node_type)

    def implementation(self, node_type: str) -> Any:
        raise KeyError(node_type)

    def names(self) -> Sequence[str]:
        return sorted(NODE_TYPES)

    def accepts(self, target_type: str, source_type: str) -> bool:
        return target_type == source_type or "any" in (target_type, source_type)

    def check(self, node: Node, graph: Graph) -> Iterable[Diagnostic]:
        return self.find_diagnostics(node, graph)


def parse_graph(nodes: str, *edges: str, policies: Mapping[str, Any] | None = None) -> Graph:
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
