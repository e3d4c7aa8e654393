"""Graphs inside nodes, cut off anywhere, parked, answered in memory or in what is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError, StoreError
from planwave.events import Event, fold
from planwave.executor.driver.execution import Parking
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.executor.reuse.reuse import Reuse
from planwave.graph.model import Graph, Node, Policy, Retry
from planwave.graph.protocols import Suspension
from tests.support.engine.event_histories import created_event
from tests.support.engine.event_invariants import check_events
from tests.support.engine.generic_nodes import (
    TERMINAL_TYPES,
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.examples import examples
from tests.support.graph.builders import make_edge
from tests.support.virtual_loop import virtual_time

OUTCOMES = frozenset(
    {"node.completed", "node.failed", "node.cancelled", "node.retrying", "node.waiting"}
)


class RandomNestedRuns:
    """A random graph whose nodes run graphs inside them, three deep, and what each node does."""

    def __init__(self, choose: Random) -> None:
        self.choose = choose
        self.acts: dict[str, Any] = {}
        self.made: list[tuple[str, str]] = []
        self.ran: list[tuple[str, int]] = []
        self.numbers, self.owners = count(), count(1)
        self.reuse: Reuse | None = None
        self.graph = self.graph_of(0)
        self.options = RunOptions(
            scheduling=choose.choice(["eager", "waves"]), max_parallel=choose.choice([None, 1, 2])
        )

    def graph_of(self, depth: int) -> Graph:
        size = 1 + self.choose.randrange(3)
        nodes = [self.node(depth) for _ in range(size)]
        edges = [
            make_edge(nodes[first].id, nodes[second].id)
            for second in range(size)
            for first in range(second)
            if self.choose.random() < 0.5
        ]
        return Graph(tuple(nodes), tuple(edges))

    def node(self, depth: int) -> Node:
        choose = self.choose
        kinds = ["work", "ask", "once", "flaky"] + ["loop", "loop", "loop"] * (depth < 3)
        kind = choose.choice(kinds) if depth else choose.choice(["loop", "loop", "ask", "work"])
        node_id = f"{kind}{next(self.numbers)}"
        retries = choose.choice([1, 1, 2, 3])
        policy = Policy(
            retry=Retry(retries, choose.choice([0, 1])),
            on_error=choose.choice(["fail", "fail", "continue"]),
        )
        self.acts[node_id] = getattr(self, kind)(node_id, depth)
        return Node(node_id, "step", node_id, policy=policy)

    # -- what nodes do

    def begins(self, context: Any) -> None:
        self.ran.append((context.path, context.attempt))

    def work(self, node_id: str, depth: int) -> Any:
        delay = self.choose.randrange(4)

        async def act(inputs: Any, context: Any) -> Any:
            self.begins(context)
            await asyncio.sleep(delay)
            return result_with(node_id)

        return act

    def flaky(self, node_id: str, depth: int) -> Any:
        bad = self.choose.choice([{1}, {1, 2}, {2}, {1, 2, 3, 4, 5, 6, 7, 8, 9}])

        async def act(inputs: Any, context: Any) -> Any:
            self.begins(context)
            await asyncio.sleep(1)
            if context.attempt in bad:
                raise NodeError("not this time", retryable=True)
            return result_with(context.attempt)

        return act

    def ask(self, node_id: str, depth: int) -> Any:
        timeout = self.choose.choice([None, None, 1])

        async def act(inputs: Any, context: Any) -> Any:
            self.begins(context)
            return Suspension({"for": context.path}, 1, timeout, "nobody")

        async def resume(inputs: Any, context: Any, state: Any, answer: Any) -> Any:
            return result_with("answered")

        self.acts[f"{node_id}:resume"] = resume
        return act

    def once(self, node_id: str, depth: int) -> Any:
        async def act(inputs: Any, context: Any) -> Any:
            self.begins(context)

            async def make() -> Any:
                self.made.append((context.path, "v"))
                await asyncio.sleep(1)
                return context.attempt

            value = await context.runtime.once("v", make)
            await asyncio.sleep(1)
            return result_with(value)

        return act

    def loop(self, node_id: str, depth: int) -> Any:
        body = self.graph_of(depth + 1)
        items, skips = self.choose.randrange(4), self.choose.random() < 0.5
        workers = self.choose.choice([1, 2, 5]) if skips else 1
        own = self.choose.choice([0, 0, 1])

        async def one(context: Any, item: int) -> Any:
            try:
                await context.runtime.run_graph(f"{item}", body, {}, variables={"item": item})
            except NodeError as error:
                if not skips:
                    # What it runs inside itself may be worth another try.
                    raise NodeError("an item failed", retryable=True) from error
                return "skipped"
            if own:
                with context.own_work():
                    await asyncio.sleep(own)
            return "done"

        async def act(inputs: Any, context: Any) -> Any:
            self.begins(context)
            left, found = iter(range(items)), {}

            async def work() -> None:
                for item in left:
                    found[item] = await one(context, item)

            try:
                async with context.task_group() as group:
                    for _ in range(workers):
                        group.create_task(work())
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0]  # noqa: B904
            return result_with([found[item] for item in range(items)])

        return act

    # -- lives

    async def run_once(
        self, stored: list[Event], cut: int | None, *, parks: Parking, answers: str | None = None
    ) -> tuple[list[Event], str]:
        """Run in one more process, or load the execution only for an answer."""
        ledger = MemoryJournal(fail_at=None if cut is None else cut + 1)
        past = History(stored) if stored else None
        harness = ExecutionHarness(
            self.graph,
            self.acts,
            self.options,
            journal=ledger,
            history=past,
            is_recovery=past is not None and past.is_started and past.pause_reason is None,
            parks=parks,
            epoch=next(self.owners),
            reuse=self.reuse,
        )
        if parks == "never":
            harness.answer_every_request(2, "yes", fold(stored).requests if stored else ())
        if answers is not None:
            harness.execution.answer(answers, "yes")
            harness.execution.interrupt(at_once=True)
        status = "cut off"
        with suppress(StoreError):
            status = await harness.run()
        return [*stored, *ledger.appended], status


PARKING: tuple[Parking, ...] = ("never", "always")


async def run_with_interruptions(
    scene: RandomNestedRuns, choose: Random, cuts: int, *, parks: Parking
) -> list[Event]:
    """Run an execution with some interruptions; return all its stored events."""
    stored: list[Event] = []
    for _ in range(400):
        cut = choose.randrange(1, 9) if cuts > 0 else None
        cuts -= 1
        known = {(e.path, e.attempt) for e in stored if e.type in OUTCOMES}
        kept = {e.path for e in stored if e.type == "node.event" and "once" in e.data.values()}
        scene.ran.clear()
        scene.made.clear()
        answers: str | None = None
        if parks != "never" and stored:
            state = fold(stored)
            if state.requests and (state.status == "paused" or choose.random() < 0.2):
                answers = choose.choice(list(state.requests))
        stored, _ = await scene.run_once(stored, cut, parks=parks, answers=answers)
        waited = {(e.path, e.attempt) for e in stored if e.type == "node.waiting"}
        assert not (known - waited) & set(scene.ran), "what had its outcome ran again"
        assert not known & set(scene.ran), "what had asked ran again"
        assert not kept & {path for path, _ in scene.made if "[" not in path}
        if stored and stored[-1].type in TERMINAL_TYPES:
            return stored
    raise AssertionError(f"it never ends: {stored[-5:]}")


def ends(events: list[Event]) -> dict[str, Any]:
    state = fold(events)
    nodes = {path: (node.status, node.attempt, node.outputs) for path, node in state.nodes.items()}
    return {"status": state.status, **nodes}


def check(scene: RandomNestedRuns, stored: list[Event]) -> None:
    check_events([created_event(scene.graph), *(e._replace(seq=e.seq + 1) for e in stored)])
    starts = Counter(
        (e.path, e.attempt)
        for e in stored
        if e.type == "node.started" and not e.data.get("reentry")
    )
    assert set(starts.values()) <= {1}, "an attempt number was used twice"
    state = fold(stored)
    assert not state.requests
    over = {"completed", "failed", "cancelled", "skipped", "blocked"}
    assert {node.status for node in state.nodes.values()} <= over


@given(st.integers(0, 2**64))
@settings(max_examples=examples(150), deadline=None)
def test_an_interrupted_nested_run_ends_as_without_the_interruption(seed: int) -> None:
    cut_off(seed)


@pytest.mark.slow
@given(st.integers(0, 2**64))
@settings(max_examples=2_000, deadline=None)
def test_many_more_interrupted_nested_runs_end_as_without_the_interruption(seed: int) -> None:
    cut_off(seed)


@virtual_time
async def cut_off(seed: int) -> None:
    """Run a scene without and with interruptions, with and without parking: the ends are equal."""
    scene = RandomNestedRuns(Random(seed))  # noqa: S311 - a test's choices
    whole = await run_with_interruptions(scene, Random(seed), 0, parks="never")  # noqa: S311
    check(scene, whole)
    for parks in PARKING:
        choose = Random(seed)  # noqa: S311
        stored = await run_with_interruptions(scene, choose, 1 + choose.randrange(6), parks=parks)
        check(scene, stored)
        assert ends(stored) == ends(whole)
