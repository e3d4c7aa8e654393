"""The kernel's vocabulary: node statuses, causes for not running, decisions, rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple


class NodeStatus(IntEnum):
    """Status of a node; a linked node has the outcome of its prerequisites as its status."""

    PENDING = 0
    READY = 1
    RUNNING = 2
    WAITING = 3
    COMPLETED = 4
    FAILED = 5
    SKIPPED = 6
    BLOCKED = 7
    CANCELLED = 8
    NOT_REACHED = 9


class Cause(NamedTuple):
    """Why a node did not run: the node that failed first, a reason, a skipped required handle."""

    node: int | None
    reason: str
    handle: str | None = None


Start = tuple[int, int | None]
"""A node that may start, and the edge that won a ``join: any``, else None."""
NotRun = tuple[int, Cause]
RunOutcome = Literal["completed", "failed", "cancelled"]


class Decisions(NamedTuple):
    """Consequences of the facts since the previous decisions, each list in graph order."""

    starts: Sequence[Start]
    skipped: Sequence[NotRun]
    blocked: Sequence[NotRun]
    cancelled: Sequence[NotRun]
    waves_completed: Sequence[int]
    finished: RunOutcome | None
    paused: bool
    unneeded: Sequence[int] = ()
    """Nodes that are no longer needed: ``Schedule.release`` those that do not run."""


new_decisions: Callable[[type[Decisions], tuple[Any, ...]], Decisions] = tuple[Any, ...].__new__
"""Create decisions from their fields in order, at half the cost of the constructor."""


class SchedulingRules(NamedTuple):
    """The policies and port requirements that the kernel needs, by node number."""

    join_any: frozenset[int] = frozenset()
    required: Mapping[int, frozenset[str]] = {}
    """Target handles that must receive a value, of the nodes that have any."""
    barrier: bool = False
    stop_on_failure: bool = False
    disposable: frozenset[int] = frozenset()
    """Nodes that may be cancelled once nothing that their edges lead to waits for them."""
    floors: Mapping[int, tuple[int, bool]] = {}
    """The lowest wave of nodes of a graph that was changed while it was run, so that no wave that had begun gets
    another node; and whether a node stays in that one, as it has begun there."""
