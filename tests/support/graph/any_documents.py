"""Random graph documents of all node types with random data: what can be read, whether or not it can run."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.nodes.registry import default_registry
from tests.support.paths import ROOT

_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = (
    st.text(_CHARACTERS, max_size=10)
    | st.text(st.sampled_from("ab \n\t\"'\\{}#:%;`|<&-é→\u2028\u202e"), max_size=20)
    | st.sampled_from(
        ["{{ input }}", "Write:\n\n- one\n- two\n", '"""', 'ends with "', "yes", "1e3"]
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**20) | st.floats(-1e6, 1e6) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
_FIELDS = st.sampled_from(
    [
        "userPrompt", "user_prompt", "prompt", "text", "model", "provider", "id", "name", "data", "ui", "edges",
        "policy", "class", "items", "body", "graph", "cases", "initialInput", "a b", "x", "outputSchema", "input",
    ]
)  # fmt: skip
_IDS = st.from_regex(r"[A-Za-z0-9_.-]{1,6}", fullmatch=True) | st.sampled_from(
    ["end", "graph", "class", "print", "planwave", "a-b", "a.b", "a_b", "1", "style-x", "match"]
)
_HANDLES = st.sampled_from(["output", "input", "case-0", "tools", "items", "user prompt", "model"])
_POLICIES = st.sampled_from(
    [
        {"join": "any"},
        {"retry": {"attempts": 3, "backoffS": 0.5, "on": ["timeout"]}},
        {"timeoutS": 2, "onError": "default", "default": {"handle": "output", "value": {"a": 1}}},
        {},
    ]
)


@cache
def _types() -> list[str]:
    return [*default_registry().names(), "a.type-of-others"]


@st.composite
def documents(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    """Draw a document; fields that may be missing are missing in some."""
    ids = draw(st.lists(_IDS, max_size=5, unique=True))
    nodes = [draw(_nodes(node_id, depth)) for node_id in ids]
    edges: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 2 * len(ids)))):
        edges.append(draw(_edges(ids, number)))
    unique = {
        json.dumps({**edge, "id": 0, "data": edge["data"]["channel"]}): edge for edge in edges
    }
    return {"nodes": nodes, "edges": list({_ends(edge): edge for edge in unique.values()}.values())}


def _ends(edge: dict[str, Any]) -> tuple[str, ...]:
    ends = edge["source"], edge.get("sourceHandle", "output"), edge["target"]
    return (*ends, edge.get("targetHandle", "input"), edge["data"]["channel"])


@st.composite
def _nodes(draw: st.DrawFn, node_id: str, depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"id": node_id, "type": draw(st.sampled_from(_types()))}
    if draw(st.booleans()):
        node["name"] = draw(TEXTS)
    if draw(st.integers(0, 4)) == 0:
        node["description"] = draw(TEXTS)
    if draw(st.booleans()):
        node["data"] = draw(st.dictionaries(_FIELDS, VALUES, max_size=4))
    if draw(st.integers(0, 4)) == 0:
        node["policy"] = draw(_POLICIES)
    if draw(st.integers(0, 4)) == 0:
        node["ui"] = {"x": draw(st.integers(-99, 99)), "y": 2.5}
    if depth and node["type"] in ("inner", "loop", "while") and draw(st.booleans()):
        inside = draw(documents(depth - 1))
        if draw(st.booleans()):
            inside = read_graph(inside)[0].to_document()
        node.setdefault("data", {})["graph" if node["type"] == "inner" else "body"] = inside
    return node


@st.composite
def _edges(draw: st.DrawFn, ids: list[str], number: int) -> dict[str, Any]:
    edge: dict[str, Any] = {
        "source": draw(st.sampled_from(ids)),
        "target": draw(st.sampled_from(ids)),
    }
    if draw(st.booleans()):
        edge["id"] = f"e{number + 1}" if draw(st.booleans()) else f"edge-{number}"
    if draw(st.booleans()):
        edge["sourceHandle"] = draw(_HANDLES)
    if draw(st.booleans()):
        edge["targetHandle"] = draw(_HANDLES)
    if draw(st.integers(0, 5)) == 0:
        edge["type"] = draw(st.sampled_from(["smooth", "step"]))
    channel = draw(st.sampled_from(["flow", "flow", "link"]))
    note = {"note": draw(TEXTS)} if draw(st.integers(0, 4)) == 0 else {}
    edge["data"] = {"channel": channel, **note}
    return edge


def graphs() -> st.SearchStrategy[Graph]:
    """Draw graphs that were read from such documents."""
    return documents().map(lambda document: read_graph(document)[0])


def example_files() -> list[Path]:
    """Return the files of all graphs that are shown as examples, of node types and of whole flows."""
    files = [
        *(ROOT / "examples").rglob("*.json"),
        *(ROOT / "planwave/nodes/examples").glob("*.json"),
    ]
    return [file for file in sorted(files) if "nodes" in json.loads(file.read_text("utf-8"))]


def read_example(file: Path) -> tuple[Graph, str]:
    """Return the graph and the title of an example."""
    document = json.loads(file.read_text("utf-8"))
    graph, _ = read_graph({name: document[name] for name in ("nodes", "edges")})
    return graph, document.get("title", "")
