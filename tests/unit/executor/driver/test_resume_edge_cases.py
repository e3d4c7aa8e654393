"""Edge cases of pauses, nested runs and resumed executions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.errors import Conflict, Gone, PlanwaveError
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.model import Policy, Retry
from planwave.graph.protocols import Suspension
from tests.support.engine.behaviors import asks
from tests.support.engine.event_histories import TIMESTAMP, created_event
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time


@virtual_time
async def test_a_nested_wait_does_not_count_for_the_run_timeout() -> None:
    async def outer(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("k", parse_graph("q"), {})
        await asyncio.sleep(3)
        return result_with("done")

    async def works_then_asks(inputs: Any, context: Any) -> Any:
        await asyncio.sleep(3)
        return Suspension({})

    harness = ExecutionHarness(
        parse_graph("a"),
        {"a": outer, "q": works_then_asks},
        RunOptions(run_timeout_s=7),
        journal=MemoryJournal(),
    )
    harness.answer_after(1000)
    assert await harness.run() == "completed"


@virtual_time
async def test_the_run_timeout_continues_after_a_wait() -> None:
    async def outer(inputs: Any, context: Any) -> None:
        await context.runtime.run_graph("k", parse_graph("q"), {})
        await asyncio.sleep(10_000)

    harness = ExecutionHarness(
        parse_graph("a"),
        {"a": outer, "q": asks(timeout_s=100)},
        RunOptions(run_timeout_s=7),
        journal=MemoryJournal(),
    )
    assert await harness.run() == "failed"
    assert harness.execution.error is not None
    assert harness.execution.error["code"] == "run-timeout"
    assert asyncio.get_running_loop().time() == pytest.approx(107, abs=0.1)


@virtual_time
async def test_a_late_answer_is_rejected_with_its_reason_before_the_commit() -> None:
    told: dict[str, PlanwaveError] = {}

    class Slow(MemoryJournal):
        async def append(self, execution_id: str, epoch: int, events: Any) -> None:
            await super().append(execution_id, epoch, events)
            await asyncio.sleep(1)

    def late(path: str) -> None:
        try:
            harness.execution.answer(ids[path], "late")
        except PlanwaveError as error:
            told[path] = error

    async def plays() -> None:
        await asyncio.sleep(40)
        ids.update({r.attempt.path: i for i, r in harness.execution._run.requests})
        harness.execution.cancel_node("a", "not needed")
        harness.execution.answer(ids["c"], "yes")
        await asyncio.sleep(0.5)
        late("a")
        late("c")
        await asyncio.sleep(10.5)  # the time for b was over half a second ago
        late("b")

    ids: dict[str, str] = {}
    acts = {"a": asks(timeout_s=100), "b": asks(timeout_s=50), "c": asks()}
    harness = ExecutionHarness(parse_graph("a b c"), acts, journal=Slow())
    async with asyncio.TaskGroup() as group:
        group.create_task(plays())
        assert await harness.run() == "failed"
    assert {path: (type(e), e.code) for path, e in told.items()} == {
        "a": (Gone, "request-closed"),
        "b": (Gone, "request-closed"),
        "c": (Conflict, "request-answered"),
    }


@virtual_time
async def test_a_resumed_join_any_keeps_its_stored_winner() -> None:
    graph = parse_graph("a b c", "a>c", "b>c", policies={"c": Policy(join="any")})
    (via,) = [edge.id for edge in graph.edges if edge.source == "b"]
    given = {
        node_id: {"outputs": {"output": {"type": "any", "value": node_id}}} for node_id in "ab"
    }
    told: list[tuple[str, str | None, dict[str, Any]]] = [
        ("execution.started", None, {"waves": 2}),
        ("node.started", "a", {"wave": 1}),
        ("node.started", "b", {"wave": 1}),
        ("node.completed", "a", given["a"]),
        ("node.completed", "b", given["b"]),
        ("node.started", "c", {"wave": 2, "via": via}),
    ]
    stored = [created_event(graph)]
    for seq, (kind, path, data) in enumerate(told, 2):
        stored.append(Event("x1", seq, TIMESTAMP, kind, path, 1 if path else None, data))
    read: list[Any] = []

    async def reads(inputs: Any, context: Any) -> Any:
        read.extend(arrival.source_id for arrival in inputs.arrivals)
        return result_with("done")

    harness = ExecutionHarness(
        graph, {"c": reads}, journal=MemoryJournal(), history=History(stored), is_recovery=True
    )
    assert await harness.run() == "completed"
    assert read == ["b"]
    (again,) = [e.data for e in harness.stored if e.type == "node.started"]
    assert (again["via"], again["reentry"]) == (via, 1)


@pytest.mark.parametrize(("since", "time_left_s"), [("23:59:40", 40.0), ("23:58:00", 0.0)])
@virtual_time
async def test_a_resumed_retry_delay_lasts_for_its_remaining_time(
    since: str, time_left_s: float
) -> None:
    at = f"2025-12-31T{since}.000000+00:00"  # it is midnight now
    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 60.0))})
    error = {"code": "busy", "message": "not now"}
    retrying = {"error": error, "next_attempt": 2, "delay_s": 60.0}
    stored = [
        created_event(graph),
        Event("x1", 2, at, "execution.started", None, None, {"waves": 1}),
        Event("x1", 3, at, "node.started", "a", 1, {"wave": 1}),
        Event("x1", 4, at, "node.retrying", "a", 1, retrying),
    ]
    began: list[float] = []

    async def works(inputs: Any, context: Any) -> Any:
        began.append(asyncio.get_running_loop().time())
        assert context.attempt == 2
        return result_with("done")

    harness = ExecutionHarness(
        graph, {"a": works}, journal=MemoryJournal(), history=History(stored), is_recovery=True
    )
    assert await harness.run() == "completed"
    assert began == [pytest.approx(time_left_s, abs=0.1)]
