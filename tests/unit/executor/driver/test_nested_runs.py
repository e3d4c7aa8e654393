"""Graphs that run inside nodes: what they see, what is known of them, when they end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.events import Event, fold
from planwave.executor.node_api import nested
from planwave.executor.options import RunOptions
from planwave.executor.state import Attempt, GraphRun, NestedRun, NodeRun
from planwave.graph.model import Graph, Node, Policy, Retry
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import Suspension
from tests.support.engine.behaviors import asks, runs_graph
from tests.support.engine.event_histories import created_event
from tests.support.engine.event_invariants import check_events
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    node_event,
    result_with,
)
from tests.support.engine.recovered_runs import recovered
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


def reading(node_id: str, **data: str) -> Graph:
    """A graph of one node with these expressions."""
    return Graph((Node(node_id, "step", node_id, data=data),), ())


class Reader:
    """A node type that returns its resolved data."""

    node_type = "step"

    def __init__(self, harness: ExecutionHarness) -> None:
        self._stone = harness.program.steps[0].implementation

    async def execute(self, data: Mapping[str, Any], inputs: Inputs, context: Context) -> Any:
        if context.node_id in self._stone.behaviors:
            return await self._stone.behaviors[context.node_id](inputs, context)
        return result_with(dict(data))


# -- names


@virtual_time
async def test_expressions_see_the_variables_of_all_outer_graphs() -> None:
    deepest = reading("r", text="{{ goal }} {{ item }} {{ index }} {{ n }}")
    got: list[Any] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        for index, item in enumerate("xy"):
            variables = {"item": item, "index": index}
            middle = parse_graph("inner")
            await context.runtime.run_graph(f"{index}", middle, {}, variables=variables)
        return result_with(1)

    async def inner(inputs: Inputs, context: Context) -> Any:
        for n in (7, 8):  # the inner name hides that of the graph around it
            own = {"n": n, "index": n}
            outputs = await context.runtime.run_graph(f"{n}", deepest, {}, variables=own)
            got.append(outputs["r"]["output"].value["text"])
        outputs = await context.runtime.run_graph("none", reading("r", text="{{ index }}"), {})
        got.append(outputs["r"]["output"].value["text"])
        return result_with(1)

    harness = ExecutionHarness(
        parse_graph("outer"), {"outer": outer, "inner": inner}, variables={"goal": "g"}
    )
    reader = Reader(harness)
    harness.program.catalogue.implementation = lambda node_type: reader  # type: ignore[method-assign]
    assert await harness.run() == "completed", harness.execution.error
    assert got == ["g x 7 7", "g x 8 8", 0, "g y 7 7", "g y 8 8", 1]


# -- how a graph runs


@virtual_time
async def test_a_graph_is_prepared_once_for_all_its_runs(monkeypatch: Any) -> None:
    made: list[Graph] = []
    original = nested.Program

    def counting(graph: Graph, catalogue: Any, **more: Any) -> Any:
        made.append(graph)
        return original(graph, catalogue, **more)

    monkeypatch.setattr(nested, "Program", counting)
    body = parse_graph("i j", "i>j")

    async def a(inputs: Inputs, context: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            for n in range(20):
                group.create_task(context.runtime.run_graph(f"{n}", body, {}))
        return result_with(1)

    assert await ExecutionHarness(parse_graph("a b", "a>b"), {"a": a, "b": a}).run() == "completed"
    assert made == [body]


def opened(harness: ExecutionHarness, path: str) -> list[Any]:
    """The data of the stored starts of nested runs of a node."""
    told = harness.data_of("node.event", path)
    return [each["data"] for each in told if each["event_type"] == "run_graph"]


def retried(graph: Graph, attempts: int = 2, **more: Any) -> Graph:
    policy = Policy(retry=Retry(attempts), **more)
    return Graph(tuple(n._replace(policy=policy) for n in graph.nodes), graph.edges)


# -- keys


@virtual_time
async def test_the_start_of_a_nested_run_is_stored_with_hashes_of_graph_and_inputs() -> None:
    graph = parse_graph("i")
    harness = ExecutionHarness(
        parse_graph("a"), {"a": runs_graph("k", graph, {"i": {"output": 1}}, item=2)}
    )
    assert await harness.run() == "completed"
    (opening,) = opened(harness, "a")
    assert opening["key"] == "k"
    assert opening["graph"] == graph_hash(graph)
    assert len(opening["inputs"]) == 64
    names = harness.event_names("node.started", "node.event", "node.completed")
    assert names == [
        "node.started a", "node.event a", "node.completed a[k]/i", "node.completed a",
    ]  # fmt: skip


OTHERS = {
    "graph": ({"graph": parse_graph("j")}, "another graph"),
    "inputs": ({"inputs": {"i": {"output": 2}}}, "other inputs"),
    "variables": ({"variables": {"item": 2}}, "other inputs or variables"),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("restarts", [False, True])
@virtual_time
async def test_a_known_key_with_another_graph_or_inputs_is_rejected(
    what: str, restarts: bool
) -> None:
    changed, events = OTHERS[what]
    usual: dict[str, Any] = {"graph": parse_graph("i"), "inputs": {}, "variables": {"item": 1}}

    async def act(inputs: Inputs, context: Context) -> Any:
        starts.append(context.attempt)
        asked = usual | (changed if len(starts) > 1 else {})
        await context.runtime.run_graph(
            "k", asked["graph"], asked["inputs"], variables=asked["variables"]
        )
        if len(starts) == 1:
            if restarts:
                await asyncio.Event().wait()
            raise NodeError("once more", retryable=True)
        return result_with(1)

    starts: list[int] = []

    ledger = MemoryJournal()
    harness = ExecutionHarness(retried(parse_graph("a")), {"a": act}, journal=ledger)
    if restarts:
        harness.interrupt_after(1)
    ended = await harness.run()
    if restarts:
        harness = recovered(harness, harness.stored)
        ended = await harness.run()
    assert ended == "failed"
    (failed,) = harness.data_of("node.failed", "a")
    assert failed["error"]["code"] == "resume-mismatch"
    assert events in failed["error"]["message"]
    assert "'k'" in failed["error"]["message"]
    assert "once" in failed["error"]["hint"]


@pytest.mark.parametrize("key", ["", "a/b", "a[b", "a]", "x" * 101, 5, None])
@virtual_time
async def test_a_key_that_would_make_paths_ambiguous_is_rejected(key: Any) -> None:
    harness = ExecutionHarness(parse_graph("a"), {"a": runs_graph(key, parse_graph("i"))})
    assert await harness.run() == "failed"
    error = harness.data_of("node.failed", "a")[0]["error"]
    assert (error["code"], "a key is text" in error["hint"]) == ("invalid-key", True)


@virtual_time
async def test_concurrent_calls_with_one_key_share_one_run() -> None:
    async def twice(inputs: Inputs, context: Context) -> Any:
        graph = parse_graph("i")
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(context.runtime.run_graph("k", graph, {})) for _ in range(2)]
        return result_with([task.result()["i"]["output"].value for task in asked])

    harness = ExecutionHarness(parse_graph("a"), {"a": twice})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == ["i", "i"]
    assert harness.event_names("node.started").count("node.started a[k]/i") == 1


@virtual_time
async def test_a_shared_run_continues_if_one_of_its_callers_gives_up() -> None:
    async def twice(inputs: Inputs, context: Context) -> Any:
        graph = parse_graph("i")
        async with asyncio.TaskGroup() as group:
            kept = group.create_task(context.runtime.run_graph("k", graph, {}))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await context.runtime.run_graph("k", graph, {})
        return result_with(kept.result()["i"]["output"].value)

    async def slow(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(3)
        return result_with("slow")

    harness = ExecutionHarness(parse_graph("a"), {"a": twice, "i": slow})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == "slow"


# -- attempts


@virtual_time
async def test_a_retry_restarts_a_failed_run_with_higher_attempt_numbers() -> None:
    seen: list[tuple[str, int]] = []

    async def inner(inputs: Inputs, context: Context) -> Any:
        seen.append((context.path, context.attempt))
        return await runs_graph("d", retried(parse_graph("m")))(inputs, context)

    async def shaky(inputs: Inputs, context: Context) -> Any:
        seen.append((context.path, context.attempt))
        if context.attempt < 4:
            raise NodeError("no", retryable=True)
        return result_with("at last")

    async def outer(inputs: Inputs, context: Context) -> Any:
        done = await context.runtime.run_graph("done", parse_graph("o"), {})
        assert done["o"]["output"].value == "o"
        try:
            await context.runtime.run_graph("k", parse_graph("n"), {})
        except NodeError as error:
            with pytest.raises(NodeError, match="/m'"):  # the same attempt gets the same failure
                await context.runtime.run_graph("k", parse_graph("n"), {})
            raise NodeError("no", retryable=True) from error
        return result_with(1)

    harness = ExecutionHarness(
        retried(parse_graph("a"), 3), {"a": outer, "n": inner, "m": shaky}, journal=MemoryJournal()
    )
    assert await harness.run() == "completed", harness.execution.error
    assert seen == [
        ("a[k]/n", 1), ("a[k]/n[d]/m", 1), ("a[k]/n[d]/m", 2),
        ("a[k]/n", 3), ("a[k]/n[d]/m", 3), ("a[k]/n[d]/m", 4),
    ]  # fmt: skip
    assert [each.get("before") for each in opened(harness, "a")] == [None, None, 2]
    assert harness.event_names("node.started").count("node.started a[done]/o") == 1
    assert fold(harness.stored).nodes["a[k]/n"].status == "completed"


@virtual_time
async def test_an_attempt_cancelled_before_its_start_is_counted() -> None:
    body = parse_graph("n", policies={"n": Policy(retry=Retry(2, 5))})

    async def fails(inputs: Inputs, context: Context) -> Any:
        if context.path == "a[k]/n" and context.attempt == 1:
            raise NodeError("not this time", retryable=True)
        return result_with(context.attempt)

    async def outer(inputs: Inputs, context: Context) -> Any:
        try:
            return await runs_graph("k", body)(inputs, context)
        except NodeError as error:
            raise NodeError("cancelled inside", retryable=True) from error

    harness = ExecutionHarness(
        retried(parse_graph("a"), 2), {"a": outer, "n": fails}, journal=MemoryJournal()
    )
    loop = asyncio.get_running_loop()
    loop.call_later(1, lambda: harness.execution.cancel_node("a[k]/n", "enough"))
    assert await harness.run() == "completed", harness.execution.error
    attempts = [(e.type, e.attempt) for e in harness.stored if e.path == "a[k]/n"]
    assert attempts == [
        ("node.started", 1), ("node.retrying", 1), ("node.cancelled", 2),
        ("node.started", 3), ("node.completed", 3),
    ]  # fmt: skip
    assert [each.get("before") for each in opened(harness, "a")] == [None, 2]


@virtual_time
async def test_a_run_cancelled_by_the_failure_of_its_node_is_restarted_by_the_next_attempt() -> (
    None
):
    async def outer(inputs: Inputs, context: Context) -> Any:
        if context.attempt == 1:
            async with asyncio.TaskGroup() as group:
                group.create_task(context.runtime.run_graph("k", parse_graph("i"), {}))
                await asyncio.sleep(1)
                raise NodeError("no")
        return await runs_graph("k", parse_graph("i"))(inputs, context)

    async def i(inputs: Inputs, context: Context) -> Any:
        if context.attempt == 1:
            await asyncio.Event().wait()
        return result_with(context.attempt)

    async def shaky(inputs: Inputs, context: Context) -> Any:
        try:
            return await outer(inputs, context)
        except ExceptionGroup:
            raise NodeError("once more", retryable=True) from None

    harness = ExecutionHarness(retried(parse_graph("a")), {"a": shaky, "i": i})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == {"i": {"output": 2}}
    assert "node.cancelled a[k]/i" in harness.event_names()


@virtual_time
async def test_an_abandoned_run_is_restarted_when_it_is_requested_again() -> None:
    async def act(inputs: Inputs, context: Context) -> Any:
        for _ in range(2):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    return await runs_graph("k", parse_graph("i"))(inputs, context)
        return result_with("never")

    async def i(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(5 if context.attempt == 1 else 1)
        return result_with(context.attempt)

    harness = ExecutionHarness(parse_graph("a"), {"a": act, "i": i})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == {"i": {"output": 2}}
    assert [each.get("dropped") for each in opened(harness, "a")] == [None, True, None]


@virtual_time
async def test_a_run_not_requested_again_before_a_retry_is_restarted_by_it() -> None:
    async def act(inputs: Inputs, context: Context) -> Any:
        starts.append(context.attempt)
        if starts == [1, 1]:
            raise NodeError("before it asked", retryable=True)
        return await runs_graph("k", parse_graph("i"))(inputs, context)

    async def i(inputs: Inputs, context: Context) -> Any:
        if starts == [1]:
            await asyncio.Event().wait()
        return result_with(context.attempt)

    starts: list[int] = []
    harness = ExecutionHarness(
        retried(parse_graph("a")), {"a": act, "i": i}, journal=MemoryJournal()
    )
    harness.interrupt_after(1)
    assert await harness.run() == "interrupted"
    last = recovered(harness, harness.stored)
    assert await last.run() == "completed"
    assert starts == [1, 1, 2]
    assert last.execution.outputs["a"]["output"].value == {"i": {"output": 2}}
    assert [each.get("before") for each in opened(last, "a")] == [1]


@virtual_time
@pytest.mark.parametrize("reaches", ["its opening", "its node"])
async def test_a_run_that_begins_anew_takes_up_nothing_stored_inside_it(reaches: str) -> None:
    """Between, a restart came in which the inner run was not requested again before its end."""
    lives: list[str] = []

    async def outer(inputs: Inputs, context: Context) -> Any:
        for limit_s in (2, None):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    return await runs_graph("k", parse_graph("m"))(inputs, context)
        raise AssertionError

    async def middle(inputs: Inputs, context: Context) -> Any:
        lives.append(context.path)
        if len(lives) == 2:  # entered again after the restart, it does not come to its question
            await asyncio.Event().wait()
        return await runs_graph("inner", parse_graph("i"))(inputs, context)

    async def innermost(inputs: Inputs, context: Context) -> Any:
        if len(lives) == 1:
            await asyncio.Event().wait()
        return result_with(context.attempt)

    behaviors = {"a": outer, "m": middle, "i": innermost}
    harness = ExecutionHarness(parse_graph("a"), behaviors, journal=MemoryJournal())
    harness.interrupt_after(1)
    assert await harness.run() == "interrupted"
    stored = harness.stored
    if reaches == "its opening":
        opening = next(e for e in stored if e.path == "a[k]/m" and e.type == "node.event")
        stored = [event for event in stored if event.seq <= opening.seq]
    last = recovered(harness, stored)
    assert await last.run() == "completed", last.execution.error
    assert last.execution.outputs["a"]["output"].value == {"m": {"output": {"i": {"output": 2}}}}
    assert [each.get("before") for each in opened(last, "a[k]/m")] == [1]


@virtual_time
async def test_inner_nodes_are_cancelled_before_the_nodes_around_them() -> None:
    async def twice(inputs: Inputs, context: Context) -> Any:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await context.runtime.run_graph("k", parse_graph("b"), {})
        return await runs_graph("k", parse_graph("b"))(inputs, context)

    async def waits_at_first(inputs: Inputs, context: Context) -> Any:
        return Suspension({}) if context.attempt == 1 else result_with("at once")

    async def b(inputs: Inputs, context: Context) -> Any:
        with context.own_work():  # so it is not parked but cancelled
            async with asyncio.TaskGroup() as group:
                group.create_task(context.runtime.run_graph("d", parse_graph("q p"), {}))
                await asyncio.sleep(3)
        return result_with(1)

    harness = ExecutionHarness(
        parse_graph("a"), {"a": twice, "b": b, "q": waits_at_first}, journal=MemoryJournal()
    )
    assert await harness.run() == "completed", harness.execution.error
    names = [
        f"{e.type} {e.path}" for e in harness.stored if e.type in ("node.cancelled", "node.event")
    ]
    assert names == [
        "node.event a", "node.event a[k]/b",
        "node.cancelled a[k]/b[d]/q", "node.cancelled a[k]/b", "node.event a",
        "node.event a", "node.event a[k]/b",
    ]  # fmt: skip
    again_ = [
        e.attempt for e in harness.stored if e.path == "a[k]/b[d]/q" and e.type == "node.started"
    ]
    assert again_ == [1, 2]
    check_events(
        [created_event(harness.program.graph), *(e._replace(seq=e.seq + 1) for e in harness.stored)]
    )


@virtual_time
async def test_a_node_cannot_emit_events_reserved_for_the_driver() -> None:
    async def forges(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "once", {"key": "v", "value": 1})
        yield node_event(context, "run_graph", {"key": "k", "graph": "", "inputs": ""})
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": forges})
    assert await harness.run() == "completed"
    assert harness.data_of("node.event") == []
    assert [each["level"] for each in harness.data_of("node.log")] == ["warning", "warning"]


# -- limits and memory


@virtual_time
async def test_graphs_nest_down_to_the_limit() -> None:
    acts = {"a": runs_graph("k", parse_graph("b")), "b": runs_graph("k", parse_graph("c"))}
    assert (
        await ExecutionHarness(parse_graph("a"), acts, RunOptions(max_depth=2)).run() == "completed"
    )
    harness = ExecutionHarness(parse_graph("a"), acts, RunOptions(max_depth=1))
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed", "a[k]/b")
    assert failed["error"]["code"] == "limit-exceeded"
    assert "limit nested_depth" in failed["error"]["message"]


@pytest.mark.parametrize("cut", [False, True])
@virtual_time
async def test_starts_of_nodes_are_limited_also_after_a_restart(cut: bool) -> None:
    async def loop(inputs: Inputs, context: Context) -> Any:
        for n in range(5):
            await context.runtime.run_graph(f"{n}", parse_graph("i"), {})
            await asyncio.sleep(1)
        return result_with(1)

    enough = ExecutionHarness(parse_graph("a"), {"a": loop}, RunOptions(max_steps=6))
    assert await enough.run() == "completed"
    harness = ExecutionHarness(
        parse_graph("a"), {"a": loop}, RunOptions(max_steps=5), journal=MemoryJournal()
    )
    if cut:
        harness.interrupt_after(2.5)
    ended = await harness.run()
    starts = harness.event_names("node.started")
    if cut:
        harness = recovered(harness, harness.stored)
        ended = await harness.run()
        starts += harness.event_names("node.started")
    assert ended == "failed"
    assert len(starts) == 5
    assert harness.execution.error is not None
    assert harness.execution.error["code"] == "limit-exceeded"
    assert "limit steps" in harness.execution.error["message"]


# -- what fails in it


@virtual_time
async def test_a_nested_failure_names_the_innermost_node_once() -> None:
    async def breaks(inputs: Inputs, context: Context) -> Any:
        raise NodeError("boom", code="broken", hint="mend it")

    acts = {
        "a": runs_graph("0", parse_graph("b")),
        "b": runs_graph("1", parse_graph("c")),
        "c": breaks,
    }
    harness = ExecutionHarness(parse_graph("a"), acts)
    assert await harness.run() == "failed"
    cause = {"node": "a[0]/b[1]/c", "code": "broken", "message": "boom", "hint": "mend it"}
    told = {"message": "node 'a[0]/b[1]/c' failed: boom", "hint": "mend it", "cause": cause}
    assert harness.execution.error == {**told, "code": "nested-run-failed", "node": "a"}
    for path in ("a", "a[0]/b"):
        (failed,) = harness.data_of("node.failed", path)
        assert failed["error"] == {**told, "code": "nested-run-failed"}
    (failed,) = harness.data_of("node.failed", "a[0]/b[1]/c")
    assert failed["error"] == {"code": "broken", "message": "boom", "hint": "mend it"}


@pytest.mark.parametrize(
    ("edges", "code", "path"),
    [
        (("b>c", "c>d", "d>c"), "flow-cycle", "c -> d -> c"),
        (("b>c", "c~d", "d~c"), "link-cycle", "c -> d -> c"),
    ],
)
@virtual_time
async def test_an_unchecked_graph_with_a_cycle_is_rejected(
    edges: tuple[str, ...], code: str, path: str
) -> None:
    harness = ExecutionHarness(
        parse_graph("a"), {"a": runs_graph("k", parse_graph("b c d", *edges))}
    )
    assert await harness.run() == "failed"
    (failed,) = harness.data_of("node.failed", "a")
    assert failed["error"]["code"] == code
    assert failed["error"]["message"].endswith(f": {path}")
    assert "'a' cannot run a graph inside itself" in failed["error"]["message"]


# -- what is told of it


def documents(events: list[Event]) -> list[tuple[str | None, str]]:
    """Return the nodes that stored a document, and the hash of its graph."""
    starts = [e for e in events if e.data.get("event_type") == "run_graph"]
    return [(e.path, e.data["data"]["graph"]) for e in starts if "document" in e.data["data"]]


@virtual_time
async def test_the_document_of_a_nested_graph_is_stored_once() -> None:
    one, other = parse_graph("i j", "i>j"), parse_graph("i")
    runs_both = parse_graph("a b", "a>b")

    async def act(inputs: Inputs, context: Context) -> Any:
        for n in range(50):
            await context.runtime.run_graph(f"{n}", one, {})
        await context.runtime.run_graph("o", other, {})
        return result_with(1)

    harness = ExecutionHarness(runs_both, {"a": act, "b": act}, journal=MemoryJournal())
    assert await harness.run() == "completed"
    assert documents(harness.stored) == [("a", graph_hash(one)), ("a", graph_hash(other))]
    state = fold([created_event(runs_both), *(e._replace(seq=e.seq + 1) for e in harness.stored)])
    inside = state.nested_graphs
    assert inside.documents == {graph_hash(g): g.to_document() for g in (one, other)}
    assert inside.runs["b[49]/"] == graph_hash(one)


@virtual_time
async def test_the_document_of_a_nested_graph_is_not_stored_again_after_a_restart() -> None:
    body = parse_graph("q")
    harness = ExecutionHarness(
        parse_graph("a"),
        {"a": runs_graph("k", body), "q": asks()},
        journal=MemoryJournal(),
        parks="always",
    )
    assert await harness.run() == "paused"
    stored = list(harness.stored)
    following = recovered(harness, stored)
    done = following.execution.answer(harness.request_id(), "yes")
    assert await following.run() == "completed"
    await done
    assert documents([*stored, *following.stored]) == [("a", graph_hash(body))]


def alive() -> Counter[str]:
    """Count what there is of an execution, and of this event loop: servers of other tests have theirs."""
    gc.collect()
    kinds, loop = (GraphRun, Attempt, NestedRun, NodeRun), asyncio.get_running_loop()
    return Counter(
        type(each).__name__
        for each in gc.get_objects()
        if isinstance(each, kinds) or (isinstance(each, asyncio.Future) and each.get_loop() is loop)
    )


@pytest.mark.parametrize("runs", [100, pytest.param(1_000, marks=pytest.mark.slow)])
@virtual_time
async def test_many_nested_runs_leave_nothing(runs: int) -> None:
    left: list[Counter[str]] = []

    async def loop(inputs: Inputs, context: Context) -> Any:
        left_over = iter(range(runs))
        body = parse_graph("i")

        async def work() -> None:
            for n in left_over:
                await context.runtime.run_graph(f"{n}", body, {}, variables={"item": n})

        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(work())
        return result_with(1)

    async def look(inputs: Inputs, context: Context) -> Any:
        left.append(alive())
        return result_with(1)

    graph = parse_graph("before a between b after", "before>a", "a>between", "between>b", "b>after")
    looks = dict.fromkeys(("before", "between", "after"), look)
    harness = ExecutionHarness(graph, {**looks, "a": loop, "b": loop}, journal=MemoryJournal())
    gc.collect()
    gc.freeze()  # what other tests left is looked at by no collection, which would take seconds
    assert await harness.run() == "completed"
    before, between, after = left
    assert between == before
    assert after == before
