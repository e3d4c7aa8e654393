"""What became of executions while their processes failed: counted from events, and from a log that nodes write."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from planwave.events import Event
from tests.support.scale.logging_nodes import Run

_PAUSES: Final = frozenset({"execution.paused", "execution.resumed"})
_CLOCK_S: Final = 0.05
"""How much earlier an event may be dated than it was stored."""


class Account(NamedTuple):
    """Counts over executions that have ended; all but the first three are 0 where nothing went wrong.

    Attributes:
        executions: How many there are.
        runs: How often nodes ran.
        run_again: How often nodes ran again because nobody knew their result.
        statuses: How many ended as what, other than ``completed``.
        lost: Nodes without a result.
        twice: Nodes with two results.
        gaps: Executions whose ``seq`` are not 1 to n.
        after_durable: Runs that began after the node had a result.
        once_again: Runs of a node with the effect ``once`` beyond its first.
    """

    executions: int
    runs: int
    run_again: int
    statuses: Mapping[str, int]
    lost: int
    twice: int
    gaps: int
    after_durable: int
    once_again: int

    def faults(self) -> dict[str, object]:
        """Return the counts that have to be 0 and are not."""
        return {
            name: count for name, count in self._asdict().items() if count and name not in _FREE
        }


_FREE: Final = {"executions", "runs", "run_again"}


def account_of(
    histories: Mapping[str, Sequence[Event]],
    runs: Iterable[Run],
    nodes: Iterable[str],
    once: Iterable[str] = (),
) -> Account:
    """Count what became of executions of one graph.

    Args:
        histories: The stored events of each execution.
        runs: What its nodes wrote.
        nodes: The ids of all nodes that write.
        once: Those of them with the effect ``once``.
    """
    of_node: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.execution_id in histories:
            of_node[run.execution_id, run.path].append(run)
    counts: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for execution_id, events in histories.items():
        statuses[_status(events)] += 1
        counts["gaps"] += [each.seq for each in events] != list(range(1, len(events) + 1))
        results: dict[str, list[float]] = defaultdict(list)
        for event in events:
            if event.type == "node.completed" and event.path is not None:
                results[event.path].append(_seconds(event.at))
        for node in nodes:
            found, own = results[node], of_node[execution_id, node]
            counts["lost"] += not found
            counts["twice"] += len(found) > 1
            counts["run_again"] += max(len(own) - 1, 0)
            if found:
                counts["after_durable"] += sum(run.at > found[0] + _CLOCK_S for run in own)
        for node in once:
            counts["once_again"] += max(len(of_node[execution_id, node]) - 1, 0)
    statuses.pop("completed", None)
    return Account(
        len(histories), sum(map(len, of_node.values())), counts["run_again"], dict(statuses),
        counts["lost"], counts["twice"], counts["gaps"], counts["after_durable"],
        counts["once_again"],
    )  # fmt: skip


def takeover_s(
    histories: Mapping[str, Sequence[Event]], runs: Iterable[Run], pid: int, failed_at: float
) -> list[float]:
    """Return how long each execution of a failed process stood still, in seconds.

    An execution is one of its own if its last node before the failure ran there, and it had not ended. It goes on with
    the first event or run of another process; one that waited for a person until then has not stood still: nobody
    drives it meanwhile.
    """
    of_execution: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        of_execution[run.execution_id].append(run)
    found: list[float] = []
    for execution_id, events in histories.items():
        own = of_execution[execution_id]
        before = [run for run in own if run.at <= failed_at]
        if not before or before[-1].pid != pid or _seconds(events[-1].at) <= failed_at:
            continue
        taken = [run.at for run in own if run.at > failed_at and run.pid != pid]
        goes_on = min(resumed_after(events, failed_at) + taken, default=None)
        if goes_on is not None and not is_paused(events, goes_on):
            found.append(goes_on - failed_at)
    return found


def is_paused(events: Sequence[Event], at: float) -> bool:
    """Return whether an execution was paused just before a time, in seconds since 1970."""
    changes = [event.type for event in events if event.type in _PAUSES and _seconds(event.at) < at]
    return changes[-1:] == ["execution.paused"]


def resumed_after(events: Sequence[Event], at: float) -> list[float]:
    """Return when an execution went on after a time, in seconds since 1970."""
    resumed = [_seconds(event.at) for event in events if event.type == "execution.resumed"]
    return [each for each in resumed if each > at]


def _status(events: Sequence[Event]) -> str:
    kind = events[-1].type if events else "none"
    return kind.removeprefix("execution.")


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
