"""External calls of nodes: made once, served to an attempt that is entered again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from planwave.errors import NodeError, ResultNotJson, StoreError, ToolError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.recorded_calls import ExternalCall, call_scope, record_call
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.nested_graphs import graph_document, node_document, run_to_end
from tests.support.nodes.node_context import context_for, services_with
from tests.support.virtual_loop import virtual_time

NODE = Node("n", "step", "N")


def entered(store: Any, *, attempt: int = 1, answers: int = 0) -> FlowContext:
    """The context of an attempt that is entered, for the first time or again."""
    services = services_with(lambda request: "", recorder=store)[0]
    context = context_for(NODE, services=services)
    context.attempt, context.answers = attempt, answers
    return context


class World:
    """What is outside: counts how often it is called."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def act(self, name: Any, result: Any = "done") -> Callable[[], Any]:
        async def make() -> Any:
            self.calls.append(name)
            await asyncio.sleep(0)
            if isinstance(result, Exception):
                raise result
            return result

        return make


async def test_a_call_is_made_once_and_served_to_an_attempt_that_is_entered_again() -> None:
    store, world = MemoryStore(), World()
    for _ in range(2):
        context = entered(store)
        results = [
            await record_call(context, "tool", name, {"q": name}, world.act(name, {"r": name}))
            for name in "ab"
        ]
        assert results == [{"r": "a"}, {"r": "b"}]
    assert world.calls == ["a", "b"]
    await record_call(entered(store, attempt=2), "tool", "a", {"q": "a"}, world.act("again"))
    await record_call(entered(store, answers=1), "tool", "a", {"q": "a"}, world.act("answered"))
    assert world.calls == ["a", "b", "again", "answered"]


async def test_a_served_result_is_not_shared_with_the_one_before() -> None:
    store, world = MemoryStore(), World()
    given = {"items": [1]}
    first = await record_call(entered(store), "tool", "a", None, world.act("a", given))
    first["items"].append(2)
    given["items"].append(3)
    assert await record_call(entered(store), "tool", "a", None, world.act("a")) == {"items": [1]}


async def test_parallel_calls_keep_the_numbers_that_they_reserved() -> None:
    store, world = MemoryStore(), World()
    for delays in ((3, 2, 1), (1, 2, 3)):
        context = entered(store)
        numbers = [call_scope(context).next_ordinal() for _ in range(3)]

        async def one(number: int, delay: int, context: FlowContext = context) -> Any:
            for _ in range(delay):
                await asyncio.sleep(0)
            make = world.act(number, number)
            return await record_call(context, "tool", "t", "same", make, ordinal=number)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(*each)) for each in zip(numbers, delays, strict=True)]
        assert [task.result() for task in tasks] == [0, 1, 2]
    assert sorted(world.calls) == [0, 1, 2]


async def test_a_call_that_was_cut_off_is_made_again_and_those_beside_it_are_served() -> None:
    store, world = MemoryStore(), World()
    context = entered(store)
    with pytest.raises(RuntimeError):
        await record_call(context, "tool", "a", 0, world.act("a", RuntimeError("cut off")))
    await record_call(context, "tool", "b", 1, world.act("b", "b"))
    context = entered(store)
    assert await record_call(context, "tool", "a", 0, world.act("a", "a")) == "a"
    assert await record_call(context, "tool", "b", 1, world.act("b")) == "b"
    assert world.calls == ["a", "b", "a"]


@pytest.mark.parametrize("request_", [{"q": "x"}, {"q": "b", "more": 1}])
async def test_from_the_first_other_call_on_nothing_is_served(request_: Any) -> None:
    store, world = MemoryStore(), World()
    context = entered(store)
    for name in "abc":
        await record_call(context, "tool", name, {"q": name}, world.act(name))
    context = entered(store)
    await record_call(context, "tool", "a", {"q": "a"}, world.act("a again"))
    await record_call(context, "tool", "b", request_, world.act("other"))
    await record_call(context, "tool", "c", {"q": "c"}, world.act("c again"))
    assert world.calls == ["a", "b", "c", "other", "c again"]


async def test_kept_failures_are_results_and_others_are_not() -> None:
    store, world = MemoryStore(), World()
    error = ToolError("no such ticket", code="no-ticket", hint="look it up")
    for _ in range(2):
        context = entered(store)
        with pytest.raises(ToolError, match="no such ticket") as caught:
            await record_call(context, "tool", "t", 1, world.act("t", error), keep=(ToolError,))
        assert (caught.value.code, caught.value.hint) == ("no-ticket", "look it up")
        with pytest.raises(NodeError):
            await record_call(context, "tool", "u", 2, world.act("u", NodeError("?")))
    assert world.calls == ["t", "u", "u"]


async def test_one_knows_beforehand_whether_a_call_was_begun_or_is_recorded() -> None:
    store, world = MemoryStore(), World()
    call = ExternalCall(entered(store), "tool", "pay", {"eur": 5})
    assert await call.state() == "new"
    await call.begin()
    assert await call.state() == "begun"
    again = ExternalCall(entered(store), "tool", "pay", {"eur": 5})
    assert await again.state() == "begun"
    await again.run(world.act("pay"))
    assert await again.state() == "recorded"
    context = entered(store)
    other = ExternalCall(context, "tool", "pay", {"eur": 6})
    assert await other.state() == "new"
    assert await ExternalCall(context, "tool", "x", 1, ordinal=0).state() == "new"


async def test_what_was_done_after_another_call_is_begun_and_not_served() -> None:
    store, world = MemoryStore(), World()
    context = entered(store)
    await record_call(context, "tool", "look", 1, world.act("look"))
    await record_call(context, "tool", "pay", 2, world.act("pay"))
    context = entered(store)
    await record_call(context, "tool", "look", 9, world.act("look elsewhere"))
    assert await ExternalCall(context, "tool", "pay", 2).state() == "begun"


async def test_the_idempotency_key_names_the_call_in_every_attempt() -> None:
    keys = [
        ExternalCall(entered(MemoryStore(), attempt=n), "tool", "t", 1).idempotency_key
        for n in (1, 2)
    ]
    assert keys == ["run-1/n/0", "run-1/n/0"]


async def test_without_a_recorder_the_call_is_made() -> None:
    world = World()
    for _ in range(2):
        call = ExternalCall(entered(None), "tool", "t", 1)
        await call.begin()
        assert await call.state() == "new"
        assert await call.run(world.act("t")) == "done"
    assert world.calls == ["t", "t"]


async def test_a_result_that_is_no_json_fails_the_call() -> None:
    with pytest.raises(ResultNotJson, match="'t'"):
        await record_call(entered(MemoryStore()), "tool", "t", 1, World().act("t", {1, 2}))


async def test_a_damaged_record_fails_without_a_call() -> None:
    store, world = MemoryStore(), World()
    await store.record(ExternalCall(entered(store), "tool", "t", 1).key, {"kind": "tool"})
    with pytest.raises(StoreError) as caught:
        await record_call(entered(store), "tool", "t", 1, world.act("t"))
    assert (caught.value.code, world.calls) == ("bad-record", [])


# -- beside nested runs ----------------------------------------------------------------------------


class CallBesideQuestion:
    """A replayable type: a call in a task of its own, beside a graph that asks a person."""

    node_type = "call_beside"
    replayable = True
    uses_services = True

    def __init__(self) -> None:
        self.begun = self.cancelled = 0

    async def _act(self) -> str:
        self.begun += 1
        try:
            await asyncio.sleep(0.03)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "called"

    async def execute(self, data: Any, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        question = Graph((Node("q", "approval", "Q", data={"prompt": "?"}),), ())
        async with asyncio.TaskGroup() as group:  # the driver does not count its tasks
            called = group.create_task(record_call(context, "tool", "t", 1, self._act))
            await context.runtime.run_graph("k", question, {})
        return ExecutionResult({"output": DataValue("text", called.result())})


@pytest.mark.parametrize("is_nested", [False, True])
@virtual_time
async def test_a_node_is_not_parked_while_a_call_of_it_is_made(is_nested: bool) -> None:
    kind, store = CallBesideQuestion(), MemoryStore()
    graph = graph_document(node_document("n", "call_beside"))
    if is_nested:
        graph = graph_document(node_document("outer", "inner", graph=graph))
    services, _ = services_with(lambda _: [], recorder=store)
    result = await run_to_end(graph, kind, services=services, store=store)
    (request,) = result.requests
    assert (result.status, kind.begun, kind.cancelled) == ("paused", 1, 0)
    result = await result.run.answer(request.request_id, {"decision": "approve"})
    assert (result.status, kind.begun, kind.cancelled) == ("completed", 1, 0)


def test_what_a_call_waits_for_is_a_warning_in_the_log_of_its_node() -> None:
    context, emitted = entered(MemoryStore()), list[tuple[str, Any]]()
    context.emit = lambda kind, data: emitted.append((kind, data))
    scope = call_scope(context).at(3)
    assert scope.warn is not None
    scope.warn("the call waits 7 s")
    assert emitted == [("log", {"message": "the call waits 7 s", "level": "warning"})]


async def test_a_record_has_the_time_of_the_service() -> None:
    """That of the database, where one is shared."""
    store, noon = MemoryStore(), datetime(2030, 1, 1, 12, tzinfo=UTC)
    services = replace(services_with(lambda request: "", recorder=store)[0], now=lambda: noon)
    context = context_for(NODE, services=services)
    call = ExternalCall(context, "tool", "a", {})
    await call.begin()
    await call.run(World().act("a"))
    calls = (await store.calls([context.run_id]))[context.run_id]
    at = "2030-01-01T12:00:00.000000+00:00"
    assert [each.reply.get("started_at") or each.reply.get("at") for each in calls] == [at, at]
