"""What is stored of an execution that is taken up again, sorted by the graph it is about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from planwave.events import Event
from planwave.events.vocabulary import WAITING, PauseKind, pause_kind
from planwave.executor.dormant import ONCE, StoredNestedRuns, path_prefix
from planwave.graph.json_values import size_of

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
        "_own_events", "_since", "active_s", "nested_runs", "result_bytes", "is_started", "last_seq", "pause_reason", "start_count"
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
