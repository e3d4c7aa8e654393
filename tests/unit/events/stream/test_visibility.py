"""Which nodes' text is for the reader, by the shape of the graph alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planwave
from planwave.events import fold
from planwave.events.stream.visibility import Visibility
from planwave.events.types import typed_events
from planwave.graph.outputs import outputs_from_json
from planwave.graph.result import LastNodes
from planwave.nodes.registry import default_registry

REGISTRY = default_registry()
HOLDS_GRAPHS = sorted(name for name in REGISTRY.names() if REGISTRY.type_info(name).graph_fields)


def document(nodes: str, *edges: str, join: str | None = None) -> dict[str, Any]:
    """``document("a b:end", "a>b", "a.error>c")``; ``~`` is a link; ``join`` names a join: any."""
    entries: list[dict[str, Any]] = []
    for word in nodes.split():
        node_id, _, kind = word.partition(":")
        policy = {"policy": {"join": "any"}} if node_id == join else {}
        entries.append({"id": node_id, "type": kind or "step", **policy})
    wires: list[dict[str, Any]] = []
    for text in edges:
        channel = "link" if "~" in text else "flow"
        source, target = text.split("~" if channel == "link" else ">")
        source, _, handle = source.partition(".")
        wire = {"source": source, "target": target, "data": {"channel": channel}}
        wires.append({**wire, "sourceHandle": handle} if handle else wire)
    return {"nodes": entries, "edges": wires}


def out(**values: Any) -> dict[str, Any]:
    return {handle: {"type": "any", "value": value} for handle, value in values.items()}


@pytest.mark.parametrize(
    ("graph", "streaming"),
    [
        (document("a b", "a>b"), "b"),
        (document("a b c", "a>b"), "b c"),
        (document("a b c", "a~b", "b>c"), "a c"),
        (document("a b:end", "a>b"), "a b"),
        (document("a b c:end", "a>c", "b>c"), "a b c"),
        (document("a b:end c", "a>b", "a>c"), "a b c"),
        (document("a b:end c", "a>b", "b>c"), "c"),
        (document("a b c:end", "a>c", "b>c", join="c"), "c"),
        (document("a b", "a.error>b"), "a b"),
        (document("a b:end", "a.error>b"), "a b"),
        (document("a b:end c", "a.error>b", "a>c"), "b c"),
        (document("a b:end c", "a.yes>b", "a.no>c"), "b c"),
        (document("a b:end", "a.yes>b"), "a b"),
        (document("a b:end", "a.yes>b", "a.no>b"), "a b"),
    ],
)
def test_nodes_whose_output_no_other_node_reads_are_visible(
    graph: dict[str, Any], streaming: str
) -> None:
    showing = Visibility(graph)
    assert " ".join(n["id"] for n in graph["nodes"] if showing.is_visible(n["id"])) == streaming


def test_a_value_is_visible_on_handles_without_a_reader() -> None:
    chooser = Visibility(document("a b:end c", "a.yes>b", "a.no>c"))
    assert chooser.visible_values("a", out(yes="y")) == ["y"]
    assert chooser.visible_values("a", out(no="n")) == []
    last = Visibility(document("a b", "a.error>b"))
    assert last.visible_values("a", out(error={"code": "x"})) == []
    assert last.visible_values("a", out(other=1, output="o")) == ["o"]
    assert last.visible_values("a", out(other=1, more=2)) == [1]
    assert last.visible_values("a", None) == []
    assert Visibility(document("a b", "a>b")).visible_values("a", out(output="o")) == []


def test_a_nested_node_is_visible_only_if_it_is_chosen() -> None:
    showing = Visibility(document("a"))
    assert not showing.is_visible("a[1]/b")
    assert showing.visible_values("a[1]/b", out(output="o")) == []
    chosen = Visibility(document("a"), ["a[1]/b"])
    assert chosen.is_visible("a[1]/b")
    assert chosen.visible_values("a[1]/b", out(output="o")) == ["o"]


def test_chosen_nodes_replace_the_rule() -> None:
    showing = Visibility(document("a b c:end", "a>b", "b>c"), ["a"])
    assert [showing.is_visible(n) for n in "abc"] == [True, False, False]
    assert showing.visible_values("a", out(output="o")) == ["o"]
    assert showing.visible_values("c", out(output="o")) == []
    assert showing.speakers_behind("c") == set()


def test_an_end_node_lists_the_visible_nodes_before_it() -> None:
    showing = Visibility(document("a b c:end d:end", "a>c", "b>c"))
    assert showing.speakers_behind("c") == {"a", "b"}
    assert showing.speakers_behind("a") == set()
    assert showing.speakers_behind("d") == set()


def test_names_and_types_come_from_the_graph() -> None:
    graph = document("a:step b")
    graph["nodes"][1]["name"] = "Bee"
    showing = Visibility(graph)
    assert [showing.name_of("a"), showing.name_of("b"), showing.name_of("x")] == ["a", "Bee", None]
    assert [showing.type_of("a"), showing.type_of("x")] == ["step", None]


def with_inside(inside: dict[str, Any] | None, *edges: str) -> dict[str, Any]:
    """A graph whose node ``i`` runs another one inside; ``z`` is an ``end``, ``x`` any other."""
    graph = document("i:inner x z:end", *edges)
    if inside is not None:
        graph["nodes"][0]["data"] = {"graph": inside}
    return graph


TWO = document("a b", "a>b")


@pytest.mark.parametrize(
    ("graph", "streaming"),
    [
        (with_inside(TWO), "b"),
        (with_inside(TWO, "i>z"), "b"),
        (with_inside(TWO, "i.error>x"), "b"),
        (with_inside(TWO, "i>x"), ""),
        (with_inside(TWO, "i.part>z"), ""),
        (with_inside(document("a b:end c", "a>b")), "a b"),
        (with_inside(document("a b")), "a b"),
        (with_inside(None), ""),
    ],
)
def test_the_nested_graph_of_a_visible_inner_node_is_visible_in_its_place(
    graph: dict[str, Any], streaming: str
) -> None:
    showing = Visibility(graph)
    assert " ".join(n for n in "abc" if showing.is_visible(f"i[graph]/{n}")) == streaming
    visible = [n for n in "abc" if showing.visible_values(f"i[graph]/{n}", out(output="o"))]
    assert set(visible) <= set(streaming.split())
    assert not showing.is_visible("i[other]/b")
    assert not showing.is_visible("x[graph]/b")


def test_visible_nodes_of_nested_graphs_are_found_at_every_depth() -> None:
    graph = with_inside(with_inside(TWO, "i>z"), "i>z")
    showing = Visibility(graph)
    deep = "i[graph]/i[graph]/b"
    assert showing.is_visible(deep)
    assert deep in showing.speakers_behind("i")
    assert {deep, "i"} <= showing.speakers_behind("z")
    assert {deep, "i[graph]/i"} <= showing.speakers_behind("i[graph]/z")
    assert showing.speakers_behind("i[graph]/i") == {"i[graph]/i[graph]/a", deep}
    assert (showing.type_of(deep), showing.name_of(deep)) == ("step", "b")
    assert showing.type_of("i[graph]/q") is None


@pytest.mark.parametrize("node_type", ["inner", "a_type_of_a_package"])
def test_a_graph_is_shown_by_the_name_of_its_data_field_and_not_by_a_type(node_type: str) -> None:
    graph = document(f"i:{node_type} z:end", "i>z")
    graph["nodes"][0]["data"] = {"steps": TWO, "other": TWO}
    showing = Visibility(graph)
    assert showing.is_visible("i[steps]/b")
    assert not showing.is_visible("i[1]/b")
    assert {"i", "i[steps]/b", "i[other]/b"} <= showing.speakers_behind("z")


@pytest.mark.parametrize(
    "value",
    [
        {"nodes": [1], "edges": []},
        {"nodes": [{"id": "b"}], "edges": []},
        {"nodes": [{"id": "b", "type": "t"}], "edges": ["b"]},
        {"nodes": {}, "edges": {}},
        {"nodes": []},
        "{{ graph }}",
        [],
        None,
    ],
)
def test_data_that_are_no_graph_show_nothing(value: Any) -> None:
    graph = document("i z:end", "i>z")
    graph["nodes"][0]["data"] = {"graph": value}
    assert not Visibility(graph).is_visible("i[graph]/b")


SCALARS = st.sampled_from(["b", "end", "flow", "", None, 1, [], {}, ["b"]])
NODES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("id", "type", "name", "data", "policy"), SCALARS)
)
EDGES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("source", "target", "sourceHandle"), SCALARS),
        "data": SCALARS | st.fixed_dictionaries({}, optional={"channel": SCALARS}),
    },
)
GRAPHS = st.fixed_dictionaries(
    {"nodes": st.lists(NODES | SCALARS, max_size=3), "edges": st.lists(EDGES | SCALARS, max_size=3)}
)


@given(GRAPHS)
def test_data_may_be_anything(value: Any) -> None:
    graph = document("i z:end", "i>z")
    graph["nodes"][0]["data"] = {"graph": value}
    showing = Visibility(graph)
    assert "i" in showing.speakers_behind("z")
    assert isinstance(showing.is_visible("i[graph]/b"), bool)
    assert showing.visible_values("i[graph]/b", out(output="o")) in (["o"], [])


@pytest.mark.parametrize("node_type", HOLDS_GRAPHS)
async def test_a_type_that_runs_a_graph_under_the_name_of_its_field_gives_its_result(
    node_type: str,
) -> None:
    graph = REGISTRY.spec(node_type).example
    events = [each async for each in planwave.run({**graph}, registry=REGISTRY)]
    state = fold(events)
    data = {each["id"]: each.get("data") or {} for each in graph["nodes"]}
    opened = [each for each in typed_events(events) if each.type == "nested_run.opened"]
    assert opened
    for run in opened:
        if (nested := data.get(run.path, {}).get(run.data["key"])) is None:
            continue
        outputs = {
            each["id"]: outputs_from_json(
                state.nodes[f"{run.path}[{run.data['key']}]/{each['id']}"].outputs
            )
            for each in nested["nodes"]
        }
        shown = outputs_from_json(state.nodes[run.path].outputs)["output"]
        assert shown == LastNodes.of_document(nested).result(outputs).value
