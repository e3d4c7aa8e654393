"""Calls that forks need not pay for again."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

from planwave.errors import ProviderError
from planwave.executor.options import RunOptions
from planwave.executor.reuse.reuse import ContinuedAttempt, Reuse
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult, NodeEvent
from planwave.nodes.recorded_calls import record_call
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import CallKey, ModelReply, Recorder, Usage
from planwave.providers.recordings import USAGE_UNREPORTED, failure_record, reply_from
from planwave.service.executions.parent_results import ParentCallRecorder
from planwave.service.executions.session import recorded_bytes
from planwave.service.service import Service
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.engine.event_histories import created_event
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.engine.recovered_runs import recovered
from tests.support.graph.builders import make_graph
from tests.support.graph.fake_node_types import parse_graph
from tests.support.llm.fake_providers import ListedProviders
from tests.support.llm.watched_model import WatchedModel
from tests.support.nodes.node_context import context_for
from tests.support.service.dependencies import dependencies
from tests.support.virtual_loop import virtual_time
from tests.unit.service.executions.test_commands import executed

BEFORE = CallKey("x0", "a[k]/n", 2, 0, "h")
NOW = BEFORE._replace(execution_id="x1", attempt=1)


class GoesOn(Reuse):
    """Of an execution in which some nodes were under way, in their second attempts."""

    def __init__(self, *paths: str, recorded: bool = True) -> None:
        super().__init__("x0", (), (), {})
        self._continued = dict.fromkeys(paths, ContinuedAttempt("x0", 2))
        self._recorded = recorded

    def was_recorded(self, path: str, continued: ContinuedAttempt, usage: Any) -> bool:
        assert (path, continued, usage) == ("a[k]/n", ("x0", 2), {})
        return self._recorded


class RecordedRuns:
    """Runs of one node, which makes calls; ``x1`` is a fork of ``x0``.

    Attributes:
        made: The calls that were made, in order.
    """

    def __init__(self) -> None:
        self.made: list[str] = []
        self._recorder, self._reuse = ParentCallRecorder(MemoryStore()), GoesOn("n")
        self._recorder.share("x1", self._reuse)

    async def __call__(self, execution_id: str, attempt: int, *names: str) -> list[str]:
        """Make calls in a process of its own; return their results."""
        services = NodeServices(WatchedModel(""), ListedProviders({}), recorder=self._recorder)
        context = context_for(Node("n", "step", "N"), services=services)
        context.run_id, context.attempt = execution_id, attempt

        async def make(name: str) -> str:
            self.made.append(f"{execution_id} {name}")
            return f"{execution_id} did {name}"

        return [
            await record_call(context, "tool", name, name, partial(make, name)) for name in names
        ]


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


async def test_fork_gets_the_recorded_failure_of_an_interrupted_node() -> None:
    store = MemoryStore()
    failure = failure_record(ProviderError("down", provider="box", model="m"))
    await store.record(BEFORE, failure)
    lending, reuse = ParentCallRecorder(store), GoesOn("a[k]/n", recorded=False)
    lending.share("x1", reuse)
    assert await lending.recorded(NOW) == failure
    assert await store.recorded(NOW) == failure


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


async def test_calls_are_lent_up_to_the_first_other_one() -> None:
    """A node that runs again because of a change is served its calls before the change."""
    run = RecordedRuns()
    await run("x0", 2, "look", "think", "act")
    results = await run("x1", 1, "look", "think again", "act")
    assert results == ["x0 did look", "x1 did think again", "x1 did act"]
    assert run.made == ["x0 look", "x0 think", "x0 act", "x1 think again", "x1 act"]


async def test_nothing_is_lent_after_another_call_than_one_that_was_lent_before() -> None:
    """A process that goes on may call something else than the one before it, which had not."""
    run = RecordedRuns()
    await run("x0", 2, "look", "think", "act")
    assert await run("x1", 1, "look", "think") == ["x0 did look", "x0 did think"]
    assert await run("x1", 1, "look", "think again") == ["x0 did look", "x1 did think again"]
    results = await run("x1", 1, "look", "think again", "act")
    assert results == ["x0 did look", "x1 did think again", "x1 did act"]


@virtual_time
async def test_recorded_calls_count_towards_the_size_of_a_run_also_after_a_restart() -> None:
    store, options = MemoryStore(), RunOptions(max_state_bytes=1_000)
    recorder = ParentCallRecorder(store)
    sizes: list[int] = []

    def calls(ordinal: int) -> Any:
        async def act(inputs: Any, context: Any) -> Any:
            services = NodeServices(WatchedModel(""), ListedProviders({}), recorder=recorder)
            context.services = services
            made = await record_call(context, "tool", "t", ordinal, big)
            if ordinal and len(sizes) == 1:
                sizes.append(harness.execution.result_bytes)
                await asyncio.Event().wait()
            return result_with(made[:1])

        return act

    async def big() -> str:
        return "x" * 300

    def entered(created: ExecutionHarness) -> ExecutionHarness:
        created.program.steps[0].implementation.behaviors.update(
            {"a": calls(0), "b": calls(1), "c": calls(2)}
        )
        return created

    harness = entered(ExecutionHarness(parse_graph("a b c", "a>b", "b>c"), {}, options))
    recorder.count_for(harness.execution, await recorded_bytes(store, "x1", options))
    sizes.append(0)
    harness.interrupt_after(1)
    assert await harness.run() == "interrupted"
    again = entered(recovered(harness, [created_event(harness.program.graph), *harness.stored]))
    before = await recorded_bytes(store, "x1", options)
    recorder.count_for(again.execution, before)
    assert await again.run() == "failed"
    assert again.execution.error is not None
    assert again.execution.error["code"] == "limit-exceeded"
    assert before > 600
    whole = await recorded_bytes(store, "x1", options)
    assert again.execution.result_bytes == whole + 3 * len('"x"')
    assert await recorded_bytes(store, "x1", RunOptions()) == 0


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
        await service.executions.cancel(first)
        assert (await service.executions.wait(first)).status == "cancelled"
        calls.is_held = False
        again = [(await service.executions.retry(first)).execution_id for _ in range(2)]
        for each in again:
            assert (await service.executions.wait(each)).status == "completed"
        charged = [(await service.executions.state(each)).usage.calls for each in (first, *again)]
        assert (calls.paid, sum(charged), charged[0]) == (1, 1, 1 if tells else 0)
