"""What is stored of the execution before a fork: every graph that ran in it, each time it was begun.

Unlike what an execution is taken up from (``dormant.py``), nothing of it is forgotten: what a node
let go of, or made anew, may hold results all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from planwave.events import Event
from planwave.events.vocabulary import RUN_GRAPH
from planwave.executor.dormant import ONCE, path_prefix
from planwave.executor.identity import HowMade
from planwave.graph.model import Json

_VERSIONS: Final = "versions"
_ENDED_ATTEMPT: Final = frozenset({"node.completed", "node.failed", "node.retrying"})


class GraphRunRecord:
    """One graph, from where it was begun to where it ended, was let go of, or was begun anew.

    Attributes:
        identity: Hashes of the graph, and of inputs and variables; None for the execution's own
            graph, and where nobody wrote them down.
        parent: That of the graph its node is in; None for the execution's own graph.
        events: What became of its nodes, in order.
    """

    __slots__ = ("_once_values", "_unfinished", "_type_versions", "parent", "events", "identity")

    def __init__(self, identity: tuple[str, str] | None, parent: GraphRunRecord | None) -> None:
        self.identity, self.parent = identity, parent
        self.events: list[Event] = []
        self._once_values: dict[str, dict[str, Json]] = {}
        self._type_versions: dict[str, Mapping[str, int]] = {}
        self._unfinished: dict[str, int | None] = {}

    def add(self, path: str, event: Event) -> None:
        """Take in what happened to one of its nodes."""
        if event.type == "node.event":
            if event.data.get("event_type") == ONCE:
                said = event.data["data"]
                self._once_values.setdefault(path, {})[said["key"]] = said["value"]
        elif event.type != "node.log":
            self.events.append(event)
            if event.type == "node.started" or event.data.get("reused"):
                self._type_versions[path] = event.data.get(_VERSIONS, {})
            if event.type == "node.started":
                self._unfinished[path] = event.attempt
            elif event.type in _ENDED_ATTEMPT:
                self._unfinished.pop(path, None)

    def how_made(self, path: str) -> HowMade:
        """Give how a node of it came to what it has."""
        return HowMade(self._type_versions.get(path), self._once_values.get(path, {}))

    def unfinished_attempt(self, path: str) -> int | None:
        """Give the attempt of a node that came neither to a result nor to a failure, if any."""
        return self._unfinished.get(path)

    def type_versions(self) -> Iterator[tuple[str, int]]:
        """Give the types of which it was told in which version they were, and that."""
        for told in self._type_versions.values():
            yield from told.items()

    def paths(self) -> set[str]:
        """Give its nodes that anything became of."""
        return {event.path for event in self.events if event.path is not None}


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
