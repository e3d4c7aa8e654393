"""Random calls, limits, raises, cancels and crashes: the budget holds, and nothing waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.events import fold
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.model import Graph
from tests.support.engine.event_histories import created_event
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.examples import examples
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

GRAPHS = ("a b c d", "a b c d / a>b a>c", "a b c d / a>b b>c c>d", "a b c d / a>d b>d")
INNER = parse_graph("x y", "x>y")
ALL_IDS = "abcdxy"


class Call(NamedTuple):
    """A call of a node: what it reserves, what it uses, and how long it takes."""

    reserved: int
    used: int
    seconds: int


class Scene(NamedTuple):
    """A random execution."""

    graph: Graph
    calls: Mapping[str, Sequence[Call]]
    nesting: frozenset[str]
    limits: dict[str, float]
    options: dict[str, Any]
    raises: Sequence[int]
    crash_at: int | None
    cancelled: str | None


def _graph(text: str) -> Graph:
    nodes, _, edges = text.partition(" / ")
    return parse_graph(nodes, *edges.split())


CALLS = st.lists(
    st.builds(Call, st.integers(1, 60), st.integers(0, 70), st.integers(0, 4)), max_size=3
)
SCENES = st.builds(
    Scene,
    st.sampled_from(GRAPHS).map(_graph),
    st.fixed_dictionaries(dict.fromkeys(ALL_IDS, CALLS)),
    st.frozensets(st.sampled_from("abcd"), max_size=2),
    st.fixed_dictionaries({"tokens": st.integers(1, 200)}, optional={"calls": st.integers(1, 9)}),
    st.fixed_dictionaries({"max_parallel": st.sampled_from([None, 1, 2])}),
    st.lists(st.integers(1, 80), min_size=1, max_size=4),
    st.none() | st.integers(1, 12),
    st.none() | st.sampled_from("abcd"),
)


class Play:
    """Plays a scene: nodes make their calls, a person raises each exhausted budget."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.answers = self.in_flight = 0
        self.waiting: dict[str, Call] = {}
        self.failures: list[AssertionError] = []
        behaviors = {each: self._behavior(each) for each in ALL_IDS}
        options = RunOptions(budget=scene.limits, **scene.options)
        self.harness = ExecutionHarness(
            scene.graph, behaviors, options, journal=MemoryJournal(), last_seq=1
        )
        self.stored = [created_event(scene.graph, options)]

    def _behavior(self, node: str) -> Any:
        async def execute(inputs: Any, context: Any) -> Any:
            async with context.task_group() as group:
                if node in self.scene.nesting:
                    group.create_task(context.runtime.run_graph("k", INNER, {}))
                for call in self.scene.calls[node]:
                    await self._make(call, context)
            return result_with(node)

        return execute

    async def _make(self, call: Call, context: Any) -> None:
        with context.own_work():
            self.waiting[context.path] = call
            try:
                reservation = await context.budget.reserve({"tokens": call.reserved, "calls": 1})
            finally:
                del self.waiting[context.path]
            self.in_flight += 1
            try:
                await asyncio.sleep(call.seconds)
                context.emit("usage", {"input_tokens": call.used})
            finally:
                self.in_flight -= 1
                reservation.release()

    def _check_request(self, request: Mapping[str, Any]) -> None:
        """A person is asked when no call is being made, and none of the waiting ones fits."""
        limits, used = request["limits"], request["used"]
        assert self.waiting
        assert self.in_flight == 0
        for call in self.waiting.values():
            amounts = {"tokens": call.reserved, "calls": 1}
            assert any(used[name] + amounts[name] > limits[name] for name in limits)

    def _raise_each_request(self, harness: ExecutionHarness) -> None:
        def answer(request_id: str, request: Mapping[str, Any]) -> None:
            if request_id not in harness.execution.open_requests:
                return
            more = self.scene.raises[self.answers % len(self.scene.raises)]
            self.answers += 1
            limits = {
                name: max(limit, request["used"][name]) + more
                for name, limit in request["limits"].items()
            }
            harness.execution.answer(request_id, {"decision": "raise", "value": limits})

        def listen(event: Any) -> None:
            if event.type == "execution.paused" and "request_id" in event.data:
                request_id, request = event.data["request_id"], event.data["request"]
                try:
                    self._check_request(request)
                except AssertionError as failure:
                    self.failures.append(failure)
                asyncio.get_running_loop().call_later(1, answer, request_id, request)

        harness.listeners.append(listen)
        for request in fold(self.stored).requests.values():  # those of an earlier process
            asyncio.get_running_loop().call_later(1, answer, request.request_id, request.request)

    async def run(self) -> str:
        """Run it to its end, over a crash if there is one."""
        loop, harness, scene = asyncio.get_running_loop(), self.harness, self.scene
        self._raise_each_request(harness)
        if scene.cancelled is not None:
            loop.call_later(2.5, harness.execution.cancel_node, scene.cancelled, "not needed")
        if scene.crash_at is not None:
            harness.interrupt_after(scene.crash_at + 0.5)
        status = await harness.run()
        self.stored += harness.stored
        if status != "interrupted":
            return status
        history = History(self.stored)
        again = ExecutionHarness(
            scene.graph,
            harness.behaviors,
            harness.execution.options,
            journal=MemoryJournal(),
            history=history,
            is_recovery=history.pause_reason is None,
        )
        self._raise_each_request(again)
        status = await again.run()
        self.stored += again.stored
        return status


@given(SCENES)
@settings(max_examples=examples(150), deadline=None)
@virtual_time
async def test_a_budget_holds_and_nothing_waits_for_ever(scene: Scene) -> None:
    play = Play(scene)
    status = await play.run()
    if play.failures:
        raise play.failures[0]
    state = fold(play.stored)
    assert status == ("failed" if state.failures else "completed")
    assert not state.failures or scene.cancelled is not None
    budget, total = state.budget_json(), state.usage
    usage = [event.data["input_tokens"] for event in play.stored if event.type == "usage"]
    assert budget is not None
    assert (budget["used"]["tokens"], total.calls) == (sum(usage), len(usage))
    # Each call uses at most so much more than it has reserved; a crash repeats calls.
    made = [call for node in ALL_IDS for call in scene.calls[node]]
    too_low = sum(max(call.used - call.reserved, 0) for call in made)
    repeated = 1 if scene.crash_at is None else 2
    assert sum(usage) <= budget["limits"]["tokens"] + too_low * repeated * (1 + len(scene.nesting))
    assert total.calls <= budget["limits"].get("calls", total.calls)
    if scene.crash_at is None and scene.cancelled is None:
        runs = {node: len(scene.nesting) if node in "xy" else 1 for node in ALL_IDS}
        assert total.calls == sum(runs[node] * len(scene.calls[node]) for node in ALL_IDS)
