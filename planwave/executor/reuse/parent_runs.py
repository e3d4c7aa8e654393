"""Stored graph runs of the parent execution of a fork: each run of each graph.

Unlike the history that an execution is resumed from, all runs stay: an abandoned or restarted run may
still hold results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from planwave.events import Event
from planwave.events.paths import nested_prefix, parent_path, path_prefix
from planwave.events.types import NestedRunOpenedData, UsageData, typed_events
from planwave.executor.state import StoredGraphRun
from planwave.graph.model import Json


class ParentHistory:
    """All graph runs of one execution.

    Attributes:
        root: The run of the execution's own graph.
        documents: The graphs of nested runs by hash.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.root = StoredGraphRun()
        self.documents: dict[str, Mapping[str, Json]] = {}
        self._records: dict[str, list[StoredGraphRun]] = {}
        self._children: dict[str, list[StoredGraphRun]] = {}
        self._current = {"": self.root}
        self._usage: dict[tuple[str, int | None], list[list[Json]]] = {}
        for event in typed_events(events):
            path = event.path
            if path is None:
                continue
            if event.type == "usage":
                self._add_usage(path, event.attempt, event.data)
            elif not event.type.startswith("wave."):
                self._run_of(path).add(event)
            if event.type == "nested_run.opened":
                self._open(nested_prefix(path, event.data["key"]), _identity(event.data))
                if "document" in event.data:
                    self.documents[event.data["graph"]] = event.data["document"]
            elif event.type == "nested_run.abandoned":
                self._current.pop(nested_prefix(path, event.data["key"]), None)

    def records_at(self, prefix: str) -> Sequence[StoredGraphRun]:
        """Return the nested runs with a prefix, the latest first."""
        return self._records.get(prefix, ())[::-1]

    def types_used(self, record: StoredGraphRun, path: str) -> Iterator[tuple[str, int]]:
        """Yield the types and versions that a node's result depends on, as far as they are stored.

        Of the nested runs of the node, these are all types of their graphs, also where no node of
        the type ran.
        """
        yield from (record.how_made(path).type_versions or {}).items()
        for inner in self._children.get(path, ()):
            if inner.parent is not record or inner.identity is None:
                continue
            stored = dict(inner.type_versions())
            yield from inner.type_versions()
            nodes: list[Any] = self.documents.get(inner.identity[0], {}).get("nodes", [])
            yield from ((node["type"], 1) for node in nodes if node["type"] not in stored)
            for deeper in inner.paths():
                yield from self.types_used(inner, deeper)

    def consume_usage(self, path: str, attempt: int, usage: Mapping[str, Json]) -> bool:
        """Return whether an attempt of a node has reported a call with this usage, once for each.

        Where it has not, the process ended between the call and its report.
        """
        reported, counts = self._usage.get((path, attempt), []), _token_counts(usage)
        if counts not in reported:
            return False
        reported.remove(counts)
        return True

    def _add_usage(self, path: str, attempt: int | None, usage: UsageData) -> None:
        reported, counts = self._usage.setdefault((path, attempt), []), _token_counts(usage)
        if counts not in reported or not usage.get("recorded"):  # else reported a second time
            reported.append(counts)

    def _run_of(self, path: str) -> StoredGraphRun:
        """Return the current run of the graph that a node is part of."""
        prefix = path_prefix(path)
        return self._current.get(prefix) or self._open(prefix, None)

    def _open(self, prefix: str, identity: tuple[str, str] | None) -> StoredGraphRun:
        path = parent_path(prefix)
        run = StoredGraphRun(path, self._current.get(path_prefix(path)), identity)
        self._current[prefix] = run
        self._records.setdefault(prefix, []).append(run)
        self._children.setdefault(path, []).append(run)
        return run


def _identity(data: NestedRunOpenedData) -> tuple[str, str]:
    return data["graph"], data["inputs"]


def _token_counts(usage: Mapping[str, Json] | UsageData) -> list[Json]:
    """Return the numbers that tell the calls of one attempt apart."""
    return [usage.get("input_tokens"), usage.get("output_tokens")]
