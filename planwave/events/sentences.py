"""Events as log lines for people: the sentences the first service wrote, one projection of two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planwave.events.vocabulary import TERMINAL, Event


class SentenceLog:
    """Turns events into sentences one after the other.

    It remembers the nodes' names, and which failed dependencies it has named already: nodes blocked
    by the same one share one sentence.
    """

    __slots__ = ("_blockers", "_names")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._blockers: set[str] = set()

    def told(self, event: Event) -> str | None:
        """Give the sentence of an event, or None for one that is not worth a line.

        Nested nodes are named by their whole path.
        """
        data = event.data
        node = event.path or ""
        match event.type:
            case "execution.created":
                self._learn_names(data.get("graph"))
            case "execution.started":
                return "Starting execution..."
            case "wave.started":
                nodes: list[str] = data.get("nodes") or []
                return f"Executing {len(nodes)} nodes in parallel: {nodes}"
            case "node.started":
                return f"Starting node {node}: {self._name_of(node)}"
            case "node.completed":
                return f"Completed node {node} (took {data.get('duration_s') or 0.0:.2f}s)"
            case "node.failed":
                return f"Failed node {node}: {self._name_of(node)} - {_message_of(data)}"
            case "node.blocked":
                return self._blocked_by(data)
            case _ if event.type in TERMINAL:
                return f"Execution completed. Status: {event.type.removeprefix('execution.')}"
            case _:
                pass
        return None

    def _learn_names(self, graph: dict[str, Any] | None) -> None:
        nodes: list[dict[str, Any]] = (graph or {}).get("nodes", [])
        self._names = {n["id"]: n.get("name") or n["id"] for n in nodes}

    def _name_of(self, path: str) -> str:
        return self._names.get(path) or path.rpartition("/")[2]

    def _blocked_by(self, data: dict[str, Any]) -> str | None:
        cause: dict[str, Any] = data.get("cause") or {}
        blocker = str(cause.get("node") or "?")
        if blocker in self._blockers:
            return None
        self._blockers.add(blocker)
        return f"Cannot proceed - dependencies failed: {[blocker]}"


def execution_logs(events: Iterable[Event]) -> list[str]:
    """Give the log of an execution as sentences, in the order of its events."""
    log = SentenceLog()
    return [line for event in events if (line := log.told(event)) is not None]


def _message_of(data: dict[str, Any]) -> str:
    error: dict[str, Any] = data.get("error") or {}
    return str(error.get("message") or error.get("code") or "unknown error")
