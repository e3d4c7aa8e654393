"""Graphs built in Python: their documents, and the mistakes reported at once."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import InputError
from planwave.graph.builder import DocumentBuilder, NodeFields, NodeRef
from planwave.graph.model import Graph, Retry
from planwave.graph.reading.documents import read_graph
from tests.support.graph.fake_node_types import FakeNodeTypes


class Builder(DocumentBuilder):
    """The builder alone, with a method that adds nodes."""

    def node(
        self,
        node_type: str,
        node_id: str | None = None,
        fields: NodeFields = NodeFields(),  # noqa: B008
        edges: dict[str, Any] | None = None,
        **keywords: Any,
    ) -> NodeRef[Any]:
        return NodeRef(self, self._add_node(node_type, node_id, fields, keywords, edges or {}))


def wires(g: DocumentBuilder) -> list[str]:
    """The edges in short: ``a.output>b.input``, with ``~`` for links."""
    return [
        f"{e['source']}.{e['sourceHandle']}{'~' if e['data']['channel'] == 'link' else '>'}"
        f"{e['target']}.{e['targetHandle']}"
        for e in g.document()["edges"]
    ]


def three() -> tuple[Builder, Any, Any, Any]:
    g = Builder()
    return g, g.node("step", "a"), g.node("step", "b"), g.node("step", "c")


def test_a_node_is_written_as_in_a_document() -> None:
    g = Builder()
    fields = NodeFields(
        name="X",
        description="Do it.",
        data={"provider": "p"},
        policy={"retry": {"attempts": 2}},
        ui={"position": {"x": 1}},
    )
    g.node("agent", "x", fields, system_prompt="Be brief.")
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
    g = Builder()
    g.node("step", "x")
    g.node("step", "y", NodeFields(data={}, policy={}, ui={}))
    assert g.document()["nodes"] == [
        {"id": "x", "type": "step"},
        {"id": "y", "type": "step", "data": {}, "policy": {}, "ui": {}},
    ]


def test_ids_are_generated_from_types_deterministically() -> None:
    def made() -> list[str]:
        g = Builder()
        g.node("step", "step-2")
        return [g.node(kind).id for kind in ("step", "step", "pair", "step")]

    assert made() == made() == ["step", "step-3", "pair", "step-4"]


def test_an_id_generated_from_a_long_type_is_valid() -> None:
    g = Builder()
    assert g.node("t" * 64).id == "t" * 64
    second = g.node("t" * 64)
    assert second.id == f"{'t' * 56}-2"
    assert len(read_graph(g.document())[0].nodes) == 2


def test_a_node_as_a_keyword_is_an_edge_into_the_input_of_that_name() -> None:
    g, a, b, _ = three()
    g.node("step", "d", input=a, doc=b["left"])
    g.node("step", "e", input=[b, a["right"]])
    assert wires(g) == ["a.output>d.input", "b.left>d.doc", "b.output>e.input", "a.right>e.input"]
    assert [edge["id"] for edge in g.document()["edges"]] == ["e1", "e2", "e3", "e4"]


def test_inputs_whose_names_are_no_keywords_are_written_in_edges() -> None:
    g, a, b, _ = three()
    g.node("step", "d", edges={"condition-0": a, "condition-1": [a, b["left"]]})
    assert wires(g) == ["a.output>d.condition-0", "a.output>d.condition-1", "b.left>d.condition-1"]


def test_a_graph_as_a_field_is_a_builder() -> None:
    body = Builder()
    body.node("step", "inside")
    g = Builder()
    g.node("loop", body=body)
    assert g.document()["nodes"][0]["data"] == {"body": body.document()}


def test_an_edge_has_an_id_a_channel_data_and_a_type() -> None:
    g, a, b, c = three()
    g.edge(a, b)
    g.edge(a["left"], b["doc"], id="e1", data={"note": 1}, type="smooth")
    g.edge(b, c, channel="link")
    assert wires(g) == ["a.output>b.input", "a.left>b.doc", "b.output~c.input"]
    first, second, third = g.document()["edges"]
    assert [first["id"], second["id"], third["id"]] == ["e2", "e1", "e3"]
    assert second["data"] == {"note": 1, "channel": "flow"}
    assert second["type"] == "smooth"


def test_the_same_ends_may_have_an_edge_for_each_channel() -> None:
    g, a, b, _ = three()
    g.edge(a, b)
    g.edge(a, b, channel="link")
    assert wires(g) == ["a.output>b.input", "a.output~b.input"]


def test_the_channel_of_an_edge_is_that_of_its_ends_where_the_types_are_known() -> None:
    g = Builder(FakeNodeTypes())
    gear, user = g.node("gear", "gear"), g.node("user", "u")
    g.node("user", "v", gears=[gear, user], motor=gear["gear"], input=user)
    assert wires(g) == [
        "gear.gear~v.gears",
        "u.gear~v.gears",
        "gear.gear~v.motor",
        "u.output>v.input",
    ]


def test_an_input_that_takes_one_edge_refuses_several() -> None:
    g = Builder(FakeNodeTypes())
    a, b = g.node("step", "a"), g.node("step", "b")
    with pytest.raises(TypeError, match="'only' of node 'c' takes one edge, not 2"):
        g.node("step", "c", only=[a, b])
    assert g.node("step", "c", input=[a, b], only=a).id == "c"


def test_the_document_is_read_without_findings_and_written_back_equal() -> None:
    g, a, b, c = three()
    g.edge(a, b)
    g.edge(a, c["tools"], channel="link")
    graph, findings = read_graph(g.document())
    assert findings == []
    assert isinstance(graph, Graph)
    again = read_graph(graph.to_document())[0]
    assert again == graph


def test_documents_are_independent_copies() -> None:
    g = Builder()
    data: dict[str, Any] = {"deep": {"list": [1]}}
    x = g.node("step", "x", NodeFields(data=data))
    edge_data: dict[str, Any] = {"deep": [1]}
    g.edge(x["a"], x["b"], data=edge_data)
    data["deep"]["list"].append(2)
    edge_data["deep"].append(2)
    document = g.document()
    document["nodes"][0]["data"]["deep"]["list"].append(3)
    document["edges"][0]["data"]["deep"].append(3)
    assert g.document()["nodes"][0]["data"] == {"deep": {"list": [1]}}
    assert g.document()["edges"][0]["data"] == {"deep": [1], "channel": "flow"}


@pytest.mark.parametrize(
    ("mistake", "code", "named"),
    [
        (lambda g, a: g.node("step", "a"), "duplicate-id", "'a'"),
        (lambda g, a: g.node("step", "Ä b"), "invalid-id", "'Ä b'"),
        (lambda g, a: g.node(""), "invalid-id", "''"),
        (
            lambda g, a: g.node("step", None, NodeFields(data={"x": 1}), x=2),
            "duplicate-key",
            "data.x",
        ),
        (lambda g, a: g.node("step", edges={"x": a}, x=a), "duplicate-key", "'x' of node 'step'"),
        (lambda g, a: g.node("step", input=Builder().node("other")), "foreign-node", "'other'"),
        (lambda g, a: g.edge(Builder().node("other"), a), "foreign-node", "'other'"),
        (lambda g, a: g.edge(a, a["x"], id="e 1"), "invalid-id", "'e 1'"),
        (lambda g, a: g.node("step", input=[a, a]), "duplicate-edge", "a.output to step.input"),
    ],
)
def test_a_mistake_is_reported_with_code_location_and_hint(
    mistake: Any, code: str, named: str
) -> None:
    g = Builder()
    a = g.node("step", "a")
    with pytest.raises(InputError, match=named) as caught:
        mistake(g, a)
    assert caught.value.code == code
    assert caught.value.hint
    assert [node["id"] for node in g.document()["nodes"]] == ["a"]
    assert g.document()["edges"] == []


def test_an_edge_is_added_once() -> None:
    g, a, b, _ = three()
    g.edge(a, b, id="x")
    for repeat in ({"id": "y"}, {}):
        with pytest.raises(InputError, match=r"already an edge from a\.output to b\.input"):
            g.edge(a, b["input"], **repeat)
    with pytest.raises(InputError, match="already an edge 'x'"):
        g.edge(a, b["doc"], id="x")
    assert wires(g) == ["a.output>b.input"]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda g, a: g.node("step", x=[a, 1]), "x is a list of nodes or of values, not of both"),
        (lambda g, a: g.node("step", edges={"x": 1}), "1 is no node"),
        (lambda g, a: g.node("step", edges={"x": []}), r"\[\] is no node"),
        (
            lambda g, a: g.node("step", x={1, 2}),
            "node 'step': /data/x is a Python set, .* use plain dict",
        ),
        (lambda g, a: g.node("step", x=float("nan")), "node 'step': /data/x: NaN"),
        (lambda g, a: g.edge(a, "b"), "an edge leads from node to node; 'b' is none"),
        (lambda g, a: g.edge(a, a["x"], channel="tools"), "the channel is 'flow' or 'link'"),
        (lambda g, a: g.edge(a, a["x"], data={"x": object()}), "the edge: /x is a Python object"),
        (lambda g, a: list(a), "not iterable"),
    ],
)
def test_what_is_no_node_and_no_json_is_a_type_error_at_its_line(
    mistake: Any, message: str
) -> None:
    g, a, *_ = three()
    with pytest.raises(TypeError, match=message):
        mistake(g, a)
    assert wires(g) == []
    assert len(g.document()["nodes"]) == 3


def test_nodes_and_handles_have_a_readable_repr() -> None:
    _, a, b, _ = three()
    assert [repr(a), repr(b["tools"])] == ["<node 'a'>", "<handle 'tools' of node 'b'>"]


def test_a_node_has_the_policy_of_its_type_unless_it_is_given_another() -> None:
    types = FakeNodeTypes()
    facts = types.type_info("step")
    assert facts is not None
    policy = {"retry": {"attempts": 2}}
    types.type_info = lambda node_type: facts._replace(policy=policy)  # type: ignore[method-assign]
    g = Builder(types)
    g.node("step", "a")
    g.node("step", "b", NodeFields(policy={"timeoutS": 1}))
    g.node("step", "c", NodeFields(policy={}))
    policies = [node["policy"] for node in g.document()["nodes"]]
    assert policies == [policy, {"timeoutS": 1}, {}]


def test_the_title_of_a_graph_is_text() -> None:
    assert Builder(title="Offers").title == "Offers"
    with pytest.raises(TypeError, match="the title of a graph is a text, not 3"):
        Builder(title=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"timeoutS": -1}, "node 'step': policy.timeoutS is -1, must be seconds above 0$"),
        ({"on_error": "fail"}, "node 'step': .*on_error.*; .*onError"),
    ],
)
def test_a_policy_that_no_document_may_have_is_refused(policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Builder().node("step", fields=NodeFields(policy=policy))


def test_a_policy_may_hold_retries_as_an_object() -> None:
    g = Builder()
    g.node("step", fields=NodeFields(policy={"retry": Retry(3, 2, KeyError)}))
    assert g.document()["nodes"][0]["policy"] == {
        "retry": {"attempts": 3, "backoffS": 2, "on": ["KeyError"]}
    }
