"""Nodes that only wait for what is inside them: when they are parked, and when they continue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from planwave.events import Event, fold
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph, Policy
from planwave.graph.protocols import Suspension
from tests.support.engine.behaviors import asks, fails_with, forever, returns_after, runs_graph
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.engine.recovered_runs import events_after_command, recovered
from tests.support.graph.fake_catalog import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


@virtual_time
async def test_a_node_whose_nested_runs_all_wait_is_parked_and_its_execution_paused() -> None:
    tasks: list[int] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            for key in "xy":
                group.create_task(context.runtime.run_graph(key, parse_graph("q"), {}))
        return result_with("done")

    rig = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": outer, "q": asks()}, journal=MemoryJournal(), parks=True
    )
    before = len(asyncio.all_tasks())
    assert await rig.run() == "paused"
    tasks.append(len(asyncio.all_tasks()))
    assert tasks == [before]
    state = fold(rig.stored)
    assert [state.nodes[p].status for p in ("a", "a[x]/q", "a[y]/q")] == ["waiting"] * 3
    assert state.current_node_id == "a[x]/q"
    assert rig.event_names("node.parked", "execution.paused") == [
        "node.parked a",
        "execution.paused",
    ]


@virtual_time
async def test_an_answer_unparks_every_node_around_it_the_outermost_first() -> None:
    rig = ExecutionHarness(
        parse_graph("a"),
        {
            "a": runs_graph("k", parse_graph("b")),
            "b": runs_graph("k", parse_graph("q")),
            "q": asks(),
        },
        journal=MemoryJournal(),
    )

    rig.answer_after(1)
    assert await rig.run() == "completed"
    names = rig.event_names("node.parked", "node.unparked", "node.answered", "node.started")
    assert names == [
        "node.started a", "node.started a[k]/b", "node.started a[k]/b[k]/q",
        "node.parked a[k]/b", "node.parked a",
        "node.answered a[k]/b[k]/q", "node.unparked a", "node.unparked a[k]/b",
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [False, True])
@virtual_time
async def test_a_nested_request_is_answered_while_the_execution_is_only_stored(cut: bool) -> None:
    acts = {"a": runs_graph("k", parse_graph("b c")), "b": runs_graph("k", parse_graph("q"))}

    rig = ExecutionHarness(parse_graph("a"), {**acts, "q": asks(), "c": forever if cut else None}, parks=True,
              journal=MemoryJournal())  # fmt: skip
    if cut:  # a does not wait yet when its process ends
        rig.interrupt_after(1)
    assert await rig.run() == ("interrupted" if cut else "paused")
    rig.behaviors["c"] = result_with("c")
    ((request_id, request),) = fold(rig.stored).requests.items()
    assert request.path == "a[k]/b[k]/q"
    stored = await events_after_command(rig, rig.stored, lambda e: e.answer(request_id, "yes"))
    unparked = [e.path for e in stored if e.type == "node.unparked"]
    assert unparked == (["a[k]/b"] if cut else ["a", "a[k]/b"])
    assert fold(stored).requests == {}
    last = recovered(rig, stored)
    assert await last.run() == "completed"
    value = last.execution.outputs["a"]["output"].value
    assert value["b"]["output"] == {"q": {"output": [None, "yes"]}}


@virtual_time
async def test_a_nested_request_times_out_while_the_execution_is_only_stored() -> None:
    rig = ExecutionHarness(parse_graph("a"), {"a": runs_graph("k", parse_graph("q")), "q": asks("s", 50, "nobody")}, parks=True,
              journal=MemoryJournal())  # fmt: skip
    assert await rig.run() == "paused"
    ((request_id, _),) = fold(rig.stored).requests.items()
    following = recovered(rig, rig.stored)
    following.execution.expire(request_id)
    assert await following.run() == "completed"
    (answered,) = following.data_of("node.answered")
    assert (answered["answer"], answered["by"]) == ("nobody", "timeout")


@virtual_time
async def test_a_nested_request_times_out_in_a_resumed_node() -> None:
    async def works(inputs: Inputs, context: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(context.runtime.run_graph("k", parse_graph("q"), {}))
            with context.own_work():
                await asyncio.sleep(1_000)

    async def busy(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(100)  # before it asks again
        return await runs_graph("k", parse_graph("q"))(inputs, context)

    rig = ExecutionHarness(
        parse_graph("a"), {"a": works, "q": asks("s", 50, "nobody")}, journal=MemoryJournal()
    )
    rig.interrupt_after(10)
    assert await rig.run() == "interrupted"
    rig.behaviors["a"] = busy
    following = recovered(rig, rig.stored)
    assert await following.run() == "completed"
    times = {e.type: n for n, e in enumerate(following.stored)}
    assert times["node.answered"] < times["node.completed"]
    assert asyncio.get_running_loop().time() == pytest.approx(110, abs=1)


@pytest.mark.parametrize("path", ["a[k]/q", "a"])
@pytest.mark.parametrize("stored", [False, True])
@virtual_time
async def test_a_waiting_nested_node_can_be_cancelled_alone_or_with_its_node(
    path: str, stored: bool
) -> None:
    rig = ExecutionHarness(parse_graph("a"), {"a": runs_graph("k", parse_graph("q")), "q": asks()}, parks=stored,
              journal=MemoryJournal())  # fmt: skip
    if not stored:
        loop = asyncio.get_running_loop()
        loop.call_later(1, lambda: rig.execution.cancel_node(path, "enough"))
    ended = await rig.run()
    events = rig.stored
    if stored:
        events = await events_after_command(rig, events, lambda e: e.cancel_node(path, "enough"))
    if stored and path != "a":
        last = recovered(rig, events)
        ended, events = await last.run(), [*events, *last.stored]
    state = fold(events)
    assert state.status == "failed"
    assert ended == ("paused" if stored and path == "a" else "failed")
    assert state.nodes["a[k]/q"].status == "cancelled"
    assert state.nodes["a"].status == ("cancelled" if path == "a" else "failed")
    assert state.requests == {}


@pytest.mark.parametrize(
    ("end", "inside"),
    [("cancel", forever), ("cancel", asks()), ("timeout", forever), ("stop", asks())],
)
@virtual_time
async def test_an_execution_that_ends_cancels_its_nested_runs(end: str, inside: Any) -> None:
    acts = {"a": runs_graph("k", parse_graph("b")), "b": runs_graph("k", parse_graph("q"))}
    options = {"timeout": RunOptions(run_timeout_s=9), "stop": RunOptions(on_failure="stop")}
    rig = ExecutionHarness(
        parse_graph("a c"),
        {**acts, "q": inside, "c": fails_with(after_s=1) if end == "stop" else returns_after(0)},
        options.get(end, RunOptions()),
        journal=MemoryJournal(),
    )
    if end == "cancel":
        asyncio.get_running_loop().call_later(1, rig.execution.cancel, "enough")
    assert await rig.run() == ("cancelled" if end == "cancel" else "failed")
    assert sorted(rig.event_names("node.cancelled")) == [
        "node.cancelled a", "node.cancelled a[k]/b", "node.cancelled a[k]/b[k]/q",
    ]  # fmt: skip
    rig.check_sequence()


@virtual_time
async def test_a_node_with_own_work_is_not_parked() -> None:
    began: list[float] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        began.append(asyncio.get_running_loop().time())

        async def work() -> None:
            with context.own_work():
                await asyncio.sleep(5)

        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            group.create_task(context.runtime.run_graph("k", parse_graph("q"), {}))
        return result_with(1)

    rig = ExecutionHarness(
        parse_graph("a"), {"a": outer, "q": asks()}, journal=MemoryJournal(), parks=True
    )
    assert await rig.run() == "paused"
    assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)
    assert began == [0]


@virtual_time
async def test_a_node_that_starts_further_runs_is_not_parked() -> None:
    began: list[int] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        began.append(context.attempt)
        places = asyncio.Semaphore(2)

        async def one(key: str, graph: Graph) -> None:
            async with places:
                await context.runtime.run_graph(key, graph, {})

        async with asyncio.TaskGroup() as group:
            group.create_task(one("waits", parse_graph("q")))
            for n in range(20):
                group.create_task(one(f"{n}", parse_graph("i")))
        return result_with(1)

    rig = ExecutionHarness(
        parse_graph("a"), {"a": outer, "q": asks()}, journal=MemoryJournal(), parks=True
    )
    assert await rig.run() == "paused"
    assert began == [1]
    done = [path for path in rig.event_names("node.completed") if path.endswith("/i")]
    assert len(done) == 20


@virtual_time
async def test_nested_runs_that_are_not_requested_again_are_cancelled_when_their_node_ends() -> (
    None
):
    async def fickle(inputs: Inputs, context: Context) -> Any:
        if not starts:
            starts.append(1)
            await context.runtime.run_graph("k", parse_graph("b"), {})
        return result_with("changed my mind")

    starts: list[int] = []
    acts = {"a": fickle, "b": runs_graph("k", parse_graph("q p")), "q": asks(), "p": asks()}
    rig = ExecutionHarness(parse_graph("a"), acts, journal=MemoryJournal(), parks=True)
    assert await rig.run() == "paused"
    request_id = next(iter(fold(rig.stored).requests))
    stored = await events_after_command(rig, rig.stored, lambda e: e.answer(request_id, "yes"))
    last = recovered(rig, stored)
    assert await last.run() == "completed"
    state = fold([*stored, *last.stored])
    assert {path: node.status for path, node in state.nodes.items()} == {
        "a": "completed", "a[k]/b": "cancelled", "a[k]/b[k]/q": "cancelled",
        "a[k]/b[k]/p": "cancelled",
    }  # fmt: skip


@pytest.mark.parametrize("decision", ["run_again", "give_result", "fail"])
@virtual_time
async def test_a_decision_about_an_interrupted_nested_node_is_applied_when_its_run_is_requested(
    decision: str,
) -> None:
    ran: list[str] = []

    async def acts_once(inputs: Inputs, context: Context) -> Any:
        ran.append(context.path)
        if len(ran) == 1:
            await asyncio.Event().wait()
        return result_with("ran")

    inner = parse_graph("i", policies={"i": Policy(effect="once")})
    rig = ExecutionHarness(
        parse_graph("a"), {"a": runs_graph("k", inner), "i": acts_once}, journal=MemoryJournal()
    )
    rig.interrupt_after(1)
    assert await rig.run() == "interrupted"
    asking = recovered(rig, rig.stored)
    assert await asking.run() == "paused"
    stored = [*rig.stored, *asking.stored]
    ((request_id, _),) = fold(stored).requests.items()
    answer = {"decision": decision, "value": "given"}
    stored = await events_after_command(rig, stored, lambda e: e.answer(request_id, answer))
    last = recovered(rig, stored)
    ended = await last.run()
    state = fold([*stored, *last.stored])
    outputs = state.nodes["a[k]/i"].outputs
    expected = {
        "run_again": ("completed", "ran", 2),
        "give_result": ("completed", "given", 1),
        "fail": ("failed", None, 1),
    }
    value = outputs["output"]["value"] if outputs else None
    assert (ended, value, len(ran)) == expected[decision]


class SlowLedger(MemoryJournal):
    """A store that takes a second for each commit."""

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        await asyncio.sleep(1)
        await super().append(execution_id, epoch, events)


class Asking(ExecutionHarness):
    """A node that runs a graph that asks for each of three keys, two at a time; all are answered.

    The first two requests are left open until the third is there.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(parse_graph("a"), {"a": self._loop, "q": self._ask}, **more)
        self.open: list[str] = []

    async def _ask(self, inputs: Any, context: Any) -> Any:
        return Suspension({"for": context.path})

    async def _loop(self, inputs: Any, context: Any) -> Any:
        keys = iter("012")

        async def work() -> None:
            for key in keys:
                await context.runtime.run_graph(key, parse_graph("q"), {})

        async with asyncio.TaskGroup() as workers:
            workers.create_task(work())
            workers.create_task(work())
        return result_with(1)

    def _record(self, events: list[Event]) -> None:
        super()._record(events)
        for event in events:
            if event.type == "node.waiting":
                self.open.append(event.data["request_id"])
            elif event.type == "node.parked" and len(self.open) == 2:
                self.execution.answer(self.open[1], "yes")
            elif event.type == "node.parked" and len(self.open) == 3:
                self.execution.answer(self.open[0], "yes")
                self.execution.answer(self.open[2], "yes")


@virtual_time
async def test_a_node_is_not_parked_before_it_has_the_results_of_its_nested_runs() -> None:
    for journal in (None, MemoryJournal(), SlowLedger()):
        rig = Asking(journal=journal)
        assert await rig.run() == "completed"
        told = rig.event_names("node.waiting", "node.answered", "node.parked", "node.unparked")
        assert told[:7] == [
            "node.waiting a[0]/q", "node.waiting a[1]/q", "node.parked a",
            "node.answered a[1]/q", "node.unparked a", "node.waiting a[2]/q", "node.parked a",
        ]  # fmt: skip
