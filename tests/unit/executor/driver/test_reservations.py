"""Calls reserve amounts of the budget, wait for it without a slot, and a person may raise it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from planwave.errors import Conflict, Gone
from planwave.events import Event, fold
from planwave.events.budget import Spending
from planwave.events.types import typed_event
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.model import Graph, Node, Policy, Retry
from planwave.graph.protocols import NodeEvent
from tests.support.engine.behaviors import asks, runs_graph
from tests.support.engine.event_histories import created_event
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    node_event,
    result_with,
)
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Behavior = Callable[..., Any]


def usage(context: Any, tokens: int) -> NodeEvent:
    """What a call used, as a node says it."""
    return node_event(context, "usage", {"input_tokens": tokens, "model": f"{context.path}"})


def calls(used: int, reserved: int | None = None, seconds: float = 1.0) -> Behavior:
    """A node that makes one call, which takes a second and uses some tokens."""

    async def execute(inputs: Any, context: Any) -> Any:
        amounts = {"tokens": used if reserved is None else reserved, "calls": 1}
        reservation = await context.budget.reserve(amounts)
        try:
            with context.own_work():
                await asyncio.sleep(seconds)
            yield usage(context, used)
        finally:
            reservation.release()
        yield result_with(used)

    return execute


def harness_of(
    graph: str | Graph, behaviors: Mapping[str, Any], budget: Mapping[str, float], **more: Any
) -> ExecutionHarness:
    parsed = parse_graph(graph) if isinstance(graph, str) else graph
    options = RunOptions(budget=budget, **more.pop("options", {}))
    return ExecutionHarness(parsed, behaviors, options, journal=MemoryJournal(), **more)


def loaded_again(harness: ExecutionHarness) -> ExecutionHarness:
    """The execution as another process loads it from its stored events."""
    history = History(harness.stored)
    is_recovery = history.pause_reason is None
    options, graph = harness.execution.options, harness.program.graph
    more = {"history": history, "is_recovery": is_recovery, "journal": MemoryJournal()}
    return ExecutionHarness(graph, harness.behaviors, options, **more)


def budget_requests(harness: ExecutionHarness) -> list[dict[str, Any]]:
    paused = harness.data_of("execution.paused")
    return [data for data in paused if data.get("request", {}).get("kind") == "budget"]


def raise_after(harness: ExecutionHarness, delay_s: float, **limits: float) -> None:
    answer = {"decision": "raise", "value": limits}
    loop = asyncio.get_running_loop()
    loop.call_later(delay_s, lambda: harness.execution.answer(_open(harness), answer))


def answer_after(harness: ExecutionHarness, delay_s: float, answer: Any) -> None:
    loop = asyncio.get_running_loop()
    loop.call_later(delay_s, lambda: harness.execution.answer(_open(harness), answer))


def _open(harness: ExecutionHarness) -> str:
    return budget_requests(harness)[-1]["request_id"]


def state_of(harness: ExecutionHarness) -> Any:
    """The state of the stored execution, as the service computes it."""
    created = created_event(harness.program.graph, harness.execution.options)
    stored = [event._replace(seq=event.seq + 1) for event in harness.stored]
    return fold([created, *stored])


@virtual_time
async def test_calls_that_do_not_fit_together_wait_for_each_other_without_a_question() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    harness = harness_of("a b c", dict.fromkeys("abc", calls(10, 60)), {"tokens": 100})

    assert await harness.run() == "completed"
    assert loop.time() - began == pytest.approx(3.0)
    assert harness.data_of("execution.paused") == []
    assert harness.event_names("node.parked", "node.unparked") == [
        "node.parked b", "node.parked c", "node.unparked b", "node.unparked c",
    ]  # fmt: skip
    assert (
        harness.data_of("node.parked")
        == [{"duration_s": 0.0, "own_time_s": 0.0, "budget": True}] * 2
    )


@virtual_time
async def test_a_waiting_call_holds_no_slot_and_its_own_time_stands_still() -> None:
    graph = Graph(
        (
            Node("a", "step", "A"),
            Node("b", "step", "B", policy=Policy(timeout_s=1.5)),
            Node("c", "step", "C"),
        ),
        (),
    )
    behaviors = {"a": calls(10, 60, 3.0), "b": calls(10, 60), "c": result_with("free")}
    harness = harness_of(graph, behaviors, {"tokens": 100}, options={"max_parallel": 2})

    assert await harness.run() == "completed"
    names = harness.event_names("node.completed")
    assert names == ["node.completed c", "node.completed a", "node.completed b"]


@virtual_time
async def test_an_exhausted_budget_pauses_with_one_request_and_a_raise_lets_all_go_on() -> None:
    harness = harness_of(
        "a b c d", {**dict.fromkeys("abc", calls(40)), "d": calls(10)}, {"tokens": 100, "calls": 9}
    )
    raise_after(harness, 10, tokens=500)

    assert await harness.run() == "completed"
    (paused,) = budget_requests(harness)
    assert paused["request"] == {
        "kind": "budget",
        "message": "The budget of this run does not suffice: used 90 of 100 tokens, "
        "3 of 9 calls. Most was used by 'a' (40 tokens), 'b' (40 tokens), 'd' (10 tokens). "
        "The next call of 'c' may use 40 tokens, 1 call. Raise the budget, or stop the run?",
        "actions": ["raise", "stop"],
        "limits": {"tokens": 100, "calls": 9},
        "used": {"tokens": 90, "calls": 3},
        "waiting": ["c"],
        "proposed": {"tokens": 200},
    }
    resumed = harness.data_of("execution.resumed")
    assert [data.get("request_id") for data in resumed] == [paused["request_id"]]
    state = state_of(harness)
    assert state.budget_json()["limits"] == {"tokens": 500, "calls": 9}
    assert state.budget_json()["used"] == {"tokens": 130, "calls": 4}


@virtual_time
async def test_a_raise_that_does_not_suffice_asks_again() -> None:
    harness = harness_of("a", {"a": calls(40)}, {"tokens": 10})
    raise_after(harness, 1, tokens=39)
    raise_after(harness, 2, tokens=40)

    assert await harness.run() == "completed"
    first, second = budget_requests(harness)
    assert first["request_id"] != second["request_id"]
    assert second["request"]["limits"] == {"tokens": 39}


@virtual_time
async def test_stop_cancels_with_the_cause() -> None:
    harness = harness_of("a b", {"a": calls(40), "b": calls(80)}, {"tokens": 100})
    answer_after(harness, 5, {"decision": "stop", "note": "too expensive"})

    assert await harness.run() == "cancelled"
    cause = "the budget was not raised: too expensive"
    assert harness.data_of("execution.cancelled") == [{"cause": cause}]
    assert harness.data_of("node.cancelled") == [{"cause": cause}]
    assert state_of(harness).closed_requests == {_open(harness): "answered"}


@virtual_time
async def test_a_wait_inside_a_nested_run_pauses_the_execution_too() -> None:
    inner = parse_graph("x y")
    behaviors = {"a": runs_graph("k", inner), "x": calls(60), "y": calls(60)}
    harness = harness_of("a", behaviors, {"tokens": 100})
    raise_after(harness, 5, tokens=200)

    assert await harness.run() == "completed"
    assert harness.event_names("node.parked", "node.unparked", "execution.paused") == [
        "node.parked a[k]/y", "node.parked a", "execution.paused", "node.unparked a",
        "node.unparked a[k]/y",
    ]  # fmt: skip
    assert len(budget_requests(harness)) == 1


@virtual_time
async def test_a_cancelled_node_frees_what_it_held_and_the_request_that_nothing_needs_is_closed() -> (
    None
):
    harness = harness_of("a b q", {"a": calls(60), "b": calls(60), "q": asks()}, {"tokens": 100})
    loop = asyncio.get_running_loop()
    loop.call_later(5, lambda: harness.execution.cancel_node("b", "not needed"))
    harness.answer_after(6)

    assert await harness.run() == "failed"
    (paused,) = budget_requests(harness)
    assert {"request_id": paused["request_id"], "reason": "the budget suffices", "epoch": 1} in (
        harness.data_of("execution.resumed")
    )
    with pytest.raises((Conflict, Gone)):
        await harness.execution.answer(paused["request_id"], {"decision": "raise"})


@virtual_time
async def test_an_answer_to_another_request_leaves_the_one_for_the_budget_open() -> None:
    harness = harness_of(
        "q a", {"q": asks(), "a": calls(60), "q:resume": calls_on_resume(30)}, {"tokens": 50}
    )
    harness.answer_after(2)
    raise_after(harness, 9, tokens=200)

    assert await harness.run() == "completed"
    assert len(budget_requests(harness)) == 1
    assert harness.event_names("execution.paused", "execution.resumed") == [
        "execution.paused", "execution.resumed", "execution.paused", "execution.resumed",
    ]  # fmt: skip


def calls_on_resume(used: int) -> Behavior:
    async def resume(inputs: Any, context: Any, state: Any, answer: Any) -> Any:
        async for item in calls(used)(inputs, context):
            yield item

    return resume


@virtual_time
async def test_retries_of_a_node_count_on() -> None:
    async def fails_after_its_call(inputs: Any, context: Any) -> Any:
        async for item in calls(30)(inputs, context):
            if isinstance(item, NodeEvent):
                yield item
        if context.attempt == 1:
            raise OSError("try again")
        yield result_with("done")

    again = Policy(retry=Retry(2, 1.0))
    graph = Graph((Node("a", "step", "A", policy=again),), ())
    harness = harness_of(graph, {"a": fails_after_its_call}, {"tokens": 50})
    raise_after(harness, 9, tokens=60)

    assert await harness.run() == "completed"
    assert budget_requests(harness)[0]["request"]["used"] == {"tokens": 30}


@virtual_time
async def test_a_warning_is_stored_once_an_amount_is_nearly_used_up() -> None:
    behaviors = {"a": calls(79), "b": calls(1), "c": calls(1)}
    harness = harness_of("a b c", behaviors, {"tokens": 100}, options={"max_parallel": 1})

    assert await harness.run() == "completed"
    assert harness.data_of("execution.warned") == [
        {
            "message": "the budget is nearly used up: 80 of 100 tokens",
            "amounts": ["tokens"],
        }
    ]
    assert state_of(harness).budget_json()["warned"] == ["tokens"]


@virtual_time
async def test_time_that_is_not_paused_is_limited_too() -> None:
    harness = harness_of(
        parse_graph("q a b d", "q>d"),
        {"q": asks(), "a": calls(1, seconds=8), "b": calls(1, seconds=1)},
        {"wall_s": 10}, options={"max_parallel": 1},
    )  # fmt: skip
    harness.answer_after(100)  # the pause before it does not count
    raise_after(harness, 200, wall_s=30)
    harness.behaviors["q:resume"] = calls_on_resume_for(5)
    loop = asyncio.get_running_loop()

    assert await harness.run() == "completed"
    (paused,) = budget_requests(harness)
    assert paused["request"]["used"]["wall_s"] == pytest.approx(10)
    assert loop.time() >= 200
    assert [data["amounts"] for data in harness.data_of("execution.warned")] == [["wall_s"]]


def calls_on_resume_for(seconds: float) -> Behavior:
    async def resume(inputs: Any, context: Any, state: Any, answer: Any) -> Any:
        await asyncio.sleep(seconds)
        return result_with("late")

    return resume


@virtual_time
async def test_the_open_request_and_what_was_used_survive_the_end_of_the_process() -> None:
    behaviors = {"a": calls(60), "b": calls(70), "c": runs_graph("k", parse_graph("x")),
                 "x": calls(80)}  # fmt: skip
    harness = harness_of("a b c", behaviors, {"tokens": 100}, parks="always")
    assert await harness.run() == "paused"
    (paused,) = budget_requests(harness)

    loaded = loaded_again(harness)
    asyncio.get_running_loop().call_later(
        1,
        lambda: loaded.execution.answer(
            paused["request_id"], {"decision": "raise", "value": {"tokens": 1000}}
        ),
    )
    assert await loaded.run() == "completed"
    assert len([e for e in loaded.stored if e.type == "execution.paused"]) == 0
    loaded.published[:0] = harness.published
    assert state_of(loaded).budget_json()["used"] == {"tokens": 210}


@virtual_time
async def test_a_wait_that_a_crash_cut_off_begins_again() -> None:
    behaviors = {"a": calls(60, seconds=5), "b": calls(60)}
    harness = harness_of("a b", behaviors, {"tokens": 119})
    harness.interrupt_after(1)
    assert await harness.run() == "interrupted"
    assert harness.event_names("node.parked") == ["node.parked b"]

    loaded = loaded_again(harness)
    raise_after(loaded, 30, tokens=200)
    assert await loaded.run() == "completed"
    loaded.published[:0] = harness.published
    assert state_of(loaded).budget_json()["used"] == {"tokens": 120}


@virtual_time
async def test_without_a_budget_nodes_find_none() -> None:
    async def looks(inputs: Any, context: Any) -> Any:
        return result_with(context.budget is None)

    harness = ExecutionHarness(parse_graph("a"), {"a": looks})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value is True


def test_what_is_used_is_the_sum_of_the_paid_usage() -> None:
    spending = Spending()
    told = [("a", {"input_tokens": 3}), ("a", {"input_tokens": 3, "recorded": True}), ("b", {"output_tokens": 4, "cost_usd": 0.5})]  # fmt: skip
    spending.observe(typed_event(Event("x", 1, "", "node.started", "a", 1, {})))
    for seq, (path, data) in enumerate(told, 2):
        spending.observe(typed_event(Event("x", seq, "", "usage", path, 1, data)))
    assert spending.total.input_tokens == 3
    assert spending.by_path["b"].cost_usd == 0.5
