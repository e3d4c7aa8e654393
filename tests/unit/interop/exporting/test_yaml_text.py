"""YAML of graphs and of any JSON value: it comes back as the same value, and people can read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from planwave.graph.model import Graph
from planwave.graph.plan import graph_hash
from planwave.graph.reading.document_text import parse_document_text
from planwave.graph.reading.documents import read_graph
from planwave.graph.reading.yaml_text import parse_yaml
from planwave.interop.exporting.yaml_text import write_yaml
from tests.support.examples import examples
from tests.support.graph.any_documents import TEXTS, example_files, graphs, read_example
from tests.support.paths import ROOT

AMBIGUOUS = [
    "yes", "No", "on", "y", "~", "null", "NULL", "true", "0x1f", "0o7", "010", "1:30", "1_000", "1e3", ".5", ".inf",
    "2026-01-01", "<<", "=", "- a", "a: b", "a #b", "#", "---", "...", "?", "!x", "&x", "*x", " a", "a ", "a\n",
    "\na", " a\nb", "a\n\n", "\n", "a\r\nb", "a\tb\nc", "a\n \nb", "{{ input }}", "%a", "@a", "`a`", "x" * 200, "ä\nö",
]  # fmt: skip
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(-1e307, 1e307)
    | TEXTS
    | st.sampled_from(AMBIGUOUS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS | st.sampled_from(AMBIGUOUS), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(150))
@given(json_values)
@example(AMBIGUOUS)
@example(dict.fromkeys(AMBIGUOUS))
def test_any_value_in_yaml_is_read_back_by_both_versions_of_yaml(value: Any) -> None:
    text = write_yaml(value)
    assert json.dumps(parse_yaml(text)) == json.dumps(value)
    assert yaml.load(text, Loader=yaml.SafeLoader) == value


@settings(max_examples=examples(60))
@given(graphs())
def test_any_graph_in_yaml_has_the_same_hash(graph: Graph) -> None:
    again, _ = read_graph(write_yaml(graph.to_document()))
    assert graph_hash(again) == graph_hash(graph)
    assert again == graph


def test_yaml_is_written_for_people() -> None:
    document = {
        "title": "A: note",
        "nodes": [{"id": "a", "type": "agent", "data": {"userPrompt": "Write.\n\n  {{ input }}\n", "tools": []},
                   "ui": {"x": 1.5, "y": -2}}],
        "edges": [{"id": "e1", "source": "a", "target": "a", "data": {"channel": "flow"}}],
    }  # fmt: skip
    assert (
        write_yaml(document)
        == """\
title: "A: note"
nodes:
  - id: a
    type: agent
    data:
      userPrompt: |
        Write.

          {{ input }}
      tools: []
    ui: {x: 1.5, "y": -2}
edges:
  - id: e1
    source: a
    target: a
    data: {channel: flow}
"""
    )


@pytest.mark.parametrize("file", example_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_example_comes_back(file: Path) -> None:
    graph, title = read_example(file)
    document: Any = parse_document_text(write_yaml({"title": title, **graph.to_document()}))
    assert document.pop("title") == title
    assert graph_hash(read_graph(document)[0]) == graph_hash(graph)
