"""The JSON Schema of graphs: it accepts what can be read, and names what is wrong."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from planwave.interop.exporting.graph_schema import DIALECT, PLAN_FIELDS, graph_schema
from planwave.service.plans.documents import _PLAN_FIELDS  # pyright: ignore[reportPrivateUsage]
from planwave.shapes.plans import PlanResponse
from tests.support.graph.any_documents import example_files, read_example
from tests.support.llm.fake_providers import library_registry
from tests.support.paths import ROOT

REGISTRY = library_registry()
SCHEMA = graph_schema([REGISTRY.describe(name) for name in REGISTRY.names()])
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)
EXAMPLES = [file for file in example_files() if "_package" not in file.parent.name]
"""Those of packages have types of their own."""
GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "a", "type": "start", "data": {"initialInput": "x"}},
        {"id": "b", "type": "agent", "data": {"userPrompt": "{{ input }}", "temperature": 0.5}, "policy": {"retry": {"attempts": 2}}},
        {"id": "c", "type": "loop", "data": {"body": {"nodes": [{"id": "x", "type": "text"}], "edges": []}}},
    ],
    "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
}  # fmt: skip


def places(document: Any) -> list[str]:
    return ["/".join(map(str, error.instance_path)) for error in VALIDATOR.iter_errors(document)]


def test_the_schema_is_one_of_its_dialect() -> None:
    assert SCHEMA["$schema"] == DIALECT
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_type_has_a_rule() -> None:
    named = [each["const"] for each in SCHEMA["$defs"]["node"]["properties"]["type"]["oneOf"]]
    assert named == list(REGISTRY.names())
    assert len(SCHEMA["$defs"]["node"]["allOf"]) == len(named)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_example_is_valid(file: Path) -> None:
    document = json.loads(file.read_text("utf-8"))
    assert places(document) == []
    graph, _ = read_example(file)
    assert places(graph.to_document()) == [], "as it is stored, too"


def test_a_plan_and_the_address_of_the_schema_are_allowed_around_a_graph() -> None:
    assert frozenset(PLAN_FIELDS) == _PLAN_FIELDS
    shown = PlanResponse.__required_keys__ | PlanResponse.__optional_keys__
    assert shown - {"nodes", "edges"} == _PLAN_FIELDS, "what the API shows can be read again"
    assert places({**GRAPH, "$schema": "./planwave.schema.json", "title": "A", "revision": 3}) == []


def changed(*path: str | int, value: Any = None, remove: bool = False) -> dict[str, Any]:
    document = deepcopy(GRAPH)
    *way, last = path
    at: Any = document
    for step in way:
        at = at[step]
    if remove:
        del at[last]
    else:
        at[last] = value
    return document


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (changed("edges", remove=True), ""),
        (changed("color", value="red"), ""),
        (changed("nodes", 0, "id", value="a b"), "nodes/0/id"),
        (changed("nodes", 0, "id", remove=True), "nodes/0"),
        (changed("nodes", 0, "type", value="begin"), "nodes/0/type"),
        (changed("nodes", 0, "colour", value=1), "nodes/0"),
        (changed("nodes", 1, "data", "userPromt", value="x"), "nodes/1/data"),
        (changed("nodes", 1, "data", "temperature", value=7), "nodes/1/data"),
        (changed("nodes", 1, "policy", "retry", "attempts", value=0), "nodes/1/policy"),
        (changed("nodes", 1, "policy", value={"onError": "ignore"}), "nodes/1/policy"),
        (changed("nodes", 2, "data", "body", "nodes", 0, "type", value="?"), "nodes/2/data"),
        (changed("nodes", 2, "data", "body", value={"nodes": []}), "nodes/2/data"),
        (changed("edges", 0, "data", value={}), "edges/0/data"),
        (changed("edges", 0, "data", "channel", value="side"), "edges/0/data/channel"),
        (changed("edges", 0, "target", remove=True), "edges/0"),
        (changed("edges", 0, "from", value="a"), "edges/0"),
        (changed("$schema", value=7), "$schema"),
        ([], ""),
    ],
)
def test_damage_is_found_where_it_is(document: Any, place: str) -> None:
    assert place in places(document)


def test_fields_that_an_edge_may_bring_are_not_required() -> None:
    needed = {
        name: SCHEMA["$defs"][f"data.{name}"].get("required", []) for name in REGISTRY.names()
    }
    for name, fields in needed.items():
        inputs = {port["name"] for port in REGISTRY.describe(name)["inputs"]}
        assert not inputs.intersection(fields)
    assert places({"nodes": [{"id": "a", "type": "agent"}], "edges": []}) == []
