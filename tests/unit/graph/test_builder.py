"""Graphs written in Python: their documents, and the mistakes reported at once."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import InputError
from planwave.graph.builder import GraphBuilder
from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph


def wires(g: GraphBuilder) -> list[str]:
    """The edges in short: ``a.output>b.input``, with ``~`` for links."""
    return [
        f"{e['source']}.{e['sourceHandle']}{'~' if e['data']['channel'] == 'link' else '>'}"
        f"{e['target']}.{e['targetHandle']}"
        for e in g.document()["edges"]
    ]


def three() -> tuple[GraphBuilder, Any, Any, Any]:
    g = GraphBuilder()
    return g, g.node("step", id="a"), g.node("step", id="b"), g.node("step", id="c")


def test_a_node_is_written_as_in_a_document() -> None:
    g = GraphBuilder()
    g.node(
        "agent",
        id="x",
        name="X",
        description="Do it.",
        data={"provider": "p"},
        policy={"retry": {"attempts": 2}},
        ui={"position": {"x": 1}},
        systemPrompt="Be brief.",
    )
    assert g.document() == {
        "nodes": [
            {
                "id": "x",
                "type": "agent",
                "name": "X",
                "description": "Do it.",
                "data": {"provider": "p", "systemPrompt": "Be brief."},
                "policy": {"retry": {"attempts": 2}},
                "ui": {"position": {"x": 1}},
            }
        ],
        "edges": [],
    }


def test_omitted_fields_are_not_in_the_document() -> None:
    g = GraphBuilder()
    g.node("step", id="x")
    assert g.document()["nodes"] == [{"id": "x", "type": "step"}]


def test_ids_are_generated_from_types_deterministically() -> None:
    def made() -> list[str]:
        g = GraphBuilder()
        g.node("step", id="step-2")
        return [g.node(kind).id for kind in ("step", "step", "pair", "step")]

    assert made() == made() == ["step", "step-3", "pair", "step-4"]


def test_an_id_generated_from_a_long_type_is_valid() -> None:
    g = GraphBuilder()
    assert g.node("t" * 64).id == "t" * 64
    second = g.node("t" * 64)
    assert second.id == f"{'t' * 56}-2"
    assert len(read_graph(g.document())[0].nodes) == 2


def test_edges_go_from_output_to_input_unless_handles_are_named() -> None:
    g, a, b, c = three()
    a >> b
    a["left"] >> b["doc"]
    a >> c["doc"]
    b["right"] >> c
    assert wires(g) == ["a.output>b.input", "a.left>b.doc", "a.output>c.doc", "b.right>c.input"]
    assert [edge["id"] for edge in g.document()["edges"]] == ["e1", "e2", "e3", "e4"]


def test_a_chain_continues_from_the_node_of_a_handle() -> None:
    g, a, b, c = three()
    end = a >> b["doc"] >> c
    assert wires(g) == ["a.output>b.doc", "b.output>c.input"]
    assert end.id == "c"


def test_a_chain_may_fan_out_and_join() -> None:
    g, a, b, c = three()
    d = g.node("step", id="d")
    a >> [b, c["doc"]] >> d["doc"]
    assert wires(g) == ["a.output>b.input", "a.output>c.doc", "b.output>d.doc", "c.output>d.doc"]


def test_links_enter_a_handle() -> None:
    g, a, b, c = three()
    a.link(b, "tools")
    a["gear"].link(c["gears"])
    c.link(b)
    assert wires(g) == ["a.output~b.tools", "a.gear~c.gears", "c.output~b.input"]


def test_a_repeated_edge_is_added_once_per_channel() -> None:
    g, a, b, _ = three()
    a >> b
    a["output"] >> b["input"]
    a.link(b)
    assert wires(g) == ["a.output>b.input", "a.output~b.input"]


def test_the_document_is_read_without_findings_and_written_back_equal() -> None:
    g, a, b, c = three()
    a >> [b, c]
    a.link(c, "tools")
    graph, findings = read_graph(g.document())
    assert findings == []
    assert isinstance(graph, Graph)
    again = read_graph(graph.to_document())[0]
    assert again == graph


def test_documents_are_independent_copies() -> None:
    g = GraphBuilder()
    given: dict[str, Any] = {"deep": {"list": [1]}}
    g.node("step", id="x", data=given)
    given["deep"]["list"].append(2)
    g.document()["nodes"][0]["data"]["deep"]["list"].append(3)
    assert g.document()["nodes"][0]["data"] == {"deep": {"list": [1]}}


@pytest.mark.parametrize(
    ("mistake", "code", "named"),
    [
        (lambda g: g.node("step", id="a"), "duplicate-id", "'a'"),
        (lambda g: g.node("step", id="Ä b"), "invalid-id", "'Ä b'"),
        (lambda g: g.node("", id=None), "invalid-id", "''"),
        (lambda g: g.node("step", data={"x": 1}, x=2), "duplicate-key", "data.x"),
        (lambda g: g.node("step", id="b") >> GraphBuilder().node("step"), "foreign-node", "'step'"),
        (lambda g: GraphBuilder().node("other").link(g.node("mine")), "foreign-node", "'mine'"),
    ],
)
def test_a_mistake_is_reported_with_code_location_and_hint(
    mistake: Any, code: str, named: str
) -> None:
    g = GraphBuilder()
    g.node("step", id="a")
    with pytest.raises(InputError, match=named) as caught:
        mistake(g)
    assert caught.value.code == code
    assert caught.value.hint
    assert g.document()["edges"] == []


def test_a_rejected_node_is_not_added() -> None:
    g = GraphBuilder()
    with pytest.raises(InputError):
        g.node("step", id="x", data={"y": 1}, y=1)
    assert g.node("step", id="x").id == "x"
    assert len(g.document()["nodes"]) == 1


def test_only_nodes_and_handles_can_be_connected() -> None:
    g, a, b, _ = three()
    for wrong in ("b", ["b"], 3, None):
        with pytest.raises(TypeError, match=">>"):
            a >> wrong
        with pytest.raises(TypeError, match=">>"):
            wrong >> a
    with pytest.raises(TypeError, match="one handle already"):
        a.link(b["tools"], "tools")
    with pytest.raises(TypeError, match="not iterable"):
        list(a)
    assert wires(g) == []


def test_nodes_and_handles_have_a_readable_repr() -> None:
    _, a, b, _ = three()
    assert [repr(a), repr(b["tools"])] == ["<node 'a'>", "<handle 'tools' of node 'b'>"]
    assert repr(b["tools"].node) == "<node 'b'>"
