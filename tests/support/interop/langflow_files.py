"""Flows of Langflow, as tests write them, their import and their runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import planwave
from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import FakeModel, use_model
from tests.support.interop.imports import assert_accounted_for

_TYPES = {
    "text": ["Message"], "data": ["Data", "JSON"], "table": ["DataFrame"], "tool": ["Tool"], "model": ["LanguageModel"],
}  # fmt: skip
_KIND_OF_OUTPUT = {
    "structured_output": "data", "item": "data", "data_output": "data", "done": "table", "dataframe_output": "table",
    "component_as_tool": "tool", "model_output": "model",
}  # fmt: skip


def pointers_of(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the pointer of each node and edge."""
    flow = document.get("data")
    flow = flow if isinstance(flow, dict) else {}
    return {
        name: [
            f"/data/{name}/{i}"
            for i, each in enumerate(flow[name] if isinstance(flow.get(name), list) else [])
            if isinstance(each, dict)
        ]
        for name in ("nodes", "edges")
    }


def component_of(node_id: str, kind: str = "", **fields: Any) -> dict[str, Any]:
    """Return a component; its type is the part of the id before ``-``, unless another one is named."""
    template = {name: {"type": "str", "value": value} for name, value in fields.items()}
    node = {"display_name": node_id.title(), "template": template | {"code": {"value": "boom()"}}}
    data = {"id": node_id, "type": kind or node_id.partition("-")[0], "node": node}
    return {"id": node_id, "type": "genericNode", "position": {"x": 1, "y": 2}, "data": data}


def edge_of(text: str) -> dict[str, Any]:
    """Return an edge of ``source.output > target.field``; a field ``@item`` leads back to a loop."""
    (source, out), (target, field) = (end.strip().rsplit(".", 1) for end in text.split(">"))
    kind = _KIND_OF_OUTPUT.get(out, "text")
    leaves = {"id": source, "name": out, "output_types": _TYPES[kind]}
    enters = {"id": target, "name": field[1:]} if field[0] == "@" else {"fieldName": field}
    return {
        "source": source,
        "target": target,
        "data": {"sourceHandle": leaves, "targetHandle": enters},
    }


def document_of(components: Sequence[Mapping[str, Any]], edges: Sequence[str]) -> dict[str, Any]:
    """Return a file."""
    return {"name": "f", "data": {"nodes": [*components], "edges": list(map(edge_of, edges))}}


def import_flow(components: Sequence[Mapping[str, Any]], *edges: str) -> Imported:
    """Import a flow, and hold its report against its promises."""
    document = document_of(components, edges)
    imported = import_text(json.dumps(document))
    assert_accounted_for(imported, **pointers_of(document))
    return imported


def node_at(imported: Imported, *path: str) -> dict[str, Any]:
    """Return a node; further ids lead into the bodies of nodes."""
    graph: Any = imported.document
    node: dict[str, Any] = {}
    for node_id in path:
        (node,) = [each for each in graph["nodes"] if each["id"] == node_id]
        graph = node.get("data", {}).get("body")
    return node


def notes_of(imported: Imported, name: str) -> str:
    """Return what the report says of a component."""
    (entry,) = [each for each in imported.report["nodes"] if each["source_name"] == name]
    return " / ".join(note["message"] for note in entry["notes"])


async def run_flow(
    imported: Imported, given: Any, reply: Callable[[Any], Any] = lambda _: "ok"
) -> tuple[Any, list[Any]]:
    """Run a flow with a model, and return what it came to and what the model was asked."""
    model = FakeModel(reply)
    with use_model(model):
        graph = {name: imported.document[name] for name in ("nodes", "edges")}
        result = await planwave.run(graph, given)
    assert result.status == "completed", result
    return result.output, list(model.requests)


CHAT_IN, CHAT_OUT = (
    component_of("ChatInput-1", input_value="Hi"),
    component_of("ChatOutput-1", input_value=""),
)
