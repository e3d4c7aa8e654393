"""What one execution may not pass: events, starts of nodes, size of a result and of all results."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.errors import LimitExceeded, NodeError
from planwave.executor.options import RunOptions
from planwave.graph.json_values import size_of
from planwave.graph.values import DataValue

_RESULT = "largest_result_bytes"
_STATE = "run_state_bytes"


class Bounds:
    """Holds an execution to what its options bound; nothing is counted that is not bounded.

    Attributes:
        held: The bytes of all results.
    """

    __slots__ = ("_events", "_made", "_result", "_state", "_steps", "held")

    def __init__(self, options: RunOptions) -> None:
        self._events = options.max_events
        self._result = options.max_result_bytes
        self._state = options.max_state_bytes
        self._steps = options.max_steps
        self.held = self._made = 0

    def hold(self, size: int, steps: int) -> None:
        """Count results and starts that were stored before."""
        self.held += size
        self._made += steps

    def step(self) -> LimitExceeded | None:
        """Count the start of a node; give why there are no more to be."""
        self._made += 1
        if self._steps is not None and self._made > self._steps:
            what = "starts of nodes in one execution"
            return LimitExceeded("steps", self._steps, self._made, what=what)
        return None

    def take(self, path: str, outputs: Mapping[str, DataValue]) -> NodeError | None:
        """Count a result; give why it is refused where it is too large by itself."""
        if self._result is None and self._state is None:
            return None
        size = 0
        for _, value in outputs.values():
            size += size_of(value)
        if self._result is not None and size > self._result:
            return NodeError(
                f"node {path!r} gave a result of {size} bytes; limit {_RESULT} is {self._result}",
                code=LimitExceeded.code,
                hint="give less, or where it lies in place of the whole",
            )
        self.held += size
        return None

    def passed(self, events: int) -> LimitExceeded | None:
        """Give the bound that the whole execution has passed, if any."""
        if self._events is not None and events > self._events:
            return LimitExceeded("events", self._events, events)
        if self._state is not None and self.held > self._state:
            return LimitExceeded(_STATE, self._state, self.held, what="all results of a run")
        return None
