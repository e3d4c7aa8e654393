"""Random scripts of results, nested runs, once values, timers, commands and crashes.

A node of a script waits for its next step. A step is its result, a graph that it runs inside itself, or a
once value that it makes. While it waits for its nested run, it has no steps, and it is parked when that
run only waits for answers. Several steps may happen in one turn, and the process may crash between turns.
Some executions wait for the approval of their plan first.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError, PlanwaveError
from planwave.events import Event, fold
from planwave.executor.recovery.history import History
from planwave.executor.requests import OWN_PATH
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult, Suspension
from tests.support.engine.generic_nodes import TERMINAL_TYPES, ExecutionHarness
from tests.support.engine.random_schedules import SOURCE_HANDLES, ByteChoices
from tests.support.examples import examples
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_execution_properties import SETTLED, Scene

MAX_STEPS = 60
SETTLE_ROUNDS = 100
"""More than a node around a node takes to be parked."""
INNER_GRAPHS = parse_graph("x y", "x.p>y.x"), parse_graph("x")
MAX_DEPTH = 2

Step = tuple[str, Any]
"""One thing that happens: its kind, and what it is about."""
OF_NODES = ("end", "nest", "once")
ALONE = ("wait", "crash")
DECISIONS = ("approve", "reject")
Outcome = ExecutionResult | Suspension | NodeError


class Script:
    """A random script, played on the running driver step by step.

    Attributes:
        events: What the driver stored, in all processes.
        gates: The steps that nodes wait for, by path.
        replies: The error of each command that has a reply, None where it was applied.
        commands: How many commands were given.
    """

    def __init__(self, choices: ByteChoices) -> None:
        self.choices = choices
        self.approval = {"kind": "plan-approval"} if choices.one_in(3) else None
        self.scene = Scene(choices)
        self.loop = asyncio.get_running_loop()
        self.events: list[Event] = []
        self.gates: dict[str, asyncio.Future[Step]] = {}
        self.replies: list[BaseException | None] = []
        self.commands = 0

    async def play(self) -> None:
        """Play random steps until the execution has ended; a long script is cancelled."""
        await self.open(None)
        played = 0
        while self.task.done() is False:
            steps = self.random_steps() if played < MAX_STEPS else [("cancel", None)]
            await self.happen(steps)
            played += 1
        await self.close()

    # -- what nodes and processes do

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
        """Start the execution, or resume it from what is stored."""
        graphs = self.scene.graph, *INNER_GRAPHS
        acts = {node.id: self.act for graph in graphs for node in graph.nodes}
        resumed = {f"{node_id}:resume": self.act for node_id in acts}
        self.gates.clear()
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

    # -- steps

    async def happen(self, steps: list[Step]) -> None:
        """Have steps happen in one turn."""
        kind, about = steps[0]
        if kind == "wait":
            await asyncio.sleep(about - self.loop.time())
        elif kind == "crash":
            await self.close()
            await self.open(History(self.events))
        for each, (path, what) in [step for step in steps if step[0] in OF_NODES]:
            self.gates.pop(path).set_result((each, what))
        given = [self.command(*step) for step in steps if step[0] not in OF_NODES]
        await self.settle()
        self.replies += [done.exception() for done in given if done is not None]

    def command(self, kind: str, about: Any) -> asyncio.Future[None] | None:
        execution = self.harness.execution
        self.commands += kind not in (*ALONE, "cancel")
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

    def possible_steps(self) -> list[Step]:
        """What may happen next."""
        choices, execution = self.choices, self.harness.execution
        nodes = [node.id for node in self.scene.graph.nodes]
        waiting = [path for path, gate in self.gates.items() if not gate.done()]
        steps: list[Step] = []
        for path in waiting:
            steps.append(("end", (path, random_outcome(choices, path))))
            steps.append(("once", (path, "ab"[choices.below(2)])))
            if path.count("[") < MAX_DEPTH:
                run = "kl"[choices.below(2)], INNER_GRAPHS[choices.one_in(4)]
                steps.append(("nest", (path, run)))
        steps += [("wait", at_s) for at_s in sorted(execution._timers._due_at.values())[:1]]
        for request_id, request in execution._run.requests:
            decisions = DECISIONS if request.path == OWN_PATH else ("answer",)
            steps += [(decision, request_id) for decision in decisions]
        steps = steps * 3
        steps += [("cancel-node", [*nodes, *waiting][choices.below(len(nodes))])]
        steps += [("pause", None), ("resume", None), ("crash", None)]
        return [*steps, ("cancel", None)] if choices.one_in(4) else steps

    def random_steps(self) -> list[Step]:
        """Steps that can happen together: each node and each request has one at most."""
        possible = self.possible_steps()
        steps = [possible[self.choices.below(len(possible))]]
        if steps[0][0] in ALONE:
            return steps
        for _ in range((0, 0, 1, 2)[self.choices.below(4)]):
            subjects = {_subject_of(step) for step in steps}
            more = [
                each for each in possible
                if each[0] not in ALONE and _subject_of(each) not in subjects
            ]  # fmt: skip
            steps += [more[self.choices.below(len(more))]]
        return steps


def _subject_of(step: Step) -> Any:
    kind, about = step
    if kind in OF_NODES:
        return about[0]
    return ("request", about) if kind in (*DECISIONS, "answer") else (kind, about)


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


async def _make(value: str) -> str:
    return value


async def played(source: bytes) -> Script:
    script = Script(ByteChoices(source))
    await script.play()
    return script


@given(st.binary(min_size=80, max_size=600))
@settings(max_examples=examples(60), deadline=None)
@virtual_time
async def test_nothing_starts_before_its_plan_is_approved(source: bytes) -> None:
    script = await played(source)
    answers = [event for event in script.events if "answer" in event.data]
    approvals = [each.seq for each in answers if each.data["answer"] == {"decision": "approve"}]
    starts = [event.seq for event in script.events if event.type == "node.started"]
    if script.approval is not None and starts:
        (approved,) = approvals
        assert approved < starts[0]
    fold(script.events)


@given(st.binary(min_size=80, max_size=600))
@settings(max_examples=examples(150), deadline=None)
@virtual_time
async def test_any_script_settles_each_node_once_and_replies_to_each_command_once(
    source: bytes,
) -> None:
    script = await played(source)
    assert [event.seq for event in script.events] == [*range(1, len(script.events) + 1)]
    settled = [
        event.path
        for event in script.events
        if event.type in SETTLED and "[" not in str(event.path)
    ]
    executed = {
        node.id for number, node in enumerate(script.scene.graph.nodes)
        if number not in script.scene.case.linked
    }  # fmt: skip
    assert sorted(map(str, settled)) == sorted(executed)
    ends = [event.seq for event in script.events if event.type in TERMINAL_TYPES]
    assert ends == [len(script.events)]
    assert len(script.replies) == script.commands
    assert all(each is None or isinstance(each, PlanwaveError) for each in script.replies)
