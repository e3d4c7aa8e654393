"""``wait``: durations, times, and ending a wait early."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import planwave
from planwave.errors import NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult, Suspension
from planwave.nodes.library.end import End
from planwave.nodes.library.text import Text
from planwave.nodes.library.wait import Wait
from planwave.nodes.registry import Registry
from planwave.service.executions.answers import validate_answer
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_checks import check_node, locations
from tests.support.nodes.node_context import context_for, last_item, make_inputs
from tests.support.virtual_loop import virtual_time

NOW = datetime(2030, 1, 31, 9, 0, tzinfo=UTC)
NODE = Node("later", "wait", "Later")
WAIT = Wait(now=lambda: NOW)
REGISTRY = Registry([Text, End, Wait(now=lambda: NOW)])


async def result_of(data: Mapping[str, Any], inputs: Inputs) -> Any:
    return await last_item(WAIT.execute(data, inputs, context_for(NODE)))


async def suspend(**data: Any) -> Suspension:
    suspension = await result_of(data, make_inputs("x"))
    assert isinstance(suspension, Suspension)
    return suspension


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
async def test_a_wait_is_a_timer_request_with_its_time_limit(
    data: dict[str, Any], seconds: float, until: str
) -> None:
    suspension = await suspend(**data)
    assert suspension.timeout_s == seconds
    assert suspension.request == {
        "kind": "timer",
        "message": f"Waits until {until}.",
        "until": until,
        "actions": ["continue"],
    }
    assert (
        validate_answer(suspension.request, suspension.timeout_answer) == suspension.timeout_answer
    )


@pytest.mark.parametrize(
    "data", [{"seconds": 0}, {"until": "2030-01-31T09:00:00Z"}, {"until": "2001-01-01"}]
)
async def test_a_time_that_has_passed_is_not_waited_for(data: dict[str, Any]) -> None:
    result = await result_of(data, make_inputs({"a": 1}))
    assert result == ExecutionResult({"output": DataValue("any", {"a": 1})})


async def test_the_time_may_be_wired() -> None:
    suspension = await result_of({}, make_inputs("x", ("seconds", 5)))
    assert suspension.timeout_s == 5
    suspension = await result_of({}, make_inputs("x", ("until", "2030-01-31T09:00:05Z")))
    assert suspension.timeout_s == 5


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
async def test_an_invalid_time_fails_the_node(data: dict[str, Any], words: str) -> None:
    with pytest.raises(NodeError) as caught:
        await result_of(data, Inputs())
    assert caught.value.code == "invalid-data"
    assert words in caught.value.message


async def test_the_input_is_passed_on_unchanged_after_the_wait() -> None:
    suspension = await suspend(seconds=5)
    answer = json.loads(json.dumps(suspension.timeout_answer))
    result = await last_item(
        WAIT.resume(
            {"seconds": 5}, make_inputs([1, None]), context_for(NODE), suspension.state, answer
        )
    )
    assert isinstance(result, ExecutionResult)
    assert result.outputs == {"output": DataValue("any", [1, None])}


# -- in a run


# -- what is found beforehand


@pytest.mark.parametrize(
    ("data", "inputs", "found"),
    [
        ({}, [], [("invalid-data", "/data")]),
        ({"seconds": 1, "until": "2030-02-01"}, [], [("invalid-data", "/data")]),
        ({"until": "tomorrow"}, [], [("invalid-data", "/data/until")]),
        ({"seconds": 1}, [], []),
        ({"until": "2030-02-01"}, [], []),
        ({"until": "{{ input }}"}, [], []),
        ({}, ["until"], []),
    ],
)
def test_a_wait_without_a_usable_time_is_found_before_the_run(
    data: dict[str, Any], inputs: list[str], found: list[tuple[str, str]]
) -> None:
    findings = check_node("wait", data, inputs=["input", *inputs], registry=REGISTRY)
    assert locations(findings) == found


# -- in a run


def run_with(**data: Any) -> planwave.Run:
    """Run a graph that waits between a draft and its end."""
    graph = graph_document(
        node_document("draft", "text", text="Dear Ann"),
        node_document("later", "wait", **data),
        node_document("sent", "end"),
        edges=[("draft", "later"), ("later", "sent")],
    )
    return planwave.run(graph, registry=REGISTRY)


@virtual_time
async def test_a_run_is_paused_until_the_time_of_its_timer() -> None:
    run = run_with(seconds=86_400)
    events = [(event.type, event.data.get("by")) async for event in run]
    types = [event_type for event_type, _ in events]
    assert types.index("node.waiting") < types.index("execution.paused")
    assert ("node.answered", "timeout") in events
    result = await run
    assert (result.status, result.text) == ("completed", "Dear Ann")


@virtual_time
async def test_an_early_answer_ends_the_wait() -> None:
    run = run_with(seconds=86_400)
    answered_by: list[Any] = []
    async for event in run:
        if event.type == "node.waiting":
            run.answer(event.data["request_id"], {"decision": "continue", "note": ""})
        elif event.type == "node.answered":
            answered_by.append(event.data.get("by"))
    assert ((await run).text, answered_by) == ("Dear Ann", [None])


async def test_a_time_in_the_past_makes_no_pause() -> None:
    run = run_with(until="2001-01-01")
    assert "node.waiting" not in [event.type async for event in run]
    assert (await run).text == "Dear Ann"


async def test_the_clock_of_the_machine_is_the_default() -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    suspend = await last_item(Wait().execute({"until": until}, Inputs(), context_for(NODE)))
    assert isinstance(suspend, Suspension)
    assert suspend.timeout_s == pytest.approx(3_600, abs=60)
