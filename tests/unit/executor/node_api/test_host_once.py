"""Values that a node computes once: stored before they are used, found again later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.executor.options import RunOptions
from planwave.graph.model import Policy, Retry
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.engine.recovered_runs import recovered
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


@virtual_time
async def test_a_value_is_computed_once_per_node_and_key_also_by_concurrent_callers() -> None:
    calls: list[str] = []

    async def act(inputs: Inputs, context: Context) -> Any:
        async def fn() -> Any:
            calls.append(context.node_id)
            await asyncio.sleep(1)
            return len(calls)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(context.runtime.once("k", fn)) for _ in range(3)]
        if context.attempt == 1:
            raise NodeError("again", retryable=True)
        return result_with([t.result() for t in tasks])

    policies = {"a": Policy(retry=Retry(2))}
    harness = ExecutionHarness(parse_graph("a b", "a>b", policies=policies), {"a": act})
    assert await harness.run() == "completed"
    assert calls == ["a"]
    assert harness.execution.outputs["a"]["output"].value == [1, 1, 1]


@virtual_time
async def test_a_failed_computation_is_repeated_by_the_next_caller() -> None:
    tries: list[int] = []

    async def act(inputs: Inputs, context: Context) -> Any:
        async def fn() -> Any:
            tries.append(1)
            if len(tries) == 1:
                raise ValueError("no")
            return "made"

        with pytest.raises(ValueError, match="no"):
            await context.runtime.once("k", fn)
        return result_with(await context.runtime.once("k", fn))

    harness = ExecutionHarness(parse_graph("a"), {"a": act})
    assert await harness.run() == "completed"
    assert harness.execution.outputs["a"]["output"].value == "made"


@virtual_time
async def test_a_value_is_stored_before_it_is_returned_and_found_after_a_crash() -> None:
    calls: list[int] = []
    seen: list[int] = []

    async def act(inputs: Inputs, context: Context) -> Any:
        async def fn() -> Any:
            calls.append(1)
            return {"n": len(calls)}

        value = await context.runtime.once("v", fn)
        value["changed"] = True
        seen.append(len([b for b in ledger.appended if b.type == "node.event"]))
        assert (await context.runtime.once("v", fn))["n"] == 1
        if len(seen) == 1:
            await asyncio.Event().wait()
        return result_with(value["n"])

    ledger = MemoryJournal()
    harness = ExecutionHarness(parse_graph("a"), {"a": act}, journal=ledger)
    harness.interrupt_after(1)
    assert await harness.run() == "interrupted"
    assert seen == [1], "it was given before it was stored"
    last = recovered(harness, harness.stored)
    assert await last.run() == "completed"
    assert calls == [1]
    assert harness.data_of("node.event") == [
        {"event_type": "once", "data": {"key": "v", "value": {"n": 1}}}
    ]


@virtual_time
async def test_a_value_that_is_not_json_or_too_large_is_rejected() -> None:
    codes: list[str] = []

    async def act(inputs: Inputs, context: Context) -> Any:
        for value in ({1, 2}, "x" * 100):

            async def fn(value: Any = value) -> Any:
                return value

            with pytest.raises(NodeError) as refused:
                await context.runtime.once("v", fn)
            codes.append(refused.value.code)
        return result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": act}, RunOptions(max_result_bytes=50))
    assert await harness.run() == "completed"
    assert codes == ["result-not-json", "limit-exceeded"]
