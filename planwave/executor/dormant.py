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
_SAID: Final = frozenset({"node.event", "node.log"})


class StoredRun:
    """What is stored of one nested run.

    Attributes:
        asker: The path of the node it is inside of.
        facts: What happened in it since it was opened last.
        identity: Hashes of its graph, and of inputs and variables; None where nobody wrote them down.
        attempt: The attempt of its node that opened it.
        before: The highest attempt its nodes could have had when it was opened.
        highest: The highest attempt of its nodes so far.
        is_spent: It came to nothing, and is to be made anew.
    """

    __slots__ = ("asker", "attempt", "before", "facts", "highest", "identity", "is_spent")

    def __init__(self, asker: str) -> None:
        self.asker = asker
        self.facts: list[Event] = []
        self.identity: tuple[str, str] | None = None
        self.attempt = 1
        self.before = self.highest = 0
        self.is_spent = False

    def latest(self) -> dict[str, Event]:
        """Give what became of each of its nodes last, by path."""
        return {
            event.path: event
            for event in self.facts
            if event.path and event.type.startswith("node.") and event.type not in _SAID
        }

    def requests(self) -> dict[str, Event]:
        """Give what asks for an answer in it, by request."""
        latest = self.latest().values()
        return {each.data["request_id"]: each for each in latest if each.type == "node.waiting"}


class Dormant:
    """The stored nested runs of one execution, and the values its nodes have to find again.

    Attributes:
        told_graphs: The hashes of the graphs that were told.
    """

    def __init__(self) -> None:
        self.told_graphs: set[str] = set()
        self._runs: dict[str, StoredRun] = {}
        self._inside: dict[str, dict[str, None]] = {}
        self._kept: dict[str, dict[str, Json]] = {}

    def __contains__(self, prefix: str) -> bool:
        return prefix in self._runs

    def tell(self, prefix: str, event: Event) -> None:
        """Take in what happened in a nested run ("": what its askers did, and not in any)."""
        if prefix:
            run = self._run_at(prefix)
            run.facts.append(event)
            run.highest = max(run.highest, event.attempt or 0)
        path = event.path or ""
        if event.type == "node.event":
            self._said(path, event)
        elif event.type == "node.retrying":
            self.try_again(path)

    def run_of(self, prefix: str) -> StoredRun | None:
        """Give what is stored of a nested run, as long as nobody has asked for it."""
        return self._runs.get(prefix)

    def take(self, prefix: str) -> StoredRun | None:
        """Give what is stored of a nested run that is asked for now."""
        run = self._runs.pop(prefix, None)
        if run is not None:
            self._inside[run.asker].pop(prefix, None)
            for path, event in run.latest().items():
                run.highest = max([run.highest, *self._attempts_below(path)])
                if event.type in _ENDS:
                    self.forget(path)
        return run

    def take_kept(self, path: str) -> dict[str, Json]:
        """Give the values a node has to find again."""
        return self._kept.pop(path, {})

    def requests(self) -> list[tuple[str, Event]]:
        """Give what is asked in all of them, in the order it was asked."""
        found = [each for run in self._runs.values() for each in run.requests().items()]
        return sorted(found, key=lambda each: each[1].seq)

    def parked(self, path: str) -> int | None:
        """Give the attempt of a node in one of them that is parked; None where it is not."""
        run = self._runs.get(prefix_of(path))
        latest = None if run is None else run.latest().get(path)
        return latest.attempt if latest is not None and latest.type == "node.parked" else None

    def open_below(self, path: str) -> list[Event]:
        """Give what became last of each node inside a node that has not ended, innermost first."""
        found: list[Event] = []
        for prefix in self._inside.get(path, ()):
            for inner, event in self._runs[prefix].latest().items():
                found += self.open_below(inner)
                if event.type not in _ENDS:
                    found.append(event)
        return found

    def try_again(self, path: str) -> None:
        """Have a node's next attempt make anew what came to nothing."""
        for prefix in list(self._inside.get(path, ())):
            if any(_came_to_nothing(event) for event in self._runs[prefix].facts):
                self._spend(prefix)

    def forget(self, path: str) -> None:
        """Forget all that is inside a node."""
        self._kept.pop(path, None)
        for prefix in self._inside.pop(path, ()):
            run = self._runs.pop(prefix, None)
            for inner in {event.path for event in run.facts} if run else ():
                self.forget(inner or "")

    def _run_at(self, prefix: str) -> StoredRun:
        run = self._runs.get(prefix)
        if run is None:
            asker = prefix[: prefix.rfind("[")]
            run = self._runs[prefix] = StoredRun(asker)
            self._inside.setdefault(asker, {})[prefix] = None
        return run

    def _said(self, path: str, event: Event) -> None:
        kind = event.data.get("event_type")
        if kind == ONCE:
            said = event.data["data"]
            self._kept.setdefault(path, {})[said["key"]] = said["value"]
        elif kind == RUN_GRAPH:
            self._opened(f"{path}[{event.data['data']['key']}]/", event)

    def _opened(self, prefix: str, event: Event) -> None:
        said: dict[str, Any] = event.data["data"]
        if prefix in self._runs:
            self._spend(prefix)
        if said.get("dropped"):
            return
        if "document" in said:
            self.told_graphs.add(said["graph"])
        run = self._run_at(prefix)
        run.identity = (said["graph"], said["inputs"])
        run.attempt = event.attempt or 1
        run.before = said.get("before", 0)
        run.highest = max(run.highest, run.before)
        run.is_spent = False

    def _spend(self, prefix: str) -> None:
        """Note that a nested run is to be made anew."""
        run = self._runs[prefix]
        for inner in {event.path or "" for event in run.facts}:
            run.highest = max([run.highest, *self._attempts_below(inner)])
            self.forget(inner)
        run.facts = []
        run.is_spent = True

    def _attempts_below(self, path: str) -> Iterator[int]:
        for prefix in self._inside.get(path, ()):
            run = self._runs[prefix]
            yield run.highest
            for inner in {event.path or "" for event in run.facts}:
                yield from self._attempts_below(inner)


def _came_to_nothing(event: Event) -> bool:
    if event.type == "node.failed":
        return not event.data.get("handled")
    return event.type == "node.cancelled"


def prefix_of(path: str) -> str:
    """Give what goes before a node's id in its path: that of the nested run it is in, "" in none."""
    return path[: path.rfind("/") + 1]


def askers_of(path: str) -> Iterable[str]:
    """Give the paths of the nodes that a node is inside of, outermost first."""
    return [path[:at] for at, each in enumerate(path) if each == "["]
