"""How one execution is to be run."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


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
    """

    scheduling: Literal["eager", "waves"] = "eager"
    on_failure: Literal["continue", "stop"] = "continue"
    max_parallel: int | None = None
    node_timeout_s: float | None = None
    run_timeout_s: float | None = None
    max_events: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Give the options that differ from the defaults."""
        defaults = RunOptions()._asdict()
        return {name: value for name, value in self._asdict().items() if value != defaults[name]}
