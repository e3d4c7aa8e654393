"""Operations on plans: what each changes, what is refused, and what holds for all of them."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import InvalidOperation
from planwave.graph.editing.editor import PlanContent, apply_operations, keep_ui
from planwave.graph.operations import (
    AddEdge,
    AddNode,
    Operation,
    RemoveEdge,
    RemoveNode,
    Rename,
    ReplaceGraph,
    SetGoal,
    SetTitle,
    UpdateNode,
    operation_from_json,
    operation_json,
)
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import NodeTypeInfo, SourceKeys
from tests.support.cpu_time import cpu_within
from tests.support.llm.fake_providers import FakeProviders, library_registry

CATALOGUE = library_registry(FakeProviders())
EDGE_DATA = {"channel": "flow", "label": "ü", "more": [1, {"x": None}], "sourceType": "text"}


def node(node_id: str, text: str = "t", **more: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "text", "name": node_id, "data": {"text": text}, **more}


def edge(source: str, target: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{source}-{target}",
        "source": source,
        "sourceHandle": "output",
        "target": target,
        "targetHandle": "input",
        "data": EDGE_DATA,
        **more,
    }


CONTENT = PlanContent(
    "Title",
    {
        "nodes": [node("a"), node("b", ui={"x": 1, "y": 2}), node("c")],
        "edges": [edge("a", "b"), edge("b", "c")],
    },
)


def applied(*operations: Operation, content: PlanContent = CONTENT) -> PlanContent:
    return apply_operations(content, operations, CATALOGUE)


def graph_after(*operations: Operation) -> Any:
    return applied(*operations).graph


def ids(items: list[dict[str, Any]]) -> list[Any]:
    return [item.get("id") for item in items]


def test_node_is_added_at_the_end() -> None:
    graph = graph_after(AddNode({"id": "d", "type": "anything", "other": [1]}))
    assert graph["nodes"] == [
        *CONTENT.graph["nodes"],
        {"id": "d", "type": "anything", "other": [1]},
    ]
    assert graph["edges"] == CONTENT.graph["edges"]


def test_node_is_updated_by_merge_patch() -> None:
    graph = graph_after(
        UpdateNode("b", {"name": "B", "data": {"text": None, "model": "m"}, "ui": {"x": 5}})
    )
    assert graph["nodes"][1] == {
        "id": "b", "type": "text", "name": "B", "data": {"model": "m"}, "ui": {"x": 5, "y": 2},
    }  # fmt: skip
    assert [graph["nodes"][0], graph["nodes"][2]] == [node("a"), node("c")]


def test_removed_node_takes_its_edges_along() -> None:
    graph = graph_after(RemoveNode("b"))
    assert (ids(graph["nodes"]), graph["edges"]) == (["a", "c"], [])


def test_edge_is_added_with_its_data_unchanged() -> None:
    graph = graph_after(AddEdge(edge("a", "c")), AddEdge({**edge("c", "a"), "id": None}))
    assert graph["edges"][2] == edge("a", "c")
    assert graph["edges"][3] == {**edge("c", "a"), "id": "e1"}
    assert graph_after(RemoveEdge("a-b"))["edges"] == [edge("b", "c")]


def test_each_new_edge_gets_an_id_of_its_own() -> None:
    bare = {"source": "a", "target": "b", "data": {"channel": "flow"}}
    graph = graph_after(AddEdge({**bare, "id": "e1"}), AddEdge(bare), AddEdge(bare))
    assert ids(graph["edges"])[2:] == ["e1", "e2", "e3"]
    replaced = graph_after(ReplaceGraph({"nodes": [], "edges": [bare, {**bare, "id": "e1"}, bare]}))
    assert ids(replaced["edges"]) == ["e2", "e1", "e3"]


@pytest.mark.parametrize("data", [None, {}, {"channel": None}, {"label": "x"}], ids=str)
def test_added_edge_is_a_flow_edge_where_it_names_no_channel(data: Any) -> None:
    added = graph_after(AddEdge({"source": "a", "target": "c", "data": data}))["edges"][-1]
    assert added["data"] == {**(data or {}), "channel": "flow"}


@pytest.mark.parametrize("channel", ["link", "flow", "data"])
def test_added_edge_keeps_the_channel_that_it_names(channel: Any) -> None:
    data = {"channel": channel, "label": "x"}
    added = graph_after(AddEdge({"source": "a", "target": "c", "data": data}))["edges"][-1]
    assert added["data"] == data


def test_renamed_node_keeps_edges_and_references() -> None:
    body = {"nodes": [node("a"), node("x", "{{ nodes.a }}")], "edges": []}
    content = PlanContent(
        "t",
        {
            "nodes": [
                node("a", "nodes.a {{ nodes.a }}"),
                {"id": "w", "type": "while", "data": {"condition": "nodes.a.output > 3", "body": body}},
                {"id": "v", "type": "while", "data": {"condition": "{{ nodes['a'] }}"}},
                {"id": "q", "type": "unknown", "data": {"deep": [{"x": "{{ nodes.a }}"}, 1, None]}},
                {"id": "bare", "type": "text"},
                {"id": "own", "type": "text", "name": "Own", "data": {"other": "{{ nodes.a }}"}},
            ],
            "edges": [edge("a", "a"), edge("w", "a"), edge("a", "w"), edge("v", "w")],
        },
    )  # fmt: skip
    graph = applied(Rename("a", "b-1"), content=content).graph
    first, while_, other, unknown, bare, own = graph["nodes"]
    assert (first["id"], first["name"]) == ("b-1", "b-1")
    assert first["data"]["text"] == 'nodes.a {{ nodes["b-1"] }}'
    assert while_["data"] == {"condition": 'nodes["b-1"].output > 3', "body": body}
    assert other["data"]["condition"] == "{{ nodes['b-1'] }}"
    assert unknown["data"] == {"deep": [{"x": '{{ nodes["b-1"] }}'}, 1, None]}
    assert bare == {"id": "bare", "type": "text"}
    assert own["data"] == {"other": "{{ nodes.a }}"}, "not a template field of its type"
    assert [(e["source"], e["target"]) for e in graph["edges"]] == [
        ("b-1", "b-1"), ("w", "b-1"), ("b-1", "w"), ("v", "w"),
    ]  # fmt: skip
    assert ids(graph["edges"]) == ids(content.graph["edges"])


def test_references_follow_all_renames_of_a_list() -> None:
    content = PlanContent(
        "t",
        {"nodes": [node("a"), node("b"), node("c", "{{ nodes.a }} {{ nodes['b'] }}")], "edges": []},
    )
    swap = Rename("a", "x"), Rename("b", "a"), Rename("x", "b")
    after = applied(*swap, AddNode(node("x", "{{ nodes.b }}")), Rename("b", "d"), content=content)
    assert [each["data"]["text"] for each in after.graph["nodes"][2:]] == [
        "{{ nodes.d }} {{ nodes['a'] }}",
        "{{ nodes.d }}",
    ]


def test_templates_are_read_once_for_many_renames() -> None:
    text = "{{ nodes.a0 }} " * 20
    nodes = [node("a0"), *(node(f"n{number}", text) for number in range(100))]
    content = PlanContent("t", {"nodes": nodes, "edges": []})
    with cpu_within(2.0):
        after = applied(*(Rename(f"a{n}", f"a{n + 1}") for n in range(400)), content=content)
    assert after.graph["nodes"][100]["data"]["text"] == "{{ nodes.a400 }} " * 20


def test_name_that_a_person_gave_survives_a_rename() -> None:
    content = PlanContent("t", {"nodes": [{**node("a"), "name": "Facts"}], "edges": []})
    assert applied(Rename("a", "b"), content=content).graph["nodes"][0]["name"] == "Facts"
    assert applied(Rename("a", "a"), content=content) == content


def test_title_is_set_without_surrounding_space() -> None:
    assert applied(SetTitle("  New title ")).title == "New title"
    assert applied(SetTitle("x" * 200)).title == "x" * 200
    assert applied(SetTitle("x")).goal is None
    assert applied(SetGoal("Go to {{ city }}")).goal == "Go to {{ city }}"


def test_replaced_graph_keeps_the_ui_of_nodes_without_one() -> None:
    new = {"nodes": [node("b"), node("d"), node("a", ui={"x": 9})], "edges": []}
    graph = graph_after(ReplaceGraph(new))
    assert [n.get("ui") for n in graph["nodes"]] == [{"x": 1, "y": 2}, None, {"x": 9}]
    assert keep_ui(new, {"nodes": []}) == new


def test_replaced_graph_may_have_any_other_error() -> None:
    wrong = {
        "nodes": [{"id": "a", "type": "", "strange": 1}, {"id": "a", "type": "t"}],
        "edges": [],
    }
    assert graph_after(ReplaceGraph(wrong)) == wrong


REFUSED: list[tuple[Operation, str, str]] = [
    (AddNode({"id": "a", "type": "t"}), "duplicate-id", "/node/id"),
    (AddNode({"id": "d"}), "missing-field", "/node/type"),
    (AddNode({"id": "d d", "type": "t"}), "invalid-id", "/node/id"),
    (AddNode({"id": 1, "type": "t"}), "invalid-field", "/node/id"),
    (AddNode({"id": "d", "type": "t", "data": []}), "invalid-field", "/node/data"),
    (UpdateNode("nobody", {}), "unknown-node", "/id"),
    (UpdateNode("a", {"id": "b"}), "invalid-field", "/set/id"),
    (UpdateNode("a", {"type": None}), "missing-field", "/set/type"),
    (UpdateNode("a", {"ui": "x"}), "invalid-field", "/set/ui"),
    (RemoveNode("nobody"), "unknown-node", "/id"),
    (AddEdge({"source": "a", "target": "b", "data": 1}), "invalid-field", "/edge/data"),
    (AddEdge(edge("a", "b")), "duplicate-id", "/edge/id"),
    (RemoveEdge("nothing"), "unknown-edge", "/id"),
    (Rename("nobody", "x"), "unknown-node", "/id"),
    (Rename("a", "b"), "duplicate-id", "/to"),
    (Rename("a", "no id"), "invalid-id", "/to"),
    (SetTitle(" "), "invalid-title", "/title"),
    (SetTitle("two\nlines"), "invalid-title", "/title"),
    (SetTitle("x" * 201), "invalid-title", "/title"),
    (ReplaceGraph({"nodes": {}, "edges": []}), "invalid-field", "/graph/nodes"),
    (ReplaceGraph({"nodes": []}), "invalid-field", "/graph/edges"),
    (ReplaceGraph({"nodes": [1], "edges": []}), "invalid-field", "/graph/nodes/0"),
    (ReplaceGraph({"nodes": [], "edges": [{}, 2]}), "missing-field", "/graph/edges/0/source"),
    (
        ReplaceGraph({"nodes": [], "edges": [{"source": "a", "target": "b"}]}),
        "missing-channel",
        "/graph/edges/0/data/channel",
    ),
    (
        AddEdge({"source": "a", "target": "b", "data": {"channel": 1}}),
        "invalid-field",
        "/edge/data/channel",
    ),
    (ReplaceGraph({"nodes": [], "edges": [], "a/b": 1}), "unknown-field", "/graph/a~1b"),
]


@pytest.mark.parametrize(("operation", "code", "pointer"), REFUSED, ids=str)
def test_operation_that_cannot_be_applied_is_refused(
    operation: Operation, code: str, pointer: str
) -> None:
    before = canonical_json(CONTENT.graph)
    with pytest.raises(InvalidOperation) as refused:
        applied(SetTitle("New"), operation)
    first = refused.value.diagnostics[0]
    assert (first.code, first.pointer) == (code, f"/operations/1{pointer}")
    assert canonical_json(CONTENT.graph) == before


def test_all_errors_of_one_operation_are_reported() -> None:
    with pytest.raises(InvalidOperation) as refused:
        applied(ReplaceGraph({"nodes": [{"id": 1}], "edges": [{"data": 2}], "x": 1}))
    assert [found.pointer.removeprefix("/operations/0/graph") for found in refused.value.diagnostics] == [
        "/nodes/0/id", "/nodes/0/type", "/edges/0/source", "/edges/0/target", "/edges/0/data", "/x",
    ]  # fmt: skip


def test_errors_of_form_of_all_operations_are_reported_at_once() -> None:
    with pytest.raises(InvalidOperation) as refused:
        applied(RemoveNode("nobody"), AddEdge({**edge("a", "c"), "id": 1}), SetTitle(" "))
    assert [found.pointer for found in refused.value.diagnostics] == [
        "/operations/1/edge/id",
        "/operations/2/title",
    ]


def test_id_of_several_nodes_is_refused() -> None:
    twice = PlanContent("t", {"nodes": [node("a"), node("a")], "edges": []})
    with pytest.raises(InvalidOperation) as refused:
        applied(RemoveNode("a"), content=twice)
    assert refused.value.diagnostics[0].code == "duplicate-id"
    empty = PlanContent("t", {"nodes": [], "edges": []})
    with pytest.raises(InvalidOperation, match="there is no node 'a'") as unknown:
        applied(RemoveNode("a"), content=empty)
    assert unknown.value.hint == "the graph has no nodes"


def test_operation_round_trips_as_json() -> None:
    assert operation_json(UpdateNode("a", {"ui": None})) == {
        "op": "update_node", "id": "a", "set": {"ui": None},
    }  # fmt: skip
    assert operation_json(Rename("a", "b")) == {"op": "rename", "id": "a", "to": "b"}


@pytest.mark.parametrize("kind", get_args(Operation), ids=lambda kind: kind.op)
def test_an_operation_is_read_back_from_its_json(kind: type[Any]) -> None:
    operation = kind(**{name: {"id": "a"} for name in kind.__slots__})
    assert operation_from_json(operation_json(operation)) == operation


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
OPERATIONS = st.one_of(
    st.builds(lambda n: AddNode(node(n, "{{ nodes.a }}")), NAMES),
    st.builds(lambda n, x: UpdateNode(n, {"ui": {"x": x}, "data": {"text": x}}), NAMES, st.text(max_size=2)),
    st.builds(RemoveNode, NAMES),
    st.builds(lambda a, b: AddEdge(edge(a, b)), NAMES, NAMES),
    st.builds(lambda a, b: RemoveEdge(f"{a}-{b}"), NAMES, NAMES),
    st.builds(Rename, NAMES, NAMES),
    st.builds(SetTitle, st.sampled_from(["x", "y"])),
)  # fmt: skip


@given(st.lists(OPERATIONS, max_size=12))
def test_operations_never_change_their_argument_nor_lose_edge_data(
    operations: list[Operation],
) -> None:
    content, before = CONTENT, json.dumps(CONTENT)
    for operation in operations:
        try:
            content = applied(operation, content=content)
        except InvalidOperation:
            continue
        nodes, edges = content.graph["nodes"], content.graph["edges"]
        assert len(set(ids(nodes))) == len(nodes)
        assert len(set(ids(edges))) == len(edges)
        assert all(each["data"] == EDGE_DATA for each in edges)
        if isinstance(operation, RemoveNode):
            assert all(operation.id not in (e["source"], e["target"]) for e in edges)
    assert json.dumps(CONTENT) == before


@given(st.lists(OPERATIONS, max_size=8))
def test_operations_applied_at_once_equal_those_applied_one_by_one(
    operations: list[Operation],
) -> None:
    one_by_one = CONTENT
    try:
        for operation in operations:
            one_by_one = applied(operation, content=one_by_one)
    except InvalidOperation:
        with pytest.raises(InvalidOperation):
            applied(*operations)
    else:
        assert canonical_json(applied(*operations)) == canonical_json(one_by_one)


@given(st.text(alphabet='{}%nodes.a"[] ', max_size=30))
def test_rename_is_undone_by_its_inverse(text: str) -> None:
    content = PlanContent("t", {"nodes": [node("a"), node("b", text)], "edges": [edge("a", "b")]})
    there = applied(Rename("a", "fresh"), content=content)
    assert applied(Rename("fresh", "a"), content=there) == content


KEYED = PlanContent(
    "t",
    {
        "nodes": [node("a"), node("b"), {"id": "m", "type": "keyed", "data": {"mode": "object"}}],
        "edges": [edge("a", "m"), edge("b", "m")],
    },
)


KEYS = SourceKeys("keys", when="mode", equals="object")


class KeyedNodeTypes:
    """One type in whose results the ids of the nodes before it are keys."""

    def type_info(self, name: str) -> NodeTypeInfo | None:
        return NodeTypeInfo(name, "", (), (), source_keys=KEYS) if name == "keyed" else None


def renamed(content: PlanContent, *pairs: tuple[str, str]) -> PlanContent:
    return apply_operations(content, [Rename(*pair) for pair in pairs], KeyedNodeTypes())


def test_a_renamed_node_keeps_its_key_in_the_results_of_types_that_use_ids_as_keys() -> None:
    after = renamed(KEYED, ("a", "alpha"))
    assert after.graph["nodes"][2]["data"] == {"mode": "object", "keys": {"alpha": "a"}}
    after = renamed(after, ("alpha", "first"), ("b", "second"))
    assert after.graph["nodes"][2]["data"]["keys"] == {"first": "a", "second": "b"}
    after = renamed(after, ("first", "a"), ("second", "b"))
    assert after.graph["nodes"][2]["data"] == {"mode": "object"}


def test_a_node_without_such_keys_stays_as_it_is() -> None:
    of_list = {"id": "m", "type": "keyed", "data": {"mode": "list"}}
    graph = {**KEYED.graph, "nodes": [*KEYED.graph["nodes"][:2], of_list]}
    after = renamed(PlanContent("t", graph), ("a", "alpha"))
    assert after.graph["nodes"][2] == of_list
    wired = [*KEYED.graph["edges"], edge("b", "m", targetHandle="mode")]
    after = renamed(PlanContent("t", {**graph, "edges": wired}), ("a", "alpha"))
    assert after.graph["nodes"][2]["data"]["keys"] == {"alpha": "a"}


def test_renamed_nodes_may_swap_their_ids() -> None:
    after = renamed(KEYED, ("a", "x"), ("b", "a"), ("x", "b"))
    assert after.graph["nodes"][2]["data"]["keys"] == {"a": "b", "b": "a"}


def test_expressions_that_a_rename_cannot_follow_are_named() -> None:
    nodes = [node("a"), node("b", '{{ nodes["a" ~ input].output }}'), node("c", "{{ nodes.a }}")]
    after = renamed(PlanContent("t", {"nodes": nodes, "edges": []}), ("a", "z"))
    (found,) = after.findings
    assert (found.code, found.severity, found.pointer, found.node) == (
        "renamed-node", "warning", "/nodes/1/data/text", "b",
    )  # fmt: skip
    assert "'a' is now 'z'" in found.message
