"""What a fork and a retry run: changes laid over what ran before, every fault told."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import Conflict
from planwave.events import Event, ExecutionState, fold
from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.service.executions.fork import (
    Fork,
    ForkRequest,
    InvalidChanges,
    apply_merge_patch,
    build_fork,
)
from planwave.service.executions.retry import failed_nodes
from planwave.settings import Limits
from tests.support.graph.fake_catalog import parse_graph

AT = "2026-01-01T00:00:00.000000+00:00"
FAILED = {"error": {"code": "boom", "message": "boom"}, "duration_s": 1.0}
GRAPH = Graph(
    tuple(
        node._replace(data={"text": "old", "more": {"a": 1, "b": 2}})
        for node in parse_graph("a b c g", "a>b", "g~c").nodes
    ),
    parse_graph("a b c g", "a>b", "g~c").edges,
)


def ran(*told: tuple[str, str | None, dict[str, Any]], **facts: Any) -> ExecutionState:
    """The state after an execution of ``GRAPH_POINTER`` was started and this happened."""
    created = {"graph": GRAPH.to_document(), **facts}
    events = [
        ("execution.created", None, created),
        ("execution.started", None, {"waves": 2, "linked": ["g"]}),
        *told,
    ]
    return fold(
        Event("x1", seq, AT, kind, path, 1 if path else None, data)
        for seq, (kind, path, data) in enumerate(events, 1)
    )


def done(path: str) -> tuple[str, str, dict[str, Any]]:
    return "node.completed", path, {"outputs": {}, "duration_s": 1.0}


COMPLETED = ran(done("a"), done("b"), done("c"), ("execution.completed", None, {}))


def fork(changes: Any = None, *rerun: str, parent: ExecutionState = COMPLETED, **more: Any) -> Fork:
    return build_fork(parent, GRAPH, ForkRequest(rerun, changes), **more)


def faults(changes: Any, *rerun: str, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidChanges) as caught:
        fork(changes, *rerun, **more)
    assert caught.value.code == "invalid-changes"
    return [(found.code, found.pointer) for found in caught.value.diagnostics]


def test_without_changes_the_graph_is_the_same() -> None:
    assert fork() == Fork(GRAPH, {}, {}, ())
    assert fork().graph is fork({}, "a").graph is GRAPH


def test_data_are_patched_and_everything_else_stays() -> None:
    made = fork({"b": {"data": {"text": "new", "more": {"a": None, "c": [3]}}}}).graph
    assert made.by_id["b"].data == {"text": "new", "more": {"b": 2, "c": [3]}}
    assert GRAPH.by_id["b"].data == {"text": "old", "more": {"a": 1, "b": 2}}
    assert (made.nodes[0], made.edges) == (GRAPH.nodes[0], GRAPH.edges)
    assert [node.id for node in made.nodes] == ["a", "b", "c", "g"]


def test_a_patch_is_copied() -> None:
    change: dict[str, Any] = {"b": {"data": {"list": [1]}}, "c": {"outputs": {"output": [1]}}}
    made = fork(change)
    change["b"]["data"]["list"].append(2)
    change["c"]["outputs"]["output"].append(2)
    assert made.graph.by_id["b"].data["list"] == [1]
    assert made.preset == {"c": {"output": [1]}}


def test_outputs_settle_a_node() -> None:
    made = fork({"b": {"outputs": {"output": "mine"}}})
    assert (made.graph, made.inputs, made.preset) == (GRAPH, {}, {"b": {"output": "mine"}})


def test_inputs_are_carried_over_and_changed_outputs_take_their_place() -> None:
    parent = ran(("execution.completed", None, {}), inputs={"a": {"output": 1}})
    assert fork(parent=parent).inputs == {"a": {"output": 1}}
    made = fork({"a": {"outputs": {"output": 2}}, "c": {"outputs": {}}}, parent=parent)
    assert (made.inputs, made.preset) == ({"a": {"output": 2}}, {"c": {}})
    assert parent.inputs == {"a": {"output": 1}}


def test_nodes_to_run_again_are_kept_in_order_once_each() -> None:
    assert fork(None, "c", "a", "c").rerun == ("c", "a")


def test_every_fault_is_told_with_its_place() -> None:
    wrong: Any = {
        "a": {"data": {}, "outputs": {}},
        "b": {"date": {}, "policy": {}},
        "c": {"data": [1]},
        "ghost/x": {"data": {}},
        "g": {"outputs": {}},
    }
    assert faults(wrong, "a", "ghost", "g") == [
        ("unknown-node", "/rerun/1"),
        ("never-run", "/rerun/2"),
        ("invalid-field", "/changes/a"),
        ("unknown-field", "/changes/b/date"),
        ("unknown-field", "/changes/b/policy"),
        ("invalid-field", "/changes/c/data"),
        ("unknown-node", "/changes/ghost~1x"),
        ("never-run", "/changes/g/outputs"),
    ]
    assert faults({"a": {}, "b": None}) == [
        ("invalid-field", "/changes/a"),
        ("invalid-field", "/changes/b"),
    ]


def test_faults_say_the_way_out() -> None:
    with pytest.raises(InvalidChanges, match="'ghost'") as caught:
        fork({"ghost": {"data": {}}})
    assert caught.value.hint == "its nodes are a, b, c, g"


def test_data_of_what_the_inputs_settle_are_not_changed_in_vain() -> None:
    parent = ran(("execution.completed", None, {}), inputs={"a": {"output": 1}})
    assert faults({"a": {"data": {"text": "x"}}}, parent=parent) == [
        ("invalid-field", "/changes/a/data")
    ]


def test_values_are_held_to_the_limits_of_all_json() -> None:
    change: Any = {"b": {"data": {"text": "y" * 9}}}
    fork(change)
    assert faults(change, limits=Limits(string_bytes=8)) == [
        ("limit-exceeded", "/changes/b/data/text")
    ]
    assert faults({"b": {"outputs": {"output": float("nan")}}}) == [
        ("invalid-number", "/changes/b/outputs/output")
    ]


def test_a_paused_execution_can_be_forked_and_a_running_one_cannot() -> None:
    paused = ran(done("a"), ("execution.paused", None, {"reason": "paused by request"}))
    assert fork(parent=paused).graph is GRAPH
    for running in (ran(), fold([Event("x1", 1, AT, "execution.created", None, None, {})])):
        for ask in (lambda state=running: fork(parent=state), lambda s=running: failed_nodes(s)):
            with pytest.raises(Conflict) as caught:
                ask()
            assert caught.value.code == "still-running"


# -- retry


def test_a_retry_runs_what_failed_or_was_cancelled_again_handled_or_not() -> None:
    state = ran(
        ("node.failed", "a", {**FAILED, "handled": True}),
        ("node.failed", "c", {**FAILED, "handled": False}),
        ("node.blocked", "b", {"cause": {"node": "a", "error": "boom"}}),
        ("execution.failed", None, {"error": {}, "failures": ["c"]}),
    )
    assert failed_nodes(state) == ("a", "c")
    cancelled = ran(
        done("a"),
        ("node.cancelled", "b", {"cause": "no"}),
        ("node.cancelled", "c", {"cause": "no"}),
        ("execution.cancelled", None, {"cause": "no"}),
    )
    assert failed_nodes(cancelled) == ("b", "c")


def test_what_failed_inside_a_node_is_that_nodes_affair() -> None:
    told = [done("a"), ("node.failed", "a[1]/x", {**FAILED, "handled": False}), done("b")]
    state = ran(*told, done("c"), ("execution.completed", None, {}))
    with pytest.raises(Conflict) as caught:
        failed_nodes(state)
    assert caught.value.code == "nothing-to-retry"


def test_an_execution_that_failed_before_any_node_started_can_be_retried() -> None:
    error = {"error": {"code": "unavailable-provider", "message": "no key"}, "failures": []}
    created = {"graph": GRAPH.to_document()}
    events = [("execution.created", created), ("execution.failed", error)]
    state = fold(Event("x1", n, AT, kind, None, None, d) for n, (kind, d) in enumerate(events, 1))
    assert failed_nodes(state) == ()


def test_where_nothing_failed_there_is_nothing_to_retry() -> None:
    waits = {"request_id": "r4", "request": {}}
    pauses = {"reason": "waiting for an answer"}
    paused = ran(done("a"), ("node.waiting", "b", waits), ("execution.paused", None, pauses))
    for state in (COMPLETED, paused):
        with pytest.raises(Conflict, match="x1") as caught:
            failed_nodes(state)
        assert caught.value.code == "nothing-to-retry"


# -- merge patches

RFC_7396 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
"""The test cases of RFC 7396, appendix A."""


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7396, ids=str)
def test_a_merge_patch_does_what_its_rfc_says(target: Any, patch: Any, result: Any) -> None:
    before = json.dumps([target, patch])
    assert apply_merge_patch(target, patch) == result
    assert json.dumps([target, patch]) == before


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
)


@given(VALUES, VALUES)
def test_a_patch_laid_on_twice_is_laid_on_once(target: Any, patch: Any) -> None:
    once = apply_merge_patch(copy.deepcopy(target), patch)
    assert apply_merge_patch(once, patch) == once


def test_a_changed_graph_can_be_written_and_read_again() -> None:
    made = fork({"b": {"data": {"text": "new"}}}).graph
    again, _ = read_graph(made.to_document())
    assert again.nodes == made.nodes
