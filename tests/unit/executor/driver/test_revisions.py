"""Changes of a running graph by hand, after a stop, and beside cancels of nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from planwave.errors import Conflict
from planwave.graph.model import Graph, Policy
from tests.support.engine.behaviors import asks, returns_after
from tests.support.engine.generic_nodes import ExecutionHarness
from tests.support.engine.revised_runs import change_of, request_about
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_plan_requests import (
    APPROVE,
    REPLAN,
    Writer,
    answer_at,
    fails,
    scene,
)


def at(seconds: float, act: Any, *args: Any) -> None:
    asyncio.get_running_loop().call_later(seconds, act, *args)


def revise_at(
    run: ExecutionHarness, seconds: float, graph: Graph, *, asks_first: bool = False
) -> None:
    """Change the graph; a person is asked first if the plan needs an approval."""
    at(seconds, partial(revise, run, graph, asks_first=asks_first))


def revise(
    run: ExecutionHarness, graph: Graph, *, asks_first: bool = False
) -> asyncio.Future[None]:
    data = change_of(run.program.graph, graph)
    return run.execution.revise(graph, data, request_about(data) if asks_first else None)


@virtual_time
async def test_a_change_that_was_made_for_another_graph_is_refused() -> None:
    run = scene(Writer(), {"a": returns_after(3)}, parse_graph("a b", "a>b"))
    refusals: list[BaseException | None] = []

    def revise_another() -> None:
        graph = parse_graph("a b c", "a>b", "b>c")
        done = run.execution.revise(graph, change_of(parse_graph("a x", "a>x"), graph))
        done.add_done_callback(lambda it: refusals.append(it.exception()))

    at(1, revise_another)
    assert await run.run() == "completed"
    (refused,) = refusals
    assert isinstance(refused, Conflict)
    assert refused.code == "plan-changed"
    assert run.event_names("plan.revised") == []


@pytest.mark.parametrize("replan", [None, REPLAN])
@virtual_time
async def test_a_change_by_hand_after_a_stop_takes_it_away(replan: Any) -> None:
    """Whatever came between: ``quick`` completes after the stop and before the change; ``next`` had no slot."""
    graph = parse_graph("a b quick next late", "a>late")
    behaviors = {"a": returns_after(3), "b": fails, "quick": returns_after(1.5)}
    options = {"on_failure": "stop", "replan": replan, "max_parallel": 3}
    run = scene(Writer() if replan else None, behaviors, graph, **options)
    revise_at(run, 2, parse_graph("a b quick next more", "a>more"))
    assert await run.run() == "failed"
    assert run.event_names("plan.refused", "plan.revised", "node.cancelled", "node.completed") == [
        *["plan.refused"] * bool(replan),
        "node.cancelled next",
        "node.cancelled late",
        "node.completed quick",
        "plan.revised",
        "node.completed next",
        "node.completed a",
        "node.completed more",
    ]


@virtual_time
async def test_a_node_that_was_cancelled_while_it_was_queued_does_not_start_after_a_change() -> (
    None
):
    """A pause holds it back, in a wave that comes after the one of the new node."""
    graph = parse_graph("w x n", "x>n")
    behaviors = {"w": asks(), "x": returns_after(1)}
    run = scene(None, behaviors, graph, scheduling="waves", replan=None)
    at(0.5, run.execution.pause)
    at(2, run.execution.cancel_node, "n", "enough")
    revise_at(run, 3, parse_graph("w x n y", "x>n"))
    at(4, run.execution.resume)
    run.answer_after(5)
    assert await run.run() == "failed"
    assert run.event_names("plan.revised", "node.cancelled", "node.started") == [
        "node.started w",
        "node.started x",
        "node.cancelled n",
        "plan.revised",
        "node.started y",
    ]


@virtual_time
async def test_a_node_that_is_cancelled_while_a_person_decides_about_a_change_stays_so() -> None:
    """A pause holds it back while the change is proposed."""
    graph = parse_graph("a n", "a>n")
    run = scene(None, {"a": returns_after(1)}, graph, replan=None)
    at(0.5, run.execution.pause)
    revise_at(run, 2, parse_graph("a n y", "a>n"), asks_first=True)
    at(3, run.execution.cancel_node, "n", "enough")
    answer_at(run, 4, APPROVE)
    at(5, run.execution.resume)
    assert await run.run() == "failed"
    assert run.event_names("node.cancelled", "plan.revised", "node.started") == [
        "node.started a",
        "node.cancelled n",
        "plan.revised",
        "node.started y",
    ]


@pytest.mark.parametrize("first", ["cancel", "change"])
@virtual_time
async def test_of_a_cancel_and_a_change_in_one_turn_the_first_one_decides(first: str) -> None:
    run = scene(None, {"a": returns_after(5)}, parse_graph("a b", "a>b"), replan=None)
    replies: list[asyncio.Future[None]] = []

    def both() -> None:
        if first == "cancel":
            run.execution.cancel("enough")
        replies.append(revise(run, parse_graph("a c", "a>c")))
        if first == "change":
            run.execution.cancel("enough")

    at(1, both)
    assert await run.run() == "cancelled"
    (reply,) = replies
    if first == "cancel":
        with pytest.raises(Conflict, match="has just ended"):
            await reply
    else:
        await reply
    told = run.event_names("plan.revised", "node.started", "node.cancelled", "execution.cancelled")
    assert told == [
        "node.started a",
        *(["plan.revised"] if first == "change" else []),
        "node.cancelled a",
        "node.cancelled c" if first == "change" else "node.cancelled b",
        "execution.cancelled",
    ]


@pytest.mark.parametrize("first", ["answer", "change"])
@virtual_time
async def test_an_answer_and_a_change_in_one_turn_both_hold(first: str) -> None:
    run = scene(None, {"w": asks()}, parse_graph("w b", "w>b"), replan=None)

    def both() -> None:
        if first == "answer":
            run.execution.answer(run.request_id(), "yes")
        revise(run, parse_graph("w c", "w>c"))
        if first == "change":
            run.execution.answer(run.request_id(), "yes")

    at(1, both)
    assert await run.run() == "completed"
    assert sorted(run.event_names("plan.revised", "node.answered")) == [
        "node.answered w",
        "plan.revised",
    ]
    assert run.event_names("node.completed") == ["node.completed w", "node.completed c"]


@pytest.mark.parametrize("change", [["a>m", "b>c"], ["a>m", "b>c", "c>m", "a>n", "n>o", "o>c"]])
@virtual_time
async def test_a_node_that_has_begun_stays_in_its_wave_whatever_becomes_of_its_open_edges(
    change: list[str],
) -> None:
    """By its edges ``m``, which began in wave 3 with the result of ``a``, would be in wave 2 then, or in wave 5."""
    policies = {"m": Policy(join="any")}
    graph = parse_graph("a b c m", "a>m", "b>c", "c>m", policies=policies)
    behaviors = {"b": returns_after(5 if "n>o" in change else 1), "m": returns_after(9)}
    run = scene(None, behaviors, graph, replan=None)
    revise_at(run, 3, parse_graph("a b c m n o", *change, policies=policies))
    assert await run.run() == "completed"
    told = [f"{each.type} {each.data['wave']}" for each in run.stored if "wave" in each.data]
    assert told.count("wave.completed 3") == 1
    stored = [each.type for each in run.stored]
    assert stored[-3:] == ["node.completed", "wave.completed", "execution.completed"]
    assert run.stored[-3].path == "m"
