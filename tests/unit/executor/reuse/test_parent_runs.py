"""Every graph that ran in an execution, each time it was begun."""

from __future__ import annotations

from itertools import count
from typing import Any

from planwave.events import Event
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.state import HowMade

DOCUMENT = {"nodes": [{"id": "n", "type": "step"}, {"id": "m", "type": "other"}], "edges": []}


def said(path: str, event_type: str, **data: Any) -> tuple[str, str, dict[str, Any]]:
    return "node.event", path, {"event_type": event_type, "data": data}


def opened(path: str, key: str, graph: str = "g", **more: Any) -> tuple[str, str, dict[str, Any]]:
    return said(path, "run_graph", key=key, graph=graph, inputs="i", **more)


def earlier(*facts: tuple[str, str | None, dict[str, Any]]) -> ParentHistory:
    number = count(1)
    return ParentHistory(
        Event("x0", next(number), "t", kind, path, 1, data) for kind, path, data in facts
    )


def done(path: str, **data: Any) -> tuple[str, str, dict[str, Any]]:
    return "node.completed", path, {"outputs": {}, **data}


def test_a_graph_has_a_life_each_time_it_is_begun_and_the_latest_is_first() -> None:
    found = earlier(
        ("execution.started", None, {}),
        opened("a", "k"), done("a[k]/n"), opened("a", "k", "h"), done("a[k]/m"),
        ("node.log", "a[k]/m", {}),
    )  # fmt: skip
    second, first = found.runs_at("a[k]/")
    assert (first.identity, second.identity) == (("g", "i"), ("h", "i"))
    assert ([e.path for e in first.events], [e.path for e in second.events]) == (
        ["a[k]/n"],
        ["a[k]/m"],
    )
    assert first.parent is second.parent is found.root
    assert [event.type for event in found.root.events] == []
    assert found.runs_at("a[l]/") == []


def test_what_was_let_go_of_is_known_all_the_same() -> None:
    found = earlier(
        opened("a", "k"),
        done("a[k]/n"),
        said("a", "run_graph", key="k", dropped=True),
        opened("a", "k"),
    )
    second, first = found.runs_at("a[k]/")
    assert (len(first.events), len(second.events)) == (1, 0)


def test_what_is_deeper_belongs_to_the_life_it_was_begun_in() -> None:
    found = earlier(
        opened("a", "k"), opened("a[k]/n", "l"), opened("a", "k"), opened("a[k]/n", "l")
    )
    outer, inner = found.runs_at("a[k]/"), found.runs_at("a[k]/n[l]/")
    assert [life.parent for life in inner] == list(outer)


def test_a_graph_that_nobody_wrote_down_has_no_identity() -> None:
    (life,) = earlier(done("a[k]/n")).runs_at("a[k]/")
    assert life.identity is None


def test_values_and_versions_are_known_by_node() -> None:
    found = earlier(
        ("node.started", "a", {"versions": {"step": 2}}), said("a", "once", key="v", value=1),
        ("node.started", "b", {}), done("c", reused={"execution_id": "x"}, versions={"step": 3}), done("d", given=True),
    )  # fmt: skip
    assert found.root.how_made("a") == HowMade({"step": 2}, {"v": 1})
    assert found.root.how_made("b") == HowMade({}, {})
    assert found.root.how_made("c") == HowMade({"step": 3}, {})
    assert found.root.how_made("d") == HowMade(None, {})


def test_a_result_follows_from_all_types_inside_its_node() -> None:
    found = earlier(
        ("node.started", "a", {"versions": {"outer": 4}}),
        opened("a", "k", document=DOCUMENT),
        ("node.started", "a[k]/n", {"versions": {"step": 2}}),
        opened("a[k]/n", "l"),
        ("node.started", "a[k]/n[l]/n", {}),
        opened("b", "k"),
        ("node.started", "b[k]/n", {"versions": {"elsewhere": 2}}),
    )
    assert set(found.types_used(found.root, "a")) == {
        ("outer", 4), ("step", 2), ("other", 1), ("step", 1),
    }  # fmt: skip
    assert set(found.types_used(found.root, "c")) == set()


def test_each_call_is_taken_as_told_once_however_often_it_was_told() -> None:
    used = {"input_tokens": 3, "output_tokens": 1, "provider": "p"}
    again = {**used, "recorded": True}
    found = earlier(
        ("usage", "a", used), ("usage", "a", again), ("usage", "a", {**again, "input_tokens": 4})
    )
    asked = [("b", 1), ("a", 2), ("a", 1), ("a", 1)]
    assert [found.consume_usage(*who, used) for who in asked] == [False, False, True, False]
    assert found.consume_usage("a", 1, {"input_tokens": 4, "output_tokens": 1})
