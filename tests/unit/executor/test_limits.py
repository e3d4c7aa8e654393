"""What one execution may not pass: the size of a result, and of all its results together."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.json_values import size_of
from planwave.graph.model import DataValue, Policy, Retry
from planwave.graph.plan import graph_content
from planwave.graph.protocols import ExecutionResult, Suspension
from tests.support.engine.behaviors import asks
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


def as_json(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters='"\\')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("aé"), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(values)
def test_a_value_has_the_size_of_its_json(value: Any) -> None:
    assert size_of(value) == as_json(value)


def test_a_character_that_json_escapes_counts_as_one_byte() -> None:
    assert size_of('a\n"b"') == 7
    assert size_of(("a", ["é"])) == as_json(["a", ["é"]])


@virtual_time
async def test_a_result_larger_than_the_limit_fails_its_node() -> None:
    options = RunOptions(max_result_bytes=1_000)
    acts = {"a": result_with("x" * 998), "b": result_with("x" * 999), "d": result_with(["x" * 997])}
    harness = ExecutionHarness(parse_graph("a b c d", "b>c"), acts, options)
    assert await harness.run() == "failed"
    assert harness.event_names("node.completed") == ["node.completed a"]
    assert harness.event_names("node.blocked") == ["node.blocked c"]
    of_b, of_d = (data["error"] for data in harness.data_of("node.failed"))
    assert of_b == {
        "code": "limit-exceeded",
        "message": "node 'b' gave a result of 1001 bytes; limit largest_result_bytes is 1000",
        "hint": "give less, or where it lies in place of the whole",
    }
    assert "1001 bytes" in of_d["message"]


@virtual_time
async def test_the_outputs_of_a_node_are_measured_together() -> None:
    result = ExecutionResult({h: DataValue("any", "x" * 58) for h in ("one", "two")})
    for most, ending in [(120, "completed"), (119, "failed")]:
        harness = ExecutionHarness(
            parse_graph("a"), {"a": result}, RunOptions(max_result_bytes=most)
        )
        assert await harness.run() == ending


@virtual_time
async def test_a_too_large_result_is_handled_by_on_error_and_not_retried() -> None:
    policy = Policy(retry=Retry(3, 1), on_error="continue")
    graph = parse_graph("a b", "a.error>b", policies={"a": policy})
    harness = ExecutionHarness(graph, {"a": result_with("x" * 50)}, RunOptions(max_result_bytes=10))
    assert await harness.run() == "completed"
    assert harness.data_of("node.retrying") == []
    assert harness.execution.outputs["a"]["error"].value["code"] == "limit-exceeded"


def grows(size: int) -> Any:
    async def act(inputs: Inputs, context: Context) -> Any:
        return result_with("x" * (size - 2))

    return act


@virtual_time
async def test_all_results_together_may_be_as_large_as_the_limit() -> None:
    acts = {"a": grows(40), "b": grows(60)}
    harness = ExecutionHarness(parse_graph("a b", "a>b"), acts, RunOptions(max_state_bytes=100))
    assert await harness.run() == "completed"


@virtual_time
async def test_a_run_whose_results_exceed_the_limit_fails() -> None:
    acts = {"a": grows(40), "b": grows(61)}
    harness = ExecutionHarness(
        parse_graph("a b c", "a>b", "b>c"), acts, RunOptions(max_state_bytes=100)
    )
    assert await harness.run() == "failed"
    assert harness.execution.error == {
        "code": "limit-exceeded",
        "message": "limit run_state_bytes for all results, events, calls and nested graphs of a run is 100, met 101",
        "hint": "let the run do less, or raise its option max_state_bytes",
    }
    assert harness.event_names("node.completed") == ["node.completed a", "node.completed b"]
    assert harness.event_names("node.cancelled") == ["node.cancelled c"]
    harness.check_sequence()


@virtual_time
async def test_nested_results_and_graphs_count_towards_the_limit_of_the_run() -> None:
    graph = size_of(graph_content(parse_graph("i")))  # of two runs of one graph it is stored once

    async def nests(inputs: Inputs, context: Context) -> Any:
        for key in ("one", "two"):
            await context.runtime.run_graph(key, parse_graph("i"), {})
        return result_with(None)

    acts = {"a": nests, "i": grows(60)}
    for most, ending in [(124 + graph, "completed"), (123 + graph, "failed")]:
        harness = ExecutionHarness(parse_graph("a"), acts, RunOptions(max_state_bytes=most))
        assert await harness.run() == ending


@pytest.mark.parametrize(
    "option",
    [
        "max_result_bytes",
        "max_event_bytes",
        "max_state_bytes",
        "max_events",
    ],
)
@virtual_time
async def test_each_limit_may_be_left_out(option: str) -> None:
    bounds = dict.fromkeys(
        ("max_result_bytes", "max_event_bytes", "max_state_bytes", "max_events"), 10**6
    )
    del bounds[option]
    harness = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": grows(500_000)}, RunOptions(**bounds)
    )
    assert await harness.run() == "completed"


# -- events and requests


def emits(*sizes: int, record: bool = False) -> Any:
    """A node that emits an event of each size, and records whether it was refused."""

    async def act(inputs: Inputs, context: Context) -> Any:
        for size in sizes:
            if record:
                await context.record("spark", "x" * (size - 2))
            else:
                context.emit("spark", "x" * (size - 2))
                await asyncio.sleep(1)
        return result_with(1)

    return act


@virtual_time
async def test_an_event_larger_than_the_limit_fails_its_node_at_once() -> None:
    options = RunOptions(max_event_bytes=100)
    acts = {"a": emits(100), "b": emits(101, 50), "c": emits(101, record=True)}
    harness = ExecutionHarness(parse_graph("a b c"), acts, options)
    assert await harness.run() == "failed"
    assert harness.event_names("node.completed") == ["node.completed a"]
    assert harness.event_names("node.event") == ["node.event a"]
    errors = [data["error"] for data in harness.data_of("node.failed")]
    assert errors == [
        {
            "code": "limit-exceeded",
            "message": f"node {node!r} gave an event 'spark' of 101 bytes; limit event_bytes is 100",
            "hint": "give less, or return it as a result",
        }
        for node in ("b", "c")
    ]


@virtual_time
async def test_a_request_larger_than_the_limit_fails_its_node() -> None:
    harness = ExecutionHarness(
        parse_graph("a"), {"a": asks("x" * 100)}, RunOptions(max_event_bytes=100)
    )
    assert await harness.run() == "failed"
    assert harness.data_of("node.waiting") == []
    (failed,) = harness.data_of("node.failed")
    assert "a request of" in failed["error"]["message"]


@virtual_time
async def test_events_and_requests_count_towards_the_limit_of_the_run() -> None:
    async def asks_loudly(inputs: Inputs, context: Context) -> Any:
        return Suspension("x" * 18, "y" * 18)

    acts = {"a": emits(30, 30), "b": asks_loudly}
    size = 30 + 30 + as_json(1) + as_json(["x" * 18, "y" * 18]) + as_json(["y" * 18, 1])
    for most, ending in [(size, "completed"), (size - 1, "failed")]:
        harness = ExecutionHarness(
            parse_graph("a b", "a>b"), acts, RunOptions(max_state_bytes=most)
        )
        harness.answer_after(5, 1)
        assert await harness.run() == ending


@virtual_time
async def test_a_resumed_execution_counts_what_was_stored_before() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        for kind, data in (("log", "all"), ("usage", {"input_tokens": 1}), ("spark", [1, 2])):
            context.emit(kind, data)
        return result_with("done")

    acts = {"a": talks, "b": asks("why"), "c": emits(20)}
    harness = ExecutionHarness(
        parse_graph("a b c"), acts, RunOptions(max_state_bytes=10**6), journal=MemoryJournal()
    )
    harness.answer_after(5, "because")
    assert await harness.run() == "completed"
    assert History(harness.stored).state_bytes == harness.execution.result_bytes
