"""Nested runs of which nothing but the stored events is known: nobody has asked for them again yet.

What happened in them is enough to tell which requests are open in them, and to take answers; they
run on once the node they are inside of asks for them again. Their graphs are stored to be shown, and
are asked for again like all else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from planwave.events import Event
from planwave.events.vocabulary import RUN_GRAPH
from planwave.graph.model import Json

ONCE: Final = "once"
"""That of a value a node has to find again."""
_ENDS: Final = frozenset(
    {"node.completed", "node.failed", "node.skipped", "node.blocked", "node.cancelled"}
)
_EMITTED: Final = frozenset({"node.event", "node.log"})


class StoredGraphRun:
    """What is stored of one nested run.

    Attributes:
        parent_path: The path of the node it is inside of.
        events: What happened in it since it was opened last.
        identity: Hashes of its graph, and of inputs and variables; None where nobody wrote them down.
        attempt_number: The attempt of its node that opened it.
        attempt_offset: The highest attempt its nodes could have had when it was opened.
        highest_attempt: The highest attempt of its nodes so far.
        must_restart: It came to nothing, and is to be made anew.
    """

    __slots__ = ("parent_path", "attempt_number", "attempt_offset", "events", "highest_attempt", "identity", "must_restart")

    def __init__(self, parent_path: str) -> None:
        self.parent_path = parent_path
        self.events: list[Event] = []
        self.identity: tuple[str, str] | None = None
        self.attempt_number = 1
        self.attempt_offset = self.highest_attempt = 0
        self.must_restart = False

    def latest(self) -> dict[str, Event]:
        """Give what became of each of its nodes last, by path."""
        return {
            event.path: event
            for event in self.events
            if event.path and event.type.startswith("node.") and event.type not in _EMITTED
        }

    def requests(self) -> dict[str, Event]:
        """Give what asks for an answer in it, by request."""
        latest = self.latest().values()
        return {each.data["request_id"]: each for each in latest if each.type == "node.waiting"}


class StoredNestedRuns:
    """The stored nested runs of one execution, and the values its nodes have to find again.

    Attributes:
        recorded_graphs: The hashes of the graphs that were told.
    """

    def __init__(self) -> None:
        self.recorded_graphs: set[str] = set()
        self._runs: dict[str, StoredGraphRun] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._once_values: dict[str, dict[str, Json]] = {}

    def __contains__(self, prefix: str) -> bool:
        return prefix in self._runs

    def add(self, prefix: str, event: Event) -> None:
        """Take in what happened in a nested run ("": what its askers did, and not in any)."""
        if prefix:
            run = self._get_or_create(prefix)
            run.events.append(event)
            run.highest_attempt = max(run.highest_attempt, event.attempt or 0)
        path = event.path or ""
        if event.type == "node.event":
            self._add_node_event(path, event)
        elif event.type == "node.retrying":
            self.mark_failed_for_restart(path)

    def get(self, prefix: str) -> StoredGraphRun | None:
        """Give what is stored of a nested run, as long as nobody has asked for it."""
        return self._runs.get(prefix)

    def pop(self, prefix: str) -> StoredGraphRun | None:
        """Give what is stored of a nested run that is asked for now."""
        run = self._runs.pop(prefix, None)
        if run is not None:
            self._children[run.parent_path].pop(prefix, None)
            for path, event in run.latest().items():
                run.highest_attempt = max([run.highest_attempt, *self._attempts_inside(path)])
                if event.type in _ENDS:
                    self.discard(path)
        return run

    def pop_once_values(self, path: str) -> dict[str, Json]:
        """Give the values a node has to find again."""
        return self._once_values.pop(path, {})

    def requests(self) -> list[tuple[str, Event]]:
        """Give what is asked in all of them, in the order it was asked."""
        found = [each for run in self._runs.values() for each in run.requests().items()]
        return sorted(found, key=lambda each: each[1].seq)

    def parked_attempt(self, path: str) -> int | None:
        """Give the attempt of a node in one of them that is parked; None where it is not."""
        run = self._runs.get(path_prefix(path))
        latest = None if run is None else run.latest().get(path)
        return latest.attempt if latest is not None and latest.type == "node.parked" else None

    def unfinished_inside(self, path: str) -> list[Event]:
        """Give what became last of each node inside a node that has not ended, innermost first."""
        found: list[Event] = []
        for prefix in self._children.get(path, ()):
            for inner, event in self._runs[prefix].latest().items():
                found += self.unfinished_inside(inner)
                if event.type not in _ENDS:
                    found.append(event)
        return found

    def mark_failed_for_restart(self, path: str) -> None:
        """Have a node's next attempt make anew what came to nothing."""
        for prefix in list(self._children.get(path, ())):
            if any(_is_unsuccessful(event) for event in self._runs[prefix].events):
                self._mark_for_restart(prefix)

    def discard(self, path: str) -> None:
        """Forget all that is inside a node."""
        self._once_values.pop(path, None)
        for prefix in self._children.pop(path, ()):
            run = self._runs.pop(prefix, None)
            for inner in {event.path for event in run.events} if run else ():
                self.discard(inner or "")

    def _get_or_create(self, prefix: str) -> StoredGraphRun:
        run = self._runs.get(prefix)
        if run is None:
            asker = prefix[: prefix.rfind("[")]
            run = self._runs[prefix] = StoredGraphRun(asker)
            self._children.setdefault(asker, {})[prefix] = None
        return run

    def _add_node_event(self, path: str, event: Event) -> None:
        kind = event.data.get("event_type")
        if kind == ONCE:
            said = event.data["data"]
            self._once_values.setdefault(path, {})[said["key"]] = said["value"]
        elif kind == RUN_GRAPH:
            self._open(f"{path}[{event.data['data']['key']}]/", event)

    def _open(self, prefix: str, event: Event) -> None:
        said: dict[str, Any] = event.data["data"]
        if prefix in self._runs:
            self._mark_for_restart(prefix)
        if said.get("dropped"):
            return
        if "document" in said:
            self.recorded_graphs.add(said["graph"])
        run = self._get_or_create(prefix)
        run.identity = (said["graph"], said["inputs"])
        run.attempt_number = event.attempt or 1
        run.attempt_offset = said.get("before", 0)
        run.highest_attempt = max(run.highest_attempt, run.attempt_offset)
        run.must_restart = False

    def _mark_for_restart(self, prefix: str) -> None:
        """Note that a nested run is to be made anew."""
        run = self._runs[prefix]
        for inner in {event.path or "" for event in run.events}:
            run.highest_attempt = max([run.highest_attempt, *self._attempts_inside(inner)])
            self.discard(inner)
        run.events = []
        run.must_restart = True

    def _attempts_inside(self, path: str) -> Iterator[int]:
        for prefix in self._children.get(path, ()):
            run = self._runs[prefix]
            yield run.highest_attempt
            for inner in {event.path or "" for event in run.events}:
                yield from self._attempts_inside(inner)


def _is_unsuccessful(event: Event) -> bool:
    if event.type == "node.failed":
        return not event.data.get("handled")
    return event.type == "node.cancelled"


def path_prefix(path: str) -> str:
    """Give what goes before a node's id in its path: that of the nested run it is in, "" in none."""
    return path[: path.rfind("/") + 1]


def ancestor_paths(path: str) -> Iterable[str]:
    """Give the paths of the nodes that a node is inside of, outermost first."""
    return [path[:at] for at, each in enumerate(path) if each == "["]
