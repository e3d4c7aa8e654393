"""``wait``: durations, times, and ending a wait early."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import planwave
from planwave.errors import GraphInvalid, NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult, Suspension
from planwave.nodes.library.end import End
from planwave.nodes.library.text import Text
from planwave.nodes.library.wait import Wait
from planwave.nodes.registry import Registry
from planwave.service.executions.answers import validate_answer
from tests.support.graph.builders import make_edge
from tests.support.nodes.node_context import context_for, last_item, make_inputs
from tests.support.virtual_loop import virtual_time

NOW = datetime(2030, 1, 31, 9, 0, tzinfo=UTC)
NODE = Node("later", "wait", "Later")
WAIT = Wait(now=lambda: NOW)
REGISTRY = Registry([Text, End, Wait(now=lambda: NOW)])


async def given(data: Mapping[str, Any], inputs: Inputs) -> Any:
    return await last_item(WAIT.execute(data, inputs, context_for(NODE)))


async def waiting(**data: Any) -> Suspension:
    asked = await given(data, make_inputs("x"))
    assert isinstance(asked, Suspension)
    return asked


# -- how long


@pytest.mark.parametrize(
    ("data", "seconds", "until"),
    [
        ({"seconds": 90}, 90, "2030-01-31T09:01:30+00:00"),
        ({"seconds": 0.5}, 0.5, "2030-01-31T09:00:00+00:00"),
        ({"until": "2030-01-31T10:00:00Z"}, 3_600, "2030-01-31T10:00:00+00:00"),
        ({"until": "2030-01-31T10:00:00"}, 3_600, "2030-01-31T10:00:00+00:00"),
        ({"until": "2030-01-31T12:00:00+02:00"}, 3_600, "2030-01-31T10:00:00+00:00"),
        ({"until": " 2030-02-01 "}, 54_000, "2030-02-01T00:00:00+00:00"),
    ],
)
async def test_a_wait_is_a_request_that_the_time_answers(
    data: dict[str, Any], seconds: float, until: str
) -> None:
    asked = await waiting(**data)
    assert asked.timeout_s == seconds
    assert asked.request == {
        "kind": "timer",
        "message": f"Waits until {until}.",
        "until": until,
        "actions": ["continue"],
    }
    assert validate_answer(asked.request, asked.timeout_answer) == asked.timeout_answer


@pytest.mark.parametrize(
    "data", [{"seconds": 0}, {"until": "2030-01-31T09:00:00Z"}, {"until": "2001-01-01"}]
)
async def test_what_has_come_already_is_not_waited_for(data: dict[str, Any]) -> None:
    result = await given(data, make_inputs({"a": 1}))
    assert result == ExecutionResult({"output": DataValue("any", {"a": 1})})


async def test_a_wire_brings_the_time() -> None:
    asked = await given({}, make_inputs("x", ("seconds", 5)))
    assert asked.timeout_s == 5
    asked = await given({}, make_inputs("x", ("until", "2030-01-31T09:00:05Z")))
    assert asked.timeout_s == 5


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "there is neither"),
        ({"seconds": 5, "until": "2030-02-01"}, "there is both"),
        ({"until": "tomorrow"}, "'tomorrow', which is no time in ISO 8601"),
        ({"until": "0001-01-01T00:00:00+23:00"}, "no time in ISO 8601"),
        ({"until": "2033-01-01"}, "more than 366 days from now"),
        ({"seconds": -1}, "data.seconds"),
        ({"seconds": 366 * 86_400 + 1}, "data.seconds"),
        ({"seconds": "5"}, "data.seconds"),
    ],
)
async def test_what_cannot_be_waited_for_fails_the_node(data: dict[str, Any], words: str) -> None:
    with pytest.raises(NodeError) as caught:
        await given(data, Inputs())
    assert caught.value.code == "invalid-data"
    assert words in caught.value.message


async def test_whoever_answers_the_input_goes_on_unchanged() -> None:
    asked = await waiting(seconds=5)
    answer = json.loads(json.dumps(asked.timeout_answer))
    result = await WAIT.resume({}, make_inputs([1, None]), context_for(NODE), asked.state, answer)
    assert result.outputs == {"output": DataValue("any", [1, None])}


# -- what is found beforehand


def findings(data: dict[str, Any], *wired: str) -> list[tuple[str, str]]:
    edges = tuple(make_edge("a", "later", target_handle=handle) for handle in ("input", *wired))
    nodes = (Node("a", "text", "A", data={"text": "x"}), NODE._replace(data=data))
    return [(d.code, d.pointer) for d in REGISTRY.check(nodes[1], Graph(nodes, edges))]


def test_a_wait_without_a_usable_time_is_found_before_the_run() -> None:
    assert findings({}) == [("invalid-data", "/data")]
    assert findings({"seconds": 1, "until": "2030-02-01"}) == [("invalid-data", "/data")]
    assert findings({"until": "tomorrow"}) == [("invalid-data", "/data/until")]


def test_what_is_known_only_in_the_run_is_not_judged_before() -> None:
    assert findings({"seconds": 1}) == []
    assert findings({"until": "2030-02-01"}) == []
    assert findings({"until": "{{ input }}"}) == []
    assert findings({}, "until") == []


# -- in a run


def graph_of(**data: Any) -> dict[str, Any]:
    flow = {"channel": "flow"}
    return {
        "nodes": [
            {"id": "draft", "type": "text", "data": {"text": "Dear Ann"}},
            {"id": "later", "type": "wait", "data": data},
            {"id": "sent", "type": "end"},
        ],
        "edges": [
            {"source": "draft", "target": "later", "data": flow},
            {"source": "later", "target": "sent", "data": flow},
        ],
    }


@virtual_time
async def test_a_run_goes_on_when_the_time_has_come_and_is_paused_until_then() -> None:
    run = planwave.run(planwave.build(graph_of(seconds=86_400), registry=REGISTRY))
    told = [(event.type, event.data.get("by")) async for event in run]
    kinds = [kind for kind, _ in told]
    assert kinds.index("node.waiting") < kinds.index("execution.paused")
    assert ("node.answered", "timeout") in told
    result = await run
    assert (result.status, result.text) == ("completed", "Dear Ann")


@virtual_time
async def test_a_timer_that_is_answered_early_does_not_wait() -> None:
    run = planwave.run(planwave.build(graph_of(seconds=86_400), registry=REGISTRY))
    by: list[Any] = []
    async for event in run:
        if event.type == "node.waiting":
            run.answer(event.data["request_id"], {"decision": "continue", "note": ""})
        elif event.type == "node.answered":
            by.append(event.data.get("by"))
    assert ((await run).text, by) == ("Dear Ann", [None])


@virtual_time
async def test_a_run_that_only_waits_can_be_cancelled() -> None:
    run = planwave.run(planwave.build(graph_of(seconds=86_400), registry=REGISTRY))
    async for event in run:
        if event.type == "execution.paused":
            run.cancel("no need")
    assert (await run).status == "cancelled"


async def test_a_time_of_the_past_makes_no_pause() -> None:
    built = planwave.build(graph_of(until="2001-01-01"), registry=REGISTRY)
    run = planwave.run(built)
    kinds = [event.type async for event in run]
    assert "node.waiting" not in kinds
    assert (await run).text == "Dear Ann"


def test_a_wait_that_cannot_be_is_refused_with_the_graph() -> None:
    with pytest.raises(GraphInvalid):
        planwave.build(graph_of(until="tomorrow"), registry=REGISTRY)


def test_the_clock_of_the_machine_is_the_one_that_counts() -> None:
    assert abs(Wait()._now() - datetime.now(UTC)) < timedelta(days=1)
