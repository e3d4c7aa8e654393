"""Executions told what to do while they run, wait for their turn, or rest, and taken up again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, Gone, NodeError, NotFound, StoreError
from planwave.events import TERMINAL, Event
from planwave.graph.model import DataValue, Graph, Node, Policy
from planwave.graph.protocols import ExecutionResult, Suspension
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.records import StoreStats
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.polling import until
from tests.support.service.dependencies import dependencies, execute_goal
from tests.support.storage.either_database import Place


class Asks:
    """A node type that waits for an answer, and gives it with what it had noted before."""

    node_type = "asks"

    def __init__(self, timeout_s: float | None = None) -> None:
        self.timeout_s = timeout_s

    async def execute(self, data: Any, inputs: Any, context: Any) -> Suspension:
        request = {"question": f"{context.node_id}?"}
        return Suspension(request, ["noted", context.node_id], self.timeout_s, "nobody came")

    async def resume(self, data: Any, inputs: Any, context: Any, state: Any, answer: Any) -> Any:
        return ExecutionResult({"output": DataValue("json", [state, answer, context.answers])})


class Counts:
    """A node type that counts its runs over all services, and is held where its data say so."""

    node_type = "counts"

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.started = asyncio.Event()
        self.held = asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.runs[context.node_id] += 1
        if data.get("hold"):
            self.started.set()
            await self.held.wait()
        return ExecutionResult({"output": DataValue("text", context.node_id)})


@asynccontextmanager
async def opened(
    where: Path | Place, graph: Graph, *types: Any, **more: Any
) -> AsyncGenerator[Service]:
    """Open a service over what is stored in a directory or a place; leaving it cuts off what runs."""
    place = Place(where) if isinstance(where, Path) else where
    async with Service(
        dependencies(graph, directory=place.documents, store=place.open(), types=types, **more)
    ) as service:
        try:
            yield service
        finally:
            await service.drain(0)


async def executed(service: Service) -> str:
    return (await execute_goal(service)).execution_id


async def outputs_of(service: Service, execution_id: str) -> dict[str, Any]:
    state = await service.executions.state(execution_id)
    return {
        path: {handle: each["value"] for handle, each in (node.outputs or {}).items()}
        for path, node in state.nodes.items()
    }


async def reached(service: Service, execution_id: str, condition: Callable[[Event], bool]) -> Event:
    """Wait for an event; the first that fits, from the beginning."""
    async for event in service.executions.watch(execution_id):
        if condition(event):
            return event
    raise AssertionError("it never came")


QUESTION = make_graph(Node("q", "asks", "Q"), text_node("t", "{{ input }}"), edges=[("q", "t")])
TWO = make_graph(Node("p", "asks", "P"), Node("q", "asks", "Q"))
WORK = make_graph(
    Node("a", "counts", "A"), Node("b", "counts", "B", data={"hold": True}), Node("c", "counts", "C"),
    edges=[("a", "b"), ("b", "c")],
)  # fmt: skip


# -- waiting


async def test_paused_execution_holds_no_task_and_survives_restart(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, QUESTION, Asks()) as service:
        execution_id = await executed(service)
        assert (await service.executions.wait(execution_id)).status == "paused"
        assert service.load.running == 0
        names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]
        of_executions = [name for name in names if "Carrier" in name or "Execution" in name]
        assert of_executions == ["LocalCarrier.serve"], "there is one task for all of them"
    async with opened(tmp_path, QUESTION, Asks()) as service:
        await service.recover()
        (request,) = await service.executions.requests(execution_id)
        assert (request.path, request.request) == ("q", {"question": "q?"})
        await service.executions.answer(execution_id, request.request_id, "yes")
        assert (await service.executions.wait(execution_id)).status == "completed"
        given = (await outputs_of(service, execution_id))["q"]["output"]
        assert given == [["noted", "q"], "yes", 1]
        assert (await service.executions.state(execution_id)).nodes["q"].answer == "yes"
        with pytest.raises(Conflict):
            await service.executions.answer(execution_id, request.request_id, "again")


async def test_one_of_concurrent_answers_is_accepted(tmp_path: Path) -> None:
    async with opened(tmp_path, TWO, Asks()) as service:
        execution_id = await executed(service)
        await service.executions.wait(execution_id)
        first, second = await service.executions.requests(execution_id)
        received: list[Exception] = []

        async def answers(value: int) -> None:
            try:
                await service.executions.answer(execution_id, first.request_id, value)
            except Conflict as error:
                received.append(error)

        async with asyncio.TaskGroup() as tasks:
            for value in range(5):
                tasks.create_task(answers(value))
        assert [each.code for each in received] == ["request-answered"] * 4
        assert (await service.executions.wait(execution_id)).status == "paused"
        assert [r.request_id for r in await service.executions.requests(execution_id)] == [
            second.request_id
        ]
        await service.executions.answer(execution_id, second.request_id, "b")
        assert (await service.executions.wait(execution_id)).status == "completed"
        answered = [
            e for e in await service.executions.events(execution_id) if e.type == "node.answered"
        ]
        assert len(answered) == 2


@pytest.mark.parametrize("restarts", [False, True])
async def test_expired_request_continues_with_its_default(tmp_path: Path, restarts: bool) -> None:
    async with opened(tmp_path, QUESTION, Asks(0.05)) as service:
        execution_id = await executed(service)
        if not restarts:
            ended = await reached(service, execution_id, lambda e: e.type in TERMINAL)
            assert ended.type == "execution.completed"
    async with opened(tmp_path, QUESTION, Asks(0.05)) as service:
        await service.recover()
        await reached(service, execution_id, lambda e: e.type in TERMINAL)
        (answered,) = [
            e for e in await service.executions.events(execution_id) if e.type == "node.answered"
        ]
        assert (answered.data["by"], answered.data["answer"]) == ("timeout", "nobody came")
        state = await service.executions.state(execution_id)
        assert state.closed_requests == {answered.data["request_id"]: "timeout"}


LATER = make_graph(
    text_node("draft", "Dear Ann"), Node("later", "wait", "Later", data={"seconds": 7_200}),
    text_node("sent", "sent: {{ input }}"), edges=[("draft", "later"), ("later", "sent")],
)  # fmt: skip


async def test_timer_holds_no_task_and_survives_restart(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, LATER) as service:
        execution_id = await executed(service)
        assert (await service.executions.wait(execution_id)).status == "paused"
        assert service.load.running == 0
    async with opened(tmp_path, LATER) as service:
        await service.recover()
        state = await service.executions.state(execution_id)
        assert (state.waiting_for_input, state.current_node_id) == (False, None)
        (request,) = await service.executions.requests(execution_id)
        assert (request.path, request.request["kind"]) == ("later", "timer")
        await service.executions.answer(execution_id, request.request_id, {"decision": "continue"})
        assert (await service.executions.wait(execution_id)).status == "completed"
        assert (await outputs_of(service, execution_id))["sent"] == {"output": "sent: Dear Ann"}


async def test_timer_due_during_downtime_fires_at_recovery(tmp_path: Path) -> None:
    began = datetime.now(UTC)
    async with opened(tmp_path, LATER, now=lambda: began) as service:
        execution_id = await executed(service)
        await service.executions.wait(execution_id)
    async with opened(tmp_path, LATER, now=lambda: began + timedelta(hours=3)) as service:
        await service.recover()
        await reached(service, execution_id, lambda e: e.type in TERMINAL)
        (answered,) = [
            e for e in await service.executions.events(execution_id) if e.type == "node.answered"
        ]
        assert (answered.path, answered.data["by"]) == ("later", "timeout")
        assert (await service.executions.state(execution_id)).status == "completed"


ROUNDS = make_graph(
    Node("items", "json", "Items", data={"value": [1, 2, 3]}),
    Node("each", "loop", "Each", data={
        "body": {
            "nodes": [
                {"id": "later", "type": "wait", "data": {"seconds": 0.05}},
                {"id": "said", "type": "text", "data": {"text": "{{ item }}!"}},
            ],
            "edges": [{"source": "later", "target": "said", "data": {"channel": "flow"}}],
        },
        "parallel": 2,
    }),
    edges=[("items", "each")],
)  # fmt: skip


@pytest.mark.parametrize("restarts", [False, True])
async def test_timers_inside_a_loop_fire(tmp_path: Path, restarts: bool) -> None:
    async with opened(tmp_path, ROUNDS) as service:
        execution_id = await executed(service)
        await reached(service, execution_id, lambda e: e.type == "node.waiting")
        if not restarts:
            await reached(service, execution_id, lambda e: e.type in TERMINAL)
    async with opened(tmp_path, ROUNDS) as service:
        await service.recover()
        await reached(service, execution_id, lambda e: e.type in TERMINAL)
        assert (await outputs_of(service, execution_id))["each"]["output"] == ["1!", "2!", "3!"]


async def test_execution_waiting_for_a_timer_can_be_cancelled(tmp_path: Path) -> None:
    async with opened(tmp_path, LATER) as service:
        execution_id = await executed(service)
        await service.executions.wait(execution_id)
        assert (await service.executions.cancel(execution_id)).status == "cancelled"
        (request,) = (await service.executions.state(execution_id)).closed_requests
        with pytest.raises(Gone):
            await service.executions.answer(execution_id, request, {"decision": "continue"})


# -- pausing


async def test_paused_execution_starts_no_node_until_resumed(tmp_path: Path) -> None:
    counts = Counts()
    held = {"hold": True}
    work = make_graph(
        Node("a", "counts", "A"), Node("b", "counts", "B", data=held),
        Node("c", "counts", "C", data=held), edges=[("a", "b"), ("b", "c")],
    )  # fmt: skip
    async with opened(tmp_path, work, counts) as service:
        execution_id = await executed(service)
        await counts.started.wait()
        assert (await service.executions.pause(execution_id)).status == "paused"
        assert (await service.executions.pause(execution_id)).status == "paused"
        counts.held.set()
        await service.executions.wait(execution_id)
        assert counts.runs == {"a": 1, "b": 1}
    counts.held.clear()
    async with opened(tmp_path, work, counts) as service:
        await service.recover()
        assert (await service.executions.wait(execution_id)).status == "paused"
        assert (await service.executions.resume(execution_id)).status == "executing"
        counts.held.set()
        assert (await service.executions.wait(execution_id)).status == "completed"
        assert counts.runs == {"a": 1, "b": 1, "c": 1}
        with pytest.raises(Conflict):
            await service.executions.resume(execution_id)


async def test_resume_of_running_and_pause_of_queued_are_rejected(
    tmp_path: Path,
) -> None:
    held = HeldNode()
    limits = Limits(concurrent_executions=1)
    graph = make_graph(Node("h", "held", "H"))
    async with opened(tmp_path, graph, held, limits=limits) as service:
        execution_id, queued = await executed(service), await executed(service)
        await held.started.wait()
        for refused, code in (
            (service.executions.resume(execution_id), "not-paused"),
            (service.executions.pause(queued), "not-started"),
        ):
            with pytest.raises(Conflict) as received:
                await refused
            assert received.value.code == code
        held.release.set()
        await service.executions.wait(queued)


# -- one node


async def test_cancelled_node_blocks_its_dependents(tmp_path: Path) -> None:
    counts = Counts()
    async with opened(tmp_path, WORK, counts) as service:
        execution_id = await executed(service)
        await counts.started.wait()
        await service.executions.cancel(execution_id, "no need", node="b")
        assert (await service.executions.wait(execution_id)).status == "failed"
        nodes = (await service.executions.state(execution_id)).nodes
        assert {path: node.status for path, node in nodes.items()} == {
            "a": "completed", "b": "cancelled", "c": "blocked",
        }  # fmt: skip
        with pytest.raises(NotFound):
            await service.executions.cancel(await executed(service), node="x")


# -- what a process left behind


async def test_recovery_runs_only_unfinished_nodes(
    tmp_path: Path,
) -> None:
    counts = Counts()
    async with opened(tmp_path, WORK, counts) as service:
        execution_id = await executed(service)
        await counts.started.wait()
    counts.held.set()
    async with opened(tmp_path, WORK, counts) as service:
        assert (await service.executions.get(execution_id)).status == "executing"
        assert await service.recover() == 1
        await reached(service, execution_id, lambda e: e.type in TERMINAL)
        assert (await service.executions.wait(execution_id)).status == "completed"
        assert counts.runs == {"a": 1, "b": 2, "c": 1}
        events = await service.executions.events(execution_id)
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        again = [
            e.data.get("reentry") for e in events if e.type == "node.started" and e.path == "b"
        ]
        assert again == [None, 1]


async def test_recovery_starts_queued_but_not_created_executions(tmp_path: Path) -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "H"))
    limits = Limits(concurrent_executions=1)
    async with opened(tmp_path, graph, held, limits=limits) as service:
        first, queued = await executed(service), await executed(service)
        plan = await service.plans.create("do it")
        created = (await service.executions.create(plan.plan_id)).execution_id
        await held.started.wait()
    held.release.set()
    async with opened(tmp_path, graph, held, limits=limits) as service:
        assert await service.recover() == 2
        for execution_id in (first, queued):
            await reached(service, execution_id, lambda e: e.type in TERMINAL)
        assert (await service.executions.get(created)).status == "starting"
        await service.executions.start(created)
        assert (await service.executions.wait(created)).status == "completed"


@pytest.mark.parametrize(
    ("answer", "status", "output"),
    [
        ({"decision": "run_again"}, "completed", "b"),
        ({"decision": "give_result", "value": "sent"}, "completed", "sent"),
        ({"decision": "fail"}, "failed", None),
    ],
)
async def test_interrupted_effect_once_node_asks_for_a_decision(
    tmp_path: Path, answer: dict[str, Any], status: str, output: str | None
) -> None:
    counts = Counts()
    once = Node("b", "counts", "B", data={"hold": True}, policy=Policy(effect="once"),
                policy_document={"effect": "once"})  # fmt: skip
    graph = make_graph(once)
    async with opened(tmp_path, graph, counts) as service:
        execution_id = await executed(service)
        await counts.started.wait()
    counts.held.set()
    async with opened(tmp_path, graph, counts) as service:
        await service.recover()
        waiting = await reached(service, execution_id, lambda e: e.type == "node.waiting")
        assert waiting.data["request"]["kind"] == "interrupted"
        assert counts.runs == {"b": 1}
        await service.executions.answer(execution_id, waiting.data["request_id"], answer)
        await reached(service, execution_id, lambda e: e.type in TERMINAL)
        assert (await service.executions.wait(execution_id)).status == status
        assert counts.runs == {"b": 2 if answer["decision"] == "run_again" else 1}
        outputs = (await outputs_of(service, execution_id))["b"]
        assert outputs.get("output") == output


async def test_repeatedly_crashing_execution_is_set_aside(tmp_path: Path) -> None:
    counts, limits = Counts(), Limits(recoveries=2)
    async with opened(tmp_path, WORK, counts, limits=limits) as service:
        execution_id = await executed(service)
        await counts.started.wait()
    for _ in range(2):
        counts.started.clear()
        async with opened(tmp_path, WORK, counts, limits=limits) as service:
            await service.recover()
            await counts.started.wait()
    async with opened(tmp_path, WORK, counts, limits=limits) as service:
        await service.recover()
        paused = await reached(service, execution_id, lambda e: e.type == "execution.paused")
        assert "recoveries" in paused.data["reason"]
        assert counts.runs["b"] == 3
        counts.started.clear()
        await service.executions.resume(execution_id)  # starts the count anew
        await counts.started.wait()
    async with opened(tmp_path, WORK, counts, limits=limits) as service:
        counts.started.clear()
        await service.recover()
        await counts.started.wait()
        await service.executions.pause(execution_id)
        other = await executed(service)
        counts.held.set()
        assert (await service.executions.wait(other)).status == "completed"
        await service.executions.resume(execution_id)
        assert (await service.executions.wait(execution_id)).status == "completed"
        assert counts.runs["c"] == 2


async def test_commands_fail_at_once_when_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts()
    async with opened(tmp_path, WORK, counts) as service:
        execution_id = await executed(service)
        await counts.started.wait()
        with monkeypatch.context() as full:
            trouble = StoreError("the disk is full", code="disk-full")
            full.setattr(
                SqliteStore, "stats", property(lambda _: StoreStats(transient_error=trouble))
            )
            for command in (
                service.executions.cancel,
                service.executions.pause,
                service.executions.resume,
            ):
                with pytest.raises(StoreError) as refused:
                    await command(execution_id)
                assert refused.value.code == "disk-full"
        assert (await service.executions.cancel(execution_id)).status == "cancelled"


async def test_expired_request_continues_when_disk_has_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[StoreStats] = []

    def use(_: SqliteStore) -> StoreStats:
        looks.append(StoreStats(transient_error=StoreError("the disk is full", code="disk-full")))
        return looks[-1]

    async with opened(tmp_path, QUESTION, Asks(100.0)) as service, asyncio.TaskGroup() as tasks:
        execution_id = await executed(service)
        await service.executions.wait(execution_id)
        with monkeypatch.context() as full:
            full.setattr(SqliteStore, "stats", property(use))
            over = datetime.now(UTC) + timedelta(seconds=200)
            tasks.create_task(service.executions._expire(execution_id, over))
            await until(lambda: looks)
            assert (await service.executions.state(execution_id)).status == "paused"
        await reached(service, execution_id, lambda e: e.type == "execution.completed")
        (answered,) = [
            e for e in await service.executions.events(execution_id) if e.type == "node.answered"
        ]
        assert answered.data["by"] == "timeout"


class Nests:
    """A node type that runs a graph in which a node waits."""

    node_type = "nests"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        inner = make_graph(text_node("t"), Node("q", "asks", "Q"), edges=[("t", "q")])
        outputs = await context.runtime.run_graph("one", inner, {})
        return ExecutionResult({"output": outputs["q"]["output"]})


@pytest.mark.parametrize("restarts", [False, True])
async def test_request_inside_a_node_is_answered(tmp_path: Path, restarts: bool) -> None:
    graph = make_graph(Node("n", "nests", "N"))
    async with opened(tmp_path, graph, Nests(), Asks()) as service:
        execution_id = await executed(service)
        await reached(service, execution_id, lambda e: e.type == "execution.paused")
        if not restarts:
            (request,) = await service.executions.requests(execution_id)
            await service.executions.answer(execution_id, request.request_id, "in time")
            assert (await service.executions.wait(execution_id)).status == "completed"
            return
    async with opened(tmp_path, graph, Nests(), Asks()) as service:
        state = await service.executions.state(execution_id)
        assert (state.nodes["n"].status, state.nodes["n[one]/q"].status) == ("waiting", "waiting")
        assert state.current_node_id == "n[one]/q"
        await service.recover()
        (request,) = await service.executions.requests(execution_id)
        assert request.path == "n[one]/q"
        await service.executions.answer(execution_id, request.request_id, "late")
        assert (await service.executions.wait(execution_id)).status == "completed"
        given = (await outputs_of(service, execution_id))["n"]["output"]
        assert given == [["noted", "q"], "late", 1]
        done = [
            e.path
            for e in await service.executions.events(execution_id)
            if e.type == "node.completed"
        ]
        assert sorted(done) == ["n", "n[one]/q", "n[one]/t"], "what was settled inside stays so"


async def test_queued_execution_of_earlier_process_can_be_resumed(tmp_path: Path) -> None:
    held, limits = HeldNode(), Limits(concurrent_executions=1)
    graph = make_graph(Node("h", "held", "H"))
    async with opened(tmp_path, graph, held, limits=limits) as service:
        await executed(service)
        queued = await executed(service)
        plan = await service.plans.create("do it")
        created = (await service.executions.create(plan.plan_id)).execution_id
        await held.started.wait()
    held.release.set()
    async with opened(tmp_path, graph, held, limits=limits) as service:
        await service.executions.resume(queued)
        assert (await service.executions.wait(queued)).status == "completed"
        with pytest.raises(Conflict) as refused:
            await service.executions.resume(created)
        assert refused.value.code == "not-started"


class Copes(Nests):
    """Runs a graph in which a node waits, and copes with its failure in its own time."""

    node_type = "copes"

    def __init__(self, held: asyncio.Event) -> None:
        self.coping, self._held = asyncio.Event(), held

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        try:
            return await super().execute(data, inputs, context)
        except NodeError:
            self.coping.set()
            await self._held.wait()
            return ExecutionResult({"output": DataValue("text", "coped")})


@pytest.mark.parametrize("restarts", [False, True])
async def test_cancelled_request_inside_a_node_lets_the_node_continue(
    tmp_path: Path, restarts: bool
) -> None:
    held = asyncio.Event()
    graph, copes = make_graph(Node("n", "copes", "N")), Copes(held)
    async with opened(tmp_path, graph, copes, Asks()) as service:
        execution_id = await executed(service)
        await reached(service, execution_id, lambda e: e.type == "execution.paused")
        await service.executions.cancel(execution_id, node="n[one]/q")
        await copes.coping.wait()
        assert (await service.executions.get(execution_id)).status == "executing"
        held.set()
        if not restarts:
            assert (await service.executions.wait(execution_id)).status == "completed"
            return
        held.clear()
    held.set()
    async with opened(tmp_path, graph, copes, Asks()) as service:
        await service.recover()
        await reached(service, execution_id, lambda e: e.type in TERMINAL)
        assert (await service.executions.wait(execution_id)).status == "completed"
