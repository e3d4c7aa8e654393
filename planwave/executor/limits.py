"""Limits of one execution: events, starts of nodes, size of a result and of all that is stored."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.errors import LimitExceeded, PermanentError
from planwave.executor.options import RunOptions
from planwave.graph.json_values import size_of
from planwave.graph.model import DataValue, Json

_RESULT = "largest_result_bytes"
_STATE = "run_state_bytes"


class RunLimits:
    """Holds an execution to what its options bound; nothing is counted that is not bounded.

    Attributes:
        state_bytes: The bytes of all results, once values, and documents of nested graphs.
    """

    __slots__ = (
        "_max_events",
        "_max_result_bytes",
        "_max_starts",
        "_max_state_bytes",
        "_starts",
        "state_bytes",
    )

    def __init__(self, options: RunOptions) -> None:
        self._max_events = options.max_events
        self._max_result_bytes = options.max_result_bytes
        self._max_state_bytes = options.max_state_bytes
        self._max_starts = options.max_steps
        self.state_bytes = self._starts = 0

    def restore(self, size: int, starts: int) -> None:
        """Count what is stored and starts that were stored before."""
        self.state_bytes += size
        self._starts += starts

    def count_start(self) -> LimitExceeded | None:
        """Count the start of a node; return the error if this exceeds the limit."""
        self._starts += 1
        if self._max_starts is not None and self._starts > self._max_starts:
            what = "starts of nodes in one execution"
            return LimitExceeded("steps", self._max_starts, self._starts, what=what)
        return None

    def add_result(self, path: str, outputs: Mapping[str, DataValue]) -> PermanentError | None:
        """Count a result; return the error if the result alone is too large."""
        if self._max_result_bytes is None and self._max_state_bytes is None:
            return None
        size = 0
        for _, value in outputs.values():
            size += size_of(value)
        if self._max_result_bytes is not None and size > self._max_result_bytes:
            return PermanentError(
                f"node {path!r} gave a result of {size} bytes; limit {_RESULT} is {self._max_result_bytes}",
                code=LimitExceeded.code,
                hint="give less, or where it lies in place of the whole",
            )
        self.state_bytes += size
        return None

    def add_graph(self, document: Json) -> None:
        """Count the document of a nested graph, which is stored with the run."""
        if self._max_state_bytes is not None:
            self.state_bytes += size_of(document)

    def exceeded(self, events: int) -> LimitExceeded | None:
        """Return the bound that the whole execution has passed, if any."""
        if self._max_events is not None and events > self._max_events:
            return LimitExceeded("events", self._max_events, events)
        if self._max_state_bytes is not None and self.state_bytes > self._max_state_bytes:
            return LimitExceeded(
                _STATE,
                self._max_state_bytes,
                self.state_bytes,
                what="all results and nested graphs of a run",
            )
        return None
