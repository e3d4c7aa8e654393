"""Runs from Python: one run and its result, its events, what it is given, how it is left."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

import planwave
from planwave.errors import InputError, StoreError
from planwave.nodes.authoring.function import node
from planwave.nodes.library import LIBRARY
from planwave.storage.memory import MemoryStore

FLOW = {"channel": "flow"}


@pytest.fixture
def registry() -> planwave.Registry:
    return planwave.Registry(LIBRARY)


def chain(*nodes: dict[str, Any]) -> dict[str, Any]:
    edges = [{"source": a["id"], "target": b["id"], "data": FLOW} for a, b in pairwise(nodes)]
    return {"nodes": list(nodes), "edges": edges}


START = {"id": "s", "type": "start"}
GREETING = chain(START, {"id": "t", "type": "text", "data": {"text": "got {{ input }}"}})


async def test_a_run_is_awaited_any_number_of_times_and_runs_once(
    registry: planwave.Registry,
) -> None:
    calls: list[str] = []

    @node("count", registry=registry)
    async def count(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        calls.append(input)
        return input

    graph = planwave.build(chain(START, {"id": "c", "type": "count"}), "x", registry=registry)
    run = planwave.run(graph)
    first, second = await run, await run
    assert first == second
    assert (first.status, first.text, calls) == ("completed", "x", ["x"])


async def test_events_then_result_are_one_run_with_each_event_stored_once() -> None:
    store = MemoryStore()
    run = planwave.run(planwave.build(GREETING, "hi"), store=store)
    seen = [event.seq async for event in run]
    assert (await run).text == "got hi"
    stored = [event.seq for event in await store.events(run.execution_id)]
    assert stored == [1, *seen]


async def test_a_stored_run_keeps_what_it_was_given_and_how_it_was_to_run() -> None:
    store = MemoryStore()
    options = planwave.RunOptions(scheduling="waves")
    run = planwave.run(planwave.build(GREETING, "hi"), store=store, options=options)
    await run
    created = (await store.events(run.execution_id))[0].data
    assert created["options"] == {"scheduling": "waves"}
    assert list(created["inputs"].values()) == [{"output": "hi"}]


@pytest.mark.parametrize("begun_by", ["reading", "awaiting"])
async def test_the_events_of_a_run_that_has_begun_are_refused(begun_by: str) -> None:
    run = planwave.run(planwave.build(GREETING, "hi"))
    if begun_by == "reading":
        assert [event async for event in run]
    else:
        await run
    with pytest.raises(RuntimeError, match="can be read once"):
        await anext(aiter(run))


async def test_leaving_the_events_early_cancels_the_run(registry: planwave.Registry) -> None:
    ended = asyncio.Event()

    @node("endless", registry=registry)
    async def endless(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return input

    graph = planwave.build(chain(START, {"id": "e", "type": "endless"}), registry=registry)
    run = planwave.run(graph)
    events = aiter(run)
    async for event in events:
        if event.path == "e":
            break
    await events.aclose()
    assert ended.is_set()
    assert run.result().status == "cancelled"


async def test_cancelling_who_awaits_cancels_the_run_and_its_end_is_stored(
    registry: planwave.Registry,
) -> None:
    started = asyncio.Event()

    @node("endless", registry=registry)
    async def endless(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        await asyncio.Event().wait()
        return input

    graph = planwave.build(chain(START, {"id": "e", "type": "endless"}), registry=registry)
    store = MemoryStore()
    run = planwave.run(graph, store=store)

    async def wait() -> planwave.RunResult:
        return await run

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait())
        await started.wait()
        waiting.cancel()
    assert waiting.cancelled()
    last = (await store.events(run.execution_id))[-1]
    assert last.type == "execution.cancelled"


async def test_a_store_that_refuses_is_raised_to_every_caller() -> None:
    class Full(MemoryStore):
        async def create_execution(self, *args: Any, **kwargs: Any) -> Any:
            raise StoreError("the disk is full")

    run = planwave.run(planwave.build(GREETING, "hi"), store=Full())
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            await run
    with pytest.raises(StoreError, match="disk is full"):
        await anext(aiter(planwave.run(planwave.build(GREETING, "hi"), store=Full())))


async def test_run_sync_inside_a_loop_says_what_to_write() -> None:
    with pytest.raises(RuntimeError, match=r"await planwave\.run"):
        planwave.run_sync(GREETING)


def test_a_built_graph_runs_in_one_loop_after_another() -> None:
    graph = planwave.build(GREETING, "hi")
    assert [planwave.run_sync(graph).text for _ in range(2)] == ["got hi", "got hi"]


async def test_runs_of_one_built_graph_do_not_meet(registry: planwave.Registry) -> None:
    both = asyncio.Barrier(2)

    @node("meet", registry=registry)
    async def meet(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        await both.wait()
        return input

    spec = chain(
        START,
        {"id": "m", "type": "meet"},
        {"id": "t", "type": "text", "data": {"text": "{{ input }} {{ goal }}"}},
    )
    graph = planwave.build(spec, "hi", registry=registry)

    async def one(goal: str) -> planwave.RunResult:
        return await planwave.run(graph, goal=goal)

    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(one(goal)) for goal in ("one", "two")]
    assert [run.result().text for run in runs] == ["hi one", "hi two"]


def test_what_a_node_does_to_its_input_stays_in_its_run(registry: planwave.Registry) -> None:
    @node("grow", registry=registry)
    async def grow(input: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        input["list"].append(1)
        return input

    value = {"list": [0]}
    start = {"id": "s", "type": "start", "data": {"initialInput": value}}
    parser = {"id": "p", "type": "parser", "data": {"template": value}}
    last = {"id": "g", "type": "grow"}
    for spec, message in [
        (chain(START, last), value),
        (chain(start, last), None),
        (chain(START, parser, last), None),
    ]:
        graph = planwave.build(spec, message, registry=registry)
        assert [planwave.run_sync(graph).text for _ in range(2)] == ['{"list":[0,1]}'] * 2
    assert value == {"list": [0]}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["s"], "inputs must be an object, got list"),
        ({"s": "hi"}, "inputs['s'] must be an object, got str"),
        ({"s": {"output": {1, 2}}}, "inputs['s'] cannot be given to a node: /output is a Python"),
        ({"s": {"output": float("nan")}}, "NaN"),
        ({"s": {"output": "\ud800"}}, "surrogate"),
    ],
)
def test_inputs_that_no_node_can_be_given_are_refused(inputs: Any, message: str) -> None:
    graph = planwave.build(GREETING)
    with pytest.raises(InputError) as caught:
        planwave.run(graph, inputs=inputs)
    assert caught.value.code == "invalid-inputs"
    assert message in caught.value.message


def test_a_message_for_an_entry_without_declared_outputs_leaves_through_output(
    registry: planwave.Registry,
) -> None:
    @node("open", entry=True, outputs=(), registry=registry)
    async def opened() -> str:  # pyright: ignore[reportUnusedFunction]
        return ""

    graph = planwave.build(
        {"nodes": [{"id": "o", "type": "open"}], "edges": []}, "hi", registry=registry
    )
    assert graph.inputs == {"o": {"output": "hi"}}
