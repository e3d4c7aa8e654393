"""The results of an execution: what its last nodes gave."""

from __future__ import annotations

from typing import Any

from planwave.events import ExecutionState


def results_of(state: ExecutionState) -> dict[str, Any]:
    """Return ``{node_id: value}`` of the completed nodes that no edge leaves."""
    graph = state.graph or {"nodes": [], "edges": []}
    sources = {edge["source"] for edge in graph["edges"]}
    found: dict[str, Any] = {}
    for node in graph["nodes"]:
        own = state.nodes[node["id"]]
        if node["id"] in sources or own.status != "completed" or not own.outputs:
            continue
        handle = "output" if "output" in own.outputs else next(iter(own.outputs))
        found[node["id"]] = own.outputs[handle]["value"]
    return found
