"""Each format of the table, from the same graph."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.interop.exporting.exporter import (
    FORMATS,
    Export,
    ExportFormat,
    export,
    media_type_of,
)
from planwave.nodes.registry import default_registry

REGISTRY = default_registry()
GRAPH, _ = read_graph(
    {
        "nodes": [
            {"id": "kind", "type": "switch", "data": {"cases": ["good"]}},
            {"id": "note", "type": "text", "data": {"text": "Fine"}},
        ],
        "edges": [
            {"source": "kind", "sourceHandle": "case-0", "target": "note", "data": {"channel": "flow"}}
        ],
    }
)  # fmt: skip


def exported(to: ExportFormat, graph: Graph = GRAPH) -> str:
    def node_types() -> list[dict[str, object]]:
        return [REGISTRY.describe(name) for name in REGISTRY.names()]

    what = Export(
        graph, REGISTRY, node_types, REGISTRY.node_ports, "A title", {"note": "completed"}
    )
    return export(to, what)


@pytest.mark.parametrize(
    ("to", "media_type", "part"),
    [
        ("mermaid", "text/plain", '  kind -->|"good"| note\n'),
        ("mermaid", "text/plain", "  class note completed\n"),
        ("dot", "text/plain", '  "kind" -> "note" [label="good"]\n'),
        ("yaml", "application/yaml", "title: A title\nnodes:\n  - id: kind\n"),
        (
            "json-schema",
            "application/schema+json",
            '"$schema": "https://json-schema.org/draft/2020-12',
        ),
        ("python", "text/plain", 'note = graph.node("text", id="note"'[7:]),
    ],
)
def test_a_format_has_a_media_type_and_a_writer(
    to: ExportFormat, media_type: str, part: str
) -> None:
    text = exported(to)
    assert media_type_of(to) == media_type
    assert part in text
    assert text.endswith("\n")


def test_the_formats_are_those_of_the_type() -> None:
    assert get_args(ExportFormat) == FORMATS


def test_the_schema_needs_no_graph() -> None:
    assert json.loads(exported("json-schema", Graph((), ()))) == json.loads(exported("json-schema"))


@pytest.mark.parametrize("to", FORMATS)
def test_an_empty_graph_has_every_form(to: ExportFormat) -> None:
    assert exported(to, Graph((), ()))
