"""Planner replies as a model would write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from planwave.planner.small_models import positional_schema


def reply_node(node_id: str, **more: Any) -> dict[str, Any]:
    """Give a step without what it depends on."""
    return {"id": node_id, "name": node_id.title(), "description": f"Do {node_id}.", **more}


def reply_step(node_id: str, *depends_on: str, **more: Any) -> dict[str, Any]:
    """Give a step that depends on others, in the reply shape that is asked for."""
    described = reply_node(node_id, **more)
    return {"id": node_id, "name": described.pop("name"), "depends_on": [*depends_on], **described}


def step_reply(*steps: Any, title: str = "A plan", **more: Any) -> str:
    """Give a reply of the shape that is asked for, as text."""
    return json.dumps({"title": title, "steps": list(steps), **more})


def reply_edge(source: str, target: str, **more: Any) -> dict[str, Any]:
    """Give a flow edge in the old reply shape."""
    return {"source": source, "target": target, "channel": "flow", **more}


def planner_reply(
    *nodes: Any, edges: Sequence[Any] = (), title: str | None = "A plan", **more: Any
) -> str:
    """Give a reply of the old shape, with edges, as text."""
    document: dict[str, Any] = {"nodes": list(nodes), "edges": list(edges), **more}
    if title is not None:
        document = {"title": title, **document}
    return json.dumps(document)


DIAMOND_REPLY = planner_reply(
    reply_node("a"),
    reply_node("b"),
    reply_node("c"),
    reply_node("d"),
    edges=[reply_edge("a", "b"), reply_edge("a", "c"), reply_edge("b", "d"), reply_edge("c", "d")],
)


def smallest_value(schema: Any, word: str = "Word") -> Any:
    """Give the smallest value that fits a JSON Schema."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {
                name: smallest_value(schema["properties"][name], name)
                for name in schema["required"]
            }
        case "array":
            return [smallest_value(schema["items"])] * schema.get("minItems", 0)
        case "string":
            return word
        case kind:
            raise AssertionError(f"no sample of {kind}")


def small_model_reply() -> str:
    """Give a reply that fits the positional schema, whatever that asks for now."""
    return json.dumps(smallest_value(positional_schema()))
