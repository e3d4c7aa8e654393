"""Programs that make a graph: running one gives the same hash, and it reads as a person would write it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from planwave.graph.model import Graph
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.interop.exporting.python_code import python_code
from planwave.interop.exporting.python_literals import literal
from planwave.nodes.registry import default_registry
from tests.support.examples import examples
from tests.support.graph.any_documents import TEXTS, VALUES, example_files, graphs, read_example
from tests.support.paths import ROOT

REGISTRY = default_registry()
OWN_ORDER = {
    "flows/retry_with_fallback.json",
    "planwave_node_package/flow.json",
    "examples/fetch.json",
}
"""Examples whose edges are in another order than that of the nodes that they lead to."""


def run_program(code: str) -> Graph:
    """Run an exported program; return the graph that it makes."""
    namespace: dict[str, Any] = {}
    exec(compile(code, "exported.py", "exec"), namespace)  # noqa: S102 - it is the exporter's own
    made = namespace["graph"]
    return read_graph(made if isinstance(made, dict) else made.document())[0]


@settings(max_examples=examples(150))
@given(VALUES)
def test_any_value_as_python_is_the_same_value(value: Any) -> None:
    assert json.dumps(ast.literal_eval(literal(value))) == json.dumps(value)


@settings(max_examples=examples(60))
@given(graphs(), TEXTS)
def test_any_graph_as_python_has_the_same_hash(graph: Graph, title: str) -> None:
    made = run_program(python_code(graph, REGISTRY, title))
    assert graph_hash(made) == graph_hash(graph)
    assert made == graph, "also what is no part of the hash, such as the places of nodes"


@pytest.mark.parametrize("file", example_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_example_comes_back(file: Path) -> None:
    graph, title = read_example(file)
    code = python_code(graph, REGISTRY, title)
    assert graph_hash(run_program(code)) == graph_hash(graph)
    assert "graph = planwave.GraphBuilder(" in code, "a builder, not the document"
    assert (".edge(" in code) == (file.parent.name + "/" + file.name in OWN_ORDER), (
        "keywords say where values come from"
    )


def test_a_program_is_run_as_a_script(tmp_path: Path) -> None:
    document = {
        "nodes": [
            {"id": "a", "type": "text", "data": {"text": "hello"}},
            {"id": "b", "type": "text", "data": {"text": "{{ input | upper }}"}},
        ],
        "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
    }
    program = tmp_path / "greeting.py"
    program.write_text(python_code(read_graph(document)[0], REGISTRY, "Greeting"), "utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout == "HELLO\n"


def test_a_program_reads_as_a_person_would_write_it() -> None:
    document = {
        "nodes": [
            {"id": "goal", "type": "start", "name": "Goal"},
            {"id": "each-one", "type": "loop", "data": {"parallel": 2, "body": {
                "nodes": [{"id": "read", "type": "agent", "data": {"userPrompt": "Sum up:\n\n{{ item }}"}}],
                "edges": [],
            }}},
            {"id": "class", "type": "switch", "data": {"cases": ["good"]}, "policy": {"join": "any"}},
            {"id": "note", "type": "end"},
        ],
        "edges": [
            {"source": "goal", "target": "each-one", "data": {"channel": "flow"}},
            {"source": "each-one", "target": "class", "data": {"channel": "flow"}},
            {"source": "class", "sourceHandle": "case-0", "target": "note", "data": {"channel": "flow"}},
        ],
    }  # fmt: skip
    code = python_code(read_graph(document)[0], REGISTRY, 'A "loop"')
    assert (
        code
        == '''\
"""A \\"loop\\", made with planwave."""

import planwave

graph = planwave.GraphBuilder(title='A "loop"')
goal = graph.node("start", id="goal", name="Goal")
each_one_body = planwave.GraphBuilder()
each_one_body.node(
    "agent",
    id="read",
    user_prompt="""\\
Sum up:

{{ item }}""",
)
each_one = graph.node("loop", id="each-one", parallel=2, body=each_one_body, input=goal)
node_class = graph.node(
    "switch",
    id="class",
    cases=["good"],
    policy={"join": "any"},
    input=each_one,
)
graph.node("end", id="note", input=node_class["case-0"])

if __name__ == "__main__":
    print(planwave.run_sync(graph).text)
'''
    )


def test_a_graph_that_no_builder_makes_is_written_as_its_document() -> None:
    document = {
        "nodes": [{"id": "a", "type": "text"}],
        "edges": [{"source": "a", "target": "gone", "data": {"channel": "flow"}}],
    }
    graph, _ = read_graph(document)
    code = python_code(graph, REGISTRY)
    assert "GraphBuilder" not in code
    assert run_program(code) == graph


@pytest.mark.parametrize(
    "ending", ['"', '""', '"""', '""""', '"""""', '\\"""', '\\\\"', "\\", '"""\\']
)
@pytest.mark.parametrize("lines", ["a\nb", '"""\n"', "\\\n\\"])
def test_texts_of_several_lines_end_in_any_quotes(lines: str, ending: str) -> None:
    text = lines + ending
    assert ast.literal_eval(literal(text)) == text
    assert ast.literal_eval(literal({"a": [text]})) == {"a": [text]}
