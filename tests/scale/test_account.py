"""What the fault matrix counts: each thing that must not happen, where it happens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from planwave.events import Event
from tests.support.scale.account import account_of, takeover_s
from tests.support.scale.logging_nodes import Run

ID = "an execution"
START = 1_800_000_000.0


def event(seq: int, kind: str, after_s: float, path: str | None = None) -> Event:
    at = datetime.fromtimestamp(START + after_s, UTC).isoformat()
    return Event(ID, seq, at, kind, path, None, {})


def run(path: str, after_s: float, pid: int = 1) -> Run:
    return Run(ID, path, 1, pid, START + after_s)


WHOLE = [
    event(1, "execution.created", 0),
    event(2, "node.completed", 2, "a"),
    event(3, "node.completed", 4, "b"),
    event(4, "execution.completed", 5),
]
RUNS = [run("a", 1), run("b", 3)]


def test_nothing_is_counted_where_nothing_went_wrong() -> None:
    account = account_of({ID: WHOLE}, RUNS, ["a", "b"], once=["b"])
    assert account.faults() == {}
    assert (account.executions, account.runs, account.run_again) == (1, 2, 0)


@pytest.mark.parametrize(
    ("events", "runs", "faults"),
    [
        ([*WHOLE[:2], event(3, "execution.completed", 5)], RUNS, {"lost": 1}),
        ([*WHOLE[:3], event(4, "node.completed", 5, "b"), event(5, "execution.completed", 6)], RUNS, {"twice": 1}),
        ([*WHOLE[:2], *WHOLE[3:], WHOLE[2]], RUNS, {"gaps": 1, "statuses": {"node.completed": 1}}),
        ([*WHOLE[:3], event(4, "execution.failed", 5)], RUNS, {"statuses": {"failed": 1}}),
        (WHOLE, [*RUNS, run("a", 2.5)], {"after_durable": 1}),
        (WHOLE, [*RUNS, run("b", 3.5)], {"once_again": 1}),
    ],
)  # fmt: skip
def test_what_went_wrong_is_counted(
    events: list[Event], runs: list[Run], faults: dict[str, Any]
) -> None:
    assert account_of({ID: events}, runs, ["a", "b"], once=["b"]).faults() == faults


def test_a_run_again_of_an_unknown_result_is_no_fault() -> None:
    account = account_of({ID: WHOLE}, [*RUNS, run("a", 1.5, pid=2)], ["a", "b"], once=["b"])
    assert (account.run_again, account.faults()) == (1, {})


def test_takeover_is_the_time_until_another_process_goes_on() -> None:
    taken = [*RUNS[:1], run("a", 4, pid=2), run("b", 4.5, pid=2)]
    assert takeover_s({ID: WHOLE}, taken, pid=1, failed_at=START + 1.5) == pytest.approx([2.5])
    resumed = [WHOLE[0], event(2, "execution.resumed", 3), *WHOLE[2:]]
    assert takeover_s({ID: resumed}, taken, pid=1, failed_at=START + 1.5) == pytest.approx([1.5])
    assert takeover_s({ID: WHOLE}, taken, pid=2, failed_at=START + 1.5) == []
    assert takeover_s({ID: WHOLE}, RUNS, pid=1, failed_at=START + 6) == []


@pytest.mark.parametrize("failed_after_s", [1.5, 3])
def test_an_execution_that_waited_for_a_person_has_not_stood_still(failed_after_s: float) -> None:
    """What was stored just before the failure took effect may be dated after it."""
    paused = [WHOLE[0], event(2, "execution.paused", 2), event(3, "execution.resumed", 4)]
    taken = [*RUNS[:1], run("b", 4.5, pid=2)]
    histories = {ID: [*paused, *WHOLE[3:]]}
    assert takeover_s(histories, taken, pid=1, failed_at=START + failed_after_s) == []


def test_an_execution_that_asks_once_it_is_taken_over_has_stood_still_until_then() -> None:
    events = [
        WHOLE[0],
        event(2, "execution.resumed", 3),
        event(3, "execution.paused", 3.5),
        event(4, "execution.resumed", 9),
    ]
    taken = [*RUNS[:1], run("b", 9.5, pid=2)]
    histories = {ID: [*events, event(5, "execution.completed", 10)]}
    assert takeover_s(histories, taken, pid=1, failed_at=START + 1.5) == pytest.approx([1.5])
