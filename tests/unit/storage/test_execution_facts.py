from __future__ import annotations

from typing import Any

from planwave.events import Event, fold
from planwave.events.usage import UsageTotal
from planwave.storage.execution_facts import Spend, facts_of, planning_spend
from planwave.storage.records import ExecutionRecord

AT = "2026-01-01T23:59:59.000000+00:00"
NEXT_DAY = "2026-01-02T00:00:01.000000+00:00"
RECORD = ExecutionRecord("x1", "p1", "Title", "Goal", "completed", AT)


def story(*rest: tuple[str, str, dict[str, Any]]) -> list[Event]:
    """Return the events of an execution of one step."""
    nodes = [{"id": "a", "type": "agent", "name": "Find", "data": {"prompt": "Look it up"}}]
    created = {"plan_id": "p1", "goal": "Goal", "title": "Title"}
    graph = {"nodes": nodes, "edges": []}
    begun = [(AT, "execution.created", {**created, "graph": graph}), (AT, "execution.started", {})]
    return [
        Event("x1", seq, at, kind, "a" if kind == "usage" else None, None, data)
        for seq, (at, kind, data) in enumerate([*begun, *rest], 1)
    ]


def test_spend_is_of_the_day_and_the_model_of_each_call() -> None:
    used = {"provider": "p", "model": "m", "input_tokens": 2, "output_tokens": 1, "cost_usd": 0.5}
    events = story(
        (AT, "usage", used),
        (AT, "usage", {**used, "cost_usd": None}),
        (NEXT_DAY, "usage", used),
        (NEXT_DAY, "usage", {"model": ["any node may emit this"]}),
        (NEXT_DAY, "execution.completed", {}),
    )
    facts = facts_of(events, fold(events), RECORD)
    assert (facts.tokens, facts.cost_usd, facts.duration_s) == (9, 1.0, 2.0)
    assert facts.spend == (
        Spend("run", "x1", "2026-01-01", "p1", "p", "m", UsageTotal(2, 4, 2, 0.5), 1),
        Spend("run", "x1", "2026-01-02", "p1", "p", "m", UsageTotal(1, 2, 1, 0.5), 0),
        Spend("run", "x1", "2026-01-02", "p1", "", "", UsageTotal(1), 1),
    )


def test_a_run_without_calls_spends_nothing_and_one_that_goes_on_has_no_duration() -> None:
    events = story()
    facts = facts_of(events, fold(events), RECORD)
    assert (facts.tokens, facts.cost_usd, facts.duration_s, facts.spend) == (0, None, None, ())
    assert "look it up" in facts.text


def test_planning_is_the_sum_of_its_attempts() -> None:
    attempts: list[Any] = [{"input_tokens": 5, "cost_usd": 0.1}, {"output_tokens": 2}]
    assert planning_spend("p1", AT, "p", "m", attempts) == Spend(
        "planning", "p1", "2026-01-01", "p1", "p", "m", UsageTotal(2, 5, 2, 0.1), 1
    )
    assert planning_spend("p1", AT, "p", "m", []) is None
