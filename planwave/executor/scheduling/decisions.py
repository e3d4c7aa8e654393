"""The kernel's words: what a node's state is, why it did not run, what may happen next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple


class NodeStatus(IntEnum):
    """What became of a node so far; linked nodes keep the fate of their prerequisites here."""

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
"""A node that may start, and the edge that won it where it has ``join: any``."""
NotRun = tuple[int, Cause]
RunOutcome = Literal["completed", "failed", "cancelled"]


class Decisions(NamedTuple):
    """What follows from the facts since the last time, each list in graph order."""

    starts: Sequence[Start]
    skipped: Sequence[NotRun]
    blocked: Sequence[NotRun]
    cancelled: Sequence[NotRun]
    waves_completed: Sequence[int]
    finished: RunOutcome | None
    paused: bool


new_decisions: Callable[[type[Decisions], tuple[Any, ...]], Decisions] = tuple[Any, ...].__new__
"""Makes decisions of their fields in order; the constructor would cost as much again."""


class SchedulingRules(NamedTuple):
    """What the kernel must know of policies and ports, by node number."""

    join_any: frozenset[int] = frozenset()
    required: Mapping[int, frozenset[str]] = {}
    """Target handles that must receive a value, of the nodes that have any."""
    barrier: bool = False
    stop_on_failure: bool = False
