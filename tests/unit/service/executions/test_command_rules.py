"""Each command in each state of an execution: service and library answer the same, in the same words."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple, get_args

import pytest

import planwave
from planwave.errors import Conflict, PlanwaveError
from planwave.events import Event, ExecutionState, fold
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.types import SET_ASIDE, PauseKind
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.principals import OPERATOR
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.command_rules import (
    Answer,
    Cancel,
    CancelNode,
    Command,
    Expire,
    Pause,
    Replan,
    Resume,
    Revise,
    has_done,
)
from planwave.service.executions.session import set_aside_data
from planwave.service.service import Service
from planwave.shapes.common import ExecutionStatus
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_plan
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.service.dependencies import dependencies
from tests.support.virtual_loop import virtual_time

SEND: Final = {"decision": "send"}
LIMIT_S: Final = 3600.0
LARGEST: Final = 2000


@cache
def parts() -> ServiceDependencies:
    """What the second life of each execution has: its held step ends at once."""
    held = HeldNode()
    held.release.set()
    return dependencies(types=[held, FailingNode()])


class Stored(NamedTuple):
    """An execution at rest, or cut off, as another process finds it."""

    record: ExecutionRecord
    events: list[Event]

    @property
    def state(self) -> ExecutionState:
        return fold(self.events)

    async def store(self) -> MemoryStore:
        store = MemoryStore()
        await store.create_execution(self.record, self.events)
        return store


class Execution:
    """An execution of a step that is held, a request and a last step, brought to one state."""

    def __init__(self, service: Service, held: HeldNode, execution_id: str) -> None:
        self.service, self.execution_id = service, execution_id
        self._held = held

    async def start(self) -> None:
        await self.service.executions.start(self.execution_id)
        await self._held.started.wait()

    async def ask(self) -> str:
        await self.start()
        self._held.release.set()
        await self.service.executions.wait(self.execution_id)
        (request,) = await self.service.executions.requests(self.execution_id)
        return request.request_id

    async def stored(self) -> Stored:
        events = [*await self.service._store.events(self.execution_id)]
        record = await self.service._store.execution(self.execution_id)
        assert record is not None
        return Stored(record, events)


@asynccontextmanager
async def created(*, limit_s: float | None = None, last: str) -> AsyncGenerator[Execution]:
    held = HeldNode()
    asks: dict[str, Any] = {"prompt": "Send?", "actions": ["send", "drop"]}
    if limit_s is not None:
        asks |= {"timeoutS": limit_s, "timeoutAction": "send"}
    document = {
        "nodes": [
            {"id": "held", "type": "held"},
            {"id": "ask", "type": "approval", "data": asks},
            {"id": "last", "type": last, "data": {"text": "sent"} if last == "text" else {}},
        ],
        "edges": [
            {"source": "held", "target": "ask", "data": {"channel": "flow"}},
            {
                "source": "ask",
                "sourceHandle": "send",
                "target": "last",
                "data": {"channel": "flow"},
            },
        ],
    }
    graph = planwave.build(document, registry=parts().catalogue).graph
    async with Service(dependencies(graph, types=[held, FailingNode()])) as service:
        options = planwave.RunOptions(max_result_bytes=LARGEST)
        made = await service.executions.create(make_plan(graph), options=options)
        yield Execution(service, held, made.execution_id)
        await service.drain(0)


async def reach(name: str) -> Stored:
    """Return an execution in one of the states."""
    last = "broken" if name == "failed" else "text"
    async with created(limit_s=LIMIT_S if name == "timed" else None, last=last) as execution:
        service, own = execution.service, execution.execution_id
        match name:
            case "starting":
                pass
            case "executing" | "set-aside" | "requested":
                await execution.start()
                if name == "requested":
                    await service.executions.pause(own)
            case "waiting" | "timed":
                await execution.ask()
            case "cancelled":
                await execution.ask()
                await service.executions.cancel(own)
            case _:
                await service.executions.answer(own, await execution.ask(), SEND)
                await service.executions.wait(own)
        stored = await execution.stored()
    if name == "set-aside":
        data = set_aside_data(Conflict("the provider is off"))
        seq, at = len(stored.events) + 1, stored.events[-1].at
        stored.events.append(Event(own, seq, at, "execution.paused", None, None, data))
    return stored


STATES: Final = (
    "starting", "executing", "requested", "set-aside", "waiting", "timed", "completed", "failed",
    "cancelled",
)  # fmt: skip


def commands_for(kind: type[Command], state: ExecutionState) -> list[Command]:
    """Return commands of one kind: as they are meant, and wrong ones."""
    asked = next(iter([*state.requests, *state.closed_requests]), "r1")
    by = OPERATOR.as_json()
    by_kind: dict[type[Command], list[Command]] = {
        Cancel: [Cancel("enough")],
        CancelNode: [CancelNode(each, "enough") for each in ("held", "ask", "last", "aks")],
        Pause: [Pause()],
        Resume: [Resume()],
        Answer: [
            Answer(asked, SEND, by),
            Answer(asked, {"decision": "sent"}, by),
            Answer(asked, {"decision": "send", "note": 5}, by),
            Answer(asked, {**SEND, "note": "n" * LARGEST}, by),
            Answer("r99", SEND, by),
        ],
        Revise: [
            Revise(graph, expected, "more", by)
            for graph, expected in (
                (wider(state), None),
                (wider(state), ["other"]),
                (same(state), None),
            )
        ],
        Replan: [
            Replan(words, expected, by)
            for words, expected in (("more", None), ("more", ["other"]), (None, None))
        ],
        Expire: [Expire(datetime.fromisoformat(state.last_at) + timedelta(seconds=LIMIT_S))],
    }
    return by_kind[kind]


def same(state: ExecutionState) -> Any:
    return read_graph(state.graph or {})[0].document


def wider(state: ExecutionState) -> Any:
    more = {"id": "more", "type": "text", "name": "more", "data": {"text": "x"}}
    return {**same(state), "nodes": [*same(state)["nodes"], more]}


class Outcome(NamedTuple):
    """What a command led to: a refusal, or the state in which the execution then came to rest."""

    refusal: tuple[str, str, str | None] | None
    status: str = ""
    nodes: tuple[tuple[str, str], ...] = ()


def refused(error: PlanwaveError) -> Outcome:
    return Outcome((error.code, error.message, error.hint))


def at_rest(state: ExecutionState) -> Outcome:
    nodes = tuple((path, node.status) for path, node in sorted(state.nodes.items()))
    return Outcome(None, state.status, nodes)


async def through_service(stored: Stored, command: Command) -> Outcome:
    own = stored.record.execution_id
    async with Service(replace(parts(), store=await stored.store())) as service:
        try:
            match command:
                case Cancel(cause):
                    await service.executions.cancel(own, cause)
                case CancelNode(path, cause):
                    await service.executions.cancel(own, cause, node=path)
                case Pause():
                    await service.executions.pause(own)
                case Resume():
                    await service.executions.resume(own)
                case Answer(request_id, answer):
                    await service.executions.answer(own, request_id, answer)
                case Revise() | Replan() | Expire():
                    await service.executions.send_command(own, command)
        except PlanwaveError as error:
            return refused(error)
        await service.executions.wait(own)
        return at_rest(await service.executions.state(own))


async def through_library(stored: Stored, command: Command) -> Outcome:
    store = await stored.store()
    catalogue: Any = parts().catalogue
    run = planwave.open(store, stored.record.execution_id, registry=catalogue, check=False)
    try:
        match command:
            case Cancel(cause):
                run.cancel(cause)
            case Resume():
                run.resume()
            case Answer(request_id, answer):
                run.answer(request_id, answer)
            case _:  # a run has no method for it
                run._commands.pending.append(command)
        await run
    except PlanwaveError as error:
        return refused(error)
    return at_rest(fold(await store.events(run.execution_id)))


DIFFERENT: Final = {
    ("starting", Resume): "A program has no other way to start what a service had created.",
    ("timed", Resume): "A program that resumes it waits for the time limit; a service does anyway.",
}
"""Where the library takes a command that the service refuses, and why."""


@virtual_time
async def test_the_states_are_all_that_the_code_knows() -> None:
    states = [(await reach(name)).state for name in STATES]
    assert {state.status for state in states} == set(get_args(ExecutionStatus))
    assert {state.pause for state in states} == {None, *get_args(PauseKind)}
    aside = states[STATES.index("set-aside")]
    assert aside.pause == SET_ASIDE


@pytest.mark.parametrize("name", STATES)
@virtual_time
async def test_service_and_library_answer_the_same(name: str) -> None:
    stored = await reach(name)
    for kind in get_args(Command):
        for command in commands_for(kind, stored.state):
            by_service = await through_service(stored, command)
            by_library = await through_library(stored, command)
            if (name, kind) in DIFFERENT:
                assert by_service.refusal is not None, command
                assert by_library.refusal is None, command
            else:
                assert by_library == by_service, command


BY: Any = {"kind": "token", "id": "t1", "name": "t"}
DONE: dict[str, tuple[Command, tuple[str, str | None, dict[str, Any]]]] = {
    "cancel": (Cancel("enough"), ("execution.cancelled", None, {"cause": "enough"})),
    "cancel node": (CancelNode("a/b", "enough"), ("node.cancelled", "a/b", {"cause": "enough"})),
    "pause": (Pause(), ("execution.paused", None, {"kind": "requested", "reason": "by request"})),
    "resume": (Resume(), ("execution.resumed", None, {"epoch": 3})),
    "revise": (
        Revise(NO_GRAPH, None, "more", BY),
        ("plan.revised", None, {"hash": graph_hash(read_graph(NO_GRAPH)[0]), "note": "more", "revised_by": BY}),
    ),
    "replan": (
        Replan("more", None, BY),
        ("plan.requested", None, {"by": "person", "request": "more", "requested_by": BY, "writer": {}}),
    ),
    "answer": (
        Answer("r1", {"decision": "send"}, BY),
        ("node.answered", "a", {"request_id": "r1", "answer": {"decision": "send", "note": ""}, "answered_by": BY}),
    ),
    "approval": (
        Answer("r2", {"decision": "approve"}, BY),
        ("execution.resumed", None, {"request_id": "r2", "answer": {"decision": "approve"}, "answered_by": BY}),
    ),
}  # fmt: skip
OTHERS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "another change": ("plan.revised", None, {"hash": "h", "note": "more", "revised_by": BY}),
    "other words": (
        "plan.requested", None, {"by": "person", "request": "less", "requested_by": BY, "writer": {}},
    ),
    "a change by hand": ("plan.requested", None, {"by": "person", "request": "more"}),
    "another cause": ("execution.cancelled", None, {"cause": "too late"}),
    "another node": ("node.cancelled", "a", {"cause": "enough"}),
    "a wait": ("execution.paused", None, {"kind": "waiting"}),
    "a takeover": ("execution.resumed", None, {"reason": "recovery", "epoch": 4}),
    "another decision": (
        "node.answered", "a", {"request_id": "r1", "answer": {"decision": "drop"}, "answered_by": BY},
    ),
    "another person": ("node.answered", "a", {"request_id": "r1", "answer": {"decision": "send"}}),
    "a closed request": ("execution.resumed", None, {"request_id": "r2"}),
}  # fmt: skip


@pytest.mark.parametrize("name", DONE)
def test_an_event_shows_the_command_that_brought_it_about_and_no_other_one(name: str) -> None:
    command, _ = DONE[name]
    events = {each: event for each, (_, event) in DONE.items()} | OTHERS
    shown = {
        each
        for each, (kind, path, data) in events.items()
        if has_done(Event("x", 5, "2026-01-01T00:00:00Z", kind, path, None, data), command)
    }
    assert shown == {name}
