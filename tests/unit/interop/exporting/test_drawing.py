"""Pictures of graphs: what each node and edge is drawn as, and that no text can be a command."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
from hypothesis import given, settings

from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.graph.subgraphs import all_nodes
from planwave.interop.exporting.dot import SHAPES as DOT_SHAPES
from planwave.interop.exporting.dot import dot
from planwave.interop.exporting.drawing import Shape, draw, shape_of, statuses_by_path
from planwave.interop.exporting.mermaid import SHAPES, escaped, mermaid
from planwave.interop.exporting.status_colours import STATUS_COLOURS
from planwave.nodes.registry import default_registry
from planwave.shapes.common import NodeStatus
from tests.support.examples import examples
from tests.support.graph.any_documents import TEXTS, graphs

REGISTRY = default_registry()
FLOW: dict[str, Any] = {
    "nodes": [
        {"id": "goal", "type": "start", "name": "Goal"},
        {"id": "sort", "type": "llm", "name": "Good or bad?", "data": {"prompt": "{{ input }}"}},
        {"id": "kind", "type": "switch", "data": {"cases": ["good", "bad"]}},
        {"id": "search", "type": "http_tool", "name": "Search"},
        {"id": "write", "type": "agent", "name": 'Say "thanks" & <b>more</b>'},
        {"id": "ask", "type": "approval", "name": "Ask"},
        {"id": "each", "type": "loop", "name": "Each line", "data": {"body": {
            "nodes": [{"id": "line", "type": "text", "name": "One line"}, {"id": "goal", "type": "merge"}],
            "edges": [{"source": "line", "target": "goal", "data": {"channel": "flow"}}],
        }}},
        {"id": "lost", "type": "placeholder", "name": "Step of another program"},
        {"id": "end", "type": "end", "name": "Done"},
    ],
    "edges": [
        {"source": "goal", "target": "sort", "data": {"channel": "flow"}},
        {"source": "sort", "target": "kind", "data": {"channel": "flow"}},
        {"source": "kind", "sourceHandle": "case-0", "target": "write", "data": {"channel": "flow"}},
        {"source": "kind", "sourceHandle": "case-1", "target": "ask", "data": {"channel": "flow"}},
        {"source": "search", "sourceHandle": "tools", "target": "write", "targetHandle": "tools",
         "data": {"channel": "link"}},
        {"source": "ask", "sourceHandle": "approve", "target": "each", "data": {"channel": "flow"}},
        {"source": "each", "target": "end", "data": {"channel": "flow"}},
        {"source": "write", "target": "end", "data": {"channel": "flow"}},
    ],
}  # fmt: skip
GRAPH, _ = read_graph(FLOW)
LABELS = {"kind": {"case-0": "good", "case-1": "bad"}}


def test_mermaid_shows_kinds_handles_links_and_graphs_inside() -> None:
    assert (
        mermaid(draw(GRAPH, REGISTRY, LABELS), "Thanks")
        == """\
---
title: "Thanks"
---
flowchart TD
  goal(["Goal"])
  sort["Good or bad?"]
  kind{"kind"}
  search{{"Search"}}
  write["Say #quot;thanks#quot; #amp; #lt;b#gt;more#lt;/b#gt;"]
  ask[/"Ask"/]
  each[["Each line"]]
  lost>"Step of another program"]
  n9(("Done"))
  goal --> sort
  sort --> kind
  kind -->|"good"| write
  kind -->|"bad"| ask
  search -.->|"→ tools"| write
  ask -->|"approve"| each
  each --> n9
  write --> n9
  subgraph each_inside["Each line"]
    line("One line")
    n12("goal")
    line --> n12
  end
  each -.- each_inside
"""
    )


def test_dot_is_the_same_drawing() -> None:
    written = dot(draw(GRAPH, REGISTRY, LABELS), "Thanks", {"goal": "completed"})
    assert '"goal" [label="Goal", shape=oval, fillcolor="#d9f2e1", color="#1c7c3c"]' in written
    assert '"kind" -> "write" [label="good"]' in written
    assert '"search" -> "write" [label="→ tools", style=dotted]' in written
    assert 'subgraph "cluster_each_inside" {' in written
    assert '"each" -> "line" [style=dotted, arrowhead=none, lhead="cluster_each_inside"]' in written
    assert 'label="Say \\"thanks\\" & <b>more</b>"' in written


def test_statuses_of_an_execution_are_classes() -> None:
    nodes = [
        {"path": "goal", "status": "completed"},
        {"path": "each", "status": "failed"},
        {"path": "each[0]/line", "status": "completed"},
        {"path": "each[1]/line", "status": "failed"},
        {"path": "each[1]/goal", "status": "skipped"},
        {"path": "gone", "status": "completed"},
    ]
    statuses = statuses_by_path(nodes)
    assert statuses["each/line"] == "failed", "the round that needs attention"
    written = mermaid(draw(GRAPH, REGISTRY), statuses=statuses).splitlines()
    assert "  class goal completed" in written
    assert "  class each,line failed" in written
    assert "  class n12 skipped" in written
    assert "  classDef completed fill:#d9f2e1,stroke:#1c7c3c,color:#1b1f24" in written
    assert not any("waiting" in line for line in written)


def test_every_status_has_a_colour() -> None:
    assert set(STATUS_COLOURS) == set(get_args(NodeStatus))


def test_every_shape_is_written_and_none_twice() -> None:
    assert set(SHAPES) == set(DOT_SHAPES) == set(Shape)
    assert len(set(SHAPES.values())) == len(set(DOT_SHAPES.values())) == len(Shape)


EXPECTED = {
    Shape.ENTRY: {"start", "chat_start", "user_input", "webhook", "schedule", "sse"},
    Shape.END: {"end", "webhook_reply"},
    Shape.MODEL: {"agent", "llm", "planner"},
    Shape.BRANCH: {"if", "switch", "conditional"},
    Shape.PERSON: {"approval", "tool_approval", "wait"},
    Shape.NESTED: {"inner", "loop", "while"},
    Shape.GIVER: {"client", "model", "flow_tool", "http_tool", "mcp_server", "tool", "toolset"},
    Shape.UNKNOWN: {"placeholder"},
}


@pytest.mark.parametrize("shape", [shape for shape in Shape if shape is not Shape.STEP])
def test_types_have_the_shape_of_what_they_do(shape: Shape) -> None:
    assert {name for name in REGISTRY.names() if shape_of(name, REGISTRY) is shape} == EXPECTED[
        shape
    ]


def test_a_type_that_is_not_known_is_a_step() -> None:
    assert shape_of("of-others", REGISTRY) is Shape.STEP


ATTACKS = [
    '"]; click a "javascript:alert(1)"',
    "%%{init: {'securityLevel': 'loose'}}%%",
    "<script>alert(1)</script>",
    "`**markdown**`",
    "a\nend\nsubgraph x",
    "style x fill:#f00;",
    "#quot; already",
    "\x00\x1b[31m\u2028\u202e",
    "\\N \\G \\",
]
_TEXT_IN_QUOTES = r'"[^"<>`{}%\\\n]*"'
_KEY = r"[A-Za-z][\w.-]*"
_OPENINGS = "|".join(
    f"{re.escape(before)}{_TEXT_IN_QUOTES}{re.escape(after)}" for before, after in SHAPES.values()
)
_LINE = re.compile(
    rf" +(?:{_KEY}(?:{_OPENINGS})|{_KEY} (?:-->|-\.->)(?:\|{_TEXT_IN_QUOTES}\|)? {_KEY}"
    rf"|subgraph {_KEY}\[{_TEXT_IN_QUOTES}\]|end|{_KEY} -\.- {_KEY}"
    rf"|classDef \w+ fill:#\w+,stroke:#\w+,color:#\w+|class {_KEY}(?:,{_KEY})* \w+)"
)


def require_safe(written: str) -> None:
    lines = written.splitlines()
    if lines[0] == "---":
        assert re.fullmatch(r'title: "(?:[^"\\]|\\.)*"', lines[1])
        assert "%%" not in lines[1]
        lines = lines[3:]
    assert lines[0] == "flowchart TD"
    assert [line for line in lines[1:] if not _LINE.fullmatch(line)] == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_of_a_graph_is_never_a_command(attack: str) -> None:
    nodes = [{"id": "a", "type": "text", "name": attack}, {"id": "b", "type": "inner"}]
    edge = {
        "source": "a", "sourceHandle": attack, "target": "b", "targetHandle": attack,
        "data": {"channel": "flow"},
    }  # fmt: skip
    nodes[1]["data"] = {"graph": {"nodes": nodes[:1], "edges": []}}
    graph, _ = read_graph({"nodes": nodes, "edges": [edge]}) if "\0" not in attack else (None, None)
    if graph is None:  # no document holds it; the writer is given it all the same
        assert "\0" not in escaped(attack).replace("\0", "")
        return
    drawing = draw(graph, REGISTRY)
    require_safe(mermaid(drawing, attack, {"a": "completed"}))
    for line in dot(drawing, attack).splitlines():
        assert len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0
        assert line.isprintable()


@settings(max_examples=examples(60))
@given(graphs(), TEXTS)
def test_every_node_and_edge_stands_in_a_drawing_once(graph: Graph, title: str) -> None:
    drawing = draw(graph, REGISTRY)
    boxes = list(drawing.all_boxes())
    assert len({box.key for box in boxes}) == len(boxes)
    assert [box.path for box in drawing.boxes] == [node.id for node in graph.nodes]
    assert {box.path for box in boxes} == {placed.path for placed in all_nodes(graph, REGISTRY)}
    assert len(drawing.lines) == len(graph.edges)
    written = mermaid(drawing, title)
    require_safe(written)
    assert written == mermaid(draw(graph, REGISTRY), title)
    assert dot(drawing, title).count("->") >= len(graph.edges)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a: b", "a: b"),
        ('say "x"', "say #quot;x#quot;"),
        ("#1", "#35;1"),
        ("my style: x", "my style#58; x"),
        ("{{ input }}", "#123;#123; input #125;#125;"),
    ],
)
def test_what_mermaid_reads_is_written_as_entities(text: str, shown: str) -> None:
    assert escaped(text) == shown
