"""The account of an import: what a converter does not say fails closed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.conversion import Conversion, SourceNode
from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.importer import Imported
from planwave.interop.importing.secrets import Removed, Withheld
from tests.support.interop.imports import assert_accounted_for, findings_of, outcomes


def finished(conversion: Conversion, removed: tuple[Removed, ...] = ()) -> Imported:
    return Imported(*conversion.finish("source", removed), "")


def chain(*settle: Callable[[SourceNode], object]) -> tuple[Conversion, list[SourceNode]]:
    """A chain of nodes, each told what it becomes by its function."""
    conversion = Conversion("test")
    nodes = [
        conversion.source_node(f"/nodes/{i}", "kind", f"n{i}", parameters={"a": i})
        for i in range(len(settle))
    ]
    for node, tell in zip(nodes, settle, strict=True):
        tell(node)
    for i, (left, right) in enumerate(pairwise(nodes)):
        edge = conversion.source_edge(f"/edges/{i}", left, right)
        if left.targets and right.targets:
            edge.becomes(left.target, right.entry)
    return conversion, nodes


def text(node: SourceNode) -> None:
    node.becomes("text", {"text": node.name})


def nothing(node: SourceNode) -> None:
    pass


def dropped(node: SourceNode) -> None:
    node.drop("import-ignored", "a note")


def lost(node: SourceNode) -> None:
    node.becomes("text", {"text": node.name})
    node.lose("no time here", "$now", f"{node.pointer}/data")


def two(node: SourceNode) -> None:
    first = node.becomes("text", {"text": node.name})
    second = node.becomes("text", {"text": "{{ input }}"})
    new_edge(first.graph, first.id, second.id)


def two_and_lost(node: SourceNode) -> None:
    two(node)
    node.lose("no time here", "$now")


def test_a_node_that_became_nothing_is_a_placeholder_that_shows_what_it_was() -> None:
    conversion, _ = chain(text, nothing)
    imported = finished(conversion)
    assert outcomes(imported) == {"n0": "mapped", "n1": "placeholder"}
    placeholder = imported.document["nodes"][1]
    assert placeholder["type"] == "placeholder"
    assert placeholder.get("data") == {"kind": "kind", "name": "n1", "parameters": {"a": 1}}
    assert_accounted_for(imported, nodes=["/nodes/0", "/nodes/1"], edges=["/edges/0"])


def test_a_node_that_lost_meaning_is_a_placeholder_and_keeps_its_edges() -> None:
    conversion, _ = chain(text, lost, text)
    imported = finished(conversion)
    assert outcomes(imported)["n1"] == "placeholder"
    assert [edge["target"] for edge in imported.document["edges"]] == ["n1", "n2"]
    (part,) = imported.report["lost"]
    assert part["pointer"] == "/nodes/1/data"
    assert part["text"] == "$now"


def test_the_two_nodes_of_one_that_lost_meaning_become_one_placeholder() -> None:
    conversion, _ = chain(text, two_and_lost, text)
    imported = finished(conversion)
    ends = [(edge["source"], edge["target"]) for edge in imported.document["edges"]]
    assert ends == [("n0", "n1"), ("n1", "n2")]
    assert_accounted_for(
        imported, nodes=[f"/nodes/{i}" for i in range(3)], edges=["/edges/0", "/edges/1"]
    )


def test_the_main_node_of_one_that_lost_meaning_stays_for_all_that_share_it() -> None:
    conversion, nodes = chain(text, text)
    first, shared = nodes[0], nodes[1]
    extra = first.becomes("text", {"text": "x"}, node_id="extra")
    shared.targets.append(first.entry)
    first.main = extra
    first.lose("it cannot be", "$now")
    imported = finished(conversion)
    assert [each["target"] for each in imported.report["nodes"]] == [["extra"], ["n1", "extra"]]


def test_a_placeholder_does_not_go_on_after_errors_that_lead_nowhere() -> None:
    conversion, nodes = chain(text, text)
    policy = {"retry": {"attempts": 2}, "onError": "continue"}
    nodes[0].target.node["policy"] = policy
    nodes[0].lose("it cannot be", "$now")
    imported = finished(conversion)
    assert imported.document["nodes"][0]["policy"] == {"retry": {"attempts": 2}}


def test_the_edges_of_a_dropped_node_are_dropped() -> None:
    conversion, nodes = chain(text, text)
    nodes[1].drop("import-ignored", "switched off")
    imported = finished(conversion)
    (edge,) = imported.report["edges"]
    assert edge["outcome"] == "dropped"
    assert edge["notes"][0]["code"] == "import-dangling"


def test_an_edge_that_became_nothing_makes_its_target_a_placeholder() -> None:
    conversion, _ = chain(text, text)
    conversion.source_edge("/edges/1", conversion.nodes[0], conversion.nodes[1])
    assert outcomes(finished(conversion))["n1"] == "placeholder"


def test_a_cycle_is_cut_its_path_named_and_its_ends_cannot_run() -> None:
    conversion, nodes = chain(text, two, text)
    back = conversion.source_edge("/edges/2", nodes[2], nodes[0])
    back.becomes(nodes[2].target, nodes[0].entry)
    imported = finished(conversion)
    assert outcomes(imported) == {"n0": "placeholder", "n1": "mapped", "n2": "placeholder"}
    entry = imported.report["edges"][2]
    assert entry["notes"][0]["code"] == "import-cycle"
    assert "n0 → n1 → n1-2 → n2 → n0" in entry["notes"][0]["message"]


def test_a_cycle_that_only_the_placeholder_of_several_nodes_closes_is_cut_too() -> None:
    conversion, nodes = chain(two_and_lost, text)
    first, second = nodes[0].targets
    first.graph.edges[:] = [edge for edge in first.graph.edges if edge["target"] != second.id]
    conversion.source_edge("/edges/1", nodes[1], nodes[0]).becomes(nodes[1].target, first)
    imported = finished(conversion)
    assert {each.code for each in findings_of(imported)} == {"placeholder"}
    assert imported.report["edges"][1]["outcome"] == "dropped"
    assert "n0 → n1 → n0" in imported.report["edges"][1]["notes"][0]["message"]


def test_the_steps_of_a_loop_that_got_lost_stand_in_its_placeholder() -> None:
    conversion = Conversion("test")
    loop = conversion.source_node("/nodes/0", "loop", "loop")
    step = conversion.source_node("/nodes/1", "text", "step")
    inside = conversion.source_node("/nodes/2", "text", "inside")
    edge = conversion.source_edge("/edges/0", step, inside)
    data: dict[str, Any] = {"items": "{{ input }}"}
    target = loop.becomes("loop", data)
    body = loop.body()
    target.node["data"]["body"] = body.document()
    edge.becomes(
        step.becomes("text", {"text": "{{ item }}"}, graph=body),
        inside.becomes("text", {"text": "{{ input }}"}, graph=body),
    )
    loop.lose("no such list", "x")
    imported = finished(conversion)
    assert outcomes(imported) == dict.fromkeys(("loop", "step", "inside"), "placeholder")
    assert [entry["target"] for entry in imported.report["nodes"]] == [["loop"]] * 3
    assert_accounted_for(imported, nodes=[f"/nodes/{i}" for i in range(3)], edges=["/edges/0"])


def test_a_node_that_would_send_the_mark_of_a_secret_cannot_run() -> None:
    conversion = Conversion("test")
    node = conversion.source_node("/nodes/0", "http", "call")
    node.becomes("fetch", {"url": "http://x.example", "headers": {"X-Key": Withheld()}})
    imported = finished(conversion, (Removed("/nodes/0/data/key", "X-Key", "hunter22"),))
    assert outcomes(imported) == {"call": "placeholder"}
    assert imported.report["secrets"] == [{"pointer": "/nodes/0/data/key", "name": "X-Key"}]
    codes = [note["code"] for note in imported.report["nodes"][0]["notes"]]
    assert "import-secret-removed" in codes


def test_ids_have_the_characters_of_ids() -> None:
    graph = Conversion("test").graph
    assert graph.new_id("Look up: order (2)") == "Look-up-order-2"
    assert graph.new_id("日本") == "step"
    assert graph.new_id("") == "step-2"
    assert len(graph.new_id("x" * 100)) <= 64


def test_ids_that_are_taken_get_a_number() -> None:
    _, nodes = chain(text, text)
    third = nodes[0].becomes("text", {"text": "x"}, node_id="n1")
    assert third.id == "n1-2"


@given(
    st.lists(st.sampled_from([text, nothing, lost, two, two_and_lost]), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12),
)
def test_every_part_of_any_source_is_accounted_for(
    settle: list[Callable[[SourceNode], object]], more: list[tuple[int, int]]
) -> None:
    conversion, nodes = chain(*settle)
    for i, (left, right) in enumerate(more):
        ends = [nodes[at] if at < len(nodes) else None for at in (left, right)]
        edge = conversion.source_edge(f"/more/{i}", *ends)
        source, target = ends
        if source is not None and target is not None and source.targets and target.targets:
            edge.becomes(source.target, target.entry)
    imported = finished(conversion)
    assert_accounted_for(
        imported,
        nodes=[node.pointer for node in nodes],
        edges=[edge.pointer for edge in conversion.edges],
    )


def test_a_finished_import_of_mapped_nodes_has_no_findings() -> None:
    conversion, _ = chain(text, text, two)
    assert findings_of(finished(conversion)) == []


@pytest.mark.parametrize("length", [500])
def test_a_long_chain_is_accounted_for(length: int) -> None:
    conversion, _ = chain(*[text] * length)
    assert finished(conversion).report["summary"]["mapped"] == length
