"""Stored graph runs of the parent execution of a fork: every graph, each time it was started.

Unlike the history an execution is resumed from, nothing is dropped: an abandoned or restarted run may
still hold results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from planwave.events import Event
from planwave.events.paths import path_prefix
from planwave.events.types import RUN_GRAPH
from planwave.executor.state import GraphRunRecord
from planwave.graph.model import Json


class ParentHistory:
    """All graphs of one execution.

    Attributes:
        root: That of the execution itself.
        documents: What ran inside nodes, by hash.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.root = GraphRunRecord(None, None)
        self.documents: dict[str, Mapping[str, Json]] = {}
        self._records: dict[str, list[GraphRunRecord]] = {}
        self._children: dict[str, list[GraphRunRecord]] = {}
        self._current = {"": self.root}
        self._usage: dict[tuple[str, int | None], list[Any]] = {}
        for event in events:
            if event.path is not None and event.type.startswith("node."):
                self._add(event.path, event)
            elif event.path is not None and event.type == "usage":
                self._add_usage(event.path, event)

    def records_at(self, prefix: str) -> Sequence[GraphRunRecord]:
        """Give the lives of a nested run, the latest first."""
        return self._records.get(prefix, ())[::-1]

    def types_used(self, record: GraphRunRecord, path: str) -> Iterator[tuple[str, int]]:
        """Give the types, and their versions, that a node's result follows from, as far as is known.

        Of what ran inside it these are all types of the graphs, also where they were never run.
        """
        yield from (record.how_made(path).type_versions or {}).items()
        for inner in self._children.get(path, ()):
            if inner.parent is not record or inner.identity is None:
                continue
            told = dict(inner.type_versions())
            yield from inner.type_versions()
            nodes: list[Any] = self.documents.get(inner.identity[0], {}).get("nodes", [])
            yield from ((node["type"], 1) for node in nodes if node["type"] not in told)
            for deeper in inner.paths():
                yield from self.types_used(inner, deeper)

    def consume_usage(self, path: str, attempt: int, usage: Mapping[str, Json]) -> bool:
        """Say whether an attempt of a node told of a call that used this; of each, once.

        It was cut off before that where this was kept in its very last moment.
        """
        told, what = self._usage.get((path, attempt), []), _token_counts(usage)
        if what not in told:
            return False
        told.remove(what)
        return True

    def _add_usage(self, path: str, event: Event) -> None:
        told, what = self._usage.setdefault((path, event.attempt), []), _token_counts(event.data)
        if what not in told or not event.data.get("recorded"):  # else it was only told again
            told.append(what)

    def _add(self, path: str, event: Event) -> None:
        prefix = path_prefix(path)
        if prefix not in self._current:
            self._open(prefix, None)
        self._current[prefix].add(path, event)
        if event.type == "node.event" and event.data.get("event_type") == RUN_GRAPH:
            said: dict[str, Any] = event.data["data"]
            inner = f"{path}[{said['key']}]/"
            if said.get("dropped"):
                self._current.pop(inner, None)
            else:
                self._open(inner, (said["graph"], said["inputs"]))
            if "document" in said:
                self.documents[said["graph"]] = said["document"]

    def _open(self, prefix: str, identity: tuple[str, str] | None) -> None:
        asker = prefix[: prefix.rfind("[")]
        around = self._current.get(path_prefix(asker))
        record = self._current[prefix] = GraphRunRecord(identity, around)
        self._records.setdefault(prefix, []).append(record)
        self._children.setdefault(asker, []).append(record)


def _token_counts(usage: Mapping[str, Json]) -> list[Json]:
    """Give what tells calls of one attempt apart, as they used it."""
    return [usage.get("input_tokens"), usage.get("output_tokens")]
