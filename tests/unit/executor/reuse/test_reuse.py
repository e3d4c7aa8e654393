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
from planwave.events import Event
from planwave.executor.node_api.host import NodeHost
from planwave.executor.program import Program
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.reuse.reuse import ParentExecution, Reuse
from planwave.graph.model import Graph
from tests.support.engine.generic_nodes import (
    DEFAULT_OPTIONS,
    ExecutionHarness,
    GenericCatalog,
    GenericNode,
    result_with,
)
from tests.support.graph.fake_catalog import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_nested_runs_recovery import Tale, check, ends, lived

Inputs = Context = Any


def reuse_of(
    graph: Graph, events: Sequence[Event], rerun: Sequence[str] = (), **more: Any
) -> Reuse:
    """What a fork of an execution of this graph has from it."""
    host = NodeHost("x0", {}, None, None, None, None)
    program = Program(graph, GenericCatalog({}))
    options = more.pop("options", DEFAULT_OPTIONS)
    before = ParentExecution("x0", program, ParentHistory(events), host, options, None)
    return Reuse("x0", [before], rerun, more.pop("given", {}), **more)


class Work:
    """Nodes that run graphs, one of which fails; who ran is noted."""

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
        rig = ExecutionHarness(graph, self.acts(*ids.split()), reuse=reuse)
        await rig.run()
        return rig


def taken(rig: ExecutionHarness) -> set[str | None]:
    done = (e for e in rig.stored if e.type == "node.completed")
    return {e.path for e in done if "reused" in e.data}


OUTER = parse_graph("a")
INNER = parse_graph("i j", "i>j")


@virtual_time
async def test_only_what_failed_and_what_follows_it_runs_inside_a_node() -> None:
    work = Work(a_k=INNER)
    work.fails = {"a[a_k]/j"}
    before = await work.runs(OUTER, "a i j")
    assert work.ran == ["a", "a[a_k]/i", "a[a_k]/j"]
    work.fails.clear()
    after = await work.runs(OUTER, "a i j", reuse_of(OUTER, before.stored))
    assert work.ran == ["a", "a[a_k]/j"]
    assert taken(after) == {"a[a_k]/i"}
    assert after.execution.status == "completed"


@pytest.mark.parametrize("is_retry", [True, False])
@virtual_time
async def test_a_node_that_is_to_run_again_begins_anew_but_in_a_retry(is_retry: bool) -> None:
    work = Work(a_k=INNER)
    before = await work.runs(OUTER, "a i j")
    reuse = reuse_of(OUTER, before.stored, ["a"], is_retry=is_retry)
    after = await work.runs(OUTER, "a i j", reuse)
    inside = {"a[a_k]/i", "a[a_k]/j"}
    assert taken(after) == (inside if is_retry else set())
    assert set(work.ran) == {"a"} | (set() if is_retry else inside)


@virtual_time
async def test_other_variables_or_another_graph_of_unknown_content_are_run() -> None:
    work = Work(a_k=INNER)
    work.fails = {"a"}
    before = await work.runs(OUTER, "a i j")
    work.variables = {"item": 1}
    assert not taken(await work.runs(OUTER, "a i j", reuse_of(OUTER, before.stored)))
    work.variables, work.insides = {}, {"a_k": parse_graph("i j h", "i>j")}
    after = await work.runs(OUTER, "a i j h", reuse_of(OUTER, before.stored))
    assert taken(after) == {"a[a_k]/i", "a[a_k]/j"}, "that of which the content is known"
    told = [each._replace(data={**each.data, "data": without_document(each)})
            if each.type == "node.event" else each for each in before.stored]  # fmt: skip
    assert not taken(await work.runs(OUTER, "a i j h", reuse_of(OUTER, told)))


def without_document(event: Event) -> Any:
    return {name: value for name, value in event.data["data"].items() if name != "document"}


@virtual_time
async def test_a_run_goes_by_the_one_in_the_graph_around_it_and_by_no_other() -> None:
    """Another graph one level up knows other names, so what is deeper may not be the same."""
    work = Work(a_k=parse_graph("b"), b_k=INNER)
    work.fails = {"a"}
    before = await work.runs(OUTER, "a b i j")
    assert taken(await work.runs(OUTER, "a b i j", reuse_of(OUTER, before.stored))) == {"a[a_k]/b"}
    work.variables = {"item": 1}
    assert not taken(await work.runs(OUTER, "a b i j", reuse_of(OUTER, before.stored)))


@virtual_time
async def test_what_makes_no_sense_leaves_nothing_to_be_taken_over() -> None:
    work = Work(a_k=INNER)
    before = await work.runs(OUTER, "a i j")
    odd = [each for each in before.stored if each.type != "node.started"]
    odd = [each._replace(path="a[a_k]/x") if each.path == "a[a_k]/i" else each for each in odd]
    work.fails = set()
    after = await work.runs(OUTER, "a i j", reuse_of(OUTER, odd, ["a"], is_retry=True))
    assert not taken(after)
    assert after.execution.status == "completed"


@given(st.integers(0, 2**64))
@settings(max_examples=40, deadline=None)
@virtual_time
async def test_a_fork_that_is_cut_off_ends_as_if_it_had_not_been(seed: int) -> None:
    tale = Tale(Random(seed))  # noqa: S311 - a test's choices
    before = await lived(tale, Random(seed), 0, parks=False)  # noqa: S311
    tale.reuse = reuse_of(tale.graph, before, options=tale.options)
    whole = await lived(tale, Random(seed), 0, parks=False)  # noqa: S311
    check(tale, whole)
    for parks in (False, True):
        choose = Random(seed)  # noqa: S311
        tale.reuse = reuse_of(tale.graph, before, options=tale.options)
        stored = await lived(tale, choose, 1 + choose.randrange(6), parks=parks)
        check(tale, stored)
        assert ends(stored) == ends(whole)
        check_taken(before, stored)


def check_taken(before: Sequence[Event], stored: Sequence[Event]) -> None:
    """What was taken over is what there was, and did not run."""
    had: dict[str | None, list[Any]] = {}
    for event in before:
        if event.type == "node.completed":
            had.setdefault(event.path, []).append(event.data["outputs"])
    for event in stored:
        if event.type == "node.completed" and "reused" in event.data:
            assert event.data["outputs"] in had[event.path]


@pytest.mark.parametrize("is_cancelled", [True, False])
@virtual_time
async def test_what_came_to_no_end_is_gone_on_with_and_what_failed_is_not(
    is_cancelled: bool,
) -> None:
    work = Work(a_k=INNER)
    work.fails = set() if is_cancelled else {"a[a_k]/i"}
    acts = dict(work.acts("a", "i", "j"))

    async def stopped(inputs: Inputs, context: Context) -> Any:
        rig.execution.cancel("enough")
        await asyncio.Event().wait()

    rig = ExecutionHarness(OUTER, {**acts, "i": stopped} if is_cancelled else acts)
    assert await rig.run() == ("cancelled" if is_cancelled else "failed")
    for more in ({}, {"is_retry": True}):
        reuse = reuse_of(OUTER, rig.stored, ["a"] if more else [], **more)
        await work.runs(OUTER, "a i j", reuse)
        for path in ("a", "a[a_k]/i"):
            assert reuse.continued_attempt(path, 1) == (1 if is_cancelled else None)
            assert reuse.continued_attempt(path, 2) is None
        assert reuse.continued_attempt("a[a_k]/j", 1) is None
    anew = reuse_of(OUTER, rig.stored, ["a"])
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
async def test_a_node_runs_where_looking_for_an_earlier_result_fails() -> None:
    ran: list[str] = []

    async def runs(inputs: Any, context: Any) -> Any:
        ran.append(context.node_id)
        return result_with(1)

    rig = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": runs, "b": runs}, reuse=Damaged(KeyError("type"))
    )
    assert await asyncio.wait_for(rig.run(), 2) == "completed"
    assert ran == ["a", "b"]


@virtual_time
async def test_a_node_fails_where_looking_for_an_earlier_result_is_cancelled() -> None:
    rig = ExecutionHarness(parse_graph("a"), reuse=Damaged(asyncio.CancelledError()))
    assert await asyncio.wait_for(rig.run(), 2) == "failed"
    assert rig.data_of("node.failed")[0]["error"]["message"] == "the node cancelled itself"


class Unsure(GenericNode):
    """A type that breaks where it is asked what its result follows from."""

    async def result_depends_on(self, *_: Any) -> Any:
        raise AttributeError("a bug of the type's own")


@virtual_time
async def test_a_type_that_cannot_say_what_its_result_follows_from_is_run_and_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work()
    before = await work.runs(OUTER, "a")
    rig = ExecutionHarness(OUTER, work.acts("a"), reuse=reuse_of(OUTER, before.stored))
    rig.program.steps[0] = replace(rig.program.steps[0], implementation=Unsure(rig.behaviors))
    work.ran.clear()
    assert await rig.run() == "completed"
    assert (work.ran, taken(rig)) == (["a"], set())
    assert "a bug of the type's own" in caplog.text
