"""Which nodes of an execution answer the request that started it, nested ones included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from planwave.events.graphs import NestedGraphs
from planwave.events.paths import path_prefix
from planwave.events.types import typed_event

if TYPE_CHECKING:
    from planwave.events import Event

WEBHOOK_REPLY: Final = "webhook_reply"


def holds_reply(graph: Mapping[str, Any]) -> bool:
    """Return whether a graph, or one nested in the data of its nodes, has a node that answers."""
    return any(node.get("type") == WEBHOOK_REPLY for node in _nodes(graph))


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of graph documents, at any depth of a value."""
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _nodes(each)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if isinstance(fields.get("nodes"), list) and "edges" in fields:
            yield from (node for node in fields["nodes"] if isinstance(node, dict))
        for each in fields.values():
            yield from _nodes(each)


class ReplyFinder:
    """Finds the answer among the events of an execution, which it is shown from the first on."""

    def __init__(self) -> None:
        self._graphs = NestedGraphs()
        self._types: dict[str, dict[str, str]] = {}

    def reply_in(self, event: Event) -> dict[str, Any] | None:
        """Return ``{"body", "status", "headers"}`` if a node has answered; it reads every event."""
        typed = typed_event(event)
        data: Any = typed.data
        if typed.type == "execution.created":
            self._types[""] = _types_of(data["graph"])
        elif typed.type == "plan.revised":
            self._types[""] |= _types_of(data["graph_change"])
        elif typed.type == "nested_run.opened":
            self._graphs.record(event.path, data)
        elif typed.type == "node.completed" and self._type_of(event.path or "") == WEBHOOK_REPLY:
            return data["outputs"]["output"]["value"]
        return None

    def _type_of(self, path: str) -> str | None:
        prefix = path_prefix(path)
        own = self._graphs.runs.get(prefix, "")
        if prefix and own not in self._types:
            self._types[own] = _types_of(self._graphs.documents.get(own, {}))
        return self._types.get(own, {}).get(path.removeprefix(prefix))


def _types_of(graph: Any) -> dict[str, str]:
    return {node["id"]: node["type"] for node in graph.get("nodes", ())}
