from __future__ import annotations

from typing import Any

import pytest

from planwave.events import Event
from planwave.events.vocabulary import PAUSE_REASONS, REQUESTED, SET_ASIDE, WAITING
from planwave.executor.past import History, is_paused_by_request, seconds_between


def at(second: float) -> str:
    return f"2026-01-01T00:{int(second) // 60:02d}:{second % 60:09.6f}+00:00"


def told(*facts: tuple[str, float] | tuple[str, float, str, dict[str, Any]]) -> list[Event]:
    made: list[Event] = []
    for seq, (kind, second, *more) in enumerate(facts, 1):
        path, data = more if more else (None, {})
        made.append(Event("x", seq, at(second), kind, path, 1 if path else None, data))
    return made


def test_only_the_time_it_was_at_work_counts() -> None:
    past = History(
        told(
            ("execution.created", 0),
            ("execution.started", 1),
            ("execution.paused", 4, None, {"reason": "waiting for an answer"}),
            ("execution.resumed", 100, None, {"reason": "answered"}),
            ("node.started", 101, "a", {}),
            ("node.completed", 103, "a", {"outputs": {}}),  # then its process ended
            ("execution.resumed", 1000, None, {"reason": "recovery"}),
            ("node.started", 1005, "b", {}),
        )
    )
    assert past.active_s == pytest.approx(3 + 3 + 5)
    assert past.is_started
    assert past.pause_reason is None
    assert past.last_seq == 8


def test_a_clock_that_went_back_counts_for_nothing() -> None:
    past = History(
        told(("execution.created", 50), ("execution.started", 60), ("node.started", 5, "a", {}))
    )
    assert past.active_s == 0
    assert seconds_between(at(60), at(5)) == 0
    assert seconds_between(at(5), at(60)) == 55


@pytest.mark.parametrize(
    ("data", "held"),
    [
        ({"reason": "no answer yet", "kind": WAITING}, False),
        ({"reason": PAUSE_REASONS[WAITING], "kind": REQUESTED}, True),
        ({"reason": "set aside: …", "kind": SET_ASIDE}, True),
        ({"reason": "waiting for an answer"}, False),  # as older versions stored it
        ({"reason": "paused by request"}, True),
        ({"reason": "set aside: …"}, True),
        ({}, True),
    ],
)
def test_a_pause_is_remembered_until_it_is_over(data: dict[str, Any], held: bool) -> None:
    begun = told(("execution.created", 0), ("execution.started", 1))
    paused = [*begun, Event("x", 3, at(2), "execution.paused", None, None, data)]
    assert is_paused_by_request(History(paused).pause_reason) is held
    assert not is_paused_by_request(History(begun).pause_reason)


def test_facts_are_sorted_by_the_graph_they_are_about_and_given_once() -> None:
    past = History(
        told(
            ("execution.created", 0),
            ("execution.started", 0),
            ("wave.started", 0, None, {"wave": 1}),  # type: ignore[arg-type]
            ("node.started", 0, "loop", {}),
            ("node.started", 0, "loop[1]/step", {}),
            (
                "node.completed",
                0,
                "loop[1]/step",
                {"outputs": {"o": {"type": "t", "value": "abc"}}},
            ),
        )
    )
    assert [e.type for e in past.take_own_events()] == ["wave.started", "node.started"]
    assert past.take_own_events() == []
    assert "loop[1]/" in past.nested_runs
    assert past.result_bytes == 5
    assert past.start_count == 2
