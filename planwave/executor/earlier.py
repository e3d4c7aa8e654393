"""What is stored of the execution before a fork: every graph that ran in it, each time it was begun.

Unlike what an execution is taken up from (``dormant.py``), nothing of it is forgotten: what a node
let go of, or made anew, may hold results all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from planwave.events import Event
from planwave.executor.dormant import ONCE, RUN_GRAPH, prefix_of
from planwave.executor.identity import Then
from planwave.graph.model import Json

_VERSIONS: Final = "versions"
_SETTLED: Final = frozenset({"node.completed", "node.failed", "node.retrying"})


class Life:
    """One graph, from where it was begun to where it ended, was let go of, or was begun anew.

    Attributes:
        identity: Hashes of the graph, and of inputs and variables; None for the execution's own
            graph, and where nobody wrote them down.
        around: That of the graph its node is in; None for the execution's own graph.
        facts: What became of its nodes, in order.
    """

    __slots__ = ("_kept", "_under_way", "_versions", "around", "facts", "identity")

    def __init__(self, identity: tuple[str, str] | None, around: Life | None) -> None:
        self.identity, self.around = identity, around
        self.facts: list[Event] = []
        self._kept: dict[str, dict[str, Json]] = {}
        self._versions: dict[str, Mapping[str, int]] = {}
        self._under_way: dict[str, int | None] = {}

    def tell(self, path: str, event: Event) -> None:
        """Take in what happened to one of its nodes."""
        if event.type == "node.event":
            if event.data.get("event_type") == ONCE:
                said = event.data["data"]
                self._kept.setdefault(path, {})[said["key"]] = said["value"]
        elif event.type != "node.log":
            self.facts.append(event)
            if event.type == "node.started" or event.data.get("reused"):
                self._versions[path] = event.data.get(_VERSIONS, {})
            if event.type == "node.started":
                self._under_way[path] = event.attempt
            elif event.type in _SETTLED:
                self._under_way.pop(path, None)

    def then(self, path: str) -> Then:
        """Give how a node of it came to what it has."""
        return Then(self._versions.get(path), self._kept.get(path, {}))

    def under_way(self, path: str) -> int | None:
        """Give the attempt of a node that came neither to a result nor to a failure, if any."""
        return self._under_way.get(path)

    def versions(self) -> Iterator[tuple[str, int]]:
        """Give the types of which it was told in which version they were, and that."""
        for told in self._versions.values():
            yield from told.items()

    def paths(self) -> set[str]:
        """Give its nodes that anything became of."""
        return {event.path for event in self.facts if event.path is not None}


class Earlier:
    """All graphs of one execution.

    Attributes:
        own: That of the execution itself.
        documents: What ran inside nodes, by hash.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.own = Life(None, None)
        self.documents: dict[str, Mapping[str, Json]] = {}
        self._lives: dict[str, list[Life]] = {}
        self._inside: dict[str, list[Life]] = {}
        self._now = {"": self.own}
        self._used: dict[tuple[str, int | None], list[Any]] = {}
        for event in events:
            if event.path is not None and event.type.startswith("node."):
                self._tell(event.path, event)
            elif event.path is not None and event.type == "usage":
                self._note_usage(event.path, event)

    def lives(self, prefix: str) -> Sequence[Life]:
        """Give the lives of a nested run, the latest first."""
        return self._lives.get(prefix, ())[::-1]

    def made_with(self, life: Life, path: str) -> Iterator[tuple[str, int]]:
        """Give the types, and their versions, that a node's result follows from, as far as is known.

        Of what ran inside it these are all types of the graphs, also where they were never run.
        """
        yield from (life.then(path).versions or {}).items()
        for inner in self._inside.get(path, ()):
            if inner.around is not life or inner.identity is None:
                continue
            told = dict(inner.versions())
            yield from inner.versions()
            nodes: list[Any] = self.documents.get(inner.identity[0], {}).get("nodes", [])
            yield from ((node["type"], 1) for node in nodes if node["type"] not in told)
            for deeper in inner.paths():
                yield from self.made_with(inner, deeper)

    def take_usage(self, path: str, attempt: int, usage: Mapping[str, Json]) -> bool:
        """Say whether an attempt of a node told of a call that used this; of each, once.

        It was cut off before that where this was kept in its very last moment.
        """
        told, what = self._used.get((path, attempt), []), _tokens(usage)
        if what not in told:
            return False
        told.remove(what)
        return True

    def _note_usage(self, path: str, event: Event) -> None:
        told, what = self._used.setdefault((path, event.attempt), []), _tokens(event.data)
        if what not in told or not event.data.get("recorded"):  # else it was only told again
            told.append(what)

    def _tell(self, path: str, event: Event) -> None:
        prefix = prefix_of(path)
        if prefix not in self._now:
            self._begin(prefix, None)
        self._now[prefix].tell(path, event)
        if event.type == "node.event" and event.data.get("event_type") == RUN_GRAPH:
            said: dict[str, Any] = event.data["data"]
            inner = f"{path}[{said['key']}]/"
            if said.get("dropped"):
                self._now.pop(inner, None)
            else:
                self._begin(inner, (said["graph"], said["inputs"]))
            if "document" in said:
                self.documents[said["graph"]] = said["document"]

    def _begin(self, prefix: str, identity: tuple[str, str] | None) -> None:
        asker = prefix[: prefix.rfind("[")]
        around = self._now.get(prefix_of(asker))
        life = self._now[prefix] = Life(identity, around)
        self._lives.setdefault(prefix, []).append(life)
        self._inside.setdefault(asker, []).append(life)


def _tokens(usage: Mapping[str, Json]) -> list[Json]:
    """Give what tells calls of one attempt apart, as they used it."""
    return [usage.get("input_tokens"), usage.get("output_tokens")]
