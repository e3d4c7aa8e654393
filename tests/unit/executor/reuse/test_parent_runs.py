"""The records of every graph run of a parent execution."""

from __future__ import annotations

from itertools import count
from typing import Any

from planwave.events import Event
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.stored_runs import HowMade

DOCUMENT = {"nodes": [{"id": "n", "type": "step"}, {"id": "m", "type": "other"}], "edges": []}


def emitted(path: str, event_type: str, **data: Any) -> tuple[str, str, dict[str, Any]]:
    return "node.event", path, {"event_type": event_type, "data": data}


def opened(path: str, key: str, graph: str = "g", **more: Any) -> tuple[str, str, dict[str, Any]]:
    return emitted(path, "run_graph", key=key, graph=graph, inputs="i", **more)


def history_of(*facts: tuple[str, str | None, dict[str, Any]]) -> ParentHistory:
    number = count(1)
    return ParentHistory(
        Event("x0", next(number), "t", kind, path, 1, data) for kind, path, data in facts
    )


def done(path: str, **data: Any) -> tuple[str, str, dict[str, Any]]:
    return "node.completed", path, {"outputs": {}, **data}


def test_each_start_of_a_graph_run_has_a_record_and_the_latest_is_first() -> None:
    history = history_of(
        ("execution.started", None, {}),
        opened("a", "k"), done("a[k]/n"), opened("a", "k", "h"), done("a[k]/m"),
        ("node.log", "a[k]/m", {}),
    )  # fmt: skip
    second, first = history.runs_at("a[k]/")
    assert (first.identity, second.identity) == (("g", "i"), ("h", "i"))
    assert ([e.path for e in first.events], [e.path for e in second.events]) == (
        ["a[k]/n"],
        ["a[k]/m"],
    )
    assert first.parent is second.parent is history.root
    assert [event.type for event in history.root.events] == []
    assert history.runs_at("a[l]/") == []


def test_an_abandoned_run_has_a_record() -> None:
    history = history_of(
        opened("a", "k"),
        done("a[k]/n"),
        emitted("a", "run_graph", key="k", dropped=True),
        opened("a", "k"),
    )
    second, first = history.runs_at("a[k]/")
    assert (len(first.events), len(second.events)) == (1, 0)


def test_a_deeper_run_belongs_to_the_record_it_was_started_in() -> None:
    history = history_of(
        opened("a", "k"), opened("a[k]/n", "l"), opened("a", "k"), opened("a[k]/n", "l")
    )
    outer, inner = history.runs_at("a[k]/"), history.runs_at("a[k]/n[l]/")
    assert [record.parent for record in inner] == list(outer)


def test_a_run_without_a_stored_start_has_no_identity() -> None:
    (record,) = history_of(done("a[k]/n")).runs_at("a[k]/")
    assert record.identity is None


def test_once_values_and_versions_are_listed_by_node() -> None:
    history = history_of(
        ("node.started", "a", {"versions": {"step": 2}}), emitted("a", "once", key="v", value=1),
        ("node.started", "b", {}), done("c", reused={"execution_id": "x"}, versions={"step": 3}), done("d", given=True),
    )  # fmt: skip
    assert history.root.how_made("a") == HowMade({"step": 2}, {"v": 1})
    assert history.root.how_made("b") == HowMade({}, {})
    assert history.root.how_made("c") == HowMade({"step": 3}, {})
    assert history.root.how_made("d") == HowMade(None, {})


def test_the_types_used_by_a_node_include_those_of_its_nested_runs() -> None:
    history = history_of(
        ("node.started", "a", {"versions": {"outer": 4}}),
        opened("a", "k", document=DOCUMENT),
        ("node.started", "a[k]/n", {"versions": {"step": 2}}),
        opened("a[k]/n", "l"),
        ("node.started", "a[k]/n[l]/n", {}),
        opened("b", "k"),
        ("node.started", "b[k]/n", {"versions": {"elsewhere": 2}}),
    )
    assert set(history.types_used(history.root, "a")) == {
        ("outer", 4), ("step", 2), ("other", 1), ("step", 1),
    }  # fmt: skip
    assert set(history.types_used(history.root, "c")) == set()


def test_each_reported_call_is_consumed_once() -> None:
    used = {"input_tokens": 3, "output_tokens": 1, "provider": "p"}
    again = {**used, "recorded": True}
    history = history_of(
        ("usage", "a", used), ("usage", "a", again), ("usage", "a", {**again, "input_tokens": 4})
    )
    reports = [("b", 1), ("a", 2), ("a", 1), ("a", 1)]
    assert [history.consume_usage(*who, used) for who in reports] == [False, False, True, False]
    assert history.consume_usage("a", 1, {"input_tokens": 4, "output_tokens": 1})
