"""Random graphs that are changed while they run, at random moments, and recovered at every event."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.events import ENDED_NODE, ExecutionState
from planwave.graph.reading.documents import read_graph
from tests.support.engine.random_schedules import ByteChoices
from tests.support.engine.revised_runs import REFUSALS, RevisedRun
from tests.support.examples import examples
from tests.support.virtual_loop import virtual_time


def results_of(state: ExecutionState) -> dict[str, tuple[str, Any]]:
    return {path: (node.status, node.outputs) for path, node in state.nodes.items()}


def check_history(scene: RevisedRun, state: ExecutionState) -> None:
    """Every node has ended, once, and for a reason; no attempt ran twice."""
    assert state.is_over
    assert len(scene.started) == len(set(scene.started))
    assert all(node.status in ENDED_NODE for node in state.nodes.values())
    assert [node["id"] for node in (state.graph or {"nodes": []})["nodes"]] == list(state.nodes)
    over: set[int] = set()
    for event in scene.journal.appended:
        if event.type == "wave.completed":
            assert event.data["wave"] not in over, "a wave is over once"
            over.add(event.data["wave"])
        if event.type in ("node.started", "wave.started") and event.attempt in (1, None):
            assert event.data["wave"] not in over, "no wave goes on after its end"
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
@settings(max_examples=examples(25), deadline=None)
@virtual_time
async def test_a_changed_run_that_is_recovered_after_any_batch_has_the_same_results(
    source: bytes,
) -> None:
    scene = RevisedRun(ByteChoices(source))
    state = await scene.run()
    batches = list(scene.journal.batches)
    for cut in range(1, len(batches)):
        stored = [event for batch in batches[:cut] for event in batch]
        again = await scene.recovered(stored)
        if len(again.changes) == len(state.changes) > 0:
            assert results_of(again) == results_of(state), cut


@given(st.binary(min_size=120, max_size=300))
@settings(max_examples=examples(80), deadline=None)
@virtual_time
async def test_a_run_with_races_that_is_changed_ends_with_every_node_settled(source: bytes) -> None:
    scene = RevisedRun(ByteChoices(source), joins=True)
    state = await scene.run()
    check_history(scene, state)
    assert set(scene.refusals) <= REFUSALS
