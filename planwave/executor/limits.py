"""Limits of one execution: events, starts of nodes, size of a result and of all that is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from planwave.errors import LimitExceeded, PermanentError
from planwave.executor.options import RunOptions
from planwave.graph.json_values import size_of
from planwave.graph.model import DataValue, Json

_RESULT = "largest_result_bytes"
_STATE = "run_state_bytes"
_EVENT = "event_bytes"


_TEXT_SLACK: Final = 64 * 1024
"""Characters beyond what may be stored of a streamed text: more than a secret that is cut there can have."""


def most_text(options: RunOptions) -> int | None:
    """Return how many characters are to be kept of a text that a node streams; None for all."""
    bounds = [options.max_result_bytes, options.max_state_bytes]
    most = min((each for each in bounds if each is not None), default=None)
    return None if most is None else most + _TEXT_SLACK


def without_cut_secret(text: str) -> str:
    """Return text that was cut, and is without secrets, without a part of a secret at its end."""
    return text[:-_TEXT_SLACK]


class RunLimits:
    """Holds an execution to what its options bound; nothing is counted that is not bounded.

    Attributes:
        state_bytes: The bytes of all results, once values, requests, events that nodes emit,
            documents of nested graphs, and what is stored beside the events. Text of attempts that did
            not complete is counted apart: it decides only how much more of it is stored.
    """

    __slots__ = (
        "_max_event_bytes",
        "_max_events",
        "_max_result_bytes",
        "_max_starts",
        "_max_state_bytes",
        "_starts",
        "_streamed_bytes",
        "state_bytes",
    )

    def __init__(self, options: RunOptions) -> None:
        self._max_events = options.max_events
        self._max_event_bytes = options.max_event_bytes
        self._max_result_bytes = options.max_result_bytes
        self._max_state_bytes = options.max_state_bytes
        self._max_starts = options.max_steps
        self.state_bytes = self._starts = self._streamed_bytes = 0

    def restore(self, size: int, starts: int, streamed: int) -> None:
        """Count what is stored, starts, and text of attempts that did not complete, from before."""
        self.state_bytes += size
        self._starts += starts
        self._streamed_bytes += streamed

    def count_start(self) -> LimitExceeded | None:
        """Count the start of a node; return the error if this exceeds the limit."""
        self._starts += 1
        if self._max_starts is not None and self._starts > self._max_starts:
            what = "starts of nodes in one execution"
            return LimitExceeded(
                "steps", self._max_starts, self._starts, what=what, hint=_way_out("max_steps")
            )
        return None

    def add_result(self, path: str, outputs: Mapping[str, DataValue]) -> PermanentError | None:
        """Count a result; return the error if the result alone is too large."""
        if self._max_result_bytes is None and self._max_state_bytes is None:
            return None
        size = sum(size_of(value) for _, value in outputs.values())
        way_out = "give less, or where it lies in place of the whole"
        return self._add(path, "a result", size, (_RESULT, self._max_result_bytes), way_out)

    def add_event(self, path: str, what: str, data: Json) -> PermanentError | None:
        """Count an event or a request of a node; return the error if it alone is too large."""
        if self._max_event_bytes is None and self._max_state_bytes is None:
            return None
        way_out = "give less, or return it as a result"
        return self._add(path, what, size_of(data), (_EVENT, self._max_event_bytes), way_out)

    def _add(
        self, path: str, what: str, size: int, limit: tuple[str, int | None], way_out: str
    ) -> PermanentError | None:
        """Count what a node gave; return the error if it is larger than its own limit."""
        name, most = limit
        if most is not None and size > most:
            return PermanentError(
                f"node {path!r} gave {what} of {size} bytes; limit {name} is {most}",
                code=LimitExceeded.code,
                hint=way_out,
            )
        self.state_bytes += size
        return None

    def kept_text(self, text: str) -> str:
        """Return as much of text that a node streamed, and that is no result, as may be stored."""
        bounds = [] if self._max_result_bytes is None else [self._max_result_bytes]
        if self._max_state_bytes is not None:
            bounds.append(self._max_state_bytes - self.state_bytes - self._streamed_bytes)
        while text and bounds and (size := size_of(text)) > min(bounds):
            text = text[: len(text) * max(min(bounds), 0) // size]
        self._streamed_bytes += size_of(text) if text else 0
        return text

    def add_graph(self, document: Json) -> None:
        """Count the document of a nested graph, which is stored with the run."""
        if self._max_state_bytes is not None:
            self.state_bytes += size_of(document)

    def add_stored(self, size: int) -> None:
        """Count what is stored for the execution beside its events."""
        self.state_bytes += size

    def exceeded(self, events: int) -> LimitExceeded | None:
        """Return the bound that the whole execution has passed, if any."""
        if self._max_events is not None and events > self._max_events:
            return LimitExceeded("events", self._max_events, events, hint=_way_out("max_events"))
        if self._max_state_bytes is not None and self.state_bytes > self._max_state_bytes:
            return LimitExceeded(
                _STATE,
                self._max_state_bytes,
                self.state_bytes,
                what="all results, events, calls and nested graphs of a run",
                hint=_way_out("max_state_bytes"),
            )
        return None


def _way_out(option: str) -> str:
    return f"let the run do less, or raise its option {option}"
