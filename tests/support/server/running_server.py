"""The service on a real socket, on an event loop of its own: what tests talk HTTP to.

One server for all tests of a process is the fixture ``server`` (``tests/conftest.py``); a test that
needs other settings opens its own with ``serving``. Plans are chosen by the goal: see
``PlannerByGoal``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from planwave.api.app import create_app
from planwave.api.server import Server, ShutdownSignals, bind_socket, shutdown
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.plan import Plan
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.ids import new_id
from planwave.planner.planner import check_goal
from planwave.planner.progress import PlanProgress
from planwave.planner.revised_plan import RevisedPlan, Revision, RevisionReading
from planwave.prompts.render import PlanExample
from planwave.providers.protocols import CallScope
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import FailingNode
from tests.support.nodes.streaming_nodes import StreamingNode, streaming_node
from tests.support.service.dependencies import dependencies

_Given = TypeVar("_Given")

TEXTS = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])
GRAPHS: Mapping[str, Graph] = {
    "texts": TEXTS,
    "held": make_graph(Node("h", "held", "H"), text_node("after"), edges=[("h", "after")]),
    "tells": make_graph(streaming_node("t"), text_node("after"), edges=[("t", "after")]),
    "naps": make_graph(Node("n", "naps", "N"), text_node("after"), edges=[("n", "after")]),
    "broken": make_graph(Node("x", "broken", "X")),
}
NO_RATE_LIMITS = Limits(
    requests_per_s=100_000, requests_burst=1_000_000, executions_per_minute=1_000_000
)
"""So that tests sharing a server do not count each other's requests."""


class AdvanceableLoop(asyncio.SelectorEventLoop):
    """A loop whose timers follow real time and, beyond it, leaps: no deadline has to be short."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        super().__init__()

    def time(self) -> float:
        return super().time() + self._ahead_s

    def advance(self, seconds: float) -> None:
        """Let the time for every timer be nearer."""
        self._ahead_s += seconds


class HeldNodePerExecution:
    """A node type that waits until its execution is let go; ``started`` says which have begun."""

    node_type = "held"

    def __init__(self) -> None:
        self.started: set[str] = set()
        self._gates: dict[str, asyncio.Event] = {}

    def gate(self, execution_id: str) -> asyncio.Event:
        return self._gates.setdefault(execution_id, asyncio.Event())

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        self.started.add(context.run_id)
        await self.gate(context.run_id).wait()
        return ExecutionResult({"output": DataValue("text", f"{context.node_id} let go")})


class PlanningGate:
    """Where planning a goal waits: ``record_call`` is set when it does, ``open`` lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()


class PlannerByGoal:
    """A planner whose plan is ``GRAPHS[goal]``, or that of ``texts`` for any other goal.

    A goal with a gate (``gates["slow"] = Gate()``) waits at it once the title was emitted.
    """

    def __init__(self) -> None:
        self.goals: list[str] = []
        self.gates: dict[str, PlanningGate] = {}

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[PlanProgress], None] | None = None,
        answers: Mapping[str, str] | None = None,
        examples: Sequence[PlanExample] = (),
    ) -> Plan:
        check_goal(prompt, Limits())
        self.goals.append(prompt)
        tell = on_progress or (lambda _: None)
        plan = make_plan(GRAPHS.get(prompt, TEXTS), new_id())
        tell(PlanProgress("title", {"title": plan.title}))
        if (gate := self.gates.get(prompt)) is not None:
            gate.reached.set()
            await gate.open.wait()
        for node in plan.graph.nodes:
            tell(PlanProgress("node", {"id": node.id, "name": node.name}))
        told = [
            {"question": each, "answer": answer, "assumed": False, "options": []}
            for each, answer in (answers or {}).items()
        ]
        return replace(plan, user_prompt=prompt, questions=told)

    async def revise(
        self,
        plan: RevisedPlan,
        words: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[PlanProgress], None] | None = None,
        scope: CallScope | None = None,
    ) -> Revision:
        """Find nothing that words could change."""
        check_goal(words, Limits())
        reading = RevisionReading("{}", answer="There is nothing to change.")
        return Revision(reading, provider or "openai", model or "gpt-5.1", [])

    def require_reviser(self, provider: str | None, model: str | None) -> None:
        """Let any model change a plan."""


@dataclass
class RunningServer:
    """A server under way.

    Attributes:
        base_url: ``http://127.0.0.1:port``.
        service: Its service; to be used on the server's loop, see ``on_loop``.
        stop: ``stop.ask`` (on the loop) is a signal.
    """

    base_url: str
    settings: Settings
    service: Service
    held: HeldNodePerExecution
    planner: PlannerByGoal
    stop: ShutdownSignals
    loop: AdvanceableLoop

    @property
    def ws_url(self) -> str:
        return self.base_url.replace("http", "ws", 1)

    @property
    def headers(self) -> dict[str, str]:
        """What a request carries to be let in."""
        token = self.settings.token
        return {} if token is None else {"Authorization": f"Bearer {token.get_secret_value()}"}

    def client(self, **more: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.base_url, headers=self.headers, **more)

    async def on_loop(self, work: Coroutine[Any, Any, _Given]) -> _Given:
        """Do something on the server's own loop, such as a method of its service."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    async def advance_time(self, seconds: float) -> None:
        """Let time pass for the server's timers."""

        async def leapt() -> None:
            self.loop.advance(seconds)

        await self.on_loop(leapt())

    async def run_advancing_time(
        self, work: Coroutine[Any, Any, _Given], step_s: float = 4.0
    ) -> _Given:
        """Do something that only comes to its end as time passes, and let it pass until then."""
        async with asyncio.TaskGroup() as tasks:
            doing = tasks.create_task(work)
            while not doing.done():
                await self.advance_time(step_s)
                await asyncio.wait([doing], timeout=0.05)
        return doing.result()

    def release(self, execution_id: str) -> None:
        """Let the ``held`` nodes of an execution finish."""
        self.loop.call_soon_threadsafe(lambda: self.held.gate(execution_id).set())

    async def execute(self, goal: str = "texts") -> str:
        """Plan a goal and start its execution; give the execution's id."""

        async def made() -> str:
            plan = await self.service.plans.create(goal)
            return (await self.service.executions.execute(plan.plan_id)).execution_id

        return await self.on_loop(made())


@contextmanager
def running_server(
    *,
    limits: Limits = NO_RATE_LIMITS,
    types: Sequence[Any] = (),
    store: Any = None,
    directory: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[RunningServer]:
    """Serve on a free port of loopback until left; ``settings`` are those of ``Settings``.

    Node types are the library and ``held``, ``broken``, ``tells`` and ``types``; the store is in
    memory unless given. ``changes`` are made to the rooms in the end.
    """
    chosen = Settings(host="127.0.0.1", port=0, limits=limits, **settings)
    ready: list[RunningServer | BaseException] = []
    is_ready = threading.Event()

    async def main() -> None:
        held, planner = HeldNodePerExecution(), PlannerByGoal()
        parts = dependencies(
            types=[held, FailingNode(), StreamingNode(), *types],
            store=store or MemoryStore(),
            directory=directory,
            limits=limits,
            planner=planner,
        )
        app = create_app(chosen, lambda _: Service(replace(parts, **(overrides or {}))))
        stop = ShutdownSignals()
        with bind_socket(chosen.host, chosen.port) as listeners:
            async with app.router.lifespan_context(app):
                service: Service = app.state.planwave.service
                server = Server(app, chosen, listeners)
                await server.open()
                ready.append(RunningServer(server.url, chosen, service, held, planner, stop, loop))
                is_ready.set()
                await stop.drain_requested.wait()
                await shutdown(service, server, stop)

    loop = AdvanceableLoop()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(main())
        except BaseException as error:
            if ready:
                raise
            ready.append(error)
            is_ready.set()

    thread = threading.Thread(target=run, name="server")
    thread.start()
    is_ready.wait()
    started = ready[0]
    if isinstance(started, BaseException):
        thread.join()
        raise started
    try:
        yield started
    finally:
        for event in (
            started.stop.drain_requested,
            started.stop.abort_requested,
        ):  # nodes may be held for ever
            started.loop.call_soon_threadsafe(event.set)
        thread.join()
