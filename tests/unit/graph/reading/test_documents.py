"""Reading graph documents: round trips, and all errors reported together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import GraphInvalid
from planwave.graph.model import DEFAULT_POLICY, Graph, Join, Policy, Retry
from planwave.graph.reading.documents import read_graph, read_lenient
from planwave.graph.reading.unreadable import (
    ALREADY_REPORTED,
    UNREADABLE,
    UNREADABLE_EDGE,
)
from planwave.settings import Limits

FLOW = {"channel": "flow"}


def node(node_id: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "step", **fields}


def edge(source: Any = "a", target: Any = "b", **fields: Any) -> dict[str, Any]:
    return {"source": source, "target": target, "data": FLOW, **fields}


def doc(nodes: list[Any] | None = None, edges: list[Any] | None = None) -> dict[str, Any]:
    return {"nodes": [node("a"), node("b")] if nodes is None else nodes, "edges": edges or []}


def errors_of(source: Any, limits: Limits | None = None) -> list[tuple[str, str]]:
    with pytest.raises(GraphInvalid) as caught:
        read_graph(source, limits=limits)
    assert all(d.severity == "error" and d.message for d in caught.value.diagnostics)
    return [(d.code, d.pointer) for d in caught.value.diagnostics]


def graph_in(source: Any, limits: Limits | None = None) -> Graph:
    graph, findings = read_graph(source, limits=limits)
    assert findings == []
    return graph


def test_missing_and_null_fields_get_their_defaults() -> None:
    nulls = dict.fromkeys(("name", "description", "data", "policy", "ui"))
    plain = graph_in(doc([node("a"), node("b", **nulls)], [edge(), edge(sourceHandle="x")]))
    for one in plain.nodes:
        assert one == (one.id, "step", one.id, "", {}, DEFAULT_POLICY, None, None)
    nothing = dict.fromkeys(("id", "sourceHandle", "targetHandle", "type"))
    same = graph_in(doc(edges=[edge(**nothing), edge(sourceHandle="x")]))
    assert plain.edges == same.edges
    assert plain.edges[0] == ("e1", "a", "output", "b", "input", "flow", FLOW, None)


def test_a_document_reads_the_same_as_text_bytes_and_mapping() -> None:
    document = doc(edges=[edge(id="x", type="smooth", data={"channel": "link", "n": [1]})])
    document["nodes"][0] |= {"ui": {"x": 1.5}, "policy": {"join": "any"}, "data": {"t": "ü"}}
    text = json.dumps(document)
    assert graph_in(text) == graph_in(text.encode()) == graph_in(document)
    assert graph_in(MappingProxyType(document)) == graph_in(document)
    assert graph_in(document).to_document()["edges"][0]["data"] == {"channel": "link", "n": [1]}


def test_a_policy_is_read_and_its_document_preserved() -> None:
    written = {"retry": {"attempts": 2}, "onError": "continue"}
    one = graph_in(doc([node(policy=written)])).nodes[0]
    assert one.policy == Policy(retry=Retry(2, 0.0), on_error="continue")
    assert one.policy_document == written


def test_the_graph_shares_nothing_with_the_mapping_it_was_read_from() -> None:
    document = doc(
        [node("a", data={"l": [{}]}), node("b", ui={"l": [{}]}, data={"l": [{}]})],
        [edge(data={"channel": "flow", "l": [{}]})],
    )
    graph = graph_in(document)
    before = json.dumps(graph.to_document())
    for part in (*document["nodes"], *document["edges"]):
        for fields in (part.get("data"), part.get("ui")):
            if fields:
                fields["l"][0]["changed"] = True
    assert json.dumps(graph.to_document()) == before


def test_generated_edge_ids_do_not_collide_with_given_ones() -> None:
    edges = [edge(sourceHandle=f"h{i}") for i in range(4)]
    edges[1]["id"] = "e1"
    edges[3]["id"] = "e3"
    assert [e.id for e in graph_in(doc(edges=edges)).edges] == ["e2", "e1", "e4", "e3"]


def test_a_duplicate_edge_is_dropped_with_an_info_finding() -> None:
    edges = [edge(id="x"), edge(sourceHandle="output", id="y"), edge(data={"channel": "link"})]
    graph, findings = read_graph(doc(edges=edges))
    assert [e.id for e in graph.edges] == ["x", "e1"]
    assert [(d.code, d.severity, d.pointer) for d in findings] == [
        ("duplicate-edge", "info", "/edges/1")
    ]
    assert findings[0].fix == "kept edge 0, dropped edge 1"


@pytest.mark.parametrize(
    ("source", "errors"),
    [
        ("null", [("invalid-field", "")]),
        ("[]", [("invalid-field", "")]),
        ("42", [("invalid-field", "")]),
        ({}, [("missing-field", "/nodes"), ("missing-field", "/edges")]),
        ({"nodes": {}, "edges": ""}, [("invalid-field", "/nodes"), ("invalid-field", "/edges")]),
        ({"nodes": [], "edges": [], "surprise": 1}, [("unknown-field", "/surprise")]),
        ({"nodes": [], "edges": [], 5: 1}, [("unknown-field", "/5")]),
        (doc(["a"]), [("invalid-field", "/nodes/0")]),
        (doc([{}]), [("missing-field", "/nodes/0/id"), ("missing-field", "/nodes/0/type")]),
        (doc([node(None)]), [("missing-field", "/nodes/0/id")]),
        (doc([node(7)]), [("invalid-id", "/nodes/0/id")]),
        (doc([node("")]), [("invalid-id", "/nodes/0/id")]),
        (doc([node(" a")]), [("invalid-id", "/nodes/0/id")]),
        (doc([node("а")]), [("invalid-id", "/nodes/0/id")]),  # noqa: RUF001  # Cyrillic on purpose
        (doc([node("a\n")]), [("invalid-id", "/nodes/0/id")]),
        (doc([node("x" * 65)]), [("invalid-id", "/nodes/0/id")]),
        (doc([node("\ud800")]), [("invalid-text", "/nodes/0/id")]),
        (doc([node(type=None)]), [("missing-field", "/nodes/0/type")]),
        (doc([node(type="")]), [("missing-field", "/nodes/0/type")]),
        (doc([node(type=["step"])]), [("invalid-field", "/nodes/0/type")]),
        (doc([node(name=0)]), [("invalid-field", "/nodes/0/name")]),
        (doc([node(name="\0")]), [("invalid-text", "/nodes/0/name")]),
        (doc([node(description=[])]), [("invalid-field", "/nodes/0/description")]),
        (doc([node(description="\0")]), [("invalid-text", "/nodes/0/description")]),
        (doc([node(data=[])]), [("invalid-field", "/nodes/0/data")]),
        (doc([node(data={"a": {"b": {1}}})]), [("not-json-value", "/nodes/0/data/a/b")]),
        (doc([node(ui=1)]), [("invalid-field", "/nodes/0/ui")]),
        (doc([node(policy=1)]), [("invalid-field", "/nodes/0/policy")]),
        (doc([node(policy={"join": 1})]), [("invalid-field", "/nodes/0/policy/join")]),
        (doc([node(config={})]), [("unknown-field", "/nodes/0/config")]),
        (doc([node("a"), node("b"), node("a")]), [("duplicate-id", "/nodes/2/id")]),
        (doc(edges=[["a", "b"]]), [("invalid-field", "/edges/0")]),
        (doc(edges=[edge(label="x")]), [("unknown-field", "/edges/0/label")]),
        (doc(edges=[edge(source=None)]), [("missing-field", "/edges/0/source")]),
        (doc(edges=[edge(target=3)]), [("invalid-field", "/edges/0/target")]),
        (doc(edges=[edge(target="\ud800")]), [("invalid-text", "/edges/0/target")]),
        (doc(edges=[edge(sourceHandle="")]), [("invalid-field", "/edges/0/sourceHandle")]),
        (doc(edges=[edge(targetHandle=1)]), [("invalid-field", "/edges/0/targetHandle")]),
        (doc(edges=[edge(targetHandle="x" * 257)]), [("invalid-field", "/edges/0/targetHandle")]),
        (doc(edges=[edge(id=4)]), [("invalid-id", "/edges/0/id")]),
        (doc(edges=[edge(id="a b")]), [("invalid-id", "/edges/0/id")]),
        (doc(edges=[edge(id={})]), [("invalid-id", "/edges/0/id")]),
        (doc(edges=[edge(type=1)]), [("invalid-field", "/edges/0/type")]),
        (doc(edges=[edge(data=None)]), [("missing-channel", "/edges/0/data/channel")]),
        (doc(edges=[edge(data={})]), [("missing-channel", "/edges/0/data/channel")]),
        (doc(edges=[edge(data=[1])]), [("invalid-field", "/edges/0/data")]),
        (
            doc(edges=[edge(data={"channel": "Flow"})]),
            [("unknown-channel", "/edges/0/data/channel")],
        ),
        (doc(edges=[edge(data={"channel": []})]), [("unknown-channel", "/edges/0/data/channel")]),
        (
            doc(edges=[edge(data={"channel": "flow", "x": {1}})]),
            [("not-json-value", "/edges/0/data/x")],
        ),
        (
            doc(edges=[edge(id="x"), edge("b", "a", id="x")]),
            [("duplicate-id", "/edges/1/id")],
        ),
    ],
)
def test_an_error_is_reported_with_code_and_pointer(
    source: Any, errors: list[tuple[str, str]]
) -> None:
    assert errors_of(source) == errors


def test_all_errors_are_reported_together() -> None:
    source = doc(
        [node("a"), node("a", type=None), 7], [edge(data={}), edge(id="?"), edge(colour=1)]
    )
    assert [code for code, _ in errors_of(source)] == [
        "missing-field", "invalid-field", "duplicate-id", "missing-channel", "invalid-id",
        "unknown-field",
    ]  # fmt: skip


def test_errors_at_the_top_do_not_hide_those_below() -> None:
    source = {"edges": [edge(colour=1)], "title": "x"}
    assert errors_of(source) == [
        ("missing-field", "/nodes"), ("unknown-field", "/title"), ("unknown-field", "/edges/0/colour"),
    ]  # fmt: skip


def test_duplicate_ids_are_found_among_invalid_edges_too() -> None:
    source = doc(edges=[edge(id="x", data={}), 7, edge(id="x", data={"channel": "link"})])
    assert errors_of(source)[-1] == ("duplicate-id", "/edges/2/id")
    assert "duplicate-id" not in [code for code, _ in errors_of(doc(edges=[edge(id="x"), 7, 7]))]


def test_the_readable_parts_of_an_invalid_document_are_read() -> None:
    nodes = [node("a", type=None, data={"x": 1}), 7, node("c c", ui=1), node("d", label=1)]
    edges = [edge(data={"channel": "wire"}), edge(), edge(source_handle="x"), edge(), edge(id="?")]
    graph, _, partial_ids, indexes = read_lenient(doc(nodes, edges))
    assert [(n.id, n.type) for n in graph.nodes] == [
        ("a", UNREADABLE), ("#1", UNREADABLE), ("c c", "step"), ("d", "step"),
    ]  # fmt: skip
    assert graph.nodes[0].data == {"x": 1}
    assert [(e.source_handle, e.channel) for e in graph.edges] == [
        ("output", UNREADABLE), ("output", "flow"), (UNREADABLE, "flow"),
    ]  # fmt: skip
    assert indexes == [0, 1, 2]
    assert partial_ids == {"a", "#1", "c c", "d"}


@pytest.mark.parametrize("node_id", ["#1", "", "x" * 257, 5])
def test_an_unusable_id_is_replaced_by_a_placeholder(node_id: Any) -> None:
    reading = read_lenient(doc([node(node_id)]))
    assert [n.id for n in reading.graph.nodes] == ["#0"]


def test_parts_already_reported_by_the_caller_are_not_reported_again() -> None:
    nodes = [
        ALREADY_REPORTED,
        node(ALREADY_REPORTED),
        node("c", label=ALREADY_REPORTED, description=ALREADY_REPORTED),
    ]
    edges = [ALREADY_REPORTED, edge(data=ALREADY_REPORTED), edge(target=ALREADY_REPORTED)]
    graph, findings, partial_ids, _ = read_lenient(doc(nodes, edges))
    assert findings == []
    assert [n.id for n in graph.nodes] == ["#0", "#1", "c"]
    assert partial_ids == {"#0", "#1", "c"}
    assert graph.edges[0] is UNREADABLE_EDGE
    assert [(e.target, e.channel) for e in graph.edges[1:]] == [
        ("b", UNREADABLE), (UNREADABLE, "flow"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["nodes", "edges"])
def test_a_list_that_is_not_read_counts_as_one_partial_node_or_edge(name: str) -> None:
    graph, _, partial_ids, _ = read_lenient({"nodes": [], "edges": [], name: ALREADY_REPORTED})
    assert (len(graph.nodes), len(graph.edges)) == ((1, 0) if name == "nodes" else (0, 1))
    assert partial_ids == {node.id for node in graph.nodes}


def test_a_missing_channel_is_reported_with_its_edge_and_a_hint() -> None:
    with pytest.raises(GraphInvalid, match=r"edge 'x' .* has no channel") as e:
        read_graph(doc(edges=[edge(id="x", data={"sourceType": "text"})]))
    assert e.value.diagnostics[0].edge == "x"
    assert '"channel": "flow"' in str(e.value.diagnostics[0].hint)


def test_a_duplicate_id_is_reported_with_both_pointers() -> None:
    with pytest.raises(GraphInvalid, match="/nodes/0/id, /nodes/1/id"):
        read_graph(doc([node(), node()]))


def test_a_dangling_edge_is_left_to_the_checker() -> None:
    assert graph_in(doc(edges=[edge(target="Who Is It")])).edges[0].target == "Who Is It"


LIMITS = Limits(nodes=2, edges=1, json_depth=5, string_bytes=10, plan_bytes=400)


def test_a_graph_at_its_limits_is_read() -> None:
    source = doc([node("a", data={"x": [1], "y": "x" * 10}), node("b")], [edge()])
    assert graph_in(source, LIMITS) == graph_in(json.dumps(source), LIMITS)


@pytest.mark.parametrize(
    ("source", "pointer", "limit"),
    [
        (doc([node("a"), node("b"), node("c")]), "/nodes", "nodes is 2, met 3"),
        (doc(edges=[edge(), edge("b", "a")]), "/edges", "edges is 1, met 2"),
        (doc([node(data={"x": [[]]})]), "/nodes/0/data/x/0", "json_depth is 5, met more than 5"),
        (doc([node(data={"x": "x" * 11})]), "/nodes/0/data/x", "string_bytes is 10, met 11"),
        (doc([node(name="x" * 11)]), "/nodes/0/name", "string_bytes is 10, met 11"),
        (doc([node(ui={"x" * 11: 1})]), "/nodes/0/ui", "string_bytes is 10, met 11"),
        (json.dumps(doc([node(name="x" * 11)])), "/nodes/0/name", "string_bytes is 10, met 11"),
        (json.dumps(doc()) + " " * 400, "", "plan_bytes is 400, met"),
        (json.dumps(doc([node(data={"x": [[]]})])), "", "json_depth is 5, met more than 5"),
    ],
)
def test_a_value_over_a_limit_is_reported_with_limit_and_actual_value(
    source: Any, pointer: str, limit: str
) -> None:
    with pytest.raises(GraphInvalid, match=limit) as caught:
        read_graph(source, limits=LIMITS)
    assert [(d.code, d.pointer) for d in caught.value.diagnostics] == [("limit-exceeded", pointer)]


def test_a_graph_over_its_limits_is_rejected_before_its_parts_are_read() -> None:
    assert errors_of({"nodes": [None] * 300, "edges": [None] * 44_850}, Limits()) == [
        ("limit-exceeded", "/nodes"),
        ("limit-exceeded", "/edges"),
    ]


ids = st.text("abcXYZ019_.-", min_size=1, max_size=6)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
joins: st.SearchStrategy[Join] = st.sampled_from(["all", "any"])
policies = st.fixed_dictionaries(
    {},
    optional={
        "join": joins,
        "retry": st.fixed_dictionaries({"attempts": st.integers(1, 10)}),
        "timeoutS": st.floats(0.1, 100),
        "onError": st.sampled_from(["fail", "continue"]),
        "effect": st.sampled_from(["none", "read", "write", "once"]),
    },
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(ids, unique=True, min_size=1, max_size=6))
    optional = {
        "name": texts,
        "description": texts,
        "data": objects,
        "policy": policies,
        "ui": objects,
    }
    nodes = [
        {"id": one, "type": draw(ids), **draw(st.fixed_dictionaries({}, optional=optional))}
        for one in names
    ]
    ends = st.sampled_from(names)
    handles = st.none() | ids
    edges = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "source": ends,
                    "target": ends,
                    "data": st.builds(
                        lambda d, c: {**d, "channel": c}, objects, st.sampled_from(["flow", "link"])
                    ),
                },
                optional={"sourceHandle": handles, "targetHandle": handles, "type": texts},
            ),
            max_size=6,
        )
    )
    return {"nodes": nodes, "edges": edges}


@given(documents())
def test_a_graph_survives_being_written_and_read_again(document: dict[str, Any]) -> None:
    graph, _ = read_graph(document)
    written = graph.to_document()
    assert graph_in(written) == graph
    assert graph_in(json.dumps(written)) == graph
    assert graph_in(json.dumps(written, ensure_ascii=False)) == graph


odd_values = st.sampled_from([None, "", 5, [], ["flow"], {}, {"channel": "flow"}, "a", "x" * 300])
odd_fields = st.sampled_from(
    ["id", "type", "name", "data", "source", "target", "sourceHandle", "targetHandle", "colour"]
)


@st.composite
def spoilt_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Return documents with some invalid fields and some duplicate edges."""
    document = draw(documents())
    entries = [*document["nodes"], *document["edges"]]
    for _ in range(draw(st.integers(0, 4))):
        draw(st.sampled_from(entries))[draw(odd_fields)] = draw(odd_values)
    for each in document["edges"]:
        if draw(st.booleans()):
            each["id"] = draw(ids | st.sampled_from(["e1", "e2"]))
    document["edges"] += document["edges"][: draw(st.integers(0, 2))]
    return document


@given(
    spoilt_documents(), st.sampled_from([Limits(), Limits(json_depth=4), Limits(string_bytes=9)])
)
def test_a_document_read_as_a_whole_gives_the_same_as_field_by_field(
    document: dict[str, Any], limits: Limits
) -> None:
    as_a_whole = read_lenient(document, limits=limits)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("planwave.graph.reading.documents.checked_copy", lambda *_: None)
        assert read_lenient(document, limits=limits) == as_a_whole


@pytest.mark.parametrize("limits", [None, Limits(), Limits(json_depth=4), Limits(string_bytes=7)])
@pytest.mark.parametrize("more", [{}, {"targetHandle": "in"}])
def test_a_graph_shares_nothing_with_its_document(limits: Limits | None, more: Any) -> None:
    link = edge(data=dict(FLOW), **more)
    document = doc([node("a", data={"x": "y"}, ui={"x": 1}), node("b")], [link])
    graph, _ = read_graph(document, limits=limits)
    own = [graph.nodes[0].data, graph.nodes[0].ui, graph.edges[0].data]
    of_document = [*(document["nodes"][0][name] for name in ("data", "ui")), link["data"]]
    assert own == of_document
    assert not {id(each) for each in own} & {id(each) for each in of_document}


loose = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("flow"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(
            st.sampled_from(
                [
                    "nodes",
                    "edges",
                    "id",
                    "type",
                    "data",
                    "policy",
                    "channel",
                    "source",
                    "target",
                    "sourceHandle",
                    "ui",
                    "retry",
                    "default",
                ]
            )
            | st.integers(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries({"nodes": loose | st.lists(loose), "edges": loose | st.lists(loose)})
    | loose
)
def test_no_value_raises_anything_but_graph_invalid(source: Any) -> None:
    if isinstance(source, (str, bytes)):
        return
    try:
        graph, _ = read_graph(source)
    except GraphInvalid as error:
        found = error.diagnostics
        assert all(d.severity == "error" for d in found if d.code != "duplicate-edge")
        assert found
    else:
        assert isinstance(source, Mapping)
        assert graph_in(graph.to_document()) == graph


def test_a_document_has_ordered_fields_and_its_copies_are_independent() -> None:
    source = {
        "nodes": [{"id": "a", "type": "t", "data": {"x": [1]}, "ui": {"at": 1}}],
        "edges": [{"source": "a", "target": "a", "type": "step", "data": {"channel": "flow"}}],
    }
    graph, _ = read_graph(source)
    shared = graph.document
    assert list(shared["nodes"][0]) == ["id", "type", "name", "data", "ui"]
    fields = ["id", "source", "sourceHandle", "target", "targetHandle", "type", "data"]
    assert list(shared["edges"][0]) == fields
    own = graph.to_document()
    assert own == shared
    own["nodes"][0]["data"]["x"] = own["edges"][0]["data"]["channel"] = "changed"
    own["nodes"][0]["ui"].clear()
    assert (graph.document, graph.nodes[0].data, graph.edges[0].data) == (
        shared, {"x": [1]}, {"channel": "flow"},
    )  # fmt: skip
    assert shared["nodes"][0]["ui"] == {"at": 1}


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (doc(["a"]), 'a node is {"id": "a", "type": '),
        ({"nodes": [], "edges": [["a", "b"]]}, 'an edge is {"source": "a", "target": "b", '),
        ({"nodes": []}, 'a graph is {"nodes": […], "edges": […]}; without edges, write []'),
        ({"edges": []}, 'a graph is {"nodes": […], "edges": […]}'),
    ],
)
def test_a_wrong_or_missing_part_comes_with_its_form(document: Any, hint: str) -> None:
    with pytest.raises(GraphInvalid) as caught:
        read_graph(document)
    (found,) = caught.value.diagnostics
    assert str(found.hint).startswith(hint)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([node("a", data=5)], [], "node 'a': data must be an object, got 5"),
        ([node("a", name=5)], [], "node 'a': name must be text, got 5"),
        ([node("a", type=5)], [], "node 'a': type must be text, got 5"),
        ([{"id": "a"}], [], "node 'a' has no type"),
        ([node("a")], [edge(target=5)], "edge 0: target must be text, got 5"),
        ([node("a")], [edge(id="x", sourceHandle=5)], "edge 'x': sourceHandle must be text, got 5"),
        (
            [node("a", data={"x": float("nan")})],
            [],
            "/nodes/0/data/x: NaN, infinity and numbers beyond 1e308 are not JSON",
        ),
        (
            [node("a", data={"x": "\0"})],
            [],
            "/nodes/0/data/x: text contains a NUL character, which cannot be stored",
        ),
        (
            [node("a", policy={"retry": {"on": [OSError]}})],
            [],
            "/nodes/0/policy/retry/on/0 is the Python class OSError, not a JSON value",
        ),
    ],
)
def test_a_message_names_the_part_that_it_is_about(
    nodes: list[Any], edges: list[Any], message: str
) -> None:
    with pytest.raises(GraphInvalid) as caught:
        read_graph(doc(nodes, edges))
    findings = caught.value.diagnostics
    assert message in [each.message for each in findings]
    hints = [each.hint for each in findings if "Python class" in each.message]
    assert hints == (["write its name as text: 'OSError'"] if "Python class" in message else [])
