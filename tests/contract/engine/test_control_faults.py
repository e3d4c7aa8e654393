"""The rows of the fault matrix about control and time: cancelling, answering, clocks, a blocked loop."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from planwave.bootstrap import open_service
from planwave.errors import Conflict, NodeError
from planwave.events import TERMINAL, Event
from planwave.executor.driver.execution import Execution
from planwave.graph.model import DataValue, Graph, Node, Policy, Retry
from planwave.graph.protocols import ExecutionResult
from planwave.ids import new_id
from planwave.providers.model_stream import load_sdk
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from planwave.storage.sql.store import Store
from tests.support.graph.builders import make_edge, make_graph, make_plan, text_node
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    NoReply,
    ReplyStep,
    TextReply,
)
from tests.support.llm.fake_providers import library_registry
from tests.support.nodes.held_nodes import HeldNode
from tests.support.polling import until
from tests.support.server.in_process_client import in_process_client
from tests.support.server.metrics_scrape import MetricsScrape
from tests.support.server.running_server import running_server
from tests.support.service.dependencies import dependencies
from tests.support.storage.either_database import Place
from tests.support.virtual_loop import VirtualNetworkLoop, virtual_time

FOR_LONG_S = 600.0
"""What is cancelled would take so long by itself."""
CANCELLED_WITHIN_S = 2.0
TRIES = 5
"""A busy machine may take its time away once or twice; what really waits does so every time."""
HELD = Node("h", "held", "H")


def written(*nodes: Node, edges: Any = ()) -> Graph:
    return make_graph(*nodes, edges=edges)


class Harness(NamedTuple):
    """A service over a real store, a real client and a real render worker, and its provider."""

    service: Service
    llm: FakeLLMServer
    held: HeldNode

    async def execute(self, graph: Graph) -> str:
        plan = make_plan(graph, new_id())
        return (await self.service.executions.execute(plan)).execution_id

    async def seen(self, execution_id: str, holds: Callable[[Event], bool]) -> Event:
        """Wait for an event, streamed text included."""
        async for event in self.service.executions.watch(execution_id):
            if holds(event):
                return event
        raise AssertionError("it never came")

    async def terminals(self, execution_id: str) -> list[str]:
        return [
            e.type for e in await self.service.executions.events(execution_id) if e.type in TERMINAL
        ]


class Busy:
    """A node type that fails and may be tried again."""

    node_type = "busy"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        raise NodeError("busy", retryable=True)


class Nests:
    """A node type that runs a graph of one held node."""

    node_type = "nests"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        await context.runtime.run_graph("1", written(HELD), {})
        return ExecutionResult({"output": DataValue("text", "done")})


class Stalls:
    """A node type that passes its input on, and never ends where that is ``at``."""

    node_type = "stalls"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        given = inputs.text("input")
        if given == data["at"]:
            await asyncio.Event().wait()
        return ExecutionResult({"output": DataValue("text", given)})


@asynccontextmanager
async def harness_of(place: Place, *steps: ReplyStep, **limits: Any) -> AsyncIterator[Harness]:
    """Open a harness; at its end no process that it started is left."""
    load_sdk("openai")  # takes seconds, which no cancel should have to cover
    before = children()
    async with FakeLLMServer(*steps) as llm:
        settings = Settings(
            storage_dir=place.directory,
            database_url=place.database_url,
            openai_api_key="sk-canary-openai-0123456789",
            openai_base_url=llm.openai_url,
            limits=Limits(**limits),
        )
        held = HeldNode()
        parts = open_service(settings)._dependencies
        catalogue = library_registry(parts.providers, [held, Busy(), Nests(), Stalls()])
        async with Service(replace(parts, catalogue=catalogue)) as service:
            yield Harness(service, llm, held)
    assert children() <= before


def children() -> set[int]:
    """The processes this one has started that still run."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found |= {int(pid) for pid in (task / "children").read_text().split()}
        except FileNotFoundError:  # a thread that has ended meanwhile
            continue
    return found


# -- F14: the render worker


async def hold_renders(service: Service) -> int:
    """Stop the render worker, so that it never replies; return its process id."""
    renderer = service._dependencies.renderer
    renderer.wall_s = FOR_LONG_S
    await renderer.render("warm", {})
    os.kill(renderer._worker.process.pid, signal.SIGSTOP)
    return renderer._worker.process.pid


async def test_f14_a_render_worker_killed_for_memory_fails_its_node_alone(tmp_path: Path) -> None:
    async with harness_of(Place(tmp_path)) as harness:
        worker = await hold_renders(harness.service)
        greedy = written(
            Node("greedy", "text", "Greedy", data={"text": "{{ 1 + 1 }}"}),
            text_node("after", "{{ input }}"), text_node("aside"), edges=[("greedy", "after")],
        )  # fmt: skip
        execution_id = await harness.execute(greedy)
        await harness.seen(execution_id, lambda e: (e.type, e.path) == ("node.completed", "aside"))
        other = await harness.execute(written(Node("t", "text", "T", data={"text": "{{ 2 + 2 }}"})))
        await harness.seen(other, lambda e: e.type == "node.started")
        os.kill(worker, signal.SIGKILL)
        assert (await harness.service.executions.wait(execution_id)).status == "failed"
        nodes = (await harness.service.executions.state(execution_id)).nodes
        assert (nodes["greedy"].error or {})["code"] == "template-memory"
        assert (nodes["after"].status, nodes["aside"].status) == ("blocked", "completed")
        assert (await harness.service.executions.wait(other)).status == "completed"


# -- F55, F56: answers


QUESTION = written(
    text_node("draft", "A draft"),
    Node("ask", "approval", "Ask", data={"prompt": "Publish?", "timeoutS": None}),
    text_node("yes", "published: {{ input }}"), text_node("no", "dropped: {{ input }}"),
    edges=[
        ("draft", "ask"), make_edge("ask", "yes", source_handle="approve"),
        make_edge("ask", "no", source_handle="reject"),
    ],
)  # fmt: skip


async def waiting_execution(calls: Any) -> tuple[str, str]:
    """Execute the question; return the ids of execution and request once it waits."""
    plan = await calls.service.plans.create("do it")
    execution_id = (await calls.service.executions.execute(plan.plan_id)).execution_id
    await calls.service.executions.wait(execution_id)
    (request,) = (await calls.get_json(f"/api/executions/{execution_id}/requests"))["requests"]
    return execution_id, request["request_id"]


def slow(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store on which calls during an append see the state before it."""
    append = store.append

    async def append_late(execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        for _ in range(1_000):
            await asyncio.sleep(0)
        await append(execution_id, epoch, events)

    monkeypatch.setattr(store, "append", append_late)
    return store


async def test_f55_of_twenty_concurrent_answers_one_is_accepted_and_the_others_get_a_conflict(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_process_client(dependencies(QUESTION, store=slow(store, monkeypatch))) as calls:
        execution_id, request_id = await waiting_execution(calls)
        path = f"/api/executions/{execution_id}/requests/{request_id}"
        outcomes: list[tuple[int, str, Any]] = []

        async def answers(number: int) -> None:
            decision = ("approve", "reject")[number % 2]
            answer = await calls.post(path, json={"decision": decision, "note": str(number)})
            outcomes.append((answer.status_code, str(number), answer.json()))

        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(answers(number))
        assert Counter(status for status, _, _ in outcomes) == {200: 1, 409: 19}
        assert {body["code"] for status, _, body in outcomes if status == 409} == {
            "request-answered"
        }
        (winner,) = (number for status, number, _ in outcomes if status == 200)
        assert (await calls.service.executions.wait(execution_id)).status == "completed"
        events = await calls.service.executions.events(execution_id)
        (answered,) = [e for e in events if e.type == "node.answered"]
        assert answered.data["answer"]["note"] == winner
        nodes = (await calls.service.executions.state(execution_id)).nodes
        followed, left = ("no", "yes") if int(winner) % 2 else ("yes", "no")
        assert (nodes[followed].status, nodes[left].status) == ("completed", "skipped")


@pytest.mark.parametrize("how", ["execution", "node", "timeout", "delete"])
async def test_f56_a_late_answer_is_rejected_and_starts_nothing(how: str, store: Store) -> None:
    graph = QUESTION
    if how == "timeout":
        timed = {"prompt": "Publish?", "timeoutS": 0.05, "timeoutAction": "reject"}
        nodes = [n._replace(data=timed) if n.id == "ask" else n for n in graph.nodes]
        graph = Graph(tuple(nodes), graph.edges)
    async with in_process_client(dependencies(graph, store=store)) as calls:
        plan = await calls.service.plans.create("do it")
        execution_id = (await calls.service.executions.execute(plan.plan_id)).execution_id
        request_id = ""
        async for event in calls.service.executions.watch(execution_id):
            if event.type == "node.waiting":
                request_id = event.data["request_id"]
            if how != "timeout" and event.type == "execution.paused":
                break
        if how == "node":
            await calls.post_json(f"/api/executions/{execution_id}/cancel", {"node": "ask"})
            await calls.service.executions.wait(execution_id)
        elif how != "timeout":
            await calls.post_json(f"/api/executions/{execution_id}/cancel")
        if how == "delete":
            assert (await calls.delete(f"/api/executions/{execution_id}")).status_code == 204
        path = f"/api/executions/{execution_id}/requests/{request_id}"
        before = [] if how == "delete" else await calls.service.executions.events(execution_id)
        status, code = (404, "not-found") if how == "delete" else (410, "request-closed")
        refused = await calls.expect_problem("POST", path, status, {"decision": "approve"})
        assert refused["code"] == code
        if how != "delete":
            assert await calls.service.executions.events(execution_id) == before
            assert not [e for e in before if (e.type, e.path) == ("node.started", "yes")]


# -- F57: cancel, in every phase


class Phase(NamedTuple):
    """What is cancelled when: ``node`` is what is at work or waits then, None where nothing is."""

    graph: Graph
    reached: Callable[[Harness, str], Awaitable[object]]
    node: str | None = None
    steps: Callable[[], tuple[ReplyStep, ...]] = tuple
    limits: dict[str, Any] = {}  # noqa: RUF012 - read only


AGENT = {"provider": "openai", "model": "gpt-4o-mini", "userPrompt": "Write."}
TRIED_AGAIN = Policy(retry=Retry(2, FOR_LONG_S))
PATIENT = {"first_byte_s": 900, "chunk_gap_s": 900, "call_s": 900, "retry_after_s": 600}
AFTER = text_node("after", "{{ input }}")


def follows(node: Node) -> Graph:
    return written(node, AFTER, edges=[(node.id, "after")])


async def calls_provider(harness: Harness, _: str) -> None:
    await until(lambda: harness.llm.open_requests)


async def streams(harness: Harness, execution_id: str) -> None:
    await harness.seen(execution_id, lambda e: e.type == "node.delta")


async def provider_waits(harness: Harness, _: str) -> None:
    await until(lambda: harness.llm.requests and not harness.llm.open_requests)


async def renders(harness: Harness, execution_id: str) -> None:
    await harness.seen(execution_id, lambda e: (e.type, e.path) == ("node.started", "t"))


async def retries(harness: Harness, execution_id: str) -> None:
    await harness.seen(execution_id, lambda e: e.type == "node.retrying")


async def waits(harness: Harness, execution_id: str) -> None:
    assert (await harness.service.executions.wait(execution_id)).status == "paused"


async def nests(harness: Harness, execution_id: str) -> None:
    await harness.seen(execution_id, lambda e: (e.type, e.path) == ("node.started", "n[1]/h"))


async def is_between(harness: Harness, execution_id: str) -> None:
    await harness.held.started.wait()
    await harness.service.executions.pause(execution_id)
    harness.held.release.set()
    assert (await harness.service.executions.wait(execution_id)).status == "paused"


async def is_queued(harness: Harness, execution_id: str) -> None:
    assert harness.service.executions.driver.position(execution_id) == 1


def hangs() -> tuple[ReplyStep, ...]:
    return (NoReply(),)


def stops_within() -> tuple[ReplyStep, ...]:
    return (TextReply("one two three four", gates={3: asyncio.Event()}),)


def is_limited() -> tuple[ReplyStep, ...]:
    """Answer with a limit on the rate that leaves the node the time to wait for its end."""
    return (ErrorReply(429, "rate_limit_error", headers={"retry-after": "300"}),)


async def loops(harness: Harness, execution_id: str) -> None:
    await harness.seen(execution_id, lambda e: (e.type, e.path) == ("node.started", "l[7]/s"))


ASKS = Node("ask", "approval", "Ask", data={"prompt": "ok?"})
ASKED = written(ASKS, AFTER, edges=[make_edge("ask", "after", source_handle="approve")])
SLEEPS = Node("w", "wait", "W", data={"seconds": FOR_LONG_S})
PLANS = Node("p", "planner", "P", data={"goal": "Write.", "provider": "openai"})
NUMBERED = written(
    text_node("i", "{{ index }}"), Node("s", "stalls", "S", data={"at": "7"}), edges=[("i", "s")]
)
STORED = "01900000-0000-7000-8000-00000000000f"
"""The id of a flow that asks a model."""


def looping(body: Graph, **data: Any) -> Graph:
    whole = {"items": list(range(10)), "body": body.to_document(), **data}
    return follows(Node("l", "loop", "L", data=whole))


PHASES = {
    "provider-call": Phase(
        follows(Node("a", "agent", "A", data=AGENT)), calls_provider, "a", hangs, PATIENT
    ),
    "model-stream": Phase(
        follows(Node("a", "agent", "A", data=AGENT)), streams, "a", stops_within, PATIENT
    ),
    "provider-retry": Phase(
        follows(Node("a", "agent", "A", data=AGENT)), provider_waits, "a", is_limited, PATIENT
    ),
    "render-worker": Phase(follows(text_node("t", "{{ 1 + 1 }}")), renders, "t"),
    "node-retry": Phase(follows(Node("b", "busy", "B", policy=TRIED_AGAIN)), retries, "b"),
    "approval": Phase(ASKED, waits, "ask"),
    "timer": Phase(follows(SLEEPS), waits, "w"),
    "nested-run": Phase(follows(Node("n", "nests", "N")), nests, "n"),
    "loop-item-7": Phase(looping(NUMBERED, parallel=1), loops, "l"),
    "loop-that-asks": Phase(looping(written(ASKS), parallel=10), waits, "l"),
    "stored-flow": Phase(
        follows(Node("f", "inner", "F", data={"flow": {"id": STORED}})), calls_provider, "f",
        hangs, PATIENT,
    ),
    "planning-inside": Phase(follows(PLANS), calls_provider, "p", hangs, PATIENT),
    "between-nodes": Phase(follows(HELD), is_between),
    "queued": Phase(written(HELD), is_queued, limits={"concurrent_executions": 1}),
}  # fmt: skip

STORES = {"node-retry", "approval", "timer", "nested-run", "loop-that-asks", "queued"}
"""Phases in which what is stored matters most."""


async def is_quick(cancels: Callable[[Place], Awaitable[float]], place: Place) -> bool:
    """Say whether a cancel, made some times over, holds in time."""
    took: list[float] = []
    while len(took) < TRIES and (not took or took[-1] >= CANCELLED_WITHIN_S):
        took.append(await cancels(place._replace(directory=place.directory / str(len(took)))))
    return min(took) < CANCELLED_WITHIN_S


@asynccontextmanager
async def in_phase(place: Place, phase: Phase) -> AsyncIterator[tuple[Harness, str]]:
    """Bring an execution into a phase; at the end, check that none of its tasks is left."""
    queues = phase.reached is is_queued
    async with harness_of(place, *phase.steps(), **phase.limits) as harness:
        asks = written(Node("a", "agent", "A", data=AGENT)).to_document()
        with suppress(Conflict):  # the database has it from the time before
            await harness.service.flows.create("asks", graph=asks, preassigned_id=STORED)
        if queues:
            await harness.execute(written(HELD))
        if phase.reached is renders:
            await hold_renders(harness.service)
        execution_id = await harness.execute(phase.graph)
        await phase.reached(harness, execution_id)
        yield harness, execution_id
        with pytest.raises(Conflict, match="is already"):
            await harness.service.executions.cancel(execution_id, "again", node=phase.node)
        await until(lambda: not harness.llm.open_requests)
        attempts = [
            t for t in asyncio.all_tasks() if t.get_coro().__qualname__ == "AttemptTasks._run"
        ]
        assert len(attempts) == queues


def phases(names: Iterable[str]) -> pytest.MarkDecorator:
    """Return what runs a test in phases on each database; with the slow tests also where the store matters less."""
    cases = [
        pytest.param(
            name,
            kind,
            marks=[pytest.mark.slow] if kind == "postgres" and name not in STORES else [],
        )
        for name in names
        for kind in ("sqlite", "postgres")
    ]
    return pytest.mark.parametrize(("phase", "place"), cases, indirect=["place"])


@phases(PHASES)
async def test_f57_a_cancel_takes_effect_within_two_seconds_in_every_phase(
    place: Place, phase: str
) -> None:
    async def cancels(place: Place) -> float:
        async with in_phase(place, PHASES[phase]) as (harness, execution_id):
            began = time.monotonic()
            await harness.service.executions.cancel(execution_id, "enough")
            took = time.monotonic() - began
            state = await harness.service.executions.state(execution_id)
            assert (state.status, state.cause) == ("cancelled", "enough")
            assert "after" not in state.nodes or state.nodes["after"].status == "cancelled"
            assert {node.status for node in state.nodes.values()} <= {"completed", "cancelled"}
            assert await harness.terminals(execution_id) == ["execution.cancelled"]
        return took

    assert await is_quick(cancels, place)


@phases(name for name, phase in PHASES.items() if phase.node)
async def test_f57_one_node_is_cancelled_within_two_seconds_in_every_phase(
    place: Place, phase: str
) -> None:
    path = PHASES[phase].node or ""

    async def cancels(place: Place) -> float:
        async with in_phase(place, PHASES[phase]) as (harness, execution_id):
            began = time.monotonic()
            await harness.service.executions.cancel(execution_id, "enough", node=path)
            took = time.monotonic() - began
            assert (await harness.service.executions.wait(execution_id)).status == "failed"
            nodes = (await harness.service.executions.state(execution_id)).nodes
            assert (nodes[path].status, nodes["after"].status) == ("cancelled", "blocked")
            inside = {node.status for name, node in nodes.items() if name.startswith(f"{path}[")}
            assert inside <= {"completed", "cancelled"}
            assert await harness.terminals(execution_id) == ["execution.failed"]
        return took

    assert await is_quick(cancels, place)


class Deaf:
    """A node type that ignores its cancellation until the test releases it."""

    node_type = "deaf"

    def __init__(self) -> None:
        self.started, self.let_go = asyncio.Event(), asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.started.set()
        while not self.let_go.is_set():
            with suppress(asyncio.CancelledError):
                await self.let_go.wait()
        return ExecutionResult({"output": DataValue("text", "too late")})


@partial(virtual_time, loop=VirtualNetworkLoop)
async def test_f57_a_node_that_ignores_its_cancellation_does_not_delay_it() -> None:
    time, deaf = asyncio.get_running_loop().time, Deaf()
    async with Service(dependencies(types=[deaf])) as service:
        plan = make_plan(follows(Node("d", "deaf", "D")), new_id())
        execution_id = (await service.executions.execute(plan)).execution_id
        await deaf.started.wait()
        began = time()
        await service.executions.cancel(execution_id)
        assert time() - began < CANCELLED_WITHIN_S
        assert (await service.executions.state(execution_id)).status == "cancelled"
        deaf.let_go.set()


async def test_f57_a_cancelled_planning_closes_its_model_call_and_stores_no_plan(
    tmp_path: Path,
) -> None:
    assert await is_quick(planning_cancelled, Place(tmp_path))


async def planning_cancelled(place: Place) -> float:
    """Cancel a planning during its model call; return the seconds that took."""
    async with harness_of(place, NoReply(), **PATIENT) as harness:
        planning = asyncio.get_running_loop().create_task(harness.service.plans.create("Compare"))
        await until(lambda: harness.llm.open_requests)
        began = time.monotonic()
        planning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await planning
        await until(lambda: not harness.llm.open_requests)
        took = time.monotonic() - began
        assert await harness.service.plans.list() == []
    return took


# -- F58: cancel against success


async def test_f58_a_cancel_that_races_the_end_gives_all_callers_the_same_status(
    store: Store,
) -> None:
    random, outcomes = Random(58), Counter[str]()  # noqa: S311 - a test's choices
    graph = written(text_node("a"), text_node("b", "{{ input }}"), edges=[("a", "b")])
    async with Service(dependencies(graph, store=store)) as service:
        plan = await service.plans.create("do it")
        began = time.monotonic()
        await service.executions.wait((await service.executions.execute(plan.plan_id)).execution_id)
        usual_s = time.monotonic() - began
        while outcomes.total() < 100 or len(outcomes) < 2:  # until then nothing has raced
            execution_id = (await service.executions.execute(plan.plan_id)).execution_id
            outcomes[await raced(service, execution_id, random, usual_s)] += 1
    assert outcomes.keys() == {"completed", "cancelled"}


async def raced(service: Service, execution_id: str, random: Random, usual_s: float) -> str:
    """Cancel an execution twice while it ends and is watched; return the status that all callers got."""

    async def cancels() -> str:
        for _ in range(random.randrange(12)):  # turns of the loop, where most of it happens
            await asyncio.sleep(0)
        if random.random() < 0.5:
            await asyncio.sleep(random.uniform(0, usual_s))
        try:
            await service.executions.cancel(execution_id)
        except Conflict as error:
            return error.message.rpartition(" ")[2]
        return "cancelled"

    async def watches() -> str:
        seen = [event.type async for event in service.executions.watch(execution_id)]
        (last,) = [kind for kind in seen if kind in TERMINAL]
        return last.removeprefix("execution.")

    async with asyncio.TaskGroup() as tasks:
        each = [tasks.create_task(work()) for work in (cancels, cancels, watches)]
    ends = [e.type for e in await service.executions.events(execution_id) if e.type in TERMINAL]
    status = (await service.executions.wait(execution_id)).status
    assert ends == [f"execution.{status}"]
    assert [task.result() for task in each] == [status] * 3
    return status


# -- F60: a blocked event loop


class Blocks:
    """A node type that blocks the event loop."""

    node_type = "blocks"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        time.sleep(0.6)  # noqa: ASYNC251 - that is the point
        return ExecutionResult({"output": DataValue("text", "done")})


async def test_f60_a_node_that_blocks_the_loop_is_logged_and_measured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_server(types=[Blocks()]) as server:
        plan = make_plan(written(Node("cpu", "blocks", "CPU")), new_id())
        outcomes: list[str] = []

        async def runs() -> str:
            record = await server.service.executions.execute(plan)
            return (await server.service.executions.wait(record.execution_id)).status

        while not [m for m in outcomes if "in node 'cpu'" in m]:  # its thread may look too late
            assert await server.on_loop(runs()) == "completed"
            outcomes = caplog.messages
        async with server.client() as client:
            slow = 0.0
            while not slow:  # it is counted in a thread, soon
                slow = late(MetricsScrape((await client.get("/metrics")).text))
            assert (await client.get("/healthz")).status_code == 200
    assert slow >= 1
    assert [m for m in outcomes if "in node 'cpu'" in m and "the event loop stood still for " in m]


def late(found: MetricsScrape) -> float:
    """How often the event loop was later than a quarter of a second."""
    name = "planwave_event_loop_lag_seconds"
    return found.value(f"{name}_count") - found.value(f"{name}_bucket", le="0.25")


async def test_f60_a_slow_template_does_not_delay_other_executions(tmp_path: Path) -> None:
    async with harness_of(Place(tmp_path)) as harness:
        loops = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}"
        execution_id = await harness.execute(written(text_node("t", loops)))
        other = await harness.execute(written(text_node("o")))
        assert (await harness.service.executions.wait(other)).status == "completed"
        assert (await harness.service.executions.wait(execution_id)).status == "failed"
        error = (await harness.service.executions.state(execution_id)).nodes["t"].error
        assert (error or {})["code"] in ("template-timeout", "template-fuel")


# -- F68: clocks that jump


class Clock:
    """A wall clock that can be set, of the service and of the driver's events alike."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def as_event_time(self) -> str:
        return self().isoformat(timespec="microseconds")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setitem(Execution.__init__.__kwdefaults__, "now", clock.as_event_time)
    return clock


JUMPS = {
    "a-day-on": timedelta(days=1), "ten-minutes-back": timedelta(minutes=-10),
    "summer-time": timedelta(hours=1), "winter-time": timedelta(hours=-1),
}  # fmt: skip


@pytest.mark.parametrize("jump", JUMPS)
async def test_f68_a_jump_of_the_clock_ends_no_node_and_changes_no_order(
    jump: str, clock: Clock, store: Store
) -> None:
    held = HeldNode()
    timed = HELD._replace(policy=Policy(timeout_s=600.0), policy_document={"timeoutS": 600.0})
    graph = written(timed, AFTER, edges=[("h", "after")])
    async with Service(dependencies(graph, types=[held], now=clock, store=store)) as service:
        plan = await service.plans.create("do it")
        execution_id = (await service.executions.execute(plan.plan_id)).execution_id
        await held.started.wait()
        clock.ahead = JUMPS[jump]
        await asyncio.sleep(0.05)
        held.release.set()
        assert (await service.executions.wait(execution_id)).status == "completed"
        events = await service.executions.events(execution_id)
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        times = [e.at for e in events]
        assert (times == sorted(times)) == (JUMPS[jump] > timedelta())
        assert [e async for e in service.executions.watch(execution_id)] == events
        nodes = (await service.executions.state(execution_id)).nodes
        assert all(0 <= (node.duration_s or 0) < 60 for node in nodes.values())


def timed_question(timeout_s: float) -> Graph:
    data = {"prompt": "ok?", "timeoutS": timeout_s, "timeoutAction": "reject"}
    ask = Node("ask", "approval", "Ask", data=data)
    return written(ask, AFTER, edges=[make_edge("ask", "after", source_handle="approve")])


async def has_ended(service: Service, execution_id: str) -> str:
    async with (
        asyncio.timeout(FOR_LONG_S),
        aclosing(service.executions.watch(execution_id)) as events,
    ):
        async for event in events:
            if event.type in TERMINAL:
                return event.type.removeprefix("execution.")
    raise AssertionError("it never ended")


@pytest.mark.parametrize("jump", JUMPS)
@partial(virtual_time, loop=VirtualNetworkLoop)  # histories are read in threads
async def test_f68_the_time_limit_of_a_request_does_not_depend_on_the_clock(
    jump: str, clock: Clock
) -> None:
    time = asyncio.get_running_loop().time
    async with Service(dependencies(timed_question(100.0), now=clock)) as service:
        plan = await service.plans.create("do it")
        execution_id = (await service.executions.execute(plan.plan_id)).execution_id
        began = time()
        assert (await service.executions.wait(execution_id)).status == "paused"
        clock.ahead = JUMPS[jump]
        assert await has_ended(service, execution_id) == "completed"
        assert time() - began == pytest.approx(100, abs=1)
        assert (await service.executions.state(execution_id)).closed_requests.popitem()[
            1
        ] == "timeout"


@pytest.mark.parametrize("jump", JUMPS)
async def test_f68_after_a_restart_a_request_waits_until_the_recorded_time_and_never_longer(
    place: Place, jump: str, clock: Clock
) -> None:
    def opened() -> Service:
        return Service(dependencies(timed_question(1.0), now=clock, store=place.open()))

    async with opened() as service:
        plan = await service.plans.create("do it")
        execution_id = (await service.executions.execute(plan.plan_id)).execution_id
        await service.executions.wait(execution_id)
        await service.drain(0)
    clock.ahead = JUMPS[jump]
    async with opened() as service:
        await service.recover()
        assert await has_ended(service, execution_id) == "completed"
        events = await service.executions.events(execution_id)
        assert [e.data.get("by") for e in events if e.type == "node.answered"] == ["timeout"]
