"""Every sentence that an explanation of a node may hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest

from planwave.errors import NodeError
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph, Policy, Retry
from planwave.graph.protocols import Suspension
from planwave.service.queries.explain import explain
from tests.support.engine.behaviors import asks, runs_graph
from tests.support.engine.event_histories import (
    TIMESTAMP,
    created_event,
    is_event,
    raise_error,
    run_events,
    suspend,
)
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_node_types import parse_graph

ROOT = "It depends on no other node, so it could start at once."
UNTIL = "2030-01-31T09:00:00+00:00"
PAUSED = is_event("execution.paused")


def busy(*_: Any) -> Any:
    raise NodeError("busy", retryable=True)


async def use_answer(inputs: Any, context: Any, state: Any, answer: Any) -> Any:
    return result_with(answer)


def timer(*_: Any) -> Any:
    return Suspension({"kind": "timer", "until": UNTIL}, None, 3_600)


def approve(harness: ExecutionHarness, event: Event) -> None:
    """Answer a request as soon as it is made."""
    if event.type == "node.waiting":
        answer = {"decision": "approve", "note": "fine"}
        harness.execution.answer(event.data["request_id"], answer)


def cancel_node(harness: ExecutionHarness, event: Event) -> None:
    """Cancel a node as soon as it waits."""
    if event.type == "node.waiting":
        harness.execution.cancel_node("a", "no need")


def stored(graph: Graph, *facts: tuple[str, str | None, dict[str, Any]]) -> list[Event]:
    """Return the events of an execution that hold only these facts."""
    events = [created_event(graph)]
    for seq, (kind, path, data) in enumerate(facts, 2):
        attempt = 1 if path else None
        events.append(Event("x1", seq, TIMESTAMP, kind, path, attempt, data))
    return events


async def at_once(events: list[Event]) -> list[Event]:
    return events


class Case(NamedTuple):
    """The events of an execution, a node of it, and the whole explanation of the node."""

    events: Callable[[], Awaitable[Sequence[Event]]]
    path: str
    reason: str


def case(graph: Graph, path: str, reason: str, *arguments: Any, **options: Any) -> Case:
    return Case(partial(run_events, graph, *arguments, **options), path, reason)


def case_of(path: str, reason: str, graph: Graph, *facts: tuple[str, str | None, Any]) -> Case:
    return Case(partial(at_once, stored(graph, *facts)), path, reason)


def policy(**settings: Any) -> Graph:
    return parse_graph("a", policies={"a": Policy(**settings)})


TWO, THREE = parse_graph("a b", "a>b"), parse_graph("a b c", "a>b", "b>c")
DOORS = parse_graph("a:door b:door c d", "a>c", "b>d")
BRANCH = parse_graph("a yes no after", "a.yes>yes", "a.no>no", "no>after")
DEFAULT = {"handle": "output", "value": 1}
NARROW = RunOptions(max_parallel=1)
FIRST_DONE = is_event("node.completed", "a")
NESTED = {"loop": runs_graph("2", parse_graph("i f s", "f>s")), "f": raise_error}
INNER_DOORS = {"loop": runs_graph("2", parse_graph("d:door e:door"), {"d": {"output": "in"}})}
INNER_REQUEST = {"loop": runs_graph("2", parse_graph("q")), "q": suspend}
LOOP = parse_graph("loop")
STARTED = ("execution.started", None, {})
RUNNING_A = ("node.started", "a", {})


def waits(request: Any, **more: Any) -> tuple[str, str, dict[str, Any]]:
    return "node.waiting", "a", {"request_id": "r", "request": request, **more}


def answered(answer: Any, by: str) -> tuple[str, str, dict[str, Any]]:
    return "node.answered", "a", {"request_id": "r", "answer": answer, "by": by}


def completed(path: str, **facts: Any) -> tuple[str, str, dict[str, Any]]:
    return "node.completed", path, {"outputs": {"output": {"type": "any", "value": 1}}, **facts}


def wired(field: str, **facts: Any) -> tuple[str, str, dict[str, Any]]:
    data = {"fields": {field: {"edge": "e", "source": "s", "over": (), **facts}}}
    return "node.event", "a", {"event_type": "wired", "data": data}


A = parse_graph("a")
CASES: dict[str, Case] = {
    "root": case(TWO, "a", ROOT),
    "inputs": case(TWO, "b", "All nodes it depends on had ended: 'a' delivered a value."),
    "several-inputs": case(
        parse_graph("a b n", "a>n", "b>n", "a.no>n"),
        "n",
        "All nodes it depends on had ended: 'a' and 'b' delivered a value; "
        "'a' delivered no value on 'no', but on 'output'.",
    ),
    "first-input": case(
        parse_graph("a b c", "a>c", "b>c", policies={"c": Policy(join="any")}),
        "c",
        "Its join is 'any', so it started with the first input, which came from 'b'.",
        {"a": raise_error},
    ),
    "skipped": case(
        BRANCH,
        "no",
        "No value arrived at any of its inputs: 'a' delivered no value on 'no', but on 'yes'.",
        {"a": result_with(1, "yes")},
    ),
    "skipped-after": case(
        BRANCH,
        "after",
        "No value arrived at any of its inputs: 'no' was skipped.",
        {"a": result_with(1, "yes")},
    ),
    "skipped-after-several": case(
        parse_graph("a b c d", "a.x>b", "a.y>c", "b>d", "c>d"),
        "d",
        "No value arrived at any of its inputs: 'b' and 'c' were skipped.",
        {"a": result_with(1, "yes")},
    ),
    "required-input": case(
        parse_graph("a b n:picky", "a.no>n.need", "b>n"),
        "n",
        "No value arrived at its required input 'need': "
        "'a' delivered no value on 'no', but on 'yes'.",
        {"a": result_with(1, "yes")},
    ),
    "failed": case(TWO, "a", f"{ROOT} It failed: boom.", {"a": raise_error}),
    "handled": case(
        policy(on_error="default", default=DEFAULT),
        "a",
        f"{ROOT} It failed, and its policy handled the failure: boom.",
        {"a": raise_error},
    ),
    "blocked": case(TWO, "b", "It depends on 'a', which failed: boom.", {"a": raise_error}),
    "blocked-behind": case(
        THREE,
        "c",
        "It depends on 'b', which did not run because 'a' failed: boom.",
        {"a": raise_error},
    ),
    "blocked-by-unknown": case_of(
        "b",
        "A node it depends on failed: no cause was given.",
        TWO,
        STARTED,
        ("node.blocked", "b", {"cause": {}}),
    ),
    "blocked-by-cancelled": case(
        TWO,
        "b",
        "It depends on 'a', which was cancelled: no need.",
        {"a": suspend},
        on_event=cancel_node,
    ),
    "cancelled-alone": case(
        TWO,
        "a",
        "Only this node was cancelled while it ran: no need.",
        {"a": suspend},
        on_event=cancel_node,
    ),
    "cancelled": case(TWO, "a", "It was cancelled while it ran: nobody answers.", {"a": suspend}),
    "cancelled-before": case(
        TWO, "b", "It was cancelled before it started: nobody answers.", {"a": suspend}
    ),
    "stopped": case(
        parse_graph("a b c", "b>c"),
        "c",
        "The execution stops at the first failure, and 'a' failed: boom.",
        {"a": raise_error},
        RunOptions(on_failure="stop", max_parallel=1),
    ),
    "stopped-without-slot": case(
        parse_graph("a b"),
        "b",
        "The execution stops at the first failure, and 'a' failed: boom.",
        {"a": raise_error},
        RunOptions(on_failure="stop", max_parallel=1),
    ),
    "retrying": case(
        policy(retry=Retry(2, 0)),
        "a",
        f"Attempt 1 failed: busy (attempt 1 of 2). Another attempt follows. {ROOT}",
        {"a": busy},
        until=is_event("node.retrying", "a"),
    ),
    "retried": case(
        policy(retry=Retry(2, 0)),
        "a",
        f"{ROOT} It failed: busy (attempt 2 of 2). "
        "It ran again after failed attempts: busy (attempt 1 of 2).",
        {"a": busy},
    ),
    "waits": case(
        A, "a", f"It waits for the answer to its request. {ROOT}", {"a": suspend}, until=PAUSED
    ),
    "waits-until": case(
        A,
        "a",
        "It waits for the answer to its request until 2026-01-01T00:01:00+00:00. " + ROOT,
        {"a": asks(timeout_s=60)},
        until=is_event("node.waiting", "a"),
    ),
    "timer": case(A, "a", f"It waits until {UNTIL}. {ROOT}", {"a": timer}, until=PAUSED),
    "decision": case_of(
        "a",
        "It was interrupted while it ran and may act only once, so a person must decide how to "
        f"proceed. {ROOT}",
        A,
        STARTED,
        RUNNING_A,
        waits({"kind": "interrupted", "message": "?"}),
    ),
    "waits-inside": case(
        LOOP,
        "loop",
        f"It waits for nodes inside it: 'loop[2]/q'. {ROOT}",
        INNER_REQUEST,
        until=PAUSED,
    ),
    "answered": case(
        A,
        "a",
        f"{ROOT} The answer was: approve: fine.",
        {"a": suspend, "a:resume": use_answer},
        on_event=approve,
    ),
    "answered-by-timeout": case_of(
        "a",
        f"{ROOT} Nobody answered in time, so it continued with: reject.",
        A,
        STARTED,
        RUNNING_A,
        waits({"prompt": "ok?"}),
        answered({"decision": "reject"}, "timeout"),
    ),
    "timer-reached": case_of(
        "a",
        f"{ROOT} The time that it waited for was reached.",
        A,
        STARTED,
        RUNNING_A,
        waits({"kind": "timer", "until": UNTIL}),
        answered(None, "timeout"),
    ),
    "interrupted-once": case_of(
        "a",
        f"{ROOT} It was interrupted once by the end of its process, and ran again.",
        A,
        STARTED,
        RUNNING_A,
        ("node.started", "a", {"reentry": 1}),
    ),
    "given": case(
        DOORS,
        "a",
        "The inputs of the execution set its result, so it did not run.",
        inputs={"a": {"output": "hi"}},
    ),
    "other-entry": case(
        DOORS,
        "b",
        "The execution started at other nodes: its inputs are for 'a'.",
        inputs={"a": {"output": "hi"}},
    ),
    "not-reached": case(
        DOORS,
        "d",
        "The execution started at 'a', and no edge leads from there to it.",
        inputs={"a": {"output": "hi"}},
    ),
    "excluded": case(
        THREE,
        "b",
        "run_from 'a' and run_to 'a' excluded it.",
        options=RunOptions(run_from=("a",), run_to=("a",)),
    ),
    "reused": case_of(
        "a",
        "It did not run: its result was reused from execution x0, "
        "because nothing it depends on has changed.",
        A,
        STARTED,
        completed("a", reused={"execution_id": "x0"}),
    ),
    "changed": case_of(
        "a", "The fork set its result, so it did not run.", A, STARTED, completed("a", changed=True)
    ),
    "not-started": case_of("b", "The execution has not started yet.", TWO),
    "execution-failed": case_of(
        "a",
        "The execution failed before this node started: no key.",
        A,
        ("execution.failed", None, {"error": {"code": "c", "message": "no key"}, "failures": []}),
    ),
    "execution-cancelled": case_of(
        "a",
        "The execution was cancelled before this node started.",
        A,
        ("execution.cancelled", None, {"cause": "enough"}),
    ),
    "sources-open": case_of("b", "It waits for 'a' (running).", TWO, STARTED, RUNNING_A),
    "sources-behind": case(
        THREE,
        "c",
        "It waits for 'b' (pending), which waits for 'a' (waiting).",
        {"a": suspend},
        until=PAUSED,
    ),
    "several-sources-behind": case(
        parse_graph("a b c d", "a>b", "a>c", "b>d", "c>d"),
        "d",
        "It waits for 'b' (pending) and 'c' (pending), which wait for 'a' (waiting).",
        {"a": suspend},
        until=PAUSED,
    ),
    "wave": case(
        parse_graph("a b c d", "a>c", "b>d"),
        "c",
        "It is ready and starts with its wave.",
        options=RunOptions(scheduling="waves", max_parallel=1),
        until=FIRST_DONE,
    ),
    "ready": case(
        parse_graph("a b c d", "a>c", "b>d"),
        "c",
        "It is ready and starts as soon as a slot is free.",
        options=NARROW,
        until=FIRST_DONE,
    ),
    "paused": case_of(
        "b",
        "The execution is paused: paused by request. "
        "This node is ready and starts when it is resumed.",
        TWO,
        STARTED,
        RUNNING_A,
        completed("a"),
        ("execution.paused", None, {"reason": "paused by request"}),
    ),
    "linked": case(parse_graph("g u", "g~u"), "g", "It does not run by itself: 'u' can use it."),
    "nested": case(LOOP, "loop[2]/i", "'loop' started it in a nested run.", NESTED),
    "nested-pending": case_of(
        "loop[2]/i",
        "'loop' has not started it yet.",
        LOOP,
        STARTED,
        ("node.started", "loop", {}),
        ("node.event", "loop[2]/i", {"event_type": "prompt", "data": {}}),
    ),
    "nested-given": case(
        LOOP, "loop[2]/d", "'loop' set its result, so it did not run.", INNER_DOORS
    ),
    "nested-entry": case(
        LOOP, "loop[2]/e", "'loop' started its graph at other nodes.", INNER_DOORS
    ),
    "wire": case_of(
        "a",
        f"{ROOT} Its field 'text' was set by the flow edge from 's'.",
        A,
        STARTED,
        RUNNING_A,
        wired("text", channel="flow"),
    ),
    "wire-instead": case_of(
        "a",
        f"{ROOT} Its field 'text' was set by the link edge from 's' into 'model', "
        "instead of the flow edge and the value in its data.",
        A,
        STARTED,
        RUNNING_A,
        wired("text", channel="link", handle="model", over=["flow", "inline"]),
    ),
    "wire-over-link": case_of(
        "a",
        f"{ROOT} Its field 'text' was set by the flow edge from 's', instead of the link edge.",
        A,
        STARTED,
        RUNNING_A,
        wired("text", channel="flow", over=["link"]),
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_the_explanation_is_this_sentence(name: str) -> None:
    events, path, reason = CASES[name]
    assert explain(await events(), path)["reason"] == reason
