"""The reducer without an event loop: random scripts of results, timers, commands and crashes.

Each script is played twice: message by message through ``reduce``, and through the running driver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError, PlanwaveError
from planwave.events import Event
from planwave.executor.driver.effects import (
    CancelTask,
    CancelTimer,
    Reply,
    SetTimer,
    StartAttempt,
)
from planwave.executor.driver.reducer import begin, commit, finish_turn, reduce
from planwave.executor.driver.run_state import Now, RunState
from planwave.executor.messages import (
    AnswerRequest,
    AttemptFailed,
    AttemptSucceeded,
    AttemptSuspended,
    CancelExecution,
    CancelNode,
    Message,
    PauseExecution,
    ResumeExecution,
    Timer,
    TimerFired,
)
from planwave.executor.node_api.graph_runs import create_graph_run
from planwave.executor.node_api.host import NodeHost
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.executor.state import Attempt, ReplyTo
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult, Suspension
from tests.support.engine.generic_nodes import TERMINAL_TYPES, ExecutionHarness, GenericCatalog
from tests.support.engine.random_schedules import SOURCE_HANDLES, ByteChoices
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_execution_properties import SETTLED, Scene

AT = "2026-01-01T00:00:00.000000+00:00"
MAX_STEPS = 60

Step = tuple[str, Any]
"""One thing that happens: its kind, and what it is about."""
Outcome = ExecutionResult | Suspension | NodeError


@dataclass
class ReducerDriver:
    """Drives ``reduce`` with a clock of its own; one message a turn."""

    scene: Scene
    events: list[Event] = field(default_factory=list[Event])
    running: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    timers: dict[Timer, float] = field(default_factory=dict[Timer, float])
    replies: dict[int, PlanwaveError | None] = field(default_factory=dict[int, Any])
    commands: int = 0
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        self.program = Program(self.scene.graph, GenericCatalog({}))
        self.open(None)

    def open(self, history: History | None) -> None:
        """Start the execution, or resume it from what is stored."""
        self.host = NodeHost("x1", None, None, None, None, None)
        root = create_graph_run(self.program, self.host, self.scene.options, None)
        self.state = RunState("x1", root, self.scene.options, history=history)
        self.running.clear()
        self.timers.clear()
        is_recovery = history is not None and history.pause_reason is None
        begin(self.state, self.now, is_recovery=is_recovery)
        self.turn()

    @property
    def now(self) -> Now:
        return Now(self.clock_s, AT)

    def turn(self, *messages: Message) -> None:
        for message in messages:
            reduce(self.state, message, self.now)
        finish_turn(self.state)
        self.events += self.state.drain_events()
        effects = self.state.drain_effects()
        for effect in effects:
            if isinstance(effect, CancelTask):
                self.running.pop(effect.attempt.path, None)
            elif isinstance(effect, StartAttempt):
                commit(self.state, effect, self.now)
                self.running[effect.attempt.path] = effect.attempt
        for effect in [*effects, *self.state.drain_effects()]:
            if isinstance(effect, SetTimer):
                self.timers.pop(effect.timer, None)
                self.timers[effect.timer] = effect.at_s
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.timer, None)
            elif isinstance(effect, Reply):
                assert effect.reply not in self.replies
                self.replies[effect.reply] = effect.error

    def fire_due(self) -> None:
        """Fire the timers that are due, and those that they set for now."""
        while due := [timer for timer, at_s in self.timers.items() if at_s <= self.clock_s]:
            for timer in due:
                del self.timers[timer]
            self.turn(*map(TimerFired, due))

    def command(self, make: Callable[[ReplyTo], Message]) -> None:
        self.commands += 1
        self.turn(make(ReplyTo(self.commands)))
        assert self.commands in self.replies

    def play(self, step: Step) -> None:
        match step:
            case "end", (path, outcome):
                attempt = self.running.pop(path)
                if isinstance(outcome, Suspension):
                    self.turn(AttemptSuspended(attempt, outcome))
                elif isinstance(outcome, NodeError):
                    self.turn(AttemptFailed(attempt, outcome))
                else:
                    self.turn(AttemptSucceeded(attempt, outcome))
            case "wait", at_s:
                self.clock_s = at_s
            case "answer", request_id:
                self.command(lambda reply: AnswerRequest(request_id, "yes", reply))
            case "cancel-node", path:
                self.command(lambda reply: CancelNode(path, "not needed", reply))
            case "pause", _:
                self.command(lambda reply: PauseExecution("wait", reply))
            case "resume", _:
                self.command(lambda reply: ResumeExecution("go on", reply))
            case "cancel", _:
                self.turn(CancelExecution("enough"))
            case _:
                assert step[0] == "crash"
                self.open(History(self.events))
        self.fire_due()

    def possible_steps(self, choices: ByteChoices) -> list[Step]:
        """What may happen next; a run that only waits can always be cancelled."""
        nodes = [node.id for node in self.scene.graph.nodes]
        steps: list[Step] = [
            ("end", (path, random_outcome(choices, path))) for path in self.running
        ]
        steps += [("wait", at_s) for at_s in sorted(self.timers.values())[:1]]
        steps += [("answer", request_id) for request_id, _ in self.state.requests]
        steps = steps * 3
        steps += [("cancel-node", nodes[choices.below(len(nodes))])]
        return [*steps, ("pause", None), ("resume", None), ("crash", None), ("cancel", None)]


def random_outcome(choices: ByteChoices, path: str) -> Outcome:
    match choices.below(6):
        case 1:
            return NodeError("boom", retryable=True)
        case 2:
            return NodeError("boom")
        case 3:
            return Suspension({"for": path})
        case _:
            handles = sorted(choices.some(SOURCE_HANDLES))
            return ExecutionResult({handle: DataValue("any", path) for handle in handles})


def play_random_script(source: bytes) -> tuple[ReducerDriver, list[Step]]:
    """Play a random script to its end; return the driver, and what happened."""
    choices = ByteChoices(source)
    driver = ReducerDriver(Scene(choices))
    script: list[Step] = []
    while driver.state.outcome is None:
        possible = driver.possible_steps(choices)
        step = possible[choices.below(len(possible))]
        script.append(step if len(script) < MAX_STEPS else ("cancel", None))
        driver.play(script[-1])
    return driver, script


class LiveDriver:
    """Plays a script through the running driver, one step at a time."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.loop = asyncio.get_running_loop()
        self.events: list[Event] = []
        self.gates: dict[str, asyncio.Future[Outcome]] = {}
        self.refusals: list[str | None] = []

    async def act(self, _: Any, context: Any, *__: Any) -> Any:
        gate = self.gates[context.path] = self.loop.create_future()
        outcome = await gate
        if isinstance(outcome, NodeError):
            raise outcome
        return outcome

    async def open(self, history: History | None) -> None:
        acts = {node.id: self.act for node in self.scene.graph.nodes}
        resumed = {f"{node_id}:resume": self.act for node_id in acts}
        self.rig = ExecutionHarness(
            self.scene.graph, {**acts, **resumed}, self.scene.options, history=history,
            is_recovery=history is not None and history.pause_reason is None,
        )  # fmt: skip
        self.task = self.loop.create_task(self.rig.run())
        await self.settle()

    async def settle(self) -> None:
        for _ in range(25):
            await asyncio.sleep(0)

    async def close(self) -> None:
        self.rig.execution.interrupt(at_once=True)
        await self.task
        self.events += self.rig.stored

    async def play(self, step: Step) -> None:
        execution = self.rig.execution
        done: asyncio.Future[None] | None = None
        match step:
            case "end", (path, outcome):
                self.gates[path].set_result(outcome)
            case "wait", at_s:
                await asyncio.sleep(at_s - self.loop.time())
            case "answer", request_id:
                done = execution.answer(request_id, "yes")
            case "cancel-node", path:
                done = execution.cancel_node(path, "not needed")
            case "pause", _:
                done = execution.pause("wait")
            case "resume", _:
                done = execution.resume("go on")
            case "cancel", _:
                execution.cancel("enough")
            case _:
                await self.close()
                await self.open(History(self.events))
        await self.settle()
        if done is not None:
            error = done.exception()
            self.refusals.append(error.code if isinstance(error, PlanwaveError) else None)


@given(st.binary(min_size=80, max_size=300))
@settings(max_examples=60, deadline=None)
def test_the_events_of_reduce_are_those_of_the_running_driver(source: bytes) -> None:
    reduced, script = play_random_script(source)

    @virtual_time
    async def scene() -> None:
        live = LiveDriver(reduced.scene)
        begun_s = live.loop.time()
        await live.open(None)
        for step in script:
            await live.play(("wait", step[1] + begun_s) if step[0] == "wait" else step)
        await live.close()
        assert list(map(_comparable, live.events)) == list(map(_comparable, reduced.events))
        errors = [error and error.code for error in reduced.replies.values()]
        assert live.refusals == errors

    scene()


def _comparable(event: Event) -> tuple[Any, ...]:
    """An event with its durations in milliseconds, as clocks add up in another order."""
    times = {name: round(event.data[name], 3) for name in _DURATIONS if name in event.data}
    return event.seq, event.type, event.path, event.attempt, {**event.data, **times}


_DURATIONS = ("duration_s", "own_time_s", "delay_s")


@given(st.binary(min_size=80, max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_script_settles_each_node_once_and_replies_to_each_command_once(source: bytes) -> None:
    driver, _ = play_random_script(source)
    assert [event.seq for event in driver.events] == [*range(1, len(driver.events) + 1)]
    settled = [event.path for event in driver.events if event.type in SETTLED]
    executed = {
        node.id for number, node in enumerate(driver.scene.graph.nodes)
        if number not in driver.scene.case.linked
    }  # fmt: skip
    assert sorted(map(str, settled)) == sorted(executed)
    ends = [event.seq for event in driver.events if event.type in TERMINAL_TYPES]
    assert ends == [len(driver.events)]
    assert list(driver.replies) == [*range(1, driver.commands + 1)]
    assert driver.running == {}
