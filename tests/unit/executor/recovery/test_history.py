"""The stored state of an execution and of its nested runs."""

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
from planwave.executor.stored_runs import StoredGraphRun


def at(second: float) -> str:
    return f"2026-01-01T00:{int(second) // 60:02d}:{second % 60:09.6f}+00:00"


def stored_events(
    *facts: tuple[str, float] | tuple[str, float, str, dict[str, Any]],
) -> list[Event]:
    events: list[Event] = []
    for seq, (kind, second, *more) in enumerate(facts, 1):
        path, data = more if more else (None, {})
        events.append(Event("x", seq, at(second), kind, path, 1 if path else None, data))
    return events


def test_the_active_time_excludes_pauses_and_downtime() -> None:
    history = History(
        stored_events(
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
    assert history.active_s == pytest.approx(3 + 3 + 5)
    assert history.is_started
    assert history.pause_reason is None
    assert history.last_seq == 8


def test_a_clock_set_back_adds_no_active_time() -> None:
    history = History(
        stored_events(
            ("execution.created", 50), ("execution.started", 60), ("node.started", 5, "a", {})
        )
    )
    assert history.active_s == 0
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
def test_a_pause_by_request_is_told_apart_from_waiting(data: dict[str, Any], held: bool) -> None:
    begun = stored_events(("execution.created", 0), ("execution.started", 1))
    paused = [*begun, Event("x", 3, at(2), "execution.paused", None, None, data)]
    assert is_paused_by_request(History(paused).pause_reason) is held
    assert not is_paused_by_request(History(begun).pause_reason)


def test_events_are_grouped_by_graph_run_and_taken_once() -> None:
    document = {"nodes": [], "edges": []}
    opened = {"key": "1", "graph": "g", "inputs": "i", "document": document}
    history = History(
        stored_events(
            ("execution.created", 0),
            ("execution.started", 0),
            ("wave.started", 0, None, {"wave": 1}),  # type: ignore[arg-type]
            ("node.started", 0, "loop", {}),
            ("nested_run.opened", 0, "loop", opened),
            ("nested_run.opened", 0, "loop", {"key": "2", "graph": "g", "inputs": "i"}),
            ("node.started", 0, "loop[1]/step", {}),
            (
                "node.completed",
                0,
                "loop[1]/step",
                {"outputs": {"o": {"type": "t", "value": "abc"}}},
            ),
        )
    )
    assert [e.type for e in history.take_own_events()] == ["wave.started", "node.started"]
    assert history.take_own_events() == []
    assert "loop[1]/" in history.nested_runs
    assert history.state_bytes == len('"abc"') + len('{"nodes":[],"edges":[]}')
    assert history.start_count == 2


Facts = list[tuple[str, str, int, dict[str, Any]]]


def opened(path: str, key: str, attempt: int = 1, **more: Any) -> tuple[str, str, int, Any]:
    opening = {"key": key, "graph": "g", "inputs": "i", **more}
    return "node.event", path, attempt, {"event_type": "run_graph", "data": opening}


def dropped(path: str, key: str) -> tuple[str, str, int, Any]:
    opening = {"key": key, "dropped": True}
    return "node.event", path, 1, {"event_type": "run_graph", "data": opening}


def happened(kind: str, path: str, attempt: int = 1, **data: Any) -> tuple[str, str, int, Any]:
    return f"node.{kind}", path, attempt, data


def waiting(path: str, request_id: str, attempt: int = 1) -> tuple[str, str, int, Any]:
    return happened("waiting", path, attempt, request_id=request_id, request={})


def nested_runs_of(*facts: tuple[str, str, int, Any]) -> StoredNestedRuns:
    at = "2026-01-01T00:00:00.000000+00:00"
    events = [
        Event("x", n, at, kind, path, tried, d) for n, (kind, path, tried, d) in enumerate(facts, 1)
    ]
    return History(events).nested_runs


def run_of(nested_runs: StoredNestedRuns, prefix: str) -> StoredGraphRun:
    run = nested_runs.get(prefix)
    assert run is not None
    return run


OPEN = (happened("started", "a"), opened("a", "k"), happened("started", "a[k]/n"))


def test_a_stored_nested_run_has_its_identity_and_events() -> None:
    nested_runs = nested_runs_of(*OPEN, opened("a", "l"))
    run = run_of(nested_runs, "a[k]/")
    assert (run.prefix, run.identity, run.attempt_number, run.must_restart) == (
        "a[k]/",
        ("g", "i"),
        1,
        False,
    )
    assert [event.type for event in run.events] == ["node.started"]
    assert run_of(nested_runs, "a[l]/").events == []
    assert nested_runs.pop("a[k]/") is run
    assert "a[k]/" not in nested_runs
    assert nested_runs.pop("a[k]/") is None


@pytest.mark.parametrize("kind", ["cancelled", "failed"])
def test_a_failed_or_cancelled_run_must_restart_in_the_next_attempt(kind: str) -> None:
    nested = happened(kind, "a[k]/n", 3, error={})
    deeper = (opened("a[k]/n", "d"), happened("started", "a[k]/n[d]/m", 7))
    done = (opened("a", "l"), happened("completed", "a[l]/n", outputs={}))
    nested_runs = nested_runs_of(*OPEN, *deeper, nested, *done)
    assert not run_of(nested_runs, "a[k]/").must_restart, "the same attempt is told how it went"
    again = happened("retrying", "a", next_attempt=2)
    nested_runs = nested_runs_of(*OPEN, *deeper, nested, *done, again)
    run = run_of(nested_runs, "a[k]/")
    assert (run.must_restart, run.events, run.highest_attempt) == (True, [], 7)
    assert run.identity == ("g", "i")
    assert "a[k]/n[d]/" not in nested_runs
    assert not run_of(nested_runs, "a[l]/").must_restart


def test_a_handled_failure_does_not_restart_the_run() -> None:
    nested = happened("failed", "a[k]/n", error={}, handled=True)
    nested_runs = nested_runs_of(*OPEN, nested, happened("retrying", "a", next_attempt=2))
    assert not run_of(nested_runs, "a[k]/").must_restart


def test_a_restarted_run_has_only_its_later_events() -> None:
    failed = happened("failed", "a[k]/n", 2, error={})
    again = (happened("retrying", "a", next_attempt=2), opened("a", "k", 2, before=2))
    run = run_of(nested_runs_of(*OPEN, failed, *again, happened("started", "a[k]/n", 3)), "a[k]/")
    assert (run.must_restart, run.attempt_number, run.attempt_offset, run.highest_attempt) == (
        False,
        2,
        2,
        3,
    )
    assert [event.attempt for event in run.events] == [3]


def test_an_abandoned_run_must_restart() -> None:
    run = run_of(nested_runs_of(*OPEN, dropped("a", "k")), "a[k]/")
    assert (run.must_restart, run.highest_attempt) == (True, 1)


def test_a_run_without_a_stored_start_has_no_identity() -> None:
    run = run_of(nested_runs_of(happened("started", "a"), happened("started", "a[k]/n")), "a[k]/")
    assert run.identity is None
    assert len(run.events) == 1


def test_open_requests_are_listed_in_the_order_they_were_made() -> None:
    nested_runs = nested_runs_of(
        *OPEN,
        waiting("a[k]/n", "r4"),
        waiting("a[k]/o", "r5"),
        waiting("a[l]/n", "r6"),
        happened("answered", "a[k]/n", request_id="r4", answer=1),
        waiting("b[k]/n", "r8"),
        happened("cancelled", "a[k]/o", cause="c"),
        waiting("a[k]/n", "r10"),
    )
    assert [request_id for request_id, _ in nested_runs.requests()] == ["r6", "r8", "r10"]


def test_unfinished_nodes_inside_a_node_are_listed_innermost_first() -> None:
    nested_runs = nested_runs_of(
        *OPEN,
        happened("completed", "a[k]/o", outputs={}),
        happened("parked", "a[k]/n"),
        waiting("a[k]/n[d]/q", "r"),
        happened("started", "b[k]/n"),
    )
    assert [event.path for event in nested_runs.unfinished_inside("a")] == ["a[k]/n[d]/q", "a[k]/n"]
    assert nested_runs.unfinished_inside("c") == []


def test_a_parked_node_has_its_attempt_until_it_is_unparked() -> None:
    parked = (*OPEN, happened("parked", "a[k]/n", 2))
    assert nested_runs_of(*parked).parked_attempt("a[k]/n") == 2
    assert (
        nested_runs_of(*parked, happened("unparked", "a[k]/n", 2)).parked_attempt("a[k]/n") is None
    )
    assert nested_runs_of(*parked).parked_attempt("b[k]/n") is None


def test_the_highest_attempt_includes_deeper_runs_that_were_discarded() -> None:
    deeper = (opened("a[k]/n", "d"), happened("started", "a[k]/n[d]/m", 7))
    nested_runs = nested_runs_of(*OPEN, *deeper, happened("completed", "a[k]/n", outputs={}))
    run = nested_runs.pop("a[k]/")
    assert run is not None
    assert run.highest_attempt == 7
    assert "a[k]/n[d]/" not in nested_runs


def test_once_values_are_returned_to_their_node_once() -> None:
    values = [("a", 1), ("b", 2), ("a[k]/n", 3)]
    facts = [
        ("node.event", path, 1, {"event_type": "once", "data": {"key": "v", "value": value}})
        for path, value in values
    ]
    nested_runs = nested_runs_of(*OPEN, *facts)
    assert nested_runs.pop_once_values("b") == ({"v": 2}, None)
    assert nested_runs.pop_once_values("b") == ({}, None)
    nested_runs.discard("a")
    assert nested_runs.pop_once_values("a") == ({}, None)
    assert nested_runs.pop_once_values("a[k]/n") == ({}, None)
    assert "a[k]/" not in nested_runs


def test_the_ancestors_of_a_path_are_the_nodes_around_it() -> None:
    assert list(ancestor_paths("a[k]/b[0]/c")) == ["a", "a[k]/b"]
    assert list(ancestor_paths("a")) == []
