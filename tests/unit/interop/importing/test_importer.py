"""Texts are read as JSON, YAML or Mermaid, and refused in a sentence where they are none of a known format."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import InputError
from planwave.foreign_formats import formats_of
from planwave.interop.importing.importer import MAX_SOURCE_BYTES, import_text
from tests.support.interop.imports import OWN, assert_accounted_for

PLAN = (OWN / "agiraph" / "plan_with_contracts.json").read_text("utf-8")
GRAPH = (OWN / "hostile" / "planwave_document.json").read_text("utf-8")


def refused(text: str | bytes, kind: str | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        import_text(text, kind)
    assert caught.value.status_hint == 422
    return caught.value


def test_planwaves_own_graph_passes_through() -> None:
    imported = import_text(GRAPH)
    assert imported.document == json.loads(GRAPH)
    assert_accounted_for(imported, nodes=["/nodes/0"], edges=[])


def test_edges_of_an_own_graph_get_ids_that_no_other_edge_has() -> None:
    nodes = [{"id": name, "type": "text", "data": {"text": name}} for name in "abc"]
    ways = [{"source": "a", "target": "b"}, {"id": "e1", "source": "b", "target": "c"}]
    graph = {"nodes": nodes, "edges": [{**way, "data": {"channel": "flow"}} for way in ways]}
    imported = import_text(json.dumps(graph))
    assert [edge["id"] for edge in imported.document["edges"]] == ["e2", "e1"]
    assert_accounted_for(
        imported, nodes=[f"/nodes/{i}" for i in range(3)], edges=["/edges/0", "/edges/1"]
    )


@pytest.mark.parametrize("damage", [3, [], {}, {"id": 1}, {"id": "a", "type": "text", "data": 1}])
def test_a_broken_graph_of_its_own_is_refused(damage: Any) -> None:
    whole = {"id": "b", "type": "text", "data": {"text": "b"}}
    graph = {"nodes": [whole, damage], "edges": []}
    assert refused(json.dumps(graph), "planwave").code == "unknown-format"
    graph = {"nodes": [whole], "edges": [damage]}
    assert refused(json.dumps(graph), "planwave").code == "unknown-format"


@pytest.mark.parametrize("name", ["nodes", "edges"])
def test_an_own_graph_with_one_id_twice_is_refused(name: str) -> None:
    nodes = [{"id": each, "type": "text", "data": {"text": each}} for each in "abc"]
    ways = [{"id": f"e{i}", "source": s, "target": t} for i, (s, t) in enumerate(("ab", "bc"))]
    graph: dict[str, Any] = {"nodes": nodes, "edges": ways}
    graph[name][1]["id"] = graph[name][0]["id"]
    error = refused(json.dumps(graph), "planwave")
    assert error.code == "unknown-format"
    assert f"several of its {name} have the id" in str(error)


def test_an_own_graph_with_a_secret_in_a_text_is_read_though_its_edges_name_no_handles() -> None:
    secret = "sk-test0123456789abcdef"
    nodes = [{"id": "a", "type": "text", "data": {"text": f"use {secret}"}},
             {"id": "b", "type": "text", "data": {"text": "b"}}]  # fmt: skip
    edges = [{"source": "a", "target": "b", "data": {"channel": "flow"}}]
    imported = import_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert imported.report["summary"]["placeholder"] == 1
    assert secret not in json.dumps(imported)


def test_the_kind_is_told_by_shape_or_named() -> None:
    assert import_text(PLAN).report == import_text(PLAN, "agiraph").report
    assert refused(PLAN, "visio").code == "unknown-kind"


def test_a_byte_order_mark_and_bytes_change_nothing() -> None:
    expected = import_text(PLAN).document
    assert import_text(PLAN.encode("utf-8-sig")).document == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid-json"),
        ("{", "invalid-json"),
        ('{"a": 1, "a": 2}', "duplicate-key"),
        ("a: [", "invalid-yaml"),
        ("hello", "invalid-json"),
        ("[]", "unknown-format"),
        (b"\xff\xfe", "invalid-text"),
        ('{"nodes": [{"id": "a", "dependencies": []}], "connections": []}', "ambiguous-format"),
        ("sequenceDiagram\n A->>B: x", "unknown-format"),
        ("[" * 200 + "]" * 200, "limit-exceeded"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(text: str | bytes, code: str) -> None:
    error = refused(text)
    assert error.code == code, error
    assert error.message


def test_an_ambiguous_document_names_its_kinds() -> None:
    both = '{"nodes": [{"id": "a", "dependencies": []}], "connections": []}'
    assert refused(both).hint == "name the kind: agiraph, agentflow"
    assert import_text(both, "agiraph").report["kind"] == "agiraph"


@pytest.mark.parametrize("name", ["alias_bomb.yml", "python_tag.yml", "nothing_known.json"])
def test_hostile_files_are_refused_in_little_memory(name: str) -> None:
    tracemalloc.start()
    try:
        refused((OWN / "hostile" / name).read_bytes())
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_file_that_is_too_large_is_refused() -> None:
    assert refused(json.dumps({"a": "x" * MAX_SOURCE_BYTES})).code == "limit-exceeded"


@given(st.integers(0, len(PLAN)), st.text(max_size=3))
def test_a_damaged_file_is_refused_or_accounted_for(at: int, noise: str) -> None:
    damaged = PLAN[:at] + noise + PLAN[at + len(noise) + 1 :]
    try:
        imported = import_text(damaged)
    except InputError as error:
        assert error.message  # noqa: PT017
        return
    plan = json.loads(damaged)
    assert "agiraph" in formats_of(plan)
    nodes = [f"/nodes/{i}" for i, node in enumerate(plan["nodes"]) if isinstance(node, dict)]
    needed = [
        f"/nodes/{i}/dependencies/{j}"
        for i, node in enumerate(plan["nodes"])
        if isinstance(node, dict) and isinstance(node.get("dependencies"), list)
        for j in range(len(node["dependencies"]))
    ]
    drawn = [
        f"/edges/{i}" for i, edge in enumerate(plan.get("edges") or []) if isinstance(edge, dict)
    ]
    assert_accounted_for(imported, nodes=nodes, edges=[*needed, *drawn])


def test_another_provider_takes_the_place_of_those_of_the_file() -> None:
    imported = import_text(PLAN, provider="local", model="tiny")
    datas = [node.get("data") for node in imported.document["nodes"]]
    assert datas == [{"provider": "local", "model": "tiny"}] * 4
    (setup,) = imported.report["setup"]
    assert (setup["what"], setup["name"], len(setup["used_by"])) == ("provider", "local", 4)
    assert imported.report["summary"]["changed"] == 4
    assert import_text(PLAN, provider="local").document["nodes"][0].get("data") == {
        "provider": "local"
    }
