"""How one execution is to be run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from planwave.graph.model import Json


class RunOptions(NamedTuple):
    """Scheduling, failure policy and bounds of one execution; None means unbounded.

    Attributes:
        scheduling: ``eager`` starts a node the moment it is ready; ``waves`` puts a barrier
            between waves.
        on_failure: ``continue`` finishes what does not depend on the failure; ``stop`` cancels it.
        max_parallel: Nodes doing their own work at the same time.
        node_timeout_s: Default for nodes without ``timeoutS``, seconds of an attempt's own time.
        run_timeout_s: The whole execution, seconds.
        max_events: Stored events, the terminal one apart.
        max_result_bytes: What one node gives, on all its outputs; more fails the node. Sizes are
            those of compact JSON in UTF-8, escapes counted as one byte.
        max_state_bytes: What all nodes give together, nested runs included.
        max_steps: Starts of nodes, those in nested runs and retries included.
        max_depth: Graphs inside graphs; 1 lets a node run graphs, but none of their nodes.
        run_to: Ids of nodes: only these and what they need run. Nested runs are not narrowed.
        run_from: Ids of nodes: only these and what follows them run, with what that needs.
    """

    scheduling: Literal["eager", "waves"] = "eager"
    on_failure: Literal["continue", "stop"] = "continue"
    max_parallel: int | None = None
    node_timeout_s: float | None = None
    run_timeout_s: float | None = None
    max_events: int | None = None
    max_result_bytes: int | None = None
    max_state_bytes: int | None = None
    max_steps: int | None = None
    max_depth: int | None = None
    run_to: Sequence[str] = ()
    run_from: Sequence[str] = ()

    @property
    def has_bounds(self) -> bool:
        """Whether anything is to be counted while it runs."""
        counted = (
            self.max_events, self.max_result_bytes, self.max_state_bytes, self.max_steps
        )  # fmt: skip
        return any(most is not None for most in counted)

    def as_json(self) -> dict[str, Json]:
        """Return the options that differ from the defaults; ``RunOptions(**them)`` is the same."""
        given, defaults = self._asdict(), RunOptions()._asdict()
        for name in ("run_to", "run_from"):
            given[name] = list(given[name])
            defaults[name] = []
        return {name: value for name, value in given.items() if value != defaults[name]}
