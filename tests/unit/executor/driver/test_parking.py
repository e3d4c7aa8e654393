"""Nodes that only wait for what is inside them: when they are parked, and when they continue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from planwave.events import Event, fold
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph, Policy
from planwave.graph.protocols import Suspension
from tests.support.engine.behaviors import asks, fails_with, forever, returns_after, runs_graph
from tests.support.engine.event_histories import created_event
from tests.support.engine.event_invariants import check_events
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.engine.recovered_runs import events_after_command, recovered
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


@virtual_time
async def test_a_node_whose_nested_runs_all_wait_is_parked_and_its_execution_paused() -> None:
    tasks: list[int] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        async with context.task_group() as group:
            for key in "xy":
                group.create_task(context.runtime.run_graph(key, parse_graph("q"), {}))
        return result_with("done")

    harness = ExecutionHarness(
        parse_graph("a b", "a>b"),
        {"a": outer, "q": asks()},
        journal=MemoryJournal(),
        parks="always",
    )
    before = len(asyncio.all_tasks())
    assert await harness.run() == "paused"
    tasks.append(len(asyncio.all_tasks()))
    assert tasks == [before]
    state = fold(harness.stored)
    assert [state.nodes[p].status for p in ("a", "a[x]/q", "a[y]/q")] == ["waiting"] * 3
    assert state.current_node_id == "a[x]/q"
    assert harness.event_names("node.parked", "execution.paused") == [
        "node.parked a",
        "execution.paused",
    ]


@virtual_time
async def test_an_answer_unparks_every_node_around_it_the_outermost_first() -> None:
    harness = ExecutionHarness(
        parse_graph("a"),
        {
            "a": runs_graph("k", parse_graph("b")),
            "b": runs_graph("k", parse_graph("q")),
            "q": asks(),
        },
        journal=MemoryJournal(),
    )

    harness.answer_after(1)
    assert await harness.run() == "completed"
    names = harness.event_names("node.parked", "node.unparked", "node.answered", "node.started")
    assert names == [
        "node.started a", "node.started a[k]/b", "node.started a[k]/b[k]/q",
        "node.parked a[k]/b", "node.parked a",
        "node.answered a[k]/b[k]/q", "node.unparked a", "node.unparked a[k]/b",
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [False, True])
@virtual_time
async def test_a_nested_request_is_answered_while_the_execution_is_only_stored(cut: bool) -> None:
    acts = {"a": runs_graph("k", parse_graph("b c")), "b": runs_graph("k", parse_graph("q"))}

    harness = ExecutionHarness(parse_graph("a"), {**acts, "q": asks(), "c": forever if cut else None}, parks="always",
              journal=MemoryJournal())  # fmt: skip
    if cut:  # a does not wait yet when its process ends
        harness.interrupt_after(1)
    assert await harness.run() == ("interrupted" if cut else "paused")
    harness.behaviors["c"] = result_with("c")
    ((request_id, request),) = fold(harness.stored).requests.items()
    assert request.path == "a[k]/b[k]/q"
    stored = await events_after_command(
        harness, harness.stored, lambda e: e.answer(request_id, "yes")
    )
    unparked = [e.path for e in stored if e.type == "node.unparked"]
    assert unparked == (["a[k]/b"] if cut else ["a", "a[k]/b"])
    assert fold(stored).requests == {}
    last = recovered(harness, stored)
    assert await last.run() == "completed"
    value = last.execution.outputs["a"]["output"].value
    assert value["b"]["output"] == {"q": {"output": [None, "yes"]}}


@virtual_time
async def test_a_nested_request_times_out_while_the_execution_is_only_stored() -> None:
    harness = ExecutionHarness(parse_graph("a"), {"a": runs_graph("k", parse_graph("q")), "q": asks("s", 50, "nobody")}, parks="always",
              journal=MemoryJournal())  # fmt: skip
    assert await harness.run() == "paused"
    ((request_id, _),) = fold(harness.stored).requests.items()
    following = recovered(harness, harness.stored)
    following.execution.expire(request_id)
    assert await following.run() == "completed"
    (answered,) = following.data_of("node.answered")
    assert (answered["answer"], answered["by"]) == ("nobody", "timeout")


@virtual_time
async def test_a_nested_request_times_out_in_a_resumed_node() -> None:
    async def works(inputs: Inputs, context: Context) -> Any:
        async with context.task_group() as group:
            group.create_task(context.runtime.run_graph("k", parse_graph("q"), {}))
            with context.own_work():
                await asyncio.sleep(1_000)

    async def busy(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(100)  # before it asks again
        return await runs_graph("k", parse_graph("q"))(inputs, context)

    harness = ExecutionHarness(
        parse_graph("a"), {"a": works, "q": asks("s", 50, "nobody")}, journal=MemoryJournal()
    )
    harness.interrupt_after(10)
    assert await harness.run() == "interrupted"
    harness.behaviors["a"] = busy
    following = recovered(harness, harness.stored)
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
    harness = ExecutionHarness(parse_graph("a"), {"a": runs_graph("k", parse_graph("q")), "q": asks()}, parks="always" if stored else "never",
              journal=MemoryJournal())  # fmt: skip
    if not stored:
        loop = asyncio.get_running_loop()
        loop.call_later(1, lambda: harness.execution.cancel_node(path, "enough"))
    ended = await harness.run()
    events = harness.stored
    if stored:
        events = await events_after_command(
            harness, events, lambda e: e.cancel_node(path, "enough")
        )
    if stored and path != "a":
        last = recovered(harness, events)
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
    harness = ExecutionHarness(
        parse_graph("a c"),
        {**acts, "q": inside, "c": fails_with(after_s=1) if end == "stop" else returns_after(0)},
        options.get(end, RunOptions()),
        journal=MemoryJournal(),
    )
    if end == "cancel":
        asyncio.get_running_loop().call_later(1, harness.execution.cancel, "enough")
    assert await harness.run() == ("cancelled" if end == "cancel" else "failed")
    assert sorted(harness.event_names("node.cancelled")) == [
        "node.cancelled a", "node.cancelled a[k]/b", "node.cancelled a[k]/b[k]/q",
    ]  # fmt: skip
    harness.check_sequence()


@virtual_time
async def test_a_node_with_own_work_is_not_parked() -> None:
    began: list[float] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        began.append(asyncio.get_running_loop().time())

        async def work() -> None:
            with context.own_work():
                await asyncio.sleep(5)

        async with context.task_group() as group:
            group.create_task(work())
            group.create_task(context.runtime.run_graph("k", parse_graph("q"), {}))
        return result_with(1)

    harness = ExecutionHarness(
        parse_graph("a"), {"a": outer, "q": asks()}, journal=MemoryJournal(), parks="always"
    )
    assert await harness.run() == "paused"
    assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)
    assert began == [0]


@pytest.mark.parametrize("is_counted", [True, False])
@virtual_time
async def test_a_node_that_starts_further_runs_keeps_its_task(is_counted: bool) -> None:
    """Where its tasks are not counted, it looks between two steps as if it only waited."""
    began: list[int] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        began.append(context.attempt)
        places = asyncio.Semaphore(2)

        async def one(key: str, graph: Graph) -> None:
            async with places:
                await context.runtime.run_graph(key, graph, {})

        group_of: Any = context.task_group if is_counted else asyncio.TaskGroup
        async with group_of() as group:
            group.create_task(one("waits", parse_graph("q")))
            for n in range(20):
                group.create_task(one(f"{n}", parse_graph("i")))
        return result_with(1)

    harness = ExecutionHarness(
        parse_graph("a"), {"a": outer, "q": asks()}, journal=MemoryJournal(), parks="always"
    )
    assert await harness.run() == "paused"
    assert began == [1]
    done = [path for path in harness.event_names("node.completed") if path.endswith("/i")]
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
    harness = ExecutionHarness(parse_graph("a"), acts, journal=MemoryJournal(), parks="always")
    assert await harness.run() == "paused"
    request_id = next(iter(fold(harness.stored).requests))
    stored = await events_after_command(
        harness, harness.stored, lambda e: e.answer(request_id, "yes")
    )
    last = recovered(harness, stored)
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
    harness = ExecutionHarness(
        parse_graph("a"), {"a": runs_graph("k", inner), "i": acts_once}, journal=MemoryJournal()
    )
    harness.interrupt_after(1)
    assert await harness.run() == "interrupted"
    asking = recovered(harness, harness.stored)
    assert await asking.run() == "paused"
    stored = [*harness.stored, *asking.stored]
    ((request_id, _),) = fold(stored).requests.items()
    answer = {"decision": decision, "value": "given"}
    stored = await events_after_command(harness, stored, lambda e: e.answer(request_id, answer))
    last = recovered(harness, stored)
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

        async with context.task_group() as workers:
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
        harness = Asking(journal=journal)
        assert await harness.run() == "completed"
        told = harness.event_names("node.waiting", "node.answered", "node.parked", "node.unparked")
        assert told[:7] == [
            "node.waiting a[0]/q", "node.waiting a[1]/q", "node.parked a",
            "node.answered a[1]/q", "node.unparked a", "node.waiting a[2]/q", "node.parked a",
        ]  # fmt: skip


# -- nodes whose type is not replayable -------------------------------------------------------------


class CallBesideAsking:
    """A node that makes a call beside a graph that asks; it counts how the call went."""

    def __init__(self) -> None:
        self.begun = self.cancelled = self.ended = 0

    async def call(self) -> str:
        self.begun += 1
        try:
            await asyncio.sleep(0.03)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.ended += 1
        return "called"

    async def __call__(self, inputs: Inputs, context: Context) -> Any:
        nested = context.runtime.run_graph("k", parse_graph("q"), {})
        async with asyncio.TaskGroup() as group:
            called, ran = group.create_task(self.call()), group.create_task(nested)
        return result_with([called.result(), ran.result()["q"]["output"].value])


@virtual_time
async def test_a_call_beside_a_graph_that_asks_is_made_once() -> None:
    node = CallBesideAsking()
    harness = ExecutionHarness(
        parse_graph("a:plain"),
        {"a": node, "q": asks()},
        journal=MemoryJournal(),
        parks="replayable",
    )
    harness.answer_after(0.01)
    assert await harness.run() == "completed"
    assert (node.begun, node.cancelled, node.ended) == (1, 0, 1)
    assert harness.execution.outputs["a"]["output"].value == ["called", [None, "yes"]]


@virtual_time
async def test_a_node_that_is_not_replayable_keeps_its_task_while_it_waits() -> None:
    node = CallBesideAsking()
    harness = ExecutionHarness(
        parse_graph("a:plain"),
        {"a": node, "q": asks()},
        journal=MemoryJournal(),
        parks="replayable",
    )
    running = asyncio.get_running_loop().create_task(harness.run())
    await asyncio.sleep(3_600)
    assert not running.done()
    assert harness.execution.status == "paused"
    assert fold(harness.stored).nodes["a"].status == "waiting"
    await harness.execution.answer(harness.request_id(), "yes")
    assert await running == "completed"
    assert (node.begun, node.cancelled) == (1, 0)
    assert len(harness.event_names("node.started")) == 2


@pytest.mark.parametrize("effect", ["none", "once"])
@virtual_time
async def test_a_node_that_lost_its_task_runs_again_as_after_a_crash(effect: Any) -> None:
    node = CallBesideAsking()
    graph = parse_graph("a:plain", policies={"a": Policy(effect=effect)})
    harness = ExecutionHarness(
        graph, {"a": node, "q": asks()}, journal=MemoryJournal(), parks="always"
    )
    assert await harness.run() == "paused"
    assert node.ended == 1, "what goes on by itself has time to end"
    (request_id,) = fold(harness.stored).requests
    stored = await events_after_command(
        harness, harness.stored, lambda e: e.answer(request_id, "yes")
    )
    last = recovered(harness, stored)
    if effect == "once":
        assert await last.run() == "paused"
        (asked,) = fold(stored).requests.values()
        assert (asked.path, asked.request["kind"], node.begun) == ("a", "interrupted", 1)
    else:
        assert await last.run() == "completed"
        (started,) = last.data_of("node.started", "a")
        assert (started["reentry"], node.begun) == (1, 2)


@virtual_time
async def test_a_parked_node_that_ends_by_itself_is_unparked_first() -> None:
    async def impatient(inputs: Inputs, context: Context) -> Any:
        try:
            async with asyncio.timeout(5):
                await context.runtime.run_graph("k", parse_graph("q"), {})
        except TimeoutError:
            context.emit("log", {"message": "no answer"})
            return result_with("went on")

    harness = ExecutionHarness(
        parse_graph("a:plain b", "a>b"), {"a": impatient, "q": asks()}, journal=MemoryJournal()
    )
    assert await harness.run() == "completed"
    names = harness.event_names("node.parked", "node.unparked", "node.completed", "node.cancelled")
    assert names == [
        "node.parked a", "node.unparked a", "node.cancelled a[k]/q", "node.completed a",
        "node.completed b",
    ]  # fmt: skip
    check_events(
        [created_event(harness.program.graph), *(e._replace(seq=e.seq + 1) for e in harness.stored)]
    )


@virtual_time
async def test_the_nodes_around_a_parked_node_that_goes_on_by_itself_are_unparked_before_it() -> (
    None
):
    async def impatient(inputs: Inputs, context: Context) -> Any:
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await context.runtime.run_graph("k", parse_graph("q"), {})
        return result_with("went on")

    behaviors = {"a": runs_graph("k", parse_graph("b:plain")), "b": impatient, "q": asks()}
    harness = ExecutionHarness(parse_graph("a"), behaviors, journal=MemoryJournal())
    assert await harness.run() == "completed"
    assert harness.event_names("node.parked", "node.unparked", "node.completed") == [
        "node.parked a[k]/b", "node.parked a", "node.unparked a", "node.unparked a[k]/b",
        "node.completed a[k]/b", "node.completed a",
    ]  # fmt: skip
    for count in range(1, len(harness.batches)):
        stored = [event for batch in harness.batches[:count] for event in batch]
        last = recovered(harness, stored)
        status = await last.run()
        is_open = bool(fold([*stored, *last.stored]).requests)
        assert status == ("paused" if is_open else "completed"), [e.type for e in stored]


# -- nodes that ask while graphs run inside them ----------------------------------------------------


class AsksBesideNested:
    """A node that opens a nested run, asks without waiting for it, and takes its result afterwards."""

    def __init__(self, inside: Graph) -> None:
        self.inside = inside

    async def __call__(self, inputs: Inputs, context: Context) -> Any:
        nested = context.runtime.run_graph("k", self.inside, {})
        self.task = asyncio.get_running_loop().create_task(nested)
        await asyncio.sleep(1)
        return Suspension({"kind": "go-on"}, "state")

    async def resume(self, inputs: Inputs, context: Context, state: Any, answer: Any) -> Any:
        outputs = await context.runtime.run_graph("k", self.inside, {})
        return result_with([state, answer, {n: o["output"].value for n, o in outputs.items()}])

    def harness(self, **more: Any) -> ExecutionHarness:
        acts = {"a": self, "a:resume": self.resume, "i": self.works, "q": asks()}
        return ExecutionHarness(parse_graph("a:plain"), acts, journal=MemoryJournal(), **more)

    async def works(self, inputs: Inputs, context: Context) -> Any:
        self.begun = getattr(self, "begun", 0) + 1
        await asyncio.sleep(10)
        return result_with("worked")


@pytest.mark.parametrize("answered_at", [5, 50])
@virtual_time
async def test_nested_runs_go_on_while_their_node_waits_for_an_answer(answered_at: int) -> None:
    node = AsksBesideNested(parse_graph("i"))
    harness = node.harness()
    harness.answer_after(answered_at)
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == ["state", "yes", {"i": "worked"}]
    assert node.begun == 1
    assert harness.event_names("node.cancelled") == []
    assert node.task.cancelled()
    assert asyncio.get_running_loop().time() == max(answered_at, 10)


@pytest.mark.parametrize("interrupted_at", [5, 50])
@virtual_time
async def test_such_nested_runs_are_attached_again_by_another_process(interrupted_at: int) -> None:
    node = AsksBesideNested(parse_graph("i"))
    harness = node.harness()
    harness.interrupt_after(interrupted_at)
    assert await harness.run() == "interrupted"
    following = recovered(harness, harness.stored)
    answered = following.execution.answer(following_request(harness), "yes")
    assert await following.run() == "completed"
    await answered
    assert following.execution.outputs["a"]["output"].value == ["state", "yes", {"i": "worked"}]
    assert node.begun == (2 if interrupted_at < 10 else 1)


def following_request(harness: ExecutionHarness) -> str:
    return next(id_ for id_, each in fold(harness.stored).requests.items() if each.path == "a")


@virtual_time
async def test_a_graph_may_ask_inside_a_node_that_asks_itself() -> None:
    harness = AsksBesideNested(parse_graph("q")).harness()
    running = asyncio.get_running_loop().create_task(harness.run())
    await asyncio.sleep(5)
    assert harness.execution.status == "paused"
    inner, outer = (each["request_id"] for each in harness.data_of("node.waiting"))
    await harness.execution.answer(outer, "first")
    await asyncio.sleep(5)
    assert fold(harness.stored).nodes["a"].status == "waiting"
    await harness.execution.answer(inner, "second")
    assert await running == "completed"
    value = harness.execution.outputs["a"]["output"].value
    assert value == ["state", "first", {"q": [None, "second"]}]


@pytest.mark.parametrize("what", ["a", "a[k]/i", "all"])
@virtual_time
async def test_what_runs_inside_a_node_that_asks_can_be_cancelled(what: str) -> None:
    harness = AsksBesideNested(parse_graph("i")).harness()
    running = asyncio.get_running_loop().create_task(harness.run())
    await asyncio.sleep(5)
    if what == "all":
        harness.execution.cancel("enough")
    else:
        await harness.execution.cancel_node(what, "enough")
    if what == "a[k]/i":
        await harness.execution.answer(harness.request_id(), "yes")
    assert await running == ("cancelled" if what == "all" else "failed")
    names = harness.event_names("node.cancelled", "node.failed")
    last = "node.failed a" if what == "a[k]/i" else "node.cancelled a"
    assert names == ["node.cancelled a[k]/i", last]
    assert fold(harness.stored).requests == {}
