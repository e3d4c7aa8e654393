"""What a fork and a retry run: changes laid over what ran before, every fault told."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import Conflict, InvalidChanges
from planwave.events import Event, ExecutionState, fold
from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.service.executions.fork import Fork, ForkRequest, build_fork, failed_nodes
from planwave.settings import Limits
from tests.support.graph.fake_node_types import parse_graph

AT = "2026-01-01T00:00:00.000000+00:00"
FAILED = {"error": {"code": "boom", "message": "boom"}, "duration_s": 1.0}
GRAPH = Graph(
    tuple(
        node._replace(data={"text": "old", "more": {"a": 1, "b": 2}})
        for node in parse_graph("a b c g", "a>b", "g~c").nodes
    ),
    parse_graph("a b c g", "a>b", "g~c").edges,
)


def state_after(*told: tuple[str, str | None, dict[str, Any]], **facts: Any) -> ExecutionState:
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


COMPLETED = state_after(done("a"), done("b"), done("c"), ("execution.completed", None, {}))


def fork(changes: Any = None, *rerun: str, parent: ExecutionState = COMPLETED, **more: Any) -> Fork:
    return build_fork(parent, GRAPH, ForkRequest(rerun, changes), **more)


def faults(changes: Any, *rerun: str, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidChanges) as caught:
        fork(changes, *rerun, **more)
    assert caught.value.code == "invalid-changes"
    return [(found.code, found.pointer) for found in caught.value.diagnostics]


def test_fork_without_changes_keeps_the_graph() -> None:
    assert fork() == Fork(GRAPH, {}, {}, ())
    assert fork().graph is fork({}, "a").graph is GRAPH


def test_data_changes_are_merged() -> None:
    built = fork({"b": {"data": {"text": "new", "more": {"a": None, "c": [3]}}}}).graph
    assert built.by_id["b"].data == {"text": "new", "more": {"b": 2, "c": [3]}}
    assert GRAPH.by_id["b"].data == {"text": "old", "more": {"a": 1, "b": 2}}
    assert (built.nodes[0], built.edges) == (GRAPH.nodes[0], GRAPH.edges)
    assert [node.id for node in built.nodes] == ["a", "b", "c", "g"]


def test_a_changed_description_is_the_new_task_of_the_node() -> None:
    built = fork(
        {"b": {"description": "Do it.", "data": {"text": "new"}}, "g": {"description": ""}}
    )
    changed = built.graph.by_id["b"]
    assert (changed.description, changed.data["text"]) == ("Do it.", "new")
    assert built.graph.by_id["a"] is GRAPH.by_id["a"]
    assert GRAPH.by_id["b"].description == ""


def test_changes_are_copied() -> None:
    change: dict[str, Any] = {"b": {"data": {"list": [1]}}, "c": {"outputs": {"output": [1]}}}
    built = fork(change)
    change["b"]["data"]["list"].append(2)
    change["c"]["outputs"]["output"].append(2)
    assert built.graph.by_id["b"].data["list"] == [1]
    assert built.preset == {"c": {"output": [1]}}


def test_outputs_preset_a_node() -> None:
    built = fork({"b": {"outputs": {"output": "mine"}}})
    assert (built.graph, built.inputs, built.preset) == (GRAPH, {}, {"b": {"output": "mine"}})


def test_parent_inputs_are_kept_and_overridden_by_outputs() -> None:
    parent = state_after(("execution.completed", None, {}), inputs={"a": {"output": 1}})
    assert fork(parent=parent).inputs == {"a": {"output": 1}}
    built = fork({"a": {"outputs": {"output": 2}}, "c": {"outputs": {}}}, parent=parent)
    assert (built.inputs, built.preset) == ({"a": {"output": 2}}, {"c": {}})
    assert parent.inputs == {"a": {"output": 1}}


def test_rerun_nodes_are_unique_in_order() -> None:
    assert fork(None, "c", "a", "c").rerun == ("c", "a")


def test_all_errors_are_listed_with_pointers() -> None:
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
    wrong = {
        "a": {"description": 5},
        "b": {"description": "x", "outputs": {}},
        "c": {"descripton": "x"},
    }
    assert faults(wrong) == [
        ("invalid-field", "/changes/a/description"),
        ("invalid-field", "/changes/b"),
        ("unknown-field", "/changes/c/descripton"),
    ]
    assert faults({"a": {}, "b": None}) == [
        ("invalid-field", "/changes/a"),
        ("invalid-field", "/changes/b"),
    ]


def test_unknown_node_error_lists_nodes() -> None:
    with pytest.raises(InvalidChanges, match="'ghost'") as caught:
        fork({"ghost": {"data": {}}})
    assert caught.value.hint == "its nodes are a, b, c, g"


def test_data_change_of_preset_node_is_rejected() -> None:
    parent = state_after(("execution.completed", None, {}), inputs={"a": {"output": 1}})
    assert faults({"a": {"data": {"text": "x"}, "description": "y"}}, parent=parent) == [
        ("invalid-field", "/changes/a/data"),
        ("invalid-field", "/changes/a/description"),
    ]


def test_change_values_are_limited() -> None:
    change: Any = {"b": {"data": {"text": "y" * 9}}}
    fork(change)
    assert faults(change, limits=Limits(string_bytes=8)) == [
        ("limit-exceeded", "/changes/b/data/text")
    ]
    assert faults({"b": {"outputs": {"output": float("nan")}}}) == [
        ("invalid-number", "/changes/b/outputs/output")
    ]


def test_paused_execution_can_be_forked_and_running_cannot() -> None:
    paused = state_after(done("a"), ("execution.paused", None, {"reason": "paused by request"}))
    assert fork(parent=paused).graph is GRAPH
    for running in (state_after(), fold([Event("x1", 1, AT, "execution.created", None, None, {})])):
        for ask in (lambda state=running: fork(parent=state), lambda s=running: failed_nodes(s)):
            with pytest.raises(Conflict) as caught:
                ask()
            assert caught.value.code == "still-running"


# -- retry


def test_failed_nodes_include_handled_and_cancelled() -> None:
    state = state_after(
        ("node.failed", "a", {**FAILED, "handled": True}),
        ("node.failed", "c", {**FAILED, "handled": False}),
        ("node.blocked", "b", {"cause": {"node": "a", "error": "boom"}}),
        ("execution.failed", None, {"error": {}, "failures": ["c"]}),
    )
    assert failed_nodes(state) == ("a", "c")
    cancelled = state_after(
        done("a"),
        ("node.cancelled", "b", {"cause": "no"}),
        ("node.cancelled", "c", {"cause": "no"}),
        ("execution.cancelled", None, {"cause": "no"}),
    )
    assert failed_nodes(cancelled) == ("b", "c")


@pytest.mark.parametrize("is_handled", [False, True])
def test_nested_failure_is_retried_with_the_node_around_it(is_handled: bool) -> None:
    inside = ("node.failed", "a[1]/x", {**FAILED, "handled": is_handled})
    state = state_after(inside, done("a"), done("b"), done("c"), ("execution.completed", None, {}))
    if not is_handled:
        assert failed_nodes(state) == ("a",)
        return
    with pytest.raises(Conflict) as caught:
        failed_nodes(state)
    assert caught.value.code == "nothing-to-retry"


def test_execution_that_failed_before_start_can_be_retried() -> None:
    error = {"error": {"code": "unavailable-provider", "message": "no key"}, "failures": []}
    created = {"graph": GRAPH.to_document()}
    events = [("execution.created", created), ("execution.failed", error)]
    state = fold(Event("x1", n, AT, kind, None, None, d) for n, (kind, d) in enumerate(events, 1))
    assert failed_nodes(state) == ()


def test_nothing_to_retry_is_rejected() -> None:
    waits = {"request_id": "r4", "request": {}}
    pauses = {"reason": "waiting for an answer"}
    paused = state_after(
        done("a"), ("node.waiting", "b", waits), ("execution.paused", None, pauses)
    )
    for state in (COMPLETED, paused):
        with pytest.raises(Conflict) as caught:
            failed_nodes(state)
        assert caught.value.code == "nothing-to-retry"
        assert caught.value.hint == "to run steps again, fork it and name them in `rerun`"


# -- merge patches


def test_forked_graph_round_trips() -> None:
    built = fork({"b": {"data": {"text": "new"}}}).graph
    again, _ = read_graph(built.to_document())
    assert again.nodes == built.nodes
