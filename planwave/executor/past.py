"""What is stored of an execution that is taken up again, sorted by the graph it is about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from planwave.events import Event
from planwave.events.vocabulary import WAITING, PauseKind, pause_kind
from planwave.executor.dormant import ONCE, Dormant, prefix_of
from planwave.graph.json_values import size_of

_NOT_RUN: Final = frozenset({"given", "reused", "changed"})
"""What ``node.completed`` says of a result that no run of the node gave."""


def is_held(pause: PauseKind | None) -> bool:
    """Say whether an execution that is paused goes on only when it is told to."""
    return pause is not None and pause != WAITING


class Past:
    """The stored events of one execution, ready to be told to a new driver.

    Attributes:
        last_seq: Number of the last one.
        is_started: ``execution.started`` is among them.
        pause: How it is paused, or None where it is not.
        active_s: Seconds it was neither paused nor left alone, by the times of its events.
        held_bytes: Size of all results that nodes gave by running, and of what they kept.
        steps: How often a node was started.
        dormant: What happened in nested runs.
    """

    __slots__ = (
        "_facts", "_since", "active_s", "dormant", "held_bytes", "is_started", "last_seq", "pause", "steps"
    )  # fmt: skip

    def __init__(self, events: Iterable[Event]) -> None:
        self.last_seq = 0
        self.is_started = False
        self.pause: PauseKind | None = None
        self.active_s = 0.0
        self.held_bytes = self.steps = 0
        self.dormant = Dormant()
        self._facts: list[Event] = []
        self._since: datetime | None = None
        last: Event | None = None
        for event in events:
            if event.path is None and event.type.startswith("execution."):
                self._of_execution(event, last)
            else:
                self._of_node(event)
            last = event
        if last is not None:
            self.last_seq = last.seq
            self._stop_counting(last)

    def take_facts(self) -> list[Event]:
        """Give what happened in the execution's own graph, once."""
        facts, self._facts = self._facts, []
        return facts

    def _of_execution(self, event: Event, last: Event | None) -> None:
        if event.type == "execution.started":
            self.is_started = True
            self._since = datetime.fromisoformat(event.at)
        elif event.type == "execution.paused":
            self.pause = pause_kind(event.data)
            self._stop_counting(event)
        elif event.type == "execution.resumed":
            self.pause = None
            if last is not None:
                self._stop_counting(last)
            self._since = datetime.fromisoformat(event.at)

    def _stop_counting(self, event: Event) -> None:
        if self._since is not None:
            passed = datetime.fromisoformat(event.at) - self._since
            self.active_s += max(passed.total_seconds(), 0.0)
            self._since = None

    def _of_node(self, event: Event) -> None:
        path = event.path or ""
        of_graph = event.type.startswith("wave.")
        prefix = path and path + "/" if of_graph else prefix_of(path)
        if not prefix:
            self._facts.append(event)
        self.dormant.tell(prefix, event)
        if event.type == "node.started":
            self.steps += 1
        elif event.type == "node.completed" and not _NOT_RUN & event.data.keys():
            outputs: dict[str, dict[str, Any]] = event.data.get("outputs") or {}
            self.held_bytes += sum(size_of(each.get("value")) for each in outputs.values())
        elif event.type == "node.event" and event.data.get("event_type") == ONCE:
            self.held_bytes += size_of(event.data["data"]["value"])


def seconds_between(earlier: str, later: str) -> float:
    """Give the seconds between two event times, 0 where the clock went back."""
    passed = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    return max(passed.total_seconds(), 0.0)
