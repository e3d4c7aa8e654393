"""After a ``join: any``: what waits and can reach nothing any more is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.events import Event, fold
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph, Policy, Retry
from tests.support.engine.behaviors import asks, fails_with, returns_after, runs_graph
from tests.support.engine.event_histories import created_event
from tests.support.engine.event_invariants import check_events
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.engine.recovered_runs import recovered
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

RACE = "slow quick first end"
RACE_EDGES = ("slow>first", "quick>first", "first>end")
REASON = "no longer needed: what it leads to has started without it"
RETRIED = Policy(retry=Retry(3, 600))

WAITS: dict[str, Any] = {
    "a question": asks(),
    "a timer": asks(None, 600, "over"),
    "a retry": fails_with(retryable=True),
    "a question inside": runs_graph("k", parse_graph("q")),
    "a question two graphs inside": runs_graph("k", parse_graph("inside")),
    "a question asked later": returns_after(5),
    "a retry that comes later": fails_with(retryable=True, after_s=5),
}


def with_policies(graph: Graph, **policies: Policy) -> Graph:
    """The graph with other policies of some nodes; ``first`` takes what comes first."""
    policies = {"first": Policy(join="any"), **policies}
    nodes = [node._replace(policy=policies.get(node.id, node.policy)) for node in graph.nodes]
    return Graph(tuple(nodes), graph.edges)


def race(*, slow: Any, quick: Any = None, **options: Any) -> ExecutionHarness:
    graph = with_policies(parse_graph(RACE, *RACE_EDGES), slow=RETRIED)
    behaviors = {
        "slow": slow,
        "quick": quick or returns_after(1),
        "q": asks(),
        "inside": runs_graph("k", parse_graph("q")),
    }
    return ExecutionHarness(graph, behaviors, journal=MemoryJournal(), **options)


async def ask_after(inputs: Any, context: Any) -> Any:
    await asyncio.sleep(5)
    return await asks()(inputs, context)


@pytest.mark.parametrize("kind", WAITS)
@virtual_time
async def test_whatever_the_loser_of_a_race_waits_for_it_is_cancelled(kind: str) -> None:
    slow = ask_after if kind == "a question asked later" else WAITS[kind]
    harness = race(slow=slow)
    assert await harness.run() == "completed"
    assert asyncio.get_running_loop().time() < 10
    (data,) = harness.data_of("node.cancelled", "slow")
    assert data["cause"] == REASON
    state = fold(harness.stored)
    assert state.nodes["slow"].status == "cancelled"
    assert state.requests == {}
    inside = [path for path in state.nodes if path.startswith("slow[")]
    assert all(state.nodes[path].status == "cancelled" for path in inside)
    numbered = [event._replace(seq=n) for n, event in enumerate(harness.stored, 2)]
    check_events([created_event(harness.program.graph), *numbered])


@virtual_time
async def test_a_loser_without_a_slot_is_cancelled_and_one_that_runs_finishes() -> None:
    graph = parse_graph("slow queued quick first", "slow>first", "queued>first", "quick>first")
    graph = with_policies(graph)
    behaviors = {"slow": returns_after(3, "slow"), "quick": returns_after(1)}
    options = RunOptions(max_parallel=2)
    graph = Graph((graph.nodes[0], graph.nodes[2], graph.nodes[1], graph.nodes[3]), graph.edges)
    behaviors["first"] = result_with("first")
    harness = ExecutionHarness(graph, {**behaviors, "queued": returns_after(1)}, options)
    assert await harness.run() == "completed"
    state = fold(harness.stored)
    assert state.nodes["queued"].status == "cancelled"
    assert state.nodes["slow"].status == "completed"


@virtual_time
async def test_what_follows_a_running_loser_alone_is_cancelled_at_once() -> None:
    graph = with_policies(
        parse_graph("slow next quick first", "slow>next", "next>first", "quick>first")
    )
    harness = ExecutionHarness(graph, {"slow": returns_after(3), "quick": returns_after(1)})
    assert await harness.run() == "completed"
    assert harness.event_names("node.cancelled", "node.completed") == [
        "node.completed quick", "node.cancelled next", "node.completed first",
        "node.completed slow",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("edges", "policy"),
    [
        (("slow>first", "slow>other"), Policy()),
        (("slow>first", "slow>mid", "mid>other"), Policy()),
        (("slow>first",), Policy(effect="write")),
        (("slow>first",), Policy(effect="once")),
    ],
)
@virtual_time
async def test_a_loser_with_a_purpose_of_its_own_goes_on(
    edges: tuple[str, ...], policy: Policy
) -> None:
    graph = parse_graph("slow quick mid other first", *edges, "quick>first")
    graph = with_policies(graph, slow=policy)
    harness = ExecutionHarness(graph, {"slow": asks(None, 60, "late"), "quick": returns_after(1)})
    assert await harness.run() == "completed"
    assert asyncio.get_running_loop().time() >= 60
    assert harness.data_of("node.cancelled") == []


@virtual_time
async def test_a_step_that_a_run_is_asked_for_is_needed() -> None:
    harness = race(slow=asks(None, 60, "late"))
    harness = ExecutionHarness(
        harness.program.graph, harness.behaviors, RunOptions(run_to=("first", "slow"))
    )
    assert await harness.run() == "completed"
    assert harness.data_of("node.cancelled") == []


@virtual_time
async def test_an_effect_that_is_linked_to_the_loser_or_inside_it_keeps_it() -> None:
    graph = parse_graph("tool slow quick first", "tool~slow", "slow>first", "quick>first")
    graph = with_policies(graph, tool=Policy(effect="once"))
    harness = ExecutionHarness(graph, {"slow": asks(None, 60, "late"), "quick": returns_after(1)})
    assert await harness.run() == "completed"
    assert harness.data_of("node.cancelled") == []


@pytest.mark.parametrize("kind", WAITS)
@virtual_time
async def test_a_process_that_takes_over_at_any_event_ends_in_the_same_way(kind: str) -> None:
    slow = ask_after if kind == "a question asked later" else WAITS[kind]
    harness = race(slow=slow, parks="always")
    assert await harness.run() == "completed"
    stored: list[Event] = []
    for batch in harness.batches[:-1]:
        stored += [event for event in batch if event.seq]
        following = recovered(race(slow=slow), stored)
        assert await following.run() == "completed", stored[-1]
        events = [*stored, *following.stored]
        assert fold(events).nodes["slow"].status == "cancelled", stored[-1]
        inside = [path for path in fold(events).nodes if path.startswith("slow[")]
        assert all(fold(events).nodes[path].status == "cancelled" for path in inside)
        assert fold(events).requests == {}


@virtual_time
async def test_a_loser_that_a_person_cancels_does_not_fail_the_execution() -> None:
    harness = race(slow=returns_after(60))
    asyncio.get_running_loop().call_later(
        5, lambda: harness.execution.cancel_node("slow", "enough")
    )
    assert await harness.run() == "completed"
    assert harness.data_of("node.cancelled") == [{"cause": "enough"}]


@virtual_time
async def test_a_stored_execution_whose_loser_still_waits_ends_when_it_is_loaded() -> None:
    """As an earlier version left it: the join has started, and the request is open."""
    harness = race(slow=asks(), quick=returns_after(1))
    assert await harness.run() == "completed"
    events = [e for e in harness.stored if e.type != "node.cancelled"]
    cut = next(i for i, e in enumerate(events) if e.path == "end")
    before = [e._replace(seq=n) for n, e in enumerate(events[:cut], 1)]
    following = recovered(harness, before)
    assert await following.run() == "completed"
    assert following.data_of("node.cancelled") == [{"cause": REASON}]
