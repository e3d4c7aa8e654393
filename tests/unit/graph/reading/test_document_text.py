"""Which text is JSON and which is YAML, and whose error a text that is neither gets."""

from __future__ import annotations

import json

import pytest

from planwave.errors import GraphInvalid
from planwave.graph.reading.document_text import MAX_YAML_BYTES, parse_document_text
from planwave.graph.reading.documents import read_graph, read_lenient

GRAPH = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}
YAML = "# a graph\nnodes:\n- id: a\n  type: text\n  data: {text: x}\nedges: []\n"


@pytest.mark.parametrize(
    "text",
    [json.dumps(GRAPH), "\ufeff \n" + json.dumps(GRAPH), YAML, "\ufeff" + YAML, "---\n" + YAML],
)
def test_json_and_yaml_of_a_document_are_the_same(text: str) -> None:
    assert parse_document_text(text) == GRAPH
    assert parse_document_text(text.encode()) == GRAPH
    assert read_graph(text) == read_graph(GRAPH)
    assert read_graph(text.encode()) == read_graph(GRAPH)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('{"nodes": [], }', "invalid-json", "at line 1, column 15"),
        ('{"nodes": None}', "invalid-json", "not JSON"),  # YAML reads the text None
        ("  [1, 2", "invalid-json", "not JSON"),
        ("", "invalid-json", "the document is empty"),
        (" \n", "invalid-json", "the document is empty"),
        ('{"a": 1, "a": 2}', "duplicate-key", "'a' appears twice"),
        ("nodes: [\n", "invalid-yaml", "line 2, column 1"),
        ("nodes: []\nnodes: []\n", "duplicate-key", "'nodes' appears twice"),
        ("nodes: &x []\n", "unsupported-yaml", "an anchor at line 1, column 8"),
        ("NaN", "invalid-number", "NaN"),
        ("graph LR\n  a --> b\n", "invalid-json", "not JSON: Expecting value at line 1, column 1"),
    ],
)
def test_a_text_that_is_neither_has_one_error_of_the_format_it_is_meant_for(
    text: str, code: str, words: str
) -> None:
    for given in (text, text.encode()):
        with pytest.raises(GraphInvalid) as caught:
            parse_document_text(given)
        (found,) = caught.value.diagnostics
        assert found.code == code
        assert words in found.message


def test_words_get_a_hint_and_what_begins_as_json_none() -> None:
    with pytest.raises(GraphInvalid) as caught:
        parse_document_text("just words")
    assert caught.value.diagnostics[0].hint is not None
    assert "YAML" in caught.value.diagnostics[0].hint
    with pytest.raises(GraphInvalid) as caught:
        parse_document_text("{just words}")
    assert caught.value.diagnostics[0].hint is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("12", 12), ('"a"', "a")])
def test_a_scalar_of_json_is_read_as_before(text: str, value: object) -> None:
    assert parse_document_text(text) == value


def test_the_limit_of_a_caller_and_the_own_one_of_yaml_hold() -> None:
    for text in (YAML, json.dumps(GRAPH)):
        with pytest.raises(GraphInvalid) as caught:
            parse_document_text(text, max_bytes=20)
        assert [d.code for d in caught.value.diagnostics] == ["limit-exceeded"]
    comment = "#" * MAX_YAML_BYTES
    with pytest.raises(GraphInvalid) as caught:
        parse_document_text(f"{YAML}{comment}")
    assert [d.code for d in caught.value.diagnostics] == ["limit-exceeded"]
    assert parse_document_text(json.dumps(GRAPH) + " " * MAX_YAML_BYTES) == GRAPH


def test_the_schema_of_a_document_is_read_by_editors_alone() -> None:
    address = "https://example.com/graph.schema.json"
    assert read_graph({"$schema": address, **GRAPH}) == read_graph(GRAPH)
    assert read_graph(f"$schema: {address}\n{YAML}") == read_graph(GRAPH)
    _, findings, _, _ = read_lenient({"$schema": {"type": "object"}, **GRAPH})
    assert [(d.code, d.pointer) for d in findings] == [("unknown-field", "/$schema")]
