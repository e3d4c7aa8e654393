"""Random graphs that are changed while they run, at random moments, and recovered at every event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.events import ENDED_NODE, Event, ExecutionState
from planwave.events.paths import outermost_path
from planwave.graph.model import LINK
from planwave.graph.reading.documents import read_graph
from tests.support.engine.random_schedules import ByteChoices
from tests.support.engine.revised_runs import REFUSALS, RevisedRun
from tests.support.examples import examples
from tests.support.virtual_loop import virtual_time


def results_of(state: ExecutionState) -> dict[str, tuple[str, Any]]:
    return {path: (node.status, node.outputs) for path, node in state.nodes.items()}


def check_same_as_new(again: ExecutionState, expected: ExecutionState) -> None:
    """The results are those of the new graph from scratch, but for nodes that only one of the runs still needed."""
    results, others = results_of(again), results_of(expected)
    unneeded = {
        outermost_path(path)
        for state in (again, expected)
        for path, node in state.nodes.items()
        if "no longer needed" in str(node.cause)
    }
    for path in results.keys() | others.keys():
        if outermost_path(path) not in unneeded:
            assert results.get(path) == others.get(path), path
    if not any("failed" in (results[each][0], others[each][0]) for each in unneeded):
        assert again.status == expected.status


def own_results(state: ExecutionState) -> dict[str, tuple[str, Any]]:
    """Without what ran inside nodes: of those that are reused nothing does."""
    return {path: each for path, each in results_of(state).items() if "[" not in path}


def check_waves(events: Sequence[Event]) -> None:
    """Each node of the graph stays in the wave in which it has begun, and a wave is over once, with all of them."""
    over, waves, active = set[int](), dict[str | None, int](), set[str | None]()
    for event in events:
        if event.type == "wave.completed" and event.path is None:
            wave = event.data["wave"]
            assert wave not in over, "a wave is over once"
            assert wave not in {waves[each] for each in active}, "a wave ends with its nodes"
            over.add(wave)
        elif event.type == "wave.started" and event.path is None:
            assert event.data["wave"] not in over, "no wave goes on after its end"
        elif event.path is None or "[" in event.path:
            continue
        elif event.type == "node.started":
            wave = waves.setdefault(event.path, event.data["wave"])
            assert wave == event.data["wave"], "a node stays in the wave in which it has begun"
            assert wave not in over, "no wave goes on after its end"
            active.add(event.path)
        elif event.type in ("node.completed", "node.failed", "node.cancelled"):
            active.discard(event.path)


def check_links(scene: RevisedRun) -> None:
    """Each thing that a link has opened was closed once, and not while a node used it."""
    assert scene.lines.open == []
    assert scene.lines.misused == []


def check_runs_once(events: Sequence[Event]) -> None:
    """What has completed is not run again, nor is a node that was cancelled by itself."""
    completed: set[tuple[str | None, int | None]] = set()
    cancelled: set[str | None] = set()
    for event in events:
        if event.type == "node.started":
            assert (event.path, event.attempt) not in completed, "what has completed runs again"
            assert event.path not in cancelled, "what was cancelled runs again"
        elif event.type == "node.completed":
            completed.add((event.path, event.attempt))
        elif event.type == "node.cancelled" and event.attempt and "[" not in str(event.path):
            cancelled.add(event.path)


def check_history(scene: RevisedRun, state: ExecutionState) -> None:
    """Every node has ended, once, and for a reason; no attempt ran twice."""
    assert state.is_over
    check_links(scene)
    assert len(scene.started) == len(set(scene.started))
    assert all(node.status in ENDED_NODE for node in state.nodes.values())
    own = [path for path in state.nodes if "[" not in path]
    assert [node["id"] for node in (state.graph or {"nodes": []})["nodes"]] == own
    check_waves(scene.journal.appended)
    check_runs_once(scene.journal.appended)
    for node in state.nodes.values():
        assert node.status != "skipped" or node.reason
        assert node.status != "blocked" or node.cause


@given(st.binary(min_size=120, max_size=300))
@settings(max_examples=examples(120), deadline=None)
@virtual_time
async def test_a_run_that_was_changed_equals_the_new_graph_from_scratch(source: bytes) -> None:
    scene = RevisedRun(ByteChoices(source))
    state = await scene.run()
    check_history(scene, state)
    assert set(scene.refusals) <= REFUSALS
    graph, _ = read_graph(state.graph or {})
    expected = await scene.from_scratch(graph)
    assert results_of(state) == results_of(expected)
    assert state.status == expected.status


@given(st.binary(min_size=120, max_size=300))
@settings(max_examples=examples(120), deadline=None)
@virtual_time
async def test_a_changed_run_whose_nodes_start_with_their_first_input_equals_the_new_graph(
    source: bytes,
) -> None:
    scene = RevisedRun(ByteChoices(source), joins_any=True)
    state = await scene.run()
    check_history(scene, state)
    assert set(scene.refusals) <= REFUSALS
    check_same_as_new(state, await scene.from_scratch(read_graph(state.graph or {})[0]))


@given(st.binary(min_size=120, max_size=300), st.booleans())
@settings(max_examples=examples(30), deadline=None)
@virtual_time
async def test_a_changed_run_that_is_recovered_after_any_batch_has_the_same_results(
    source: bytes, joins_any: bool
) -> None:
    """Also where it was changed less often by then: it equals the graph that it has."""
    scene = RevisedRun(ByteChoices(source), joins_any=joins_any)
    await scene.run()
    batches, expected = list(scene.journal.batches), dict[str | None, ExecutionState]()
    for cut in range(1, len(batches)):
        again = await scene.recovered([event for batch in batches[:cut] for event in batch])
        check_links(scene)
        check_waves(scene.journal.appended)
        check_runs_once(scene.journal.appended)
        graph, _ = read_graph(again.graph or {})
        if again.plan_hash not in expected:
            expected[again.plan_hash] = await scene.from_scratch(graph)
        check_same_as_new(again, expected[again.plan_hash])


@given(st.binary(min_size=120, max_size=300))
@settings(max_examples=examples(80), deadline=None)
@virtual_time
async def test_a_run_that_is_changed_where_it_waits_equals_the_new_graph_from_scratch(
    source: bytes,
) -> None:
    scene = RevisedRun(ByteChoices(source))
    state = await scene.run_in_parts()
    assert state.is_over
    check_links(scene)
    check_waves(scene.journal.appended)
    check_runs_once(scene.journal.appended)
    graph, _ = read_graph(state.graph or {})
    expected = await scene.from_scratch(graph)
    assert results_of(state) == results_of(expected)
    assert state.status == expected.status


@given(st.binary(min_size=120, max_size=300))
@settings(max_examples=examples(50), deadline=None)
@virtual_time
async def test_a_fork_of_a_run_that_was_changed_runs_nothing_again(source: bytes) -> None:
    scene = RevisedRun(ByteChoices(source))
    state = await scene.run()
    scene.started.clear()
    again = await scene.forked()
    completed = {path for path, node in state.nodes.items() if node.status == "completed"}
    # What is linked may have had other inputs, by the time when it was first used.
    users = {edge.target for edge in scene.graph.edges if edge.channel == LINK}
    ran = {path for path, _ in scene.started if path.partition("[")[0] not in users}
    assert completed.isdisjoint(ran)
    assert own_results(again) == own_results(state)


def check_stops(events: Sequence[Event]) -> None:
    """After a failure no node of the graph begins, unless the graph was changed since."""
    is_stopped, begun = False, set[str | None]()
    for event in events:
        if event.type == "plan.revised":
            is_stopped = False
        elif event.path is None or "[" in event.path:
            continue
        elif event.type == "node.failed":
            is_stopped = is_stopped or not event.data.get("handled")
        elif event.type == "node.started":
            assert not is_stopped or event.path in begun, event
            begun.add(event.path)


@given(st.binary(min_size=240, max_size=300), st.booleans())
@settings(max_examples=examples(300), deadline=None)
@virtual_time
async def test_after_a_failure_that_stops_a_run_nothing_begins_but_after_a_change(
    source: bytes, joins_any: bool
) -> None:
    scene = RevisedRun(ByteChoices(source), joins_any=joins_any, stops=True)
    state = await scene.run()
    check_history(scene, state)
    check_stops(scene.journal.appended)
    batches = list(scene.journal.batches)
    for cut in range(1, len(batches)):
        again = await scene.recovered([event for batch in batches[:cut] for event in batch])
        assert again.is_over
        check_runs_once(scene.journal.appended)
        check_stops(scene.journal.appended)


@given(st.binary(min_size=120, max_size=300))
@settings(max_examples=examples(80), deadline=None)
@virtual_time
async def test_a_run_with_races_that_is_changed_ends_with_every_node_settled(source: bytes) -> None:
    scene = RevisedRun(ByteChoices(source), races=True)
    state = await scene.run()
    check_history(scene, state)
    assert set(scene.refusals) <= REFUSALS


@given(st.binary(min_size=120, max_size=300))
@settings(max_examples=examples(25), deadline=None)
@virtual_time
async def test_a_changed_run_with_races_is_recovered_after_any_batch(source: bytes) -> None:
    scene = RevisedRun(ByteChoices(source), races=True)
    await scene.run()
    batches = list(scene.journal.batches)
    for cut in range(1, len(batches)):
        again = await scene.recovered([event for batch in batches[:cut] for event in batch])
        assert again.is_over
        assert all(node.status in ENDED_NODE for node in again.nodes.values())
        check_links(scene)
        check_runs_once(scene.journal.appended)
