"""Does an edge fit its two ends?"""

from __future__ import annotations

import pytest

from planwave.graph.checking.checker import check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import NodeTypeInfo
from tests.support.graph.fake_node_types import FakeNodeTypes, parse_graph


def only(graph: Graph) -> Diagnostic:
    [diagnostic] = check(graph, FakeNodeTypes())
    return diagnostic


@pytest.mark.parametrize(
    ("nodes", "edge", "pointer", "message"),
    [
        ("a b", "a.nope>b", "/edges/0/sourceHandle", "its outputs are output"),
        ("a b", "a>b.nope", "/edges/0/targetHandle", "its inputs are input, only"),
        ("f:fork b", "f.way-01>b", "/edges/0/sourceHandle", "its outputs are way-{i}, else"),
        ("a s:source", "a>s", "/edges/0/targetHandle", "it has no inputs"),
        ("g:gear u:user", "g.error~u.gears", "/edges/0/sourceHandle", "its outputs are gear"),
    ],
)
def test_an_unknown_handle_is_reported_with_the_known_ones(
    nodes: str, edge: str, pointer: str, message: str
) -> None:
    diagnostic = only(parse_graph(nodes, edge))
    assert (diagnostic.code, diagnostic.pointer) == ("unknown-handle", pointer)
    assert message in diagnostic.message


@pytest.mark.parametrize(
    ("nodes", "edge", "hint"),
    [
        ("a b", "a.ouput>b", "did you mean 'output'?"),
        ("a b", "a>b.nope", 'write "targetHandle": "input"; in Python, connect node["input"]'),
        ("f:fork b", "f.nope>b", 'write "sourceHandle": "way-0"; in Python, connect node["way-0"]'),
        ("a s:source", "a>s", None),
    ],
)
def test_an_unknown_handle_comes_with_one_that_exists(
    nodes: str, edge: str, hint: str | None
) -> None:
    assert only(parse_graph(nodes, edge)).hint == hint


def test_unknown_handles_at_both_ends_are_both_reported() -> None:
    codes = [d.code for d in check(parse_graph("a b", "a.x>b.y"), FakeNodeTypes())]
    assert codes == ["unknown-handle", "unknown-handle"]


@pytest.mark.parametrize(
    ("nodes", "edge", "hint"),
    [
        ("a b", "a~b", 'write "channel": "flow"'),
        ("u:user v:user", "u.gear>v.gears", 'write "channel": "link"'),
        ("a u:user", "a>u.gears", "these two cannot be connected"),
        ("a u:nope", "a~u", 'write "channel": "flow"'),
        (
            "g:gear u:user",
            "g.gear>u",
            "connect it with a link to the node that uses it; "
            "in Python, pass the node as a keyword: gears=node",
        ),
        (
            "g:gear f:mechanic",
            "g.gear>f",
            "connect it with a link to the node that uses it; "
            "in Python, pass the node as a keyword: gears=node",
        ),
        ("g:gear b", "g.gear>b", "connect it with a link to the node that uses it"),
        ("a u:user", "a.error~u.gears", None),
    ],
)
def test_a_wrong_channel_is_reported_with_the_right_one(
    nodes: str, edge: str, hint: str | None
) -> None:
    found = check(parse_graph(nodes, edge), FakeNodeTypes())
    wrong = [d for d in found if d.code == "channel-mismatch"]
    assert [(d.pointer, d.hint) for d in wrong] == [("/edges/0/data/channel", hint)]


def test_the_error_handle_does_not_fit_a_link_socket() -> None:
    codes = [d.code for d in check(parse_graph("a u:user", "a.error>u.gears"), FakeNodeTypes())]
    assert "channel-mismatch" in codes


def test_an_unknown_channel_is_found_in_graphs_made_by_code() -> None:
    graph = parse_graph("a b", "a>b")
    odd = graph.edges[0]._replace(channel="wire")  # pyright: ignore[reportArgumentType]
    diagnostic = only(Graph(graph.nodes, (odd,)))
    assert (diagnostic.code, diagnostic.hint) == ("unknown-channel", "channels are flow and link")


def test_a_type_mismatch_names_both_types() -> None:
    diagnostic = only(parse_graph("w:words x:strict", "w>x.need"))
    assert diagnostic.code == "type-mismatch"
    assert "'output' is of type text, input 'need' accepts number" in diagnostic.message
    assert diagnostic.hint == "put a node between them that converts the value"


def test_a_type_mismatch_names_another_output_that_fits() -> None:
    diagnostic = only(parse_graph("c:sized x:strict", "c>x.need"))
    assert diagnostic.code == "type-mismatch"
    assert diagnostic.hint == "use the output 'length' of the same node"


def test_a_list_never_fits_an_object() -> None:
    diagnostic = only(parse_graph("w:writer x:taker", "w.pages>x.need"))
    assert (diagnostic.code, diagnostic.pointer) == ("type-mismatch", "/edges/0")
    assert (
        "what leaves 'pages' never fits 'need': it is a list, not an object" in diagnostic.message
    )


def test_an_output_has_the_schema_in_the_data_of_its_node() -> None:
    graph = parse_graph("w:writer v:writer u:writer x:taker", "w>x.need")

    def found(schema: Json) -> list[str]:
        data = {"schema": schema} if schema is not None else {}
        nodes = (graph.nodes[0]._replace(data=data), *graph.nodes[1:])
        return [d.message for d in check(Graph(nodes, graph.edges), FakeNodeTypes())]

    fitting = {"type": "object", "properties": {"sum": {"type": "number"}}}
    assert found(fitting) == []
    other = {"type": "object", "properties": {"total": {"type": "number"}}}
    assert "it has no field 'sum'" in found(other)[0]
    for none in (None, "{{ schema }}"):
        assert "'output' is of type text, input 'need' accepts json" in found(none)[0]
    diagnostic = only(graph)
    assert (
        diagnostic.hint == "write a JSON Schema into data.schema: the output is of type json then"
    )


def test_nodes_of_a_type_are_told_apart_by_their_schemas() -> None:
    graph = parse_graph("w:writer v:writer x:taker y:taker", "w>x.need", "v>y.need")
    nodes = (graph.nodes[0]._replace(data={"schema": {"type": "object"}}), *graph.nodes[1:])
    codes = [(d.code, d.pointer) for d in check(Graph(nodes, graph.edges), FakeNodeTypes())]
    assert codes == [("type-mismatch", "/edges/1")]


class _Deciding(FakeNodeTypes):
    """A catalogue in which a field of the type ``node`` decides what is allowed."""

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        found = super().type_info(node_type)
        return found and found._replace(policy_fields=frozenset({"rule"}))


@pytest.mark.parametrize("edge", ["a>b.rule", "a~b.rule"])
def test_no_edge_leads_into_a_field_that_decides_what_is_allowed(edge: str) -> None:
    (found,) = check(parse_graph("a b", edge), _Deciding())
    assert (found.code, found.pointer) == ("policy-field", "/edges/0/targetHandle")
    assert "write the value into data.rule" in (found.hint or "")
