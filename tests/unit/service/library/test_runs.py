"""Runs from Python: one run and its result, its events, what it is given, how it is left."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.errors import GraphInvalid, InputError, StoreError
from planwave.events import Event
from planwave.nodes.authoring.function import node
from planwave.nodes.library import LIBRARY
from planwave.planner.capabilities import PlanRules
from planwave.planner.planner import Planner
from planwave.providers.protocols import CallKey
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.watched_model import WatchedModel
from tests.support.nodes.node_context import services_with

FLOW = {"channel": "flow"}


@pytest.fixture
def registry() -> planwave.Registry:
    return planwave.Registry(LIBRARY)


def chain(*nodes: dict[str, Any]) -> dict[str, Any]:
    edges = [{"source": a["id"], "target": b["id"], "data": FLOW} for a, b in pairwise(nodes)]
    return {"nodes": list(nodes), "edges": edges}


START = {"id": "s", "type": "start"}
GREETING = chain(START, {"id": "t", "type": "text", "data": {"text": "got {{ input }}"}})


async def test_a_run_is_awaited_any_number_of_times_and_runs_once(
    registry: planwave.Registry,
) -> None:
    calls: list[str] = []

    @node("count", registry=registry)
    async def count(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        calls.append(input)
        return input

    graph = planwave.build(chain(START, {"id": "c", "type": "count"}), registry=registry)
    run = planwave.run(graph, "x")
    first, second = await run, await run
    assert first == second
    assert (first.status, first.text, calls) == ("completed", "x", ["x"])


async def test_events_then_result_are_one_run_with_each_event_stored_once() -> None:
    store = MemoryStore()
    run = planwave.run(GREETING, "hi", store=store)
    seen = [event.seq async for event in run]
    assert (await run).text == "got hi"
    stored = [event.seq for event in await store.events(run.execution_id)]
    assert stored == seen


async def test_a_stored_run_keeps_what_it_was_given_and_how_it_was_to_run() -> None:
    store = MemoryStore()
    options = planwave.RunOptions(scheduling="waves")
    run = planwave.run(GREETING, "hi", store=store, options=options)
    await run
    created = (await store.events(run.execution_id))[0].data
    assert created["options"] == {"scheduling": "waves"}
    assert list(created["inputs"].values()) == [{"output": "hi"}]


@pytest.mark.parametrize("begun_by", ["reading", "awaiting"])
async def test_the_events_of_a_run_that_has_begun_are_refused(begun_by: str) -> None:
    run = planwave.run(GREETING, "hi")
    if begun_by == "reading":
        assert [event async for event in run]
    else:
        await run
    with pytest.raises(RuntimeError, match="can be read once"):
        await anext(aiter(run))


async def test_leaving_the_events_early_cancels_the_run(registry: planwave.Registry) -> None:
    ended = asyncio.Event()

    @node("endless", registry=registry)
    async def endless(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return input

    graph = planwave.build(chain(START, {"id": "e", "type": "endless"}), registry=registry)
    run = planwave.run(graph, "hi")
    events = aiter(run)
    async for event in events:
        if event.path == "e":
            break
    await events.aclose()
    assert ended.is_set()
    assert run.result().status == "cancelled"


async def test_cancelling_who_awaits_cancels_the_run_and_its_end_is_stored(
    registry: planwave.Registry,
) -> None:
    started = asyncio.Event()

    @node("endless", registry=registry)
    async def endless(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        await asyncio.Event().wait()
        return input

    graph = planwave.build(chain(START, {"id": "e", "type": "endless"}), registry=registry)
    store = MemoryStore()
    run = planwave.run(graph, "hi", store=store)

    async def wait() -> planwave.RunResult:
        return await run

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait())
        await started.wait()
        waiting.cancel()
    assert waiting.cancelled()
    last = (await store.events(run.execution_id))[-1]
    assert last.type == "execution.cancelled"


async def test_a_store_that_refuses_is_raised_to_every_caller() -> None:
    class Full(MemoryStore):
        async def create_execution(self, *args: Any, **kwargs: Any) -> Any:
            raise StoreError("the disk is full")

    run = planwave.run(GREETING, "hi", store=Full())
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            await run
    with pytest.raises(StoreError, match="disk is full"):
        await anext(aiter(planwave.run(GREETING, "hi", store=Full())))


async def test_run_sync_inside_a_loop_says_what_to_write() -> None:
    with pytest.raises(RuntimeError, match=r"await planwave\.run"):
        planwave.run_sync(GREETING, "hi")


def test_a_built_graph_runs_in_one_loop_after_another() -> None:
    graph = planwave.build(GREETING)
    assert [planwave.run_sync(graph, "hi").text for _ in range(2)] == ["got hi", "got hi"]


async def test_runs_of_one_built_graph_do_not_meet(registry: planwave.Registry) -> None:
    both = asyncio.Barrier(2)

    @node("meet", registry=registry)
    async def meet(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        await both.wait()
        return input

    spec = chain(
        START,
        {"id": "m", "type": "meet"},
        {"id": "t", "type": "text", "data": {"text": "{{ input }} {{ goal }}"}},
    )
    graph = planwave.build(spec, registry=registry)

    async def one(goal: str) -> planwave.RunResult:
        return await planwave.run(graph, "hi", goal=goal)

    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(one(goal)) for goal in ("one", "two")]
    assert [run.result().text for run in runs] == ["hi one", "hi two"]


def test_what_a_node_does_to_its_input_stays_in_its_run(registry: planwave.Registry) -> None:
    @node("grow", registry=registry)
    async def grow(input: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        input["list"].append(1)
        return input

    value = {"list": [0]}
    start = {"id": "s", "type": "start", "data": {"initialInput": value}}
    parser = {"id": "p", "type": "parser", "data": {"template": value}}
    last = {"id": "g", "type": "grow"}
    for spec, message in [
        (chain(START, last), value),
        (chain(start, last), None),
        (chain(START, parser, last), "x"),
    ]:
        graph = planwave.build(spec, registry=registry)
        assert [planwave.run_sync(graph, message).text for _ in range(2)] == ['{"list":[0,1]}'] * 2
    assert value == {"list": [0]}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["s"], "inputs must be an object, got an array"),
        ({"s": "hi"}, "inputs['s'] must be an object, got text"),
        ({"s": {"output": {1, 2}}}, "inputs['s'] cannot be given to a node: /output is a Python"),
        ({"s": {"output": float("nan")}}, "NaN"),
        ({"s": {"output": "\ud800"}}, "surrogate"),
    ],
)
def test_inputs_that_no_node_can_be_given_are_refused(inputs: Any, message: str) -> None:
    graph = planwave.build(GREETING)
    with pytest.raises(InputError) as caught:
        planwave.run(graph, inputs=inputs)
    assert caught.value.code == "invalid-inputs"
    assert message in caught.value.message


def test_a_message_for_an_entry_without_declared_outputs_leaves_through_output(
    registry: planwave.Registry,
) -> None:
    @node("open", entry=True, outputs=(), registry=registry)
    async def opened() -> str:  # pyright: ignore[reportUnusedFunction]
        return ""

    graph = planwave.build({"nodes": [{"id": "o", "type": "open"}], "edges": []}, registry=registry)
    result = planwave.run_sync(graph, "hi")
    assert result["o"] == "hi"


# -- failures


def failing(registry: planwave.Registry, times: int = 1) -> dict[str, Any]:
    """Return a chain whose second node fails so many times."""
    left = [times]

    @node("unreliable", registry=registry)
    async def unreliable(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        if left[0] > 0:
            left[0] -= 1
            raise ValueError("no connection")
        return f"{input}!"

    return chain(START, {"id": "u", "type": "unreliable"})


def test_a_failed_run_raises_with_its_result(registry: planwave.Registry) -> None:
    graph = planwave.build(failing(registry), registry=registry)
    with pytest.raises(planwave.ExecutionFailed, match="u: ValueError: no connection") as caught:
        planwave.run_sync(graph, "hi")
    result = caught.value.result
    assert caught.value.failures == result.failures
    (failure,) = result.failures
    assert (failure.path, failure.code, failure.attempt) == ("u", "node-failed", 1)
    assert result.text == "failed: node 'u' failed: ValueError: no connection"
    assert result.outputs["s"]["output"].value == "hi"


@pytest.mark.usefixtures("in_checkout")
def test_a_failed_run_names_the_line_that_raised(registry: planwave.Registry) -> None:
    def reads(line: str) -> Any:
        return json.loads(line)

    @planwave.node("reads", registry=registry)
    def read(input: str) -> Any:  # pyright: ignore[reportUnusedFunction]
        return reads(input)

    graph = planwave.build(chain(START, {"id": "r", "type": "reads"}), registry=registry)
    with pytest.raises(planwave.ExecutionFailed, match="JSONDecodeError") as caught:
        planwave.run_sync(graph, "{")
    here = f"{Path(__file__).relative_to(Path.cwd())}:{reads.__code__.co_firstlineno + 1}"
    assert caught.value.__notes__ == [f"r: raised at {here}, in reads"]


def test_without_check_a_failed_run_returns_its_result(registry: planwave.Registry) -> None:
    graph = planwave.build(failing(registry), registry=registry)
    result = planwave.run_sync(graph, "hi", check=False)
    assert (result.status, [each.path for each in result.failures]) == ("failed", ["u"])
    with pytest.raises(planwave.ExecutionFailed):
        result.raise_for_status()


def test_a_retry_reuses_what_completed(registry: planwave.Registry) -> None:
    graph = planwave.build(failing(registry), registry=registry)
    failed = planwave.run_sync(graph, "hi", check=False)
    again = failed.run.retry().wait()
    assert (again.status, again.text) == ("completed", "hi!")
    assert again.document["parent"]["execution_id"] == failed.execution_id
    with pytest.raises(planwave.PlanwaveError) as caught:
        again.run.retry().wait()
    assert caught.value.code == "nothing-to-retry"


def test_a_fork_runs_only_what_changed(registry: planwave.Registry) -> None:
    calls: list[str] = []

    @node("count", registry=registry)
    async def count(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        calls.append(input)
        return input.upper()

    spec = chain(
        START,
        {"id": "c", "type": "count"},
        {"id": "t", "type": "text", "data": {"text": "{{ input }}!"}},
    )
    first = planwave.run_sync(spec, "hi", registry=registry)
    forked = first.run.fork(set={"t.text": "{{ input }}?"}).wait()
    assert (first.text, forked.text, calls) == ("HI!", "HI?", ["hi"])
    assert first.run.fork(rerun=["c"]).wait().text == "HI!"
    assert calls == ["hi", "hi"]
    forked = first.run.fork(set={"c.description": "Count it."}).wait()
    assert (forked.text, calls) == ("HI!", ["hi", "hi", "hi"])
    with pytest.raises(InputError, match=r"'zz\.text': there is no step 'zz'"):
        first.run.fork(set={"zz.text": "x"}).wait()


def test_a_fork_of_a_new_graph_runs_only_what_is_new(registry: planwave.Registry) -> None:
    calls: list[str] = []

    @node("count", registry=registry)
    async def count(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        calls.append(input)
        return input.upper()

    spec = chain(START, {"id": "c", "type": "count"})
    text = {"id": "t", "type": "text", "data": {"text": "{{ input }}?"}}
    first = planwave.run_sync(spec, "hi", registry=registry)
    longer = chain(START, {"id": "c", "type": "count"}, text)
    assert first.run.fork(graph=longer).wait().text == "HI?"
    assert first.run.fork(graph=longer, set={"t.text": "{{ input }}."}).wait().text == "HI."
    assert calls == ["hi"]
    with pytest.raises(GraphInvalid):
        first.run.fork(graph={"nodes": [], "edges": []})


# -- answers

APPROVAL = {
    "nodes": [
        {"id": "draft", "type": "text", "data": {"text": "Dear Ann"}},
        {"id": "ask", "type": "approval", "data": {"prompt": "Send?", "actions": ["send", "drop"]}},
        {"id": "mail", "type": "text", "data": {"text": "sent: {{ input }}"}},
    ],
    "edges": [
        {"source": "draft", "target": "ask", "data": FLOW},
        {"source": "ask", "sourceHandle": "send", "target": "mail", "data": FLOW},
    ],
}


def test_a_run_that_needs_an_answer_is_paused_and_continues_with_it() -> None:
    paused = planwave.run_sync(APPROVAL)
    (request,) = paused.requests
    assert (paused.status, request.path, request.request["prompt"]) == ("paused", "ask", "Send?")
    with pytest.raises(InputError, match="no decision 'keep' here"):
        paused.run.answer(request.request_id, {"decision": "keep"})
    with pytest.raises(planwave.PlanwaveError, match="has no request 'r1'"):
        paused.run.answer("r1", {"decision": "send"})
    result = paused.run.answer(request.request_id, {"decision": "send"}).wait()
    assert (result.status, result.text, result.requests) == ("completed", "sent: Dear Ann", ())
    with pytest.raises(planwave.PlanwaveError) as caught:
        result.run.answer(request.request_id, {"decision": "send"})
    assert caught.value.code == "request-answered"


def test_a_paused_run_that_is_awaited_again_is_still_paused() -> None:
    paused = planwave.run_sync(APPROVAL)
    assert paused.run.wait().requests == paused.requests
    with pytest.raises(planwave.PlanwaveError, match="waits for an answer to r"):
        paused.run.resume().wait()


async def test_an_answer_while_the_events_are_read_continues_the_same_iteration() -> None:
    run = planwave.run(APPROVAL)
    types: list[str] = []
    async for event in run:
        types.append(event.type)
        if event.type == "execution.paused":
            run.answer(run.result().requests[0].request_id, {"decision": "send"})
    assert types[-1] == "execution.completed"
    assert (await run).text == "sent: Dear Ann"


async def test_a_run_is_cancelled_while_it_waits() -> None:
    run = planwave.run(APPROVAL)
    assert (await run).status == "paused"
    run.cancel()
    assert (await run).status == "cancelled"


# -- stored runs


def test_a_run_in_a_directory_is_opened_and_answered_later(tmp_path: Path) -> None:
    paused = planwave.run_sync(APPROVAL, store=tmp_path / "runs")
    opened = planwave.open(str(tmp_path / "runs"), paused.execution_id)
    assert (opened.result().status, opened.graph.nodes[0].id) == ("paused", "draft")
    assert opened.result().requests == opened.wait().requests == paused.requests
    (request,) = opened.wait().requests
    opened.answer(request.request_id, {"decision": "drop"})
    assert opened.wait().status == "completed"
    again = planwave.open(tmp_path / "runs", paused.execution_id).wait()
    assert (again.status, again.outputs["draft"]["output"].value) == ("completed", "Dear Ann")


TWO_REQUESTS = {
    "nodes": [
        {"id": "first", "type": "approval", "data": {"prompt": "Begin?"}},
        {"id": "second", "type": "approval", "data": {"prompt": "Go on?"}},
    ],
    "edges": [{"source": "first", "sourceHandle": "approve", "target": "second", "data": FLOW}],
}
APPROVE = {"decision": "approve"}


def test_a_run_that_another_one_took_over_says_what_to_do(tmp_path: Path) -> None:
    paused = planwave.run_sync(TWO_REQUESTS, store=tmp_path)
    (request,) = paused.requests
    other = planwave.open(tmp_path, paused.execution_id)
    assert other.answer(request.request_id, APPROVE).wait().status == "paused"
    with pytest.raises(planwave.errors.StoreError) as caught:
        paused.run.answer(request.request_id, {"decision": "reject"}).wait()
    assert (caught.value.code, caught.value.hint) == (
        "late-writer",
        "open the execution again and continue from its stored state",
    )
    again = planwave.open(tmp_path, paused.execution_id)
    (request,) = again.wait().requests
    assert again.answer(request.request_id, APPROVE).wait().status == "completed"


def test_an_opened_run_continues_from_what_another_one_stored(tmp_path: Path) -> None:
    paused = planwave.run_sync(TWO_REQUESTS, store=tmp_path)
    (request,) = paused.requests
    opened = planwave.open(tmp_path, paused.execution_id)
    assert opened.wait().status == "paused"
    other = planwave.open(tmp_path, paused.execution_id)
    assert other.answer(request.request_id, APPROVE).wait().status == "paused"
    with pytest.raises(planwave.Conflict) as caught:
        opened.answer(request.request_id, APPROVE).wait()
    assert caught.value.code == "request-answered"
    (request,) = other.wait().requests
    assert opened.answer(request.request_id, APPROVE).wait().status == "completed"


@pytest.mark.parametrize("command", ["answer", "resume"])
async def test_a_rejected_command_leaves_the_execution_to_its_owner(command: str) -> None:
    store = MemoryStore()
    owner = (await planwave.run(TWO_REQUESTS, store=store)).run
    (request,) = owner.result().requests
    late = planwave.open(store, owner.execution_id)
    assert (await late).status == "paused"
    owner.answer(request.request_id, APPROVE)
    (second,) = (await owner).requests
    with pytest.raises(planwave.Conflict):
        await (late.resume() if command == "resume" else late.answer(request.request_id, APPROVE))
    assert (await owner.answer(second.request_id, APPROVE)).status == "completed"


async def test_a_stored_run_is_read_without_its_node_types(registry: planwave.Registry) -> None:
    @node("own", registry=registry)
    async def own(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        raise ValueError(f"no {input}")

    store = MemoryStore()
    ask = {"id": "ask", "type": "approval", "data": {"prompt": "Go?"}}
    graph = chain(START, {"id": "o", "type": "own"})
    graph["nodes"].append(ask)
    graph["edges"].append({"source": "s", "target": "ask", "data": FLOW})
    made = planwave.build(graph, registry=registry)
    first = await planwave.run(made, "x", store=store, check=False)
    (request,) = first.requests
    opened = planwave.open(store, first.execution_id, registry=planwave.Registry(LIBRARY))
    read = await opened
    assert (read.status, read.text, read.outputs["s"]["output"].value) == ("paused", "", "x")
    assert [(each.path, each.message) for each in read.failures] == [("o", "ValueError: no x")]
    assert read.document["nodes"][1]["status"] == "failed"
    opened.answer(request.request_id, APPROVE)
    with pytest.raises(planwave.InputError, match="it uses the types own, which no") as caught:
        await opened
    assert "import the module that has them" in (caught.value.hint or "")
    assert (await opened).requests == first.requests
    with pytest.raises(planwave.InputError, match="it uses the types own"):
        await planwave.open(store, first.execution_id, registry=planwave.Registry(LIBRARY)).fork()
    last = planwave.open(store, first.execution_id, registry=registry, check=False)
    assert (await last.answer(request.request_id, APPROVE)).status == "failed"


@pytest.mark.parametrize("on_error", ["skip", "null"])
async def test_a_failed_item_that_a_loop_passes_over_is_handled(
    on_error: str, registry: planwave.Registry
) -> None:
    @node("even", registry=registry, templates=["value"])
    async def even(value: str = "") -> str:  # pyright: ignore[reportUnusedFunction]
        if int(value) % 2:
            raise ValueError(f"{value} is odd")
        return value

    inner = {"id": "each", "type": "even", "data": {"value": "{{ item }}"}}
    body = {"nodes": [inner], "edges": []}
    data = {"items": [2, 3], "body": body, "onItemError": on_error}
    result = await planwave.run(
        {"nodes": [{"id": "all", "type": "loop", "data": data}], "edges": []}, registry=registry
    )
    assert result.status == "completed"
    assert [(each.path, each.handled) for each in result.failures] == [("all[1]/each", True)]
    shown = {each["path"]: each["handled"] for each in result.document["nodes"]}
    assert shown["all[1]/each"] is True


def test_an_unknown_execution_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(planwave.PlanwaveError) as caught:
        planwave.open(tmp_path, "0199").wait()
    assert caught.value.code == "not-found"


async def test_an_interrupted_run_is_resumed_with_own_node_types(
    registry: planwave.Registry,
) -> None:
    store, is_blocked = MemoryStore(), [True]
    started = asyncio.Event()

    @node("once_blocked", registry=registry)
    async def once_blocked(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        if is_blocked[0]:
            await asyncio.Event().wait()
        return f"{input}!"

    spec = chain(START, {"id": "o", "type": "once_blocked"})
    run = planwave.run(spec, "hi", registry=registry, store=store)

    async def abandon() -> None:  # as a process that is killed: no terminal event is stored
        async for event in run:
            if event.type == "node.started" and event.path == "o":
                break

    task = asyncio.get_running_loop().create_task(abandon())
    await started.wait()
    events = list(await store.events(run.execution_id))
    is_blocked[0] = False
    other = MemoryStore()
    record = await store.execution(run.execution_id)
    assert record is not None
    await other.create_execution(record, events)
    opened = planwave.open(other, run.execution_id, registry=registry)
    assert (await opened).status == "executing"
    assert (await opened.resume()).text == "hi!"
    await task


async def test_leaving_the_events_of_a_paused_run_leaves_it_paused() -> None:
    run = planwave.run(APPROVAL)
    async for event in run:
        if event.type == "execution.paused":
            break
    assert (await run).status == "paused"


async def test_a_run_that_has_ended_takes_no_command(tmp_path: Path) -> None:
    run = planwave.run(GREETING, "hi", store=tmp_path)
    assert (await run).status == "completed"
    run.cancel()
    assert (await run).status == "completed"
    for command in (planwave.Run.cancel, planwave.Run.resume):
        opened = planwave.open(tmp_path, run.execution_id)
        command(opened)
        with pytest.raises(planwave.Conflict, match="is already completed"):
            await opened
        assert (await opened).status == "completed"


# -- retries


@pytest.mark.parametrize(
    ("retry", "calls_made", "message"),
    [
        ({"attempts": 3}, 3, None),
        ({"attempts": 2}, 2, "ConnectionError: call 2 (attempt 2 of 2)"),
        ({"attempts": 3, "on": ["ConnectionError"]}, 3, None),
        (
            {"attempts": 3, "on": ["TimeoutError"]},
            1,
            "ConnectionError: call 1 (attempt 1 of 3, not retried: retry.on does not name it)",
        ),
        (
            {"attempts": 3, "notOn": ["OSError"]},
            1,
            "ConnectionError: call 1 (attempt 1 of 3, not retried: retry.notOn names 'OSError')",
        ),
        ({"attempts": 1}, 1, "ConnectionError: call 1"),
    ],
)
def test_a_failure_of_an_own_node_type_is_retried(
    registry: planwave.Registry, retry: dict[str, Any], calls_made: int, message: str | None
) -> None:
    calls: list[int] = []

    @node("flaky", registry=registry)
    def flaky(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError(f"call {len(calls)}")
        return input

    step = {"id": "f", "type": "flaky", "policy": {"retry": retry}}
    graph = planwave.build(chain(START, step), registry=registry)
    result = planwave.run_sync(graph, "x", check=False)
    assert len(calls) == calls_made
    assert [each.message for each in result.failures] == ([] if message is None else [message])


def test_a_permanent_error_of_an_own_node_type_is_not_retried(registry: planwave.Registry) -> None:
    @node("refuses", registry=registry)
    def refuses(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        raise planwave.PermanentError("no such account", code="no-account")

    step = {"id": "r", "type": "refuses", "policy": {"retry": {"attempts": 3}}}
    with pytest.raises(planwave.ExecutionFailed) as caught:
        planwave.run_sync(chain(START, step), "x", registry=registry)
    assert "no such account (attempt 1 of 3, not retried: the error is permanent)" in str(
        caught.value
    )


async def test_a_plan_is_approved_before_it_runs(tmp_path: Path) -> None:
    run = planwave.run(GREETING, "hi", store=tmp_path, require_approval=True)
    asked = await run
    (request,) = asked.requests
    assert (asked.status, list(asked.outputs), request.path) == ("paused", ["s"], None)
    assert request.request["actions"] == ["approve", "reject"]
    opened = planwave.open(tmp_path, run.execution_id)
    assert [each.request_id for each in (await opened).requests] == [request.request_id]
    done = await opened.answer(request.request_id, {"decision": "approve"})
    assert (done.status, done.text) == ("completed", "got hi")
    changed = await opened.fork(set={"t.text": "changed"})
    assert (changed.status, len(changed.requests)) == ("paused", 1)
    assert (await opened.fork(rerun=["t"])).status == "completed"


async def test_a_rejected_plan_is_cancelled() -> None:
    run = planwave.run(GREETING, "hi", check=False, require_approval=True)
    (request,) = (await run).requests
    ended = await run.answer(request.request_id, {"decision": "reject", "note": "no"})
    assert (ended.status, list(ended.outputs)) == ("cancelled", ["s"])
    assert ended.document["cause"] == "the plan was rejected: no"


def planner_with(**rules: Any) -> Any:
    """Return services whose planner has some rules."""
    providers = FakeProviders()
    models = WatchedModel("")
    planner = Planner(models, providers, library_registry(providers), rules=PlanRules(**rules))
    return services_with(lambda _: [], providers, planner=planner)[0]


async def test_a_plan_of_a_model_is_judged_where_it_starts() -> None:
    plan = replace(make_plan(make_graph(text_node("a", "one"))), provider="openai")
    narrow, wide = planner_with(node_types=["agent"]), planner_with(node_types=["text"])
    store = MemoryStore()
    for _ in range(2):
        refused = planwave.run(plan, store=store, services=narrow)
        with pytest.raises(GraphInvalid, match="'text', which plans of models may not use"):
            await refused
    assert await store.events(refused.execution_id) == []
    assert (await planwave.run(plan.graph, services=narrow)).text == "one", "a person's graph"
    first = planwave.run(plan, store=store, services=wide)
    assert (await first).text == "one"

    stored = planwave.open(store, first.execution_id, services=narrow)
    await stored
    with pytest.raises(GraphInvalid, match="has changed since"):
        await stored.fork(rerun=["a"])
    own = stored.fork(set={"a.text": "mine"})
    assert (await own).text == "mine", "what a person changed is theirs"
    assert (await own.fork(rerun=["a"])).text == "mine", "also later"


async def test_the_settings_judge_a_plan_whose_nodes_need_no_services(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = replace(make_plan(make_graph(text_node("a", "one"))), provider="openai")
    assert (await planwave.run(plan)).text == "one"
    monkeypatch.setenv("PLANWAVE_ALLOWED_NODE_TYPES", "agent")
    with pytest.raises(GraphInvalid, match="'text', which plans of models may not use"):
        await planwave.run(plan)


# -- recorded calls


async def test_recorded_calls_are_read_where_there_may_be_some() -> None:
    class Counting(MemoryStore):
        reads = 0

        async def calls(self, *args: Any) -> Any:
            self.reads += 1
            return await super().calls(*args)

    store = Counting()
    result = await planwave.run(GREETING, "hi", store=store)
    assert (store.reads, result.document["nodes"][1]["calls"]) == (0, [])
    await store.record(CallKey(result.execution_id, "t", 1, 0, "h"), {"kind": "tool", "result": 5})
    opened = await planwave.open(store, result.execution_id)
    assert [each["result"] for each in opened.document["nodes"][1]["calls"]] == [5]


async def test_a_fork_has_the_budget_as_a_person_raised_it() -> None:
    store = MemoryStore()
    options = planwave.RunOptions(budget={"tokens": 100})
    first = await planwave.run(GREETING, "hi", store=store, options=options)
    asked = {"kind": "budget", "limits": {"tokens": 100}}
    answer = {"decision": "raise", "value": {"tokens": 500}}
    (*events, end) = await store.events(first.execution_id)
    told: list[tuple[str, dict[str, Any]]] = [
        ("paused", {"kind": "waiting", "request_id": "r9", "request": asked}),
        ("resumed", {"request_id": "r9", "answer": answer}),
        ("completed", {}),
    ]
    raised = [
        Event(end.execution_id, seq, end.at, f"execution.{kind}", None, None, data)
        for seq, (kind, data) in enumerate(told, end.seq)
    ]
    other, record = MemoryStore(), await store.execution(first.execution_id)
    assert record is not None
    await other.create_execution(record, [*events, *raised])
    fork = await planwave.open(other, record.execution_id).fork(rerun=["t"])
    created = (await other.events(fork.execution_id))[0]
    assert created.data["options"] == {"budget": {"tokens": 500}}
