"""Loops and agents of the library that are in flight, or parked, while the graph around them is changed."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.events import ExecutionState
from planwave.graph.reading.documents import read_graph
from tests.support.engine.library_runs import LibraryRun
from tests.support.engine.random_schedules import ByteChoices
from tests.support.engine.revised_runs import REFUSALS
from tests.support.examples import examples
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_revisions_properties import (
    check_history,
    check_links,
    check_runs_once,
    check_waves,
    results_of,
)

SOURCES = st.integers(0, 2**32).map(lambda seed: Random(seed).randbytes(300))  # noqa: S311 - no secret
"""Hypothesis itself would prefer small runs."""
TYPES = st.sampled_from(["loops", "agents"])


def check_calls(scene: LibraryRun) -> None:
    """No call is made twice, and none that a process before has recorded."""
    assert len(scene.calls) == len(set(scene.calls))
    assert scene.paid.isdisjoint(scene.calls)


def check_approved(scene: LibraryRun) -> None:
    """Each call of a tool that changes something was approved before."""
    answered = (each for each in scene.journal.appended if each.type == "node.answered")
    approved = {
        str(each.path).rpartition("/")[0]
        for each in answered
        if each.data["answer"] == {"decision": "approve"}
    }
    for call in scene.calls:
        question = f"{call.path}[approve-{call.attempt}-{call.name}]"
        assert call.tool in ("", "look") or question in approved


def lasting_results(state: ExecutionState) -> dict[str, tuple[str, Any]]:
    """Without questions about calls that were cut off."""
    return {path: each for path, each in results_of(state).items() if "[interrupted-" not in path}


async def check_same_as_new(scene: LibraryRun, state: ExecutionState) -> None:
    """The results are those of the graph that it has by now, from scratch."""
    assert state.is_over
    expected = await scene.from_scratch(read_graph(state.graph or {})[0])
    assert lasting_results(state) == lasting_results(expected)
    assert state.status == expected.status


@given(SOURCES)
@settings(max_examples=examples(200), deadline=None)
@virtual_time
async def test_loops_that_run_while_the_graph_is_changed_give_what_the_new_graph_gives(
    source: bytes,
) -> None:
    scene = LibraryRun(ByteChoices(source))
    state = await scene.run()
    check_history(scene, state)
    assert set(scene.refusals) <= REFUSALS
    await check_same_as_new(scene, state)


@given(SOURCES)
@settings(max_examples=examples(200), deadline=None)
@virtual_time
async def test_agents_that_call_and_ask_while_the_graph_is_changed_give_what_the_new_graph_gives(
    source: bytes,
) -> None:
    scene = LibraryRun(ByteChoices(source), "agents")
    state = await scene.run()
    check_history(scene, state)
    check_calls(scene)
    check_approved(scene)
    assert set(scene.refusals) <= REFUSALS
    await check_same_as_new(scene, state)


@given(SOURCES, TYPES)
@settings(max_examples=examples(100), deadline=None)
@virtual_time
async def test_loops_and_agents_parked_while_the_graph_is_changed_give_what_the_new_graph_gives(
    source: bytes, types: str
) -> None:
    """Nothing of it is in memory while people think; now and then its process ends, too."""
    scene = LibraryRun(ByteChoices(source), types)
    state = await scene.run_in_parts()
    check_links(scene)
    check_waves(scene.journal.appended)
    check_runs_once(scene.journal.appended)
    check_approved(scene)
    await check_same_as_new(scene, state)


@given(SOURCES, TYPES)
@settings(max_examples=examples(40), deadline=None)
@virtual_time
async def test_changed_loops_and_agents_that_are_recovered_after_a_batch_pay_for_no_call_again(
    source: bytes, types: str
) -> None:
    scene = LibraryRun(ByteChoices(source), types)
    await scene.run()
    async for again in scene.recoveries(every=3):
        check_links(scene)
        check_waves(scene.journal.appended)
        check_runs_once(scene.journal.appended)
        check_calls(scene)
        check_approved(scene)
        await check_same_as_new(scene, again)
