"""What a fork takes over from the execution before it, inside nodes too, wherever it is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError
from planwave.events import Event, fold
from planwave.executor.node_api.host import NodeHost
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.reuse.reuse import ContinuedAttempt, ParentExecution, Reuse
from planwave.graph.model import Graph
from tests.support.engine.behaviors import returns_after
from tests.support.engine.generic_nodes import (
    DEFAULT_OPTIONS,
    ExecutionHarness,
    GenericNode,
    GenericNodeTypes,
    result_with,
)
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_nested_runs_recovery import (
    PARKING,
    RandomNestedRuns,
    check,
    ends,
    run_with_interruptions,
)
from tests.unit.executor.driver.test_plan_requests import scene
from tests.unit.executor.driver.test_revisions import revise_at

Inputs = Context = Any


def reuse_of(
    graph: Graph, events: Sequence[Event], rerun: Sequence[str] = (), **more: Any
) -> Reuse:
    """What a fork of an execution of this graph has from it."""
    host = NodeHost("x0", {}, None, None, None, None)
    program = Program(graph, GenericNodeTypes({}))
    options = more.pop("options", DEFAULT_OPTIONS)
    floors = more.pop("floors", {})
    before = ParentExecution(
        "x0", program, ParentHistory(events), host, options, None, wave_floors=floors
    )
    return Reuse("x0", [before], rerun, more.pop("given", {}), **more)


class Work:
    """Nodes that run nested graphs and may fail; records the paths that ran."""

    def __init__(self, **insides: Graph) -> None:
        self.ran: list[str] = []
        self.fails: set[str] = set()
        self.insides = insides
        self.variables: dict[str, Any] = {}

    def acts(self, *node_ids: str) -> Mapping[str, Any]:
        return {node_id: self.act for node_id in node_ids}

    async def act(self, inputs: Inputs, context: Context) -> Any:
        self.ran.append(context.path)
        for key, graph in self.insides.items():
            if key.startswith(f"{context.node_id}_"):
                await context.runtime.run_graph(key, graph, {}, variables=self.variables)
        if context.path in self.fails:
            raise NodeError("out of order")
        return result_with([context.node_id, *(each.value.value for each in inputs.arrivals)])

    async def runs(self, graph: Graph, ids: str, reuse: Reuse | None = None) -> ExecutionHarness:
        self.ran.clear()
        harness = ExecutionHarness(graph, self.acts(*ids.split()), reuse=reuse)
        await harness.run()
        return harness


def reused_paths(harness: ExecutionHarness) -> set[str | None]:
    done = (e for e in harness.stored if e.type == "node.completed")
    return {e.path for e in done if "reused" in e.data}


@virtual_time
async def test_an_execution_that_was_changed_in_waves_lends_all_its_results() -> None:
    graph, changed = parse_graph("a b", "a>b"), parse_graph("a b c", "a>b")
    waves: dict[str, Any] = {"scheduling": "waves", "replan": None}
    before = scene(None, {"b": returns_after(2)}, graph, **waves)
    revise_at(before, 1, changed)  # wave 2 has begun: ``c`` is not in the first one
    assert await before.run() == "completed"
    events = await before.execution.publisher.stored()
    options = RunOptions(scheduling="waves")
    reuse = reuse_of(changed, events, options=options, floors=fold(events).waves.floors)
    after = ExecutionHarness(changed, {}, options, reuse=reuse)
    assert await after.run() == "completed"
    assert reused_paths(after) == {"a", "b", "c"}


OUTER = parse_graph("a")
INNER = parse_graph("i j", "i>j")


@virtual_time
async def test_inside_a_node_only_failed_nodes_and_their_descendants_run() -> None:
    work = Work(a_k=INNER)
    work.fails = {"a[a_k]/j"}
    before = await work.runs(OUTER, "a i j")
    assert work.ran == ["a", "a[a_k]/i", "a[a_k]/j"]
    work.fails.clear()
    after = await work.runs(OUTER, "a i j", reuse_of(OUTER, before.stored))
    assert work.ran == ["a", "a[a_k]/j"]
    assert reused_paths(after) == {"a[a_k]/i"}
    assert after.execution.status == "completed"


@pytest.mark.parametrize("is_retry", [True, False])
@virtual_time
async def test_a_rerun_node_reuses_nested_results_only_in_a_retry(is_retry: bool) -> None:
    work = Work(a_k=INNER)
    before = await work.runs(OUTER, "a i j")
    reuse = reuse_of(OUTER, before.stored, ["a"], is_retry=is_retry)
    after = await work.runs(OUTER, "a i j", reuse)
    inside = {"a[a_k]/i", "a[a_k]/j"}
    assert reused_paths(after) == (inside if is_retry else set())
    assert set(work.ran) == {"a"} | (set() if is_retry else inside)


@virtual_time
async def test_nested_results_are_not_reused_with_other_variables_or_an_unknown_graph() -> None:
    work = Work(a_k=INNER)
    work.fails = {"a"}
    before = await work.runs(OUTER, "a i j")
    work.variables = {"item": 1}
    assert not reused_paths(await work.runs(OUTER, "a i j", reuse_of(OUTER, before.stored)))
    work.variables, work.insides = {}, {"a_k": parse_graph("i j h", "i>j")}
    after = await work.runs(OUTER, "a i j h", reuse_of(OUTER, before.stored))
    assert reused_paths(after) == {"a[a_k]/i", "a[a_k]/j"}, "that of which the content is known"
    told = [each._replace(data={**each.data, "data": without_document(each)})
            if each.type == "node.event" else each for each in before.stored]  # fmt: skip
    assert not reused_paths(await work.runs(OUTER, "a i j h", reuse_of(OUTER, told)))


def without_document(event: Event) -> Any:
    return {name: value for name, value in event.data["data"].items() if name != "document"}


@virtual_time
async def test_a_nested_run_is_compared_with_the_run_inside_the_same_outer_run() -> None:
    """Another graph one level up knows other names, so what is deeper may not be the same."""
    work = Work(a_k=parse_graph("b"), b_k=INNER)
    work.fails = {"a"}
    before = await work.runs(OUTER, "a b i j")
    assert reused_paths(await work.runs(OUTER, "a b i j", reuse_of(OUTER, before.stored))) == {
        "a[a_k]/b"
    }
    work.variables = {"item": 1}
    assert not reused_paths(await work.runs(OUTER, "a b i j", reuse_of(OUTER, before.stored)))


@virtual_time
async def test_inconsistent_parent_events_give_nothing_to_reuse() -> None:
    work = Work(a_k=INNER)
    before = await work.runs(OUTER, "a i j")
    odd = [each for each in before.stored if each.type != "node.started"]
    odd = [each._replace(path="a[a_k]/x") if each.path == "a[a_k]/i" else each for each in odd]
    work.fails = set()
    after = await work.runs(OUTER, "a i j", reuse_of(OUTER, odd, ["a"], is_retry=True))
    assert not reused_paths(after)
    assert after.execution.status == "completed"


@given(st.integers(0, 2**64))
@settings(max_examples=40, deadline=None)
@virtual_time
async def test_an_interrupted_fork_ends_as_without_the_interruption(seed: int) -> None:
    scene = RandomNestedRuns(Random(seed))  # noqa: S311 - a test's choices
    before = await run_with_interruptions(scene, Random(seed), 0, parks="never")  # noqa: S311
    scene.reuse = reuse_of(scene.graph, before, options=scene.options)
    whole = await run_with_interruptions(scene, Random(seed), 0, parks="never")  # noqa: S311
    check(scene, whole)
    for parks in PARKING:
        choose = Random(seed)  # noqa: S311
        scene.reuse = reuse_of(scene.graph, before, options=scene.options)
        stored = await run_with_interruptions(scene, choose, 1 + choose.randrange(6), parks=parks)
        check(scene, stored)
        assert ends(stored) == ends(whole)
        check_reused(before, stored)


def check_reused(before: Sequence[Event], stored: Sequence[Event]) -> None:
    """What was taken over is what there was, and did not run."""
    had: dict[str | None, list[Any]] = {}
    for event in before:
        if event.type == "node.completed":
            had.setdefault(event.path, []).append(event.data["outputs"])
    for event in stored:
        if event.type == "node.completed" and "reused" in event.data:
            assert event.data["outputs"] in had[event.path]


@virtual_time
async def test_a_node_that_runs_again_because_of_a_change_continues_its_recordings() -> None:
    graph = parse_graph("a b c", "a>b")
    work = Work()
    before = await work.runs(graph, "a b c")
    reuse = reuse_of(graph, before.stored, ["a"])

    async def changed(inputs: Inputs, context: Context) -> Any:
        return result_with("changed")

    harness = ExecutionHarness(graph, {**work.acts("b", "c"), "a": changed}, reuse=reuse)
    assert await harness.run() == "completed"
    assert reused_paths(harness) == {"c"}
    continued = {each: number_of(reuse.continued_attempt(each, 1)) for each in "abc"}
    assert continued == {"a": None, "b": 1, "c": None}


def number_of(continued: ContinuedAttempt | None) -> int | None:
    return None if continued is None else continued.number


@pytest.mark.parametrize("is_cancelled", [True, False])
@virtual_time
async def test_recordings_of_cancelled_attempts_are_continued_and_of_failed_ones_not(
    is_cancelled: bool,
) -> None:
    work = Work(a_k=INNER)
    work.fails = set() if is_cancelled else {"a[a_k]/i"}
    acts = dict(work.acts("a", "i", "j"))

    async def stopped(inputs: Inputs, context: Context) -> Any:
        harness.execution.cancel("enough")
        await asyncio.Event().wait()

    harness = ExecutionHarness(OUTER, {**acts, "i": stopped} if is_cancelled else acts)
    assert await harness.run() == ("cancelled" if is_cancelled else "failed")
    for more in ({}, {"is_retry": True}):
        reuse = reuse_of(OUTER, harness.stored, ["a"] if more else [], **more)
        await work.runs(OUTER, "a i j", reuse)
        for path in ("a", "a[a_k]/i"):
            assert number_of(reuse.continued_attempt(path, 1)) == (1 if is_cancelled else None)
            assert reuse.continued_attempt(path, 2) is None
        assert reuse.continued_attempt("a[a_k]/j", 1) is None
    anew = reuse_of(OUTER, harness.stored, ["a"])
    await work.runs(OUTER, "a i j", anew)
    assert anew.continued_attempt("a", 1) is None
    assert anew.continued_attempt("a[a_k]/i", 1) is None


class Damaged(Reuse):
    """What a fork has from a parent that cannot be understood."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("x0", [], [], {})
        self.error = error

    async def result_of(self, attempt: Any, host: Any) -> None:
        raise self.error


@virtual_time
async def test_a_node_runs_if_the_search_for_an_earlier_result_fails() -> None:
    ran: list[str] = []

    async def runs(inputs: Any, context: Any) -> Any:
        ran.append(context.node_id)
        return result_with(1)

    harness = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": runs, "b": runs}, reuse=Damaged(KeyError("type"))
    )
    assert await asyncio.wait_for(harness.run(), 2) == "completed"
    assert ran == ["a", "b"]


@virtual_time
async def test_a_node_fails_if_the_search_for_an_earlier_result_is_cancelled() -> None:
    harness = ExecutionHarness(parse_graph("a"), reuse=Damaged(asyncio.CancelledError()))
    assert await asyncio.wait_for(harness.run(), 2) == "failed"
    assert harness.data_of("node.failed")[0]["error"]["message"] == "the node cancelled itself"


class Unsure(GenericNode):
    """A type whose ``result_depends_on`` fails."""

    async def result_depends_on(self, *_: Any) -> Any:
        raise AttributeError("a bug of the type's own")


@virtual_time
async def test_an_error_of_result_depends_on_is_logged_and_the_node_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work()
    before = await work.runs(OUTER, "a")
    harness = ExecutionHarness(OUTER, work.acts("a"), reuse=reuse_of(OUTER, before.stored))
    harness.program.steps[0] = replace(
        harness.program.steps[0], implementation=Unsure(harness.behaviors)
    )
    harness.program.dependent = frozenset({0})
    work.ran.clear()
    assert await harness.run() == "completed"
    assert (work.ran, reused_paths(harness)) == (["a"], set())
    assert "a bug of the type's own" in caplog.text
