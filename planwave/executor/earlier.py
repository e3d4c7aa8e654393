"""What is stored of the execution before a fork: every graph that ran in it, each time it was begun.

Unlike what an execution is taken up from (``dormant.py``), nothing of it is forgotten: what a node
let go of, or made anew, may hold results all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planwave.events import Event
from planwave.executor.dormant import ONCE, RUN_GRAPH, prefix_of
from planwave.executor.identity import Then
from planwave.graph.model import Json

_VERSIONS: Final = "versions"


class Life:
    """One graph, from where it was begun to where it ended, was let go of, or was begun anew.

    Attributes:
        identity: Hashes of the graph, and of inputs and variables; None for the execution's own
            graph, and where nobody wrote them down.
        around: That of the graph its node is in; None for the execution's own graph.
        facts: What became of its nodes, in order.
    """

    __slots__ = ("_kept", "_versions", "around", "facts", "identity")

    def __init__(self, identity: tuple[str, str] | None, around: Life | None) -> None:
        self.identity, self.around = identity, around
        self.facts: list[Event] = []
        self._kept: dict[str, dict[str, Json]] = {}
        self._versions: dict[str, Mapping[str, int]] = {}

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

    def then(self, path: str) -> Then:
        """Give how a node of it came to what it has."""
        return Then(self._versions.get(path), self._kept.get(path, {}))


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
        self._now = {"": self.own}
        for event in events:
            if event.path is not None and event.type.startswith("node."):
                self._tell(event.path, event)

    def lives(self, prefix: str) -> Sequence[Life]:
        """Give the lives of a nested run, the latest first."""
        return self._lives.get(prefix, ())[::-1]

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
