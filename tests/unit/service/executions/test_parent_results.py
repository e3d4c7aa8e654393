"""Calls that forks need not pay for again."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import pytest

from planwave.executor.reuse.reuse import Reuse
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult, NodeEvent
from planwave.providers.protocols import CallKey, ModelReply, Recorder, Usage
from planwave.providers.recordings import USAGE_UNREPORTED, reply_from
from planwave.service.executions.parent_results import ParentCallRecorder
from planwave.service.service import Service
from planwave.storage.memory import MemoryStore
from tests.support.graph.builders import make_graph
from tests.support.service.dependencies import dependencies
from tests.unit.service.executions.test_commands import executed

BEFORE = CallKey("x0", "a[k]/n", 2, 0, "h")
NOW = BEFORE._replace(execution_id="x1", attempt=1)


class GoesOn(Reuse):
    """Of an execution in which some nodes were under way, in their second attempts."""

    def __init__(self, *paths: str, recorded: bool = True) -> None:
        super().__init__("x0", (), (), {})
        self._continued = dict.fromkeys(paths, 2)
        self._recorded = recorded

    def was_recorded(self, path: str, attempt: int, usage: Any) -> bool:
        assert (path, attempt, usage) == ("a[k]/n", 2, {})
        return self._recorded


@pytest.fixture
async def store() -> MemoryStore:
    created = MemoryStore()
    await created.record(BEFORE, {"text": "paid"})
    return created


async def test_parent_call_is_found_and_recorded_for_the_fork(
    store: MemoryStore,
) -> None:
    lending, reuse = ParentCallRecorder(store), GoesOn("a[k]/n")
    lending.share("x1", reuse)
    assert await lending.recorded(NOW) == {"text": "paid"}
    assert await store.recorded(NOW) == {"text": "paid"}


async def test_unreported_usage_of_parent_call_is_reported_once(
    store: MemoryStore,
) -> None:
    lending, reuse = ParentCallRecorder(store), GoesOn("a[k]/n", recorded=False)
    lending.share("x1", reuse)
    assert await lending.recorded(NOW) == {"text": "paid", USAGE_UNREPORTED: True}
    assert await lending.recorded(NOW) == {"text": "paid"}


@pytest.mark.parametrize(
    "key",
    [
        NOW._replace(path="a[k]/m"),
        NOW._replace(attempt=2),
        NOW._replace(ordinal=1),
        NOW._replace(request_hash="other"),
        NOW._replace(execution_id="x2"),
    ],
    ids=str,
)
async def test_other_calls_are_not_found(store: MemoryStore, key: CallKey) -> None:
    lending, reuse = ParentCallRecorder(store), GoesOn("a[k]/n")
    lending.share("x1", reuse)
    assert await lending.recorded(key) is None


async def test_own_recording_is_preferred(store: MemoryStore) -> None:
    lending, reuse = ParentCallRecorder(store), GoesOn("a[k]/n")
    lending.share("x1", reuse)
    await lending.record(NOW, {"text": "own"})
    assert await lending.recorded(NOW) == {"text": "own"}


async def test_ended_execution_finds_no_parent_calls(store: MemoryStore) -> None:
    lending = ParentCallRecorder(store)
    reuse: Any = GoesOn("a[k]/n")
    lending.share("x1", reuse)
    del reuse
    assert await lending.recorded(NOW) is None


REPLY = ModelReply("said", "p", "m", "stop", Usage(10, 1))


class Calls:
    """A node type that makes one call, and comes to no end after it has told of it, or before."""

    node_type = "calls"

    def __init__(self, recorder: Recorder, *, tells: bool) -> None:
        self.recorder, self.tells = recorder, tells
        self.paid, self.is_held, self.came = 0, True, asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any:
        key = CallKey(context.run_id, context.path, context.attempt, 0, "h")
        found = await self.recorder.recorded(key)
        if found is None:
            self.paid += 1
            await self.recorder.record(key, asdict(REPLY))
        is_paid = found is None or not reply_from(found).recorded
        used = {"input_tokens": 10, "output_tokens": 1} | ({} if is_paid else {"recorded": True})
        if self.tells:
            yield NodeEvent(context.node_id, "calls", "usage", context.run_id, used)
        self.came.set()
        if self.is_held:
            await asyncio.Event().wait()
        if not self.tells:
            yield NodeEvent(context.node_id, "calls", "usage", context.run_id, used)
        yield ExecutionResult({"output": DataValue("text", "done")})


@pytest.mark.parametrize("tells", [True, False])
async def test_call_is_charged_once_wherever_its_node_was_interrupted(tells: bool) -> None:
    store = MemoryStore()
    lending = ParentCallRecorder(store)
    calls = Calls(lending, tells=tells)
    parts = dependencies(
        make_graph(Node("a", "calls", "A")), store=store, types=[calls], parent_calls=lending
    )
    async with Service(parts) as service:
        first = await executed(service)
        await calls.came.wait()
        await service.cancel(first)
        assert (await service.wait(first)).status == "cancelled"
        calls.is_held = False
        again = [(await service.retry(first)).execution_id for _ in range(2)]
        for each in again:
            assert (await service.wait(each)).status == "completed"
        charged = [(await service.state(each)).usage.calls for each in (first, *again)]
        assert (calls.paid, sum(charged), charged[0]) == (1, 1, 1 if tells else 0)
