"""Stored events of one execution that is resumed, by graph run.

Of a nested run only the stored events are known until its node asks for it again. They are enough to tell
which requests are open in it, and to take answers; it runs on once its node asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from planwave.events import Event
from planwave.events.paths import path_prefix
from planwave.events.types import ONCE, RUN_GRAPH, WAITING, PauseKind, pause_kind
from planwave.graph.json_values import size_of
from planwave.graph.model import Json

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

    __slots__ = (
        "attempt_number",
        "attempt_offset",
        "events",
        "highest_attempt",
        "identity",
        "must_restart",
        "parent_path",
    )

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


_NOT_RUN: Final = frozenset({"given", "reused", "changed"})
"""What ``node.completed`` says of a result that no run of the node gave."""


def is_paused_by_request(reason: PauseKind | None) -> bool:
    """Say whether an execution that is paused goes on only when it is told to."""
    return reason is not None and reason != WAITING


class History:
    """The stored events of one execution, ready to be told to a new driver.

    Attributes:
        last_seq: Number of the last one.
        is_started: ``execution.started`` is among them.
        pause_reason: How it is paused, or None where it is not.
        active_s: Seconds it was neither paused nor left alone, by the times of its events.
        result_bytes: Size of all results that nodes gave by running, and of what they kept.
        start_count: How often a node was started.
        nested_runs: What happened in nested runs.
    """

    __slots__ = (
        "_own_events",
        "_since",
        "active_s",
        "is_started",
        "last_seq",
        "nested_runs",
        "pause_reason",
        "result_bytes",
        "start_count"
    )  # fmt: skip

    def __init__(self, events: Iterable[Event]) -> None:
        self.last_seq = 0
        self.is_started = False
        self.pause_reason: PauseKind | None = None
        self.active_s = 0.0
        self.result_bytes = self.start_count = 0
        self.nested_runs = StoredNestedRuns()
        self._own_events: list[Event] = []
        self._since: datetime | None = None
        last: Event | None = None
        for event in events:
            if event.path is None and event.type.startswith("execution."):
                self._add_execution_event(event, last)
            else:
                self._add_node_event(event)
            last = event
        if last is not None:
            self.last_seq = last.seq
            self._stop_clock(last)

    def take_own_events(self) -> list[Event]:
        """Give what happened in the execution's own graph, once."""
        facts, self._own_events = self._own_events, []
        return facts

    def _add_execution_event(self, event: Event, last: Event | None) -> None:
        if event.type == "execution.started":
            self.is_started = True
            self._since = datetime.fromisoformat(event.at)
        elif event.type == "execution.paused":
            self.pause_reason = pause_kind(event.data)
            self._stop_clock(event)
        elif event.type == "execution.resumed":
            self.pause_reason = None
            if last is not None:
                self._stop_clock(last)
            self._since = datetime.fromisoformat(event.at)

    def _stop_clock(self, event: Event) -> None:
        if self._since is not None:
            passed = datetime.fromisoformat(event.at) - self._since
            self.active_s += max(passed.total_seconds(), 0.0)
            self._since = None

    def _add_node_event(self, event: Event) -> None:
        path = event.path or ""
        of_graph = event.type.startswith("wave.")
        prefix = path and path + "/" if of_graph else path_prefix(path)
        if not prefix:
            self._own_events.append(event)
        self.nested_runs.add(prefix, event)
        if event.type == "node.started":
            self.start_count += 1
        elif event.type == "node.completed" and not _NOT_RUN & event.data.keys():
            outputs: dict[str, dict[str, Any]] = event.data.get("outputs") or {}
            self.result_bytes += sum(size_of(each.get("value")) for each in outputs.values())
        elif event.type == "node.event" and event.data.get("event_type") == ONCE:
            self.result_bytes += size_of(event.data["data"]["value"])


def seconds_between(earlier: str, later: str) -> float:
    """Give the seconds between two event times, 0 where the clock went back."""
    passed = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    return max(passed.total_seconds(), 0.0)
