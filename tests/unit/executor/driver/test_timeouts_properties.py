"""Limits of time and of nodes at work hold in random orders of pause, answer, nesting, and crash."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError, PlanwaveError
from planwave.events import Event
from planwave.events.types import REQUESTED
from planwave.executor.driver.execution import Parking
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History, is_paused_by_request
from planwave.graph.model import Graph, Policy, Retry
from planwave.graph.protocols import Suspension
from tests.support.engine.generic_nodes import (
    TERMINAL_TYPES,
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.engine.random_schedules import ByteChoices
from tests.support.examples import examples
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

START = datetime(2026, 1, 1, tzinfo=UTC)
LEVELS = (("a", "b", "c"), ("i", "j"), ("x", "y"))
"""The nodes of the execution's own graph, of those inside its nodes, and of those inside these."""
STOPS = frozenset({"node.waiting", "node.parked", "node.completed", "node.failed", "node.retrying"})
CLOSE_S = 0.01

Step = tuple[Any, ...]
Key = tuple[str, int]


def clock() -> str:
    """Return the time of the virtual loop as events carry it."""
    now = START + timedelta(seconds=asyncio.get_running_loop().time())
    return now.isoformat(timespec="microseconds")


def seconds(event: Event) -> float:
    """Return when an event happened, by the virtual loop."""
    return (datetime.fromisoformat(event.at) - START).total_seconds()


class Own:
    """What each attempt worked by itself, over all processes.

    An attempt that was cut off loses what it worked since it waited last.
    """

    def __init__(self) -> None:
        self.spent: dict[Key, float] = defaultdict(float)
        self.stretches: list[tuple[float, float]] = []
        self._open: dict[Key, tuple[int, float]] = {}
        self._kept: dict[Key, float] = {}

    @contextlib.asynccontextmanager
    async def work(self, context: Any) -> AsyncIterator[None]:
        """Count the block as own work; concurrent blocks count once."""
        key, time = (context.path, context.attempt), asyncio.get_running_loop().time
        calls, since = self._open.get(key, (0, time()))
        self._open[key] = calls + 1, since
        try:
            yield
        finally:
            calls, since = self._open.pop(key)
            if calls > 1:
                self._open[key] = calls - 1, since
            else:
                self.stretches.append((since, time()))
                self.spent[key] += time() - since

    def keep(self, event: Event) -> None:
        """Note that an attempt waits, or has ended."""
        key, now = (event.path or "", event.attempt or 1), asyncio.get_running_loop().time()
        _, since = self._open.get(key, (0, now))
        self._kept[key] = self.spent[key] + now - since

    def crash(self) -> None:
        """Forget what was cut off."""
        self.spent = defaultdict(float, self._kept)

    def most_at_once(self) -> int:
        """Return how many nodes worked at the same time; ends come before beginnings."""
        long = [each for each in self.stretches if each[1] > each[0]]
        changes = sorted([(at, 1) for at, _ in long] + [(at, -1) for _, at in long])
        now = most = 0
        for _, change in changes:
            now += change
            most = max(most, now)
        return most


class Scene:
    """A random execution, and what is done to it."""

    def __init__(self, source: bytes) -> None:
        self.choices = choices = ByteChoices(source)
        self.options = RunOptions(
            max_parallel=(1, 2, None)[choices.below(3)],
            node_timeout_s=(4.0, 2.0, None)[choices.below(3)],
            run_timeout_s=(None, 12.0)[choices.below(2)],
        )
        self.parks: Parking = ("never", "always")[choices.below(2)]
        self.plans = {
            node: self._plan(level) for level, nodes in enumerate(LEVELS) for node in nodes
        }
        self.graph = self._graph(0)
        self.script = [
            (choices.below(4) * 0.75, choices.below(5)) for _ in range(1 + choices.below(8))
        ]
        self.own = Own()
        self.stored: list[Event] = []
        self.harness: ExecutionHarness | None = None
        self.running: asyncio.Task[str] | None = None

    # -- what the nodes do -------------------------------------------------------------------------

    def _graph(self, level: int) -> Graph:
        nodes = LEVELS[level][: 1 + self.choices.below(len(LEVELS[level]))]
        edges = [f"{nodes[0]}>{node}" for node in nodes[1:] if self.choices.below(2)]
        policies = {n: Policy(retry=Retry(2)) for n in nodes if self.choices.one_in(3)}
        return parse_graph(" ".join(nodes), *edges, policies=policies)

    def _plan(self, level: int) -> list[Step]:
        choices, steps = self.choices, list[Step]()
        for _ in range(1 + choices.below(3)):
            match choices.below(5):
                case 0 | 1:
                    steps.append(("work", self._seconds()))
                case 2:
                    steps.append(("ask",))
                case _ if level + 1 == len(LEVELS):
                    steps.append(("work", self._seconds()))
                case 3:
                    steps.append(("run", self._graph(level + 1)))
                case _:
                    some = range(2 + choices.below(2))
                    steps.append(("both", [self._branch(level + 1) for _ in some]))
        return steps

    def _branch(self, level: int) -> tuple[float, Graph | None, float]:
        before = self._seconds() if self.choices.one_in(3) else 0.0
        graph = None if self.choices.one_in(4) else self._graph(level)
        return before, graph, self._seconds()

    def _seconds(self) -> float:
        return self.choices.below(7) * 0.5

    async def act(self, inputs: Any, context: Any, state: int = 0, answer: Any = None) -> Any:
        for number, step in enumerate(self.plans[context.node_id][state:], state):
            match step:
                case ("work", float(own_s)):
                    async with self.own.work(context):
                        await asyncio.sleep(own_s)
                case ("ask",):
                    return Suspension("?", number + 1)
                case ("run", Graph() as graph):
                    await context.runtime.run_graph(f"{number}", graph, {})
                case (_, branches):
                    await self._all(context, number, branches)
        return result_with(1)

    async def _all(self, context: Any, number: int, branches: list[Any]) -> None:
        async def one(key: str, before: float, graph: Graph | None, after: float) -> None:
            if before:
                await self._busy(context, before)
            if graph is not None:
                await context.runtime.run_graph(key, graph, {})
            if after:
                await self._busy(context, after)

        try:
            async with context.task_group() as group:
                for each, branch in enumerate(branches):
                    # What it does itself before it asks has to be known before anybody asks.
                    group.create_task(one(f"{number}.{each}", *branch))
        except* NodeError as errors:
            raise errors.exceptions[0] from None

    async def _busy(self, context: Any, own_s: float) -> None:
        with context.own_work():
            async with self.own.work(context):
                await asyncio.sleep(own_s)

    # -- what is done to it ------------------------------------------------------------------------

    def start(self, *commands: tuple[str, Any]) -> list[Awaitable[None]]:
        """Start a process that takes the execution up, with commands for it."""
        acts: dict[str, Any] = {}
        for node in self.plans:
            acts[node] = acts[f"{node}:resume"] = self.act
        past = History(self.stored) if self.stored else None
        self.harness = harness = ExecutionHarness(
            self.graph, acts, self.options, journal=MemoryJournal(), now=clock, history=past,
            parks=self.parks, is_recovery=past is not None and past.pause_reason is None,
        )  # fmt: skip

        def listen(event: Event) -> None:
            if event.seq:
                self.stored.append(event)
            if event.type in STOPS:
                self.own.keep(event)

        harness.listeners.append(listen)
        replies = [getattr(harness.execution, name)(*about) for name, about in commands]
        self.running = asyncio.get_running_loop().create_task(harness.run())
        return replies

    async def send_command(self, name: str, *about: Any) -> None:
        """Send a command to the execution, in a new process if none runs it."""
        assert self.harness is not None
        assert self.running is not None
        with contextlib.suppress(PlanwaveError):
            if self.running.done():
                (replies,) = self.start((name, about))
            else:
                replies = getattr(self.harness.execution, name)(*about)
            await replies

    @property
    def has_ended(self) -> bool:
        return bool(self.stored) and self.stored[-1].type in TERMINAL_TYPES

    @property
    def is_held(self) -> bool:
        return is_paused_by_request(History(self.stored).pause_reason)

    def questions(self) -> list[str]:
        """Return the open requests."""
        latest = {
            event.path: event
            for event in self.stored
            if event.type.startswith("node.") and event.type != "node.event"
        }
        return [e.data["request_id"] for e in latest.values() if e.type == "node.waiting"]

    async def crash(self) -> None:
        """End the process at once; another one takes the execution up, some time later."""
        assert self.harness is not None
        assert self.running is not None
        self.harness.execution.interrupt(at_once=True)
        await self.running
        if self.has_ended:
            return
        self.own.crash()
        await asyncio.sleep(self.choices.below(3) * 20)
        self.start()
        await asyncio.sleep(0)

    async def do(self, what: int) -> None:
        assert self.running is not None
        match what:
            case 0 if not self.running.done():
                await self.send_command("pause", REQUESTED)
            case 1 if self.is_held:
                await self.send_command("resume")
            case 2 | 3 if questions := self.questions():
                await self.send_command("answer", self.choices.pick(questions), 1)
            case 4:
                await self.crash()
            case _:
                pass

    async def plays(self) -> None:
        """Run the execution to its end."""
        self.start()
        for delay, what in self.script:
            await asyncio.sleep(delay)
            if self.has_ended:
                break
            await self.do(what)
        for _ in range(200):
            assert self.running is not None
            await asyncio.wait([self.running], timeout=20)
            if self.has_ended:
                break
            for what in (1, 2):
                await self.do(what)
        assert self.has_ended, "it never ends"
        assert self.running is not None
        await self.running


def active_s(stored: list[Event]) -> float:
    """Return how long an execution was neither paused nor left alone."""
    total, since, last = 0.0, None, 0.0
    for event in stored:
        at = seconds(event)
        if (
            event.type in ("execution.paused", "execution.resumed", *TERMINAL_TYPES)
            and since is not None
        ):
            total += (last if event.type == "execution.resumed" else at) - since
            since = None
        if event.type in ("execution.started", "execution.resumed"):
            since = at
        last = at
    return total


def check_nodes(scene: Scene, limit_s: float | None) -> None:
    """No attempt works longer than its time, or runs out of time that it has."""
    spent = scene.own.spent
    if limit_s is not None:
        over = {key: own_s for key, own_s in spent.items() if own_s > limit_s + CLOSE_S}
        assert not over, f"longer than {limit_s}"
    for event in scene.stored:
        if event.type not in ("node.failed", "node.retrying"):
            continue
        if event.data["error"]["code"] == "node-timeout":
            assert limit_s is not None
            key = event.path or "", event.attempt or 1
            assert spent[key] >= limit_s - CLOSE_S, f"{key} had time left"


@given(st.binary(min_size=80, max_size=320))
@settings(max_examples=examples(600))
def test_limits_of_time_and_slots_hold_in_any_order_of_events(source: bytes) -> None:
    scene = Scene(source)
    virtual_time(scene.plays)()
    check_nodes(scene, scene.options.node_timeout_s)
    if scene.options.max_parallel is not None:
        assert scene.own.most_at_once() <= scene.options.max_parallel
    limit_s = scene.options.run_timeout_s
    if limit_s is not None:
        active = active_s(scene.stored)
        assert active <= limit_s + CLOSE_S
        error = scene.stored[-1].data.get("error") or {}
        if error.get("code") == "run-timeout":
            assert active >= limit_s - CLOSE_S
