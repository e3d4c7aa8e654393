"""Random graphs whose failures have a model write changes of them, cut off and recovered at every event."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.events import TERMINAL, Event, ExecutionState, fold
from planwave.events.request_text import is_approved
from planwave.graph.reading.documents import read_graph
from tests.support.engine.random_schedules import ByteChoices
from tests.support.engine.revised_runs import REFUSALS, RevisedRun
from tests.support.examples import examples
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_revisions_properties import (
    check_history,
    check_links,
    check_runs_once,
    results_of,
)

SOURCES = st.binary(min_size=160, max_size=360)


def check_holds(events: Sequence[Event], most: int) -> None:
    """Nothing starts, and the execution does not end, while a change is awaited; each is closed once."""
    is_open, requested = False, 0
    for event in events:
        if event.type == "plan.requested":
            assert not is_open
            is_open, requested = True, requested + (event.data["by"] != "person")
        elif event.type == "plan.refused":
            assert is_open
            is_open = False
        elif event.type == "plan.revised":
            is_open = False
        elif is_open:  # also while a person is asked, and where a person pauses or resumes it
            assert event.type != "node.started", event
            assert event.type not in TERMINAL
    assert not is_open
    assert requested <= most


def check_asks(events: Sequence[Event]) -> None:
    """Each node asks once, with its completion; each of its requests is of what it asked for."""
    asked = [each.path for each in events if each.data.get("event_type") == "replan"]
    completed = [each.path for each in events if each.type == "node.completed"]
    requested = [each.data["path"] for each in events if each.data.get("by") == "node"]
    assert len(asked) == len(set(asked))
    assert set(asked) <= set(completed)
    assert len(requested) == len(set(requested))
    told = [each.path for each in events if "not changed any more" in str(each.data.get("message"))]
    if fold(events).status != "cancelled":
        assert sorted([*requested, *told]) == sorted(str(each) for each in asked)


def most_of(scene: RevisedRun) -> int:
    return scene.options.max_replans


def check_same(scene: RevisedRun, again: ExecutionState, state: ExecutionState) -> None:
    """The results are the same; after a failure that stops the run, of what had begun by then in both."""
    assert again.status == state.status
    results, others = results_of(again), results_of(state)
    if scene.options.on_failure == "continue":
        assert results == others
    for path in results.keys() & others.keys():
        is_cut = "cancelled" in (results[path][0], others[path][0])
        assert is_cut or results[path] == others[path]


async def recovered_at_each_batch(scene: RevisedRun, state: ExecutionState) -> None:
    batches = list(scene.journal.batches)
    for cut in range(1, len(batches)):
        stored = [event for batch in batches[:cut] for event in batch]
        again = await scene.recovered(stored)
        assert again.is_over
        assert again.changes.open is None
        check_holds(scene.journal.appended, most_of(scene))
        check_asks(scene.journal.appended)
        before = fold(stored).changes
        if before.open is not None and before.open["by"] != "person":  # so its replies are served
            first, *_, last = scene.shown[before.requested]
            assert first == last
        check_runs_once(scene.journal.appended)
        check_links(scene)
        if [each["hash"] for each in again.changes.records] == [
            each["hash"] for each in state.changes.records
        ]:
            check_same(scene, again, state)
        elif scene.options.on_failure == "continue":
            expected = await scene.from_scratch(read_graph(again.graph or {})[0])
            assert results_of(again) == results_of(expected)
            assert again.status == expected.status


def check_acts(events: Sequence[Event]) -> None:
    """What acts is a step as it is in a graph that a person has started or approved."""
    state = fold(events[:1])
    approved, decision = acting_nodes(state), None
    for event in events[1:]:
        state.apply(event)
        if event.type == "execution.resumed":
            decision = event.data.get("answer")
        elif event.type == "plan.revised" and is_approved(decision):
            approved |= acting_nodes(state)
        elif event.type == "node.started" and "[" not in str(event.path):
            acting = {each for each in acting_nodes(state) if each[0] == event.path}
            assert acting <= approved, "a step acts that nobody has approved"
        if event.type in ("plan.revised", "plan.refused"):
            decision = None


def acting_nodes(state: ExecutionState) -> set[tuple[str, str]]:
    """The ids and contents of the steps of the graph that have an effect outside."""
    return {
        (node["id"], json.dumps(node, sort_keys=True))
        for node in (state.graph or {"nodes": []})["nodes"]
        if node.get("policy", {}).get("effect") in ("write", "once")
    }


@given(SOURCES, st.booleans())
@settings(max_examples=examples(120), deadline=None)
@virtual_time
async def test_nothing_acts_that_no_person_has_approved_whatever_a_model_writes(
    source: bytes, by_nodes: bool
) -> None:
    scene = RevisedRun(ByteChoices(source), on_failure="continue", by_nodes=by_nodes, acts=True)
    state = await scene.run()
    check_history(scene, state)
    check_acts(scene.journal.appended)
    expected = await scene.from_scratch(read_graph(state.graph or {})[0])
    assert results_of(state) == results_of(expected)
    batches = list(scene.journal.batches)
    for cut in range(1, len(batches), 3):
        again = await scene.recovered([event for batch in batches[:cut] for event in batch])
        assert again.is_over
        check_acts(scene.journal.appended)
        check_runs_once(scene.journal.appended)


@given(SOURCES, st.booleans())
@settings(max_examples=examples(120), deadline=None)
@virtual_time
async def test_a_run_that_is_changed_after_failures_equals_the_new_graph_from_scratch(
    source: bytes, by_nodes: bool
) -> None:
    scene = RevisedRun(ByteChoices(source), on_failure="continue", by_nodes=by_nodes)
    state = await scene.run()
    check_history(scene, state)
    check_holds(scene.journal.appended, most_of(scene))
    check_asks(scene.journal.appended)
    assert set(scene.refusals) <= REFUSALS
    assert state.usage.calls == state.changes.requested
    graph, _ = read_graph(state.graph or {})
    expected = await scene.from_scratch(graph)
    assert results_of(state) == results_of(expected)
    assert state.status == expected.status


@pytest.mark.parametrize("on_failure", ["continue", "stop"])
def test_a_run_that_was_to_be_changed_is_recovered_after_any_batch(on_failure: str) -> None:
    @given(SOURCES, st.booleans())
    @settings(max_examples=examples(25), deadline=None)
    @virtual_time
    async def check(source: bytes, by_nodes: bool) -> None:
        scene = RevisedRun(ByteChoices(source), on_failure=on_failure, by_nodes=by_nodes)  # pyright: ignore[reportArgumentType]
        state = await scene.run()
        check_history(scene, state)
        await recovered_at_each_batch(scene, state)

    check()
