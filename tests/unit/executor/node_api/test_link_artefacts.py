"""Artefacts of links that are opened and closed: nothing is left behind, whatever happens."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.model import Graph, Policy
from tests.support.engine.behaviors import asks, forever
from tests.support.engine.event_histories import created_event
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.engine.recovered_runs import recovered
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


class Connections:
    """What links open: counts, and checks that each is entered and exited in one task."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.enter_errors: list[Exception] = []
        self.exit_error: Exception | None = None
        self.enter_s = self.exit_s = 0.0

    @property
    def opened(self) -> int:
        return sum(each.startswith("open") for each in self.log)

    @property
    def left(self) -> int:
        return self.opened - sum(each.startswith("close") for each in self.log)

    async def make(self, data: Any, context: Context) -> Any:
        return _Connection(self, context.path)


class _Connection:
    def __init__(self, connections: Connections, name: str) -> None:
        self._all, self._name = connections, name

    async def __aenter__(self) -> str:
        self._task = asyncio.current_task()
        await asyncio.sleep(self._all.enter_s)
        if self._all.enter_errors:
            raise self._all.enter_errors.pop()
        self._all.log.append(f"open {self._name}")
        return f"connection of {self._name}"

    async def __aexit__(self, *_: object) -> None:
        assert asyncio.current_task() is self._task
        self._all.log.append(f"close {self._name}")
        await asyncio.sleep(self._all.exit_s)
        if self._all.exit_error is not None:
            raise self._all.exit_error


async def uses(inputs: Inputs, context: Context) -> Any:
    return result_with(await context.runtime.resolve_links(context.node_id, "t"))


def uses_then(after: Any) -> Any:
    async def act(inputs: Inputs, context: Context) -> Any:
        await uses(inputs, context)
        return await after(inputs, context)

    return act


def harness_of(
    graph: Graph, connections: Connections, acts: dict[str, Any], **more: Any
) -> ExecutionHarness:
    makes = {f"{node.id}:make": connections.make for node in graph.nodes}
    return ExecutionHarness(graph, {**makes, **acts}, **more)


async def tasks_left() -> int:
    """The number of other tasks, once those that are done had their turn."""
    await asyncio.sleep(0)
    return len(asyncio.all_tasks()) - 1


LINKED = parse_graph("g u end", "g~u.t", "u>end")


@virtual_time
async def test_a_hundred_users_share_one_that_is_closed_at_the_end() -> None:
    connections = Connections()
    connections.enter_s = 1
    users = [f"u{n}" for n in range(100)]
    graph = parse_graph("g " + " ".join(users), *(f"g~{each}.t" for each in users))
    harness = harness_of(graph, connections, dict.fromkeys(users, uses))
    assert await harness.run() == "completed"
    assert connections.log == ["open g", "close g"]
    results = [harness.execution.outputs[each]["output"].value for each in users]
    assert results == [["connection of g"]] * 100
    assert harness.execution.host.open_links.fan_out == {100: 1}
    assert await tasks_left() == 0


@virtual_time
async def test_the_last_opened_is_closed_first() -> None:
    connections = Connections()

    async def on_top(data: Any, context: Context) -> Any:
        await context.runtime.resolve_links("g", "in")
        return await connections.make(data, context)

    graph = parse_graph("h g u", "h~g.in", "g~u.t")
    harness = harness_of(graph, connections, {"u": uses, "g:make": on_top})
    assert await harness.run() == "completed"
    assert connections.log == ["open h", "open g", "close g", "close h"]


async def _fails(*_: Any) -> Any:
    raise NodeError("boom")


@pytest.mark.parametrize("how", ["fails", "is cancelled", "is interrupted"])
@virtual_time
async def test_all_is_closed_however_the_run_ends(how: str) -> None:
    connections = Connections()
    acts = {"u": uses_then(_fails if how == "fails" else forever)}
    harness = harness_of(LINKED, connections, acts)
    loop = asyncio.get_running_loop()
    if how == "is cancelled":
        loop.call_later(1, harness.execution.cancel, "enough")
    elif how == "is interrupted":
        harness.interrupt_after(1)
    ends = {"fails": "failed", "is cancelled": "cancelled", "is interrupted": "interrupted"}
    assert await harness.run() == ends[how]
    assert connections.log == ["open g", "close g"]
    assert await tasks_left() == 0


@virtual_time
async def test_all_is_closed_when_the_store_refuses_a_batch() -> None:
    connections = Connections()
    journal = MemoryJournal(fail_at=3)
    harness = harness_of(LINKED, connections, {"u": uses}, journal=journal)
    with pytest.raises(Exception, match="the disk is full"):
        await harness.run()
    assert (connections.opened, connections.left) == (1, 0)
    assert await tasks_left() == 0


@virtual_time
async def test_a_run_that_leaves_memory_closes_and_the_next_process_opens_anew() -> None:
    connections = Connections()

    async def resume(inputs: Inputs, context: Context, state: Any, answer: Any) -> Any:
        return await uses(inputs, context)

    acts = {"u": uses_then(asks()), "u:resume": resume}
    harness = harness_of(LINKED, connections, acts, journal=MemoryJournal(), parks="always")
    assert await harness.run() == "paused"
    assert connections.log == ["open g", "close g"]
    again = recovered(harness, [created_event(LINKED), *harness.stored])
    again.execution.answer(harness.request_id(), "yes")
    assert await again.run() == "completed"
    assert connections.log == ["open g", "close g"] * 2
    assert await tasks_left() == 0


@virtual_time
async def test_it_stays_open_while_a_paused_run_stays_in_memory() -> None:
    connections = Connections()
    seen: list[int] = []

    async def resume(inputs: Inputs, context: Context, state: Any, answer: Any) -> Any:
        seen.append(connections.left)
        return await uses(inputs, context)

    acts = {"u": uses_then(asks()), "u:resume": resume}
    harness = harness_of(LINKED, connections, acts, journal=MemoryJournal())
    harness.answer_after(60)
    assert await harness.run() == "completed"
    assert (seen, connections.log) == ([1], ["open g", "close g"])


@virtual_time
async def test_each_nested_run_has_its_own_until_it_ends() -> None:
    connections = Connections()
    inner = parse_graph("h v", "h~v.t")
    during: list[int] = []

    async def u(inputs: Inputs, context: Context) -> Any:
        await uses(inputs, context)
        for key in "ab":
            await context.runtime.run_graph(key, inner, {})
            await asyncio.sleep(1)
            during.append(connections.left)
        async with context.task_group() as group:
            for n in range(50):
                group.create_task(context.runtime.run_graph(f"{n}", inner, {}))
        return result_with(1)

    acts = {"u": u, "v": uses, "h:make": connections.make}
    harness = harness_of(LINKED, connections, acts)
    assert await harness.run() == "completed"
    assert during == [1, 1]
    assert (connections.opened, connections.left) == (53, 0)
    assert harness.execution.host.open_links.fan_out == {1: 53}
    assert await tasks_left() == 0


@virtual_time
async def test_a_cancelled_node_closes_what_the_graphs_inside_it_opened() -> None:
    connections = Connections()
    inner = parse_graph("h v", "h~v.t")

    async def u(inputs: Inputs, context: Context) -> Any:
        await context.runtime.run_graph("k", inner, {})

    async def end(*_: Any) -> Any:
        await asyncio.sleep(5)
        return result_with(connections.left)

    graph = parse_graph("u w")
    acts = {"u": u, "v": uses_then(forever), "h:make": connections.make, "w": end}
    harness = harness_of(graph, connections, acts)
    asyncio.get_running_loop().call_later(1, harness.execution.cancel_node, "u", "enough")
    assert await harness.run() == "failed"
    assert harness.execution.outputs["w"]["output"].value == 0
    assert connections.log == ["open u[k]/h", "close u[k]/h"]


@virtual_time
async def test_an_error_in_entering_goes_to_the_callers_and_a_later_one_tries_again() -> None:
    connections = Connections()
    connections.enter_s, connections.enter_errors = 1, [NodeError("refused")]
    policies = {"v": Policy(on_error="continue")}
    graph = parse_graph("g u v w", "g~u.t", "g~v.t", "g~w.t", "v.error>w", policies=policies)
    harness = harness_of(graph, connections, {"u": uses, "v": uses, "w": uses})
    assert await harness.run() == "failed"
    assert sorted(harness.event_names("node.failed")) == ["node.failed u", "node.failed v"]
    assert harness.execution.outputs["w"]["output"].value == ["connection of g"]
    assert connections.log == ["open g", "close g"]
    assert await tasks_left() == 0


@virtual_time
async def test_a_caller_that_is_cancelled_while_it_enters_leaves_nothing() -> None:
    connections = Connections()
    connections.enter_s = 10
    graph = parse_graph("g u v", "g~u.t", "g~v.t", policies={"u": Policy(timeout_s=1)})
    harness = harness_of(graph, connections, {"u": uses, "v": uses})
    assert await harness.run() == "failed"
    assert "node.completed v" in harness.event_names()
    assert connections.log == ["open g", "close g"]
    assert await tasks_left() == 0


@virtual_time
async def test_an_error_in_closing_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    connections = Connections()
    connections.exit_error = RuntimeError("the pipe is broken")
    harness = harness_of(LINKED, connections, {"u": uses})
    assert await harness.run() == "completed"
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert "'g'" in record.getMessage()
    assert "the pipe is broken" in record.getMessage()


@virtual_time
async def test_what_does_not_close_is_cancelled_in_time(caplog: pytest.LogCaptureFixture) -> None:
    connections = Connections()
    connections.exit_s = 1_000
    harness = harness_of(LINKED, connections, {"u": uses})
    assert await harness.run() == "completed"
    assert asyncio.get_running_loop().time() <= 2
    assert "opened for a link did not close in time: cancelled" in caplog.text
    assert "Task-" not in caplog.text
    assert await tasks_left() == 0


@virtual_time
async def test_after_the_end_of_a_run_nothing_is_opened_any_more() -> None:
    connections, late = Connections(), list[str]()

    async def u(inputs: Inputs, context: Context) -> Any:
        async def afterwards() -> None:
            await asyncio.sleep(5)
            with pytest.raises(NodeError, match="is over"):
                await context.runtime.resolve_links("u", "t")
            late.append("refused")

        tasks.append(asyncio.get_running_loop().create_task(afterwards()))
        return result_with(1)

    tasks: list[asyncio.Task[None]] = []
    harness = harness_of(LINKED, connections, {"u": u})
    assert await harness.run() == "completed"
    await asyncio.wait(tasks)
    assert (late, connections.log) == (["refused"], [])


@virtual_time
async def test_the_task_of_an_artefact_is_not_a_task_of_a_node() -> None:
    """What it does in the background is not taken for the node that used it first."""
    seen: list[Any] = []

    class Looks(_Connection):
        async def __aenter__(self) -> str:
            try:
                await self.context.runtime.once("k", forever)
            except LookupError as error:
                seen.append(error)
            return await super().__aenter__()

    async def make(data: Any, context: Context) -> Any:
        made = Looks(connections, context.path)
        made.context = context  # type: ignore[attr-defined]
        return made

    connections = Connections()
    harness = harness_of(LINKED, connections, {"u": uses, "g:make": make})
    assert await harness.run() == "completed"
    assert len(seen) == 1


def opens(connections: Connections, key: str = "shop", seconds: float = 0.0) -> Any:
    """A node that opens something under a name, which it shares with others."""

    async def act(inputs: Inputs, context: Context) -> Any:
        async def make() -> Any:
            return await connections.make(None, context)

        connection = await make()
        opened = await context.runtime.open_once(key, lambda: connection)
        await asyncio.sleep(seconds)
        return result_with(opened)

    return act


@virtual_time
async def test_nodes_share_what_they_open_under_one_name_until_their_graph_ends() -> None:
    connections = Connections()
    connections.enter_s = 1.0
    acts = {
        "a": opens(connections, seconds=5),
        "b": opens(connections),
        "c": opens(connections, "other"),
        "d": opens(connections),
    }
    harness = ExecutionHarness(parse_graph("a b c d", "a>d"), acts)
    assert await harness.run() == "completed"
    results = {n: harness.execution.outputs[n]["output"].value for n in "abcd"}
    assert len({results[n] for n in "abd"}) == 1
    assert results["c"] not in (results["a"], None)
    assert (connections.opened, connections.left) == (2, 0)


@virtual_time
async def test_what_could_not_be_opened_is_tried_again_by_the_next_node() -> None:
    connections = Connections()
    connections.enter_errors.append(NodeError("not yet"))
    policies = {"a": Policy(on_error="continue")}
    graph = parse_graph("a b", "a.error>b", policies=policies)
    harness = ExecutionHarness(graph, {"a": opens(connections), "b": opens(connections)})
    assert await harness.run() == "completed"
    assert (connections.opened, connections.left) == (1, 0)


@virtual_time
async def test_what_a_nested_graph_without_links_opens_is_closed_with_it() -> None:
    connections = Connections()
    during: list[int] = []

    async def u(inputs: Inputs, context: Context) -> Any:
        for key in "ab":
            await context.runtime.run_graph(key, parse_graph("v"), {})
            await asyncio.sleep(1)
            during.append(connections.left)
        return result_with(1)

    harness = ExecutionHarness(parse_graph("u"), {"u": u, "v": opens(connections)})
    assert await harness.run() == "completed"
    assert (connections.opened, during) == (2, [0, 0])
