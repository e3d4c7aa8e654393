"""Flows of Flowise, as tests write them, their import and their runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import planwave
from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import FakeModel, use_model
from tests.support.interop.imports import assert_accounted_for


def pointers_of(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return where the steps and edges of a file stand."""
    return {
        name: [f"/{name}/{i}" for i, each in enumerate(_list(document, name)) if isinstance(each, dict)]
        for name in ("nodes", "edges")
    }  # fmt: skip


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def step_node(node_id: str, inputs: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a step of a file; its type is what stands before the first ``_`` of its id."""
    name = node_id.partition("_")[0]
    data = {"id": node_id, "label": node_id, "name": name, "inputs": inputs or {}}
    return {"id": node_id, "type": "agentFlow", "data": data, **more}


def wire(source: str, target: str, output: object = None) -> dict[str, Any]:
    """Return an edge between two steps."""
    end = source.partition("_")[0] if output is None else output
    handle = f"{source}-output-{end}"
    return {"source": source, "sourceHandle": handle, "target": target, "targetHandle": target}


def start_step(**inputs: Any) -> dict[str, Any]:
    """Return a start."""
    return step_node("startAgentflow_0", {"startInputType": "chatInput", **inputs})


def llm_step(number: int, user: str = "", **inputs: Any) -> dict[str, Any]:
    """Return a model step."""
    messages = [{"role": "user", "content": user}] if user else ""
    given = {"llmModel": "chatOpenAI", "llmMessages": messages, "llmModelConfig": {}, **inputs}
    return step_node(f"llmAgentflow_{number}", given)


def remembering_step(number: int, user: str = "", **inputs: Any) -> dict[str, Any]:
    """Return a model step with memory."""
    return llm_step(number, llmEnableMemory=True, llmUserMessage=user, **inputs)


def import_chain(*nodes: Mapping[str, Any]) -> Imported:
    """Import steps that follow each other."""
    edges = [wire(a["id"], b["id"]) for a, b in pairwise(nodes)]
    return import_steps([*nodes], edges)


def import_steps(nodes: Sequence[Any], edges: Sequence[Any] = ()) -> Imported:
    """Import a flow."""
    document = {"nodes": [*nodes], "edges": [*edges]}
    imported = import_text(json.dumps(document), "flowise")
    assert_accounted_for(imported, **pointers_of(document))
    return imported


def data_at(imported: Imported, *path: str) -> dict[str, Any]:
    """Return the data of a node, by its path."""
    graph: Any = imported.document
    data: dict[str, Any] = {}
    for node_id in path:
        (node,) = [each for each in graph["nodes"] if each["id"] == node_id]
        data = node.get("data", {})
        graph = data.get("graph") or data.get("body")
    return data


def notes_of(imported: Imported, name: str) -> str:
    """Return what the report says of a step."""
    (entry,) = [each for each in imported.report["nodes"] if each["source_name"] == name]
    return " / ".join(note["message"] for note in entry["notes"])


def types_of(imported: Imported) -> dict[str, str]:
    """Return the types of the nodes."""
    return {node["id"]: node["type"] for node in imported.document["nodes"]}


async def run_import(
    imported: Imported, given: Any, reply: Callable[[Any], Any], answers: Sequence[Any] = ()
) -> tuple[Any, list[Any]]:
    """Run an imported flow; return its output and what the model was asked."""
    model = FakeModel(reply)
    with use_model(model):
        result = await planwave.run({k: imported.document[k] for k in ("nodes", "edges")}, given)
        for answer in answers:
            (request,) = result.requests
            result = await result.run.answer(request.request_id, answer)
    return result.output, model.requests


def said_in(request: Any) -> list[tuple[str, str]]:
    """Return the messages of a request."""
    return [(each.role, each.text) for each in request.messages]
