"""The reducer without an event loop: random scripts of results, nested runs, timers and commands.

Each script is played twice: turn by turn through ``reduce``, and through the running driver. A node of
a script waits for its next step. A step is its result, a graph that it runs inside itself, or a once
value that it makes. While it waits for its nested run, it has no steps, and it is parked when that run
only waits for answers. Several steps may happen in one turn, and the process may crash between turns.
Some executions wait for the approval of their plan first.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError, PlanwaveError
from planwave.events import Event, fold
from planwave.events.paths import nested_prefix
from planwave.executor.driver.reducer import begin, commit, finish_turn, reduce
from planwave.executor.driver.run_state import Now, RunState
from planwave.executor.messages import (
    AnswerRequest,
    AttemptFailed,
    AttemptSucceeded,
    AttemptSuspended,
    CancelExecution,
    CancelNode,
    CancelTask,
    CancelTimer,
    DeliverOutcome,
    Effect,
    KeepOnceValue,
    Message,
    NestedRunRequested,
    NodeActivityChanged,
    OnceValueMade,
    PauseExecution,
    Reply,
    ResumeExecution,
    SetTimer,
    StartAttempt,
    Timer,
    TimerFired,
)
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.nested import create_graph_run
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.executor.requests import OWN_PATH
from planwave.executor.state import DONE, Attempt, GraphRun, ReplyTo
from planwave.graph.model import DataValue, Graph
from planwave.graph.plan import canonical_json, graph_hash
from planwave.graph.protocols import ExecutionResult, Suspension
from tests.support.engine.generic_nodes import TERMINAL_TYPES, ExecutionHarness, GenericCatalog
from tests.support.engine.random_schedules import SOURCE_HANDLES, ByteChoices
from tests.support.examples import examples
from tests.support.graph.fake_catalog import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_execution_properties import SETTLED, Scene

AT = "2026-01-01T00:00:00.000000+00:00"
MAX_STEPS = 60
SETTLE_ROUNDS = 100
"""More than a node around a node takes to be parked."""
TASK: Any = object()
"""Stands for the task of each attempt."""

INNER_GRAPHS = parse_graph("x y", "x.p>y.x"), parse_graph("x")
MAX_DEPTH = 2

Step = tuple[str, Any]
"""One thing that happens: its kind, and what it is about."""
Turn = list[Step]
"""Steps whose messages are in the mailbox together."""
OF_NODES = ("end", "nest", "once")
Outcome = ExecutionResult | Suspension | NodeError


@dataclass
class ReducerDriver:
    """Drives ``reduce`` with a clock of its own.

    Attributes:
        running: The attempts that wait for their next step, by path.
        nesting: The attempts that wait for a nested run, by reply token.
        followed: The attempts that got an outcome since they were last looked at.
    """

    scene: Scene
    approval: Any = None
    events: list[Event] = field(default_factory=list[Event])
    running: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    nesting: dict[ReplyTo, Attempt] = field(default_factory=dict[ReplyTo, Attempt])
    followed: list[Attempt] = field(default_factory=list[Attempt])
    timers: dict[Timer, float] = field(default_factory=dict[Timer, float])
    replies: dict[int, PlanwaveError | None] = field(default_factory=dict[int, Any])
    commands: int = 0
    requests: int = 0
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        self.program = Program(self.scene.graph, GenericCatalog({}))
        self.open(None)

    def open(self, history: History | None) -> None:
        """Start the execution, or resume it from what is stored."""
        self.host = NodeHost("x1", None, None, None, None, None)
        root = create_graph_run(self.program, self.host, self.scene.options, None)
        self.state = RunState("x1", root, self.scene.options, history=history)
        for each in (self.running, self.nesting, self.timers, self.followed):
            each.clear()
        is_recovery = history is not None and history.pause_reason is None
        approval = self.approval if history is None else None
        begin(self.state, self.now, is_recovery=is_recovery, approval=approval)
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
                self.forget(effect.attempt)
        for effect in effects:
            if isinstance(effect, StartAttempt) and effect.attempt.phase is not DONE:
                commit(self.state, effect, self.now)
                effect.attempt.task = TASK
                self.running[effect.attempt.path] = effect.attempt
        for effect in effects:
            self.perform(effect)
        for effect in self.state.drain_effects():  # of commits
            self.perform(effect)

    def perform(self, effect: Effect) -> None:
        match effect:
            case SetTimer(timer, at_s):
                self.timers.pop(timer, None)
                self.timers[timer] = at_s
            case CancelTimer(timer):
                self.timers.pop(timer, None)
            case Reply(reply, error) if reply > 0:
                assert reply not in self.replies
                self.replies[reply] = error
            case Reply(reply):
                self.proceed(reply)
            case DeliverOutcome(attempt, reply):
                commit(self.state, effect, self.now)
                self.proceed(reply)
                self.followed.append(attempt)
            case KeepOnceValue(reply=reply):
                commit(self.state, effect, self.now)
                self.proceed(reply)
            case _:
                pass

    def forget(self, attempt: Attempt) -> None:
        """The task of an attempt is cancelled."""
        if self.running.get(attempt.path) is attempt:
            del self.running[attempt.path]
        for reply, each in [*self.nesting.items()]:
            if each is attempt:
                del self.nesting[reply]

    def proceed(self, reply: ReplyTo) -> None:
        """A node got what it waited for."""
        attempt = self.nesting.pop(reply, None)
        if attempt is not None:
            self.running[attempt.path] = attempt

    def settle(self) -> None:
        """Fire the timers that are due, and look at what nodes do, with what follows from both."""
        while True:
            due = [timer for timer, at_s in self.timers.items() if at_s <= self.clock_s]
            for timer in due:
                del self.timers[timer]
            followed, self.followed = self.followed, []
            for attempt in followed:
                attempt.due_outcomes -= 1
            if not (due or followed):
                return
            self.turn(*map(TimerFired, due), *map(NodeActivityChanged, followed))

    def play(self, steps: Turn) -> None:
        """Play the steps of one turn; commands reach the mailbox before the messages of nodes."""
        kind, about = steps[0]
        if kind == "wait":
            self.clock_s = about
        elif kind == "crash":
            self.open(History(self.events))
        else:
            commands = [self.command(*step) for step in steps if step[0] not in OF_NODES]
            of_nodes = [self.message(*step) for step in steps if step[0] in OF_NODES]
            self.turn(*commands, *(each for each in of_nodes if each is not None))
        self.settle()
        assert list(self.replies) == [*range(1, self.commands + 1)]

    def command(self, kind: str, about: Any) -> Message:
        if kind == "cancel":
            return CancelExecution("enough")
        self.commands += 1
        reply = ReplyTo(self.commands)
        match kind:
            case "answer":
                return AnswerRequest(about, "yes", reply)
            case "approve" | "reject":
                return AnswerRequest(about, {"decision": kind}, reply)
            case "cancel-node":
                return CancelNode(about, "not needed", reply)
            case "pause":
                return PauseExecution("wait", reply)
            case _:
                return ResumeExecution("go on", reply)

    def message(self, kind: str, about: Any) -> Message | None:
        """Return what a node posts in a step; None if it has what it asks for."""
        path, what = about
        attempt = self.running[path]
        if kind == "once":
            node_run = attempt.node_run
            if node_run is not None and what in node_run.once_values:
                return None
            return OnceValueMade(attempt, what, path, self.wait_for_reply(attempt))
        if kind == "nest":
            return self.nested_run(attempt, *what)
        del self.running[path]
        if isinstance(what, Suspension):
            return AttemptSuspended(attempt, what)
        if isinstance(what, NodeError):
            return AttemptFailed(attempt, what)
        return AttemptSucceeded(attempt, what)

    def wait_for_reply(self, attempt: Attempt) -> ReplyTo:
        del self.running[attempt.path]
        self.requests += 1
        reply = ReplyTo(-self.requests)
        self.nesting[reply] = attempt
        return reply

    def nested_run(self, attempt: Attempt, key: str, graph: Graph) -> NestedRunRequested:
        """Return what a node posts that runs a graph inside itself; see ``node_api/nested.py``."""
        prefix, known = nested_prefix(attempt.path, key), None
        if attempt.node_run is not None and key in attempt.node_run.nested_runs:
            known = attempt.node_run.nested_runs[key].outcome_for(attempt.number)
        graph_run: GraphRun | None = None
        if known is None:
            program = Program(graph, self.program.catalogue)
            graph_run = create_graph_run(program, self.host, self.scene.options, None, prefix)
        of_inputs = hashlib.sha256(canonical_json([{}, {}]).encode()).hexdigest()
        return NestedRunRequested(
            attempt, key, (graph_hash(graph), of_inputs), prefix, graph_run,
            self.wait_for_reply(attempt), True,
        )  # fmt: skip

    def possible_steps(self, choices: ByteChoices) -> list[Step]:
        """What may happen next."""
        nodes = [node.id for node in self.scene.graph.nodes]
        steps: list[Step] = []
        for path in self.running:
            steps.append(("end", (path, random_outcome(choices, path))))
            steps.append(("once", (path, "ab"[choices.below(2)])))
            if path.count("[") < MAX_DEPTH:
                run = "kl"[choices.below(2)], INNER_GRAPHS[choices.one_in(4)]
                steps.append(("nest", (path, run)))
        steps += [("wait", at_s) for at_s in sorted(self.timers.values())[:1]]
        for request_id, request in self.state.requests:
            decisions = ("approve", "reject") if request.path == OWN_PATH else ("answer",)
            steps += [(decision, request_id) for decision in decisions]
        steps = steps * 3
        steps += [("cancel-node", [*nodes, *self.running][choices.below(len(nodes))])]
        steps += [("pause", None), ("resume", None), ("crash", None)]
        return [*steps, ("cancel", None)] if choices.one_in(4) else steps

    def random_turn(self, choices: ByteChoices) -> Turn:
        """Steps that can happen together: each node and each request has one at most."""
        possible = self.possible_steps(choices)
        steps = [possible[choices.below(len(possible))]]
        if steps[0][0] in ALONE:
            return steps
        for _ in range((0, 0, 1, 2)[choices.below(4)]):
            subjects = {_subject_of(step) for step in steps}
            more = [
                each for each in possible
                if each[0] not in ALONE and _subject_of(each) not in subjects
            ]  # fmt: skip
            steps += [more[choices.below(len(more))]]
        return steps


ALONE = ("wait", "crash")


def _subject_of(step: Step) -> Any:
    kind, about = step
    return about[0] if kind in OF_NODES else (kind, about)


def random_outcome(choices: ByteChoices, path: str) -> Outcome:
    match choices.below(7):
        case 1:
            return NodeError("boom", retryable=True)
        case 2:
            return NodeError("boom")
        case 3 | 4:
            return Suspension({"for": path})
        case _:
            handles = sorted(choices.some(SOURCE_HANDLES))
            return ExecutionResult({handle: DataValue("any", path) for handle in handles})


def play_random_script(source: bytes) -> tuple[ReducerDriver, list[Turn]]:
    """Play a random script to its end; return the driver, and what happened."""
    choices = ByteChoices(source)
    approval = {"kind": "plan-approval"} if choices.one_in(3) else None
    driver = ReducerDriver(Scene(choices), approval)
    script: list[Turn] = []
    while driver.state.outcome is None:
        steps = driver.random_turn(choices)
        script.append(steps if len(script) < MAX_STEPS else [("cancel", None)])
        driver.play(script[-1])
    return driver, script


class LiveDriver:
    """Plays a script through the running driver, one turn at a time."""

    def __init__(self, scene: Scene, approval: Any) -> None:
        self.scene, self.approval = scene, approval
        self.loop = asyncio.get_running_loop()
        self.events: list[Event] = []
        self.gates: dict[str, asyncio.Future[Step]] = {}
        self.refusals: list[str | None] = []

    async def act(self, _: Any, context: Any, *__: Any) -> Any:
        while True:
            gate = self.gates[context.path] = self.loop.create_future()
            kind, what = await gate
            if kind == "once":
                await context.runtime.once(what, partial(_make, context.path))
            elif kind == "nest":
                key, graph = what
                with suppress(NodeError):  # what follows from a failure is another step
                    await context.runtime.run_graph(key, graph, {})
            elif isinstance(what, NodeError):
                raise what
            else:
                return what

    async def open(self, history: History | None) -> None:
        graphs = self.scene.graph, *INNER_GRAPHS
        acts = {node.id: self.act for graph in graphs for node in graph.nodes}
        resumed = {f"{node_id}:resume": self.act for node_id in acts}
        self.harness = ExecutionHarness(
            self.scene.graph, {**acts, **resumed}, self.scene.options, history=history,
            is_recovery=history is not None and history.pause_reason is None,
            approval=self.approval if history is None else None,
        )  # fmt: skip
        self.task = self.loop.create_task(self.harness.run())
        await self.settle()

    async def settle(self) -> None:
        for _ in range(SETTLE_ROUNDS):
            await asyncio.sleep(0)

    async def close(self) -> None:
        self.harness.execution.interrupt(at_once=True)
        await self.task
        self.events += self.harness.stored

    async def play(self, steps: Turn) -> None:
        kind, about = steps[0]
        if kind == "wait":
            await asyncio.sleep(about - self.loop.time())
        elif kind == "crash":
            await self.close()
            await self.open(History(self.events))
        for each, (path, what) in [step for step in steps if step[0] in OF_NODES]:
            self.gates[path].set_result((each, what))
        replies = [self.command(*step) for step in steps if step[0] not in OF_NODES]
        await self.settle()
        for done in replies:
            if done is not None:
                error = done.exception()
                self.refusals.append(error.code if isinstance(error, PlanwaveError) else None)

    def command(self, kind: str, about: Any) -> asyncio.Future[None] | None:
        execution = self.harness.execution
        match kind:
            case "answer":
                return execution.answer(about, "yes")
            case "approve" | "reject":
                return execution.answer(about, {"decision": kind})
            case "cancel-node":
                return execution.cancel_node(about, "not needed")
            case "pause":
                return execution.pause("wait")
            case "resume":
                return execution.resume("go on")
            case "cancel":
                execution.cancel("enough")
            case _:
                pass
        return None


async def _make(value: str) -> str:
    return value


@given(st.binary(min_size=80, max_size=600))
@settings(max_examples=examples(60), deadline=None)
def test_the_events_of_reduce_are_those_of_the_running_driver(source: bytes) -> None:
    reduced, script = play_random_script(source)

    @virtual_time
    async def scene() -> None:
        live = LiveDriver(reduced.scene, reduced.approval)
        begun_s = live.loop.time()
        await live.open(None)
        for steps in script:
            is_wait = steps[0][0] == "wait"
            await live.play([("wait", steps[0][1] + begun_s)] if is_wait else steps)
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


@given(st.binary(min_size=80, max_size=600))
@settings(max_examples=examples(60), deadline=None)
def test_nothing_starts_before_its_plan_is_approved(source: bytes) -> None:
    driver, _ = play_random_script(source)
    answers = [event.data for event in driver.events if "answer" in event.data]
    approved = [data for data in answers if data["answer"] == {"decision": "approve"}]
    has_started = any(event.type == "node.started" for event in driver.events)
    assert driver.approval is None or not has_started or len(approved) == 1
    for event in driver.events:
        if driver.approval is not None and event.type == "node.started":
            assert event.seq > next(
                each.seq for each in driver.events if each.data.get("answer") is not None
            )
    fold(driver.events)


@given(st.binary(min_size=80, max_size=600))
@settings(max_examples=examples(150), deadline=None)
def test_any_script_settles_each_node_once_and_replies_to_each_command_once(source: bytes) -> None:
    driver, _ = play_random_script(source)
    assert [event.seq for event in driver.events] == [*range(1, len(driver.events) + 1)]
    settled = [
        event.path
        for event in driver.events
        if event.type in SETTLED and "[" not in str(event.path)
    ]
    executed = {
        node.id for number, node in enumerate(driver.scene.graph.nodes)
        if number not in driver.scene.case.linked
    }  # fmt: skip
    assert sorted(map(str, settled)) == sorted(executed)
    ends = [event.seq for event in driver.events if event.type in TERMINAL_TYPES]
    assert ends == [len(driver.events)]
    assert list(driver.replies) == [*range(1, driver.commands + 1)]
    assert driver.running == {}
