"""What an execution needs to run, from when it is queued until it has come to rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planwave.graph.model import Graph, Json

if TYPE_CHECKING:
    from planwave.executor.options import RunOptions
    from planwave.executor.program import Program
    from planwave.executor.recovery.history import History


@dataclass(slots=True, kw_only=True)
class QueuedExecution:
    """An execution's entry in the queue; its run spec is read from the stored events later.

    Attributes:
        epoch: Its owner's; None where it has yet to be claimed.
        is_recovery: Whether the stored events show it running in a process that has ended.
        accepted_at: When it was queued, event loop time.
        cancel_cause: Why it is to be cancelled as soon as it runs, or None.
    """

    epoch: int | None = None
    is_recovery: bool = False
    accepted_at: float = 0.0
    cancel_cause: str | None = None


@dataclass(slots=True, kw_only=True)
class RunSpec(QueuedExecution):
    """What an execution needs to run.

    Attributes:
        last_seq: The last event that is stored.
        history: All that is stored, where it was started before.
        parent: The relation to the parent of a fork; see ``executions/parent_results.py``.
        program: The graph made ready to run, where it was just now.
        is_checked: The graph was checked against the providers there are just now.
    """

    graph: Graph
    goal: str
    inputs: Mapping[str, Mapping[str, Json]]
    options: RunOptions
    trigger: Json = None
    last_seq: int = 1
    history: History | None = None
    parent: Json = None
    program: Program | None = None
    is_checked: bool = True
