"""Invariants of the events of any execution, with any commands and interruptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planwave.events import TERMINAL, Event, fold

_TERMINAL = frozenset({"completed", "failed", "skipped", "blocked", "cancelled"})
_AFTER_RUNNING = frozenset({"waiting", "parked", "retrying", "completed", "failed", "cancelled"})
_NODE_TRANSITIONS: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"started", *_TERMINAL}),
    "running": frozenset({"started", *_AFTER_RUNNING}),
    "waiting": frozenset({"answered", "cancelled"}),
    "answered": frozenset({"started", *_AFTER_RUNNING}),
    "parked": frozenset({"unparked", "cancelled"}),
    "unparked": frozenset({"started", *_AFTER_RUNNING}),
    "retrying": frozenset({"started", "cancelled"}),
    **{end: frozenset[str]() for end in _TERMINAL},
}
"""What may become of a node, by what became of it last."""
_WITHOUT_START = frozenset({"skipped", "blocked", "cancelled"})
_EXECUTION_TRANSITIONS: Mapping[str, frozenset[str]] = {
    "": frozenset({"created"}),
    "created": frozenset({"started", "failed", "cancelled"}),
    "started": frozenset({"paused", "resumed", "completed", "failed", "cancelled"}),
    "resumed": frozenset({"paused", "resumed", "completed", "failed", "cancelled"}),
    "paused": frozenset({"paused", "resumed", "completed", "failed", "cancelled"}),
}
_OUTCOMES = frozenset({"completed", "failed", "retrying", "waiting", "cancelled"})
_EMITTED_TYPES = frozenset({"node.log", "node.event", "usage"})


def check_events(events: Sequence[Event]) -> None:
    """Check all that is stored of an execution: I2, I3, I4."""
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    ends = [e for e in events if e.type in TERMINAL]
    assert len(ends) <= 1, ends
    assert not ends or events[-1] is ends[0]
    state = ""
    for event in events:
        if event.type.startswith("execution."):
            then = event.type.partition(".")[2]
            assert then in _EXECUTION_TRANSITIONS[state], f"{state} became {then}: {event}"
            state = then
    _check_nodes(events)
    _check_waves(events)
    fold(events)


class _NodeStates:
    """The states of the nodes of one execution so far.

    A nested run that is restarted resets its nodes; their attempt numbers continue.
    """

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.attempts: dict[str, int] = {}
        self.reentries: Counter[tuple[str, int | None]] = Counter()
        self.earlier_attempts: dict[str, int] = {}
        self.once_values: set[tuple[str, str]] = set()
        self.owners = {1}
        self.begun: set[str] = set()

    def revise(self) -> None:
        """The graph is changed: what of it ended without a beginning is open again."""
        for path in [each for each in self.states if "[" not in each]:
            if self.states[path] in _WITHOUT_START and path not in self.begun:
                del self.states[path]

    def open_nested_run(self, path: str, data: Mapping[str, Any]) -> None:
        """A node starts or abandons a nested run."""
        prefix = f"{path}[{data['key']}]/"
        inside = [each for each in self.states if each.startswith(prefix)]
        assert {self.states[each] for each in inside} <= _TERMINAL, f"{prefix} was not over"
        highest = max([self.attempts.get(each, 0) for each in inside], default=0)
        assert data.get("dropped") or data.get("before", 0) >= highest
        for each in inside:
            del self.states[each]
            self.attempts.pop(each, None)
        self.once_values = {each for each in self.once_values if not each[0].startswith(prefix)}
        self.earlier_attempts[prefix] = data.get("before", highest)

    def record_once_value(self, path: str, data: Mapping[str, Any]) -> None:
        """A node stores a once value."""
        assert (path, data["key"]) not in self.once_values, f"{path} keeps {data['key']} twice"
        self.once_values.add((path, data["key"]))

    def check_parked(self, path: str) -> None:
        """All that is inside a node waits, and something of it for an answer."""
        inside = {s for p, s in self.states.items() if p.startswith(f"{path}[")}
        assert "waiting" in inside, f"{path} waits for nothing"
        assert inside <= _TERMINAL | {"waiting", "parked"}, (
            f"{path} waits, and is at work: {inside}"
        )


def _check_nodes(events: Sequence[Event]) -> None:
    nodes = _NodeStates()
    for event in events:
        if event.type == "execution.resumed":
            nodes.owners.add(event.data["epoch"])
        elif event.type == "execution.paused" and event.data["reason"].startswith("waiting"):
            assert not {"running", "answered", "unparked", "retrying"} & {*nodes.states.values()}
        elif event.type == "plan.revised":
            nodes.revise()
        elif event.path is not None and event.type.startswith(("node.", "usage")):
            _check_node(event, event.path, nodes)
    if events[-1].type in TERMINAL:
        assert {*nodes.states.values()} <= _TERMINAL, f"left open: {nodes.states}"


def _check_node(event: Event, path: str, nodes: _NodeStates) -> None:
    now = nodes.states.get(path, "pending")
    if event.type in _EMITTED_TYPES:
        assert now in ("running", "answered", "unparked"), f"{now} node emitted an event: {event}"
        if event.data.get("event_type") == "run_graph":
            nodes.open_nested_run(path, event.data["data"])
        elif event.data.get("event_type") == "once":
            nodes.record_once_value(path, event.data["data"])
        return
    then = event.type.partition(".")[2]
    assert then in _NODE_TRANSITIONS[now], f"{now} became {then}: {event}"
    if then == "started":
        _check_start(event, path, now, nodes)
    elif then == "parked":
        nodes.check_parked(path)
    nodes.states[path] = "running" if then == "started" else then
    if event.attempt:
        nodes.begun.add(path)


def _check_start(event: Event, path: str, before: str, nodes: _NodeStates) -> None:
    """A start is a first one, the next attempt, or the same again after the end of a process."""
    again, place = event.data.get("reentry", 0), (path, event.attempt)
    if before in ("pending", "retrying"):
        first = nodes.earlier_attempts.get(path[: path.rfind("/") + 1], 0)
        nodes.attempts[path] = nodes.attempts.get(path, first) + 1
        assert not again
    elif before == "running":
        assert again == nodes.reentries[place] + 1
        nodes.reentries[place] = again
        recoveries = len(nodes.owners) - 1
        assert again <= recoveries, f"it was entered again though no process had ended: {event}"
    else:
        nodes.reentries[place] = again
    assert event.attempt == nodes.attempts[path], event


def _check_waves(events: Sequence[Event]) -> None:
    begun: set[tuple[str | None, int]] = set()
    done: set[tuple[str | None, int]] = set()
    for event in events:
        if event.type.startswith("wave."):
            place, waves = (event.path, event.data["wave"]), begun
            if event.type == "wave.completed":
                assert place in begun
                waves = done
            assert place not in waves
            waves.add(place)
        elif event.type == "node.event" and event.data.get("event_type") == "run_graph":
            run = f"{event.path}[{event.data['data']['key']}]"
            for waves in (begun, done):
                waves -= {each for each in waves if f"{each[0]}/".startswith(f"{run}/")}


def once_values(events: Iterable[Event]) -> set[tuple[str, str]]:
    """Return path and key of all once values."""
    data = [e for e in events if e.type == "node.event" and e.data.get("event_type") == "once"]
    return {(e.path or "", e.data["data"]["key"]) for e in data}


def settled_attempts(events: Iterable[Event]) -> set[tuple[str, int]]:
    """Return path and number of all attempts with an outcome; these never run again."""
    settled: set[tuple[str, int]] = set()
    for event in events:
        if event.path is None or event.attempt is None:
            continue
        kind = event.type.partition(".")[2]
        if (
            event.type.startswith("node.")
            and kind in _OUTCOMES
            and not event.data.get("interrupted")
        ):
            settled.add((event.path, event.attempt))
    return settled
