"""What the stored events tell of nested runs before anybody asks for them again."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.events import Event
from planwave.events.paths import ancestor_paths
from planwave.events.types import PAUSE_REASONS, REQUESTED, SET_ASIDE, WAITING
from planwave.executor.recovery.history import (
    History,
    StoredNestedRuns,
    is_paused_by_request,
    seconds_between,
)
from planwave.executor.state import StoredGraphRun


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


Facts = list[tuple[str, str, int, dict[str, Any]]]


def opened(path: str, key: str, attempt: int = 1, **more: Any) -> tuple[str, str, int, Any]:
    said = {"key": key, "graph": "g", "inputs": "i", **more}
    return "node.event", path, attempt, {"event_type": "run_graph", "data": said}


def dropped(path: str, key: str) -> tuple[str, str, int, Any]:
    said = {"key": key, "dropped": True}
    return "node.event", path, 1, {"event_type": "run_graph", "data": said}


def happened(kind: str, path: str, attempt: int = 1, **data: Any) -> tuple[str, str, int, Any]:
    return f"node.{kind}", path, attempt, data


def waiting(path: str, request_id: str, attempt: int = 1) -> tuple[str, str, int, Any]:
    return happened("waiting", path, attempt, request_id=request_id, request={})


def dormant_of(*facts: tuple[str, str, int, Any]) -> StoredNestedRuns:
    at = "2026-01-01T00:00:00.000000+00:00"
    events = [
        Event("x", n, at, kind, path, tried, d) for n, (kind, path, tried, d) in enumerate(facts, 1)
    ]
    return History(events).nested_runs


def run_of(dormant: StoredNestedRuns, prefix: str) -> StoredGraphRun:
    run = dormant.get(prefix)
    assert run is not None
    return run


OPEN = (happened("started", "a"), opened("a", "k"), happened("started", "a[k]/n"))


def test_a_nested_run_is_known_with_what_it_runs_and_what_happened_in_it() -> None:
    dormant = dormant_of(*OPEN, opened("a", "l"))
    run = run_of(dormant, "a[k]/")
    assert (run.prefix, run.identity, run.attempt_number, run.must_restart) == (
        "a[k]/",
        ("g", "i"),
        1,
        False,
    )
    assert [event.type for event in run.events] == ["node.started"]
    assert run_of(dormant, "a[l]/").events == []
    assert dormant.pop("a[k]/") is run
    assert "a[k]/" not in dormant
    assert dormant.pop("a[k]/") is None


@pytest.mark.parametrize("kind", ["cancelled", "failed"])
def test_what_came_to_nothing_is_made_anew_by_the_next_attempt(kind: str) -> None:
    nested = happened(kind, "a[k]/n", 3, error={})
    deeper = (opened("a[k]/n", "d"), happened("started", "a[k]/n[d]/m", 7))
    done = (opened("a", "l"), happened("completed", "a[l]/n", outputs={}))
    dormant = dormant_of(*OPEN, *deeper, nested, *done)
    assert not run_of(dormant, "a[k]/").must_restart, "the same attempt is told how it went"
    again = happened("retrying", "a", next_attempt=2)
    dormant = dormant_of(*OPEN, *deeper, nested, *done, again)
    run = run_of(dormant, "a[k]/")
    assert (run.must_restart, run.events, run.highest_attempt) == (True, [], 7)
    assert run.identity == ("g", "i")
    assert "a[k]/n[d]/" not in dormant
    assert not run_of(dormant, "a[l]/").must_restart


def test_a_handled_failure_is_no_reason_to_make_a_run_anew() -> None:
    nested = happened("failed", "a[k]/n", error={}, handled=True)
    dormant = dormant_of(*OPEN, nested, happened("retrying", "a", next_attempt=2))
    assert not run_of(dormant, "a[k]/").must_restart


def test_of_a_run_made_anew_only_what_happened_since_counts() -> None:
    failed = happened("failed", "a[k]/n", 2, error={})
    again = (happened("retrying", "a", next_attempt=2), opened("a", "k", 2, before=2))
    run = run_of(dormant_of(*OPEN, failed, *again, happened("started", "a[k]/n", 3)), "a[k]/")
    assert (run.must_restart, run.attempt_number, run.attempt_offset, run.highest_attempt) == (
        False,
        2,
        2,
        3,
    )
    assert [event.attempt for event in run.events] == [3]


def test_a_run_its_node_let_go_of_is_made_anew() -> None:
    run = run_of(dormant_of(*OPEN, dropped("a", "k")), "a[k]/")
    assert (run.must_restart, run.highest_attempt) == (True, 1)


def test_runs_that_nobody_wrote_down_the_graph_of_are_known_too() -> None:
    run = run_of(dormant_of(happened("started", "a"), happened("started", "a[k]/n")), "a[k]/")
    assert run.identity is None
    assert len(run.events) == 1


def test_open_requests_are_known_in_the_order_they_were_made() -> None:
    dormant = dormant_of(
        *OPEN,
        waiting("a[k]/n", "r4"),
        waiting("a[k]/o", "r5"),
        waiting("a[l]/n", "r6"),
        happened("answered", "a[k]/n", request_id="r4", answer=1),
        waiting("b[k]/n", "r8"),
        happened("cancelled", "a[k]/o", cause="c"),
        waiting("a[k]/n", "r10"),
    )
    assert [request_id for request_id, _ in dormant.requests()] == ["r6", "r8", "r10"]


def test_what_is_open_inside_a_node_is_told_innermost_first() -> None:
    dormant = dormant_of(
        *OPEN,
        happened("completed", "a[k]/o", outputs={}),
        happened("parked", "a[k]/n"),
        waiting("a[k]/n[d]/q", "r"),
        happened("started", "b[k]/n"),
    )
    assert [event.path for event in dormant.unfinished_inside("a")] == ["a[k]/n[d]/q", "a[k]/n"]
    assert dormant.unfinished_inside("c") == []


def test_a_parked_node_is_known_until_it_goes_on() -> None:
    parked = (*OPEN, happened("parked", "a[k]/n", 2))
    assert dormant_of(*parked).parked_attempt("a[k]/n") == 2
    assert dormant_of(*parked, happened("unparked", "a[k]/n", 2)).parked_attempt("a[k]/n") is None
    assert dormant_of(*parked).parked_attempt("b[k]/n") is None


def test_attempts_of_what_is_deeper_count_also_once_that_is_forgotten() -> None:
    deeper = (opened("a[k]/n", "d"), happened("started", "a[k]/n[d]/m", 7))
    dormant = dormant_of(*OPEN, *deeper, happened("completed", "a[k]/n", outputs={}))
    run = dormant.pop("a[k]/")
    assert run is not None
    assert run.highest_attempt == 7
    assert "a[k]/n[d]/" not in dormant


def test_values_are_given_back_to_the_node_that_kept_them_once() -> None:
    kept = [("a", 1), ("b", 2), ("a[k]/n", 3)]
    facts = [
        ("node.event", path, 1, {"event_type": "once", "data": {"key": "v", "value": value}})
        for path, value in kept
    ]
    dormant = dormant_of(*OPEN, *facts)
    assert dormant.pop_once_values("b") == {"v": 2}
    assert dormant.pop_once_values("b") == {}
    dormant.discard("a")
    assert dormant.pop_once_values("a") == {}
    assert dormant.pop_once_values("a[k]/n") == {}
    assert "a[k]/" not in dormant


def test_a_path_says_which_nodes_it_is_inside_of() -> None:
    assert list(ancestor_paths("a[k]/b[0]/c")) == ["a", "a[k]/b"]
    assert list(ancestor_paths("a")) == []
