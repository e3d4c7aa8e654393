"""What holds for the events of any execution, however often it was cut off, told what, or watched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from planwave.events import TERMINAL, Event, fold

_ENDS = frozenset({"completed", "failed", "skipped", "blocked", "cancelled"})
_NODE: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"started", *_ENDS}),
    "running": frozenset({"started", "waiting", "retrying", "completed", "failed", "cancelled"}),
    "waiting": frozenset({"answered", "cancelled"}),
    "answered": frozenset({"started", "waiting", "retrying", "completed", "failed", "cancelled"}),
    "retrying": frozenset({"started", "cancelled"}),
    **{end: frozenset[str]() for end in _ENDS},
}
"""What may become of a node, by what became of it last."""
_EXECUTION: Mapping[str, frozenset[str]] = {
    "": frozenset({"created"}),
    "created": frozenset({"started", "failed", "cancelled"}),
    "started": frozenset({"paused", "resumed", "completed", "failed", "cancelled"}),
    "resumed": frozenset({"paused", "resumed", "completed", "failed", "cancelled"}),
    "paused": frozenset({"paused", "resumed", "completed", "failed", "cancelled"}),
}
_OUTCOMES = frozenset({"completed", "failed", "retrying", "waiting", "cancelled"})
_SAID = frozenset({"node.log", "node.event", "usage"})


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
            assert then in _EXECUTION[state], f"{state} became {then}: {event}"
            state = then
    _check_nodes(events)
    _check_waves(events)
    fold(events)


def _check_nodes(events: Sequence[Event]) -> None:
    states: dict[str, str] = {}
    attempts: Counter[str] = Counter()
    reentries: Counter[tuple[str, int | None]] = Counter()
    owners = {1}
    for event in events:
        if event.type == "execution.resumed":
            owners.add(event.data["epoch"])
        if event.path is None or not event.type.startswith(("node.", "usage")):
            continue
        now = states.get(event.path, "pending")
        if event.type in _SAID:
            assert now in ("running", "answered"), f"{now} node said something: {event}"
            continue
        then = event.type.partition(".")[2]
        assert then in _NODE[now], f"{now} became {then}: {event}"
        if then == "started":
            _check_start(event, now, attempts, reentries, len(owners) - 1)
        states[event.path] = "running" if then == "started" else then


def _check_start(
    event: Event,
    before: str,
    attempts: Counter[str],
    reentries: Counter[tuple[str, int | None]],
    recoveries: int,
) -> None:
    """A start is a first one, the next attempt, or the same again after the end of a process."""
    assert event.path is not None
    again = event.data.get("reentry", 0)
    if before in ("pending", "retrying"):
        attempts[event.path] += 1
        assert not again
    elif before == "running":
        assert again == reentries[event.path, event.attempt] + 1
        reentries[event.path, event.attempt] = again
        assert again <= recoveries, f"it was entered again though no process had ended: {event}"
    else:
        reentries[event.path, event.attempt] = again
    assert event.attempt == attempts[event.path]


def _check_waves(events: Sequence[Event]) -> None:
    begun = Counter((e.path, e.data["wave"]) for e in events if e.type == "wave.started")
    done = Counter((e.path, e.data["wave"]) for e in events if e.type == "wave.completed")
    assert all(times == 1 for times in [*begun.values(), *done.values()])
    assert done.keys() <= begun.keys()


def settled_attempts(events: Iterable[Event]) -> set[tuple[str, int]]:
    """Give the attempts that had an outcome: path and number. They are never made again."""
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
