"""What one execution may not pass: the size of a result, and of all its results together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.executor.options import RunOptions
from planwave.graph.json_values import size_of
from planwave.graph.model import DataValue, Policy, Retry
from planwave.graph.plan import graph_content
from planwave.graph.protocols import ExecutionResult
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_catalog import parse_graph
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
    rig = ExecutionHarness(parse_graph("a b c d", "b>c"), acts, options)
    assert await rig.run() == "failed"
    assert rig.event_names("node.completed") == ["node.completed a"]
    assert rig.event_names("node.blocked") == ["node.blocked c"]
    of_b, of_d = (data["error"] for data in rig.data_of("node.failed"))
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
        rig = ExecutionHarness(parse_graph("a"), {"a": result}, RunOptions(max_result_bytes=most))
        assert await rig.run() == ending


@virtual_time
async def test_a_too_large_result_is_handled_by_on_error_and_not_retried() -> None:
    policy = Policy(retry=Retry(3, 1), on_error="continue")
    graph = parse_graph("a b", "a.error>b", policies={"a": policy})
    rig = ExecutionHarness(graph, {"a": result_with("x" * 50)}, RunOptions(max_result_bytes=10))
    assert await rig.run() == "completed"
    assert rig.data_of("node.retrying") == []
    assert rig.execution.outputs["a"]["error"].value["code"] == "limit-exceeded"


def grows(size: int) -> Any:
    async def act(inputs: Inputs, context: Context) -> Any:
        return result_with("x" * (size - 2))

    return act


@virtual_time
async def test_all_results_together_may_be_as_large_as_the_limit() -> None:
    acts = {"a": grows(40), "b": grows(60)}
    rig = ExecutionHarness(parse_graph("a b", "a>b"), acts, RunOptions(max_state_bytes=100))
    assert await rig.run() == "completed"


@virtual_time
async def test_a_run_whose_results_exceed_the_limit_fails() -> None:
    acts = {"a": grows(40), "b": grows(61)}
    rig = ExecutionHarness(
        parse_graph("a b c", "a>b", "b>c"), acts, RunOptions(max_state_bytes=100)
    )
    assert await rig.run() == "failed"
    assert rig.execution.error == {
        "code": "limit-exceeded",
        "message": "limit run_state_bytes for all results and nested graphs of a run is 100, met 101",
        "hint": "shorten the input or raise PLANWAVE_LIMIT_RUN_STATE_BYTES",
    }
    assert rig.event_names("node.completed") == ["node.completed a", "node.completed b"]
    assert rig.event_names("node.cancelled") == ["node.cancelled c"]
    rig.check_sequence()


@virtual_time
async def test_nested_results_and_graphs_count_towards_the_limit_of_the_run() -> None:
    graph = size_of(graph_content(parse_graph("i")))  # of two runs of one graph it is stored once

    async def nests(inputs: Inputs, context: Context) -> Any:
        for key in ("one", "two"):
            await context.runtime.run_graph(key, parse_graph("i"), {})
        return result_with(None)

    acts = {"a": nests, "i": grows(60)}
    for most, ending in [(124 + graph, "completed"), (123 + graph, "failed")]:
        rig = ExecutionHarness(parse_graph("a"), acts, RunOptions(max_state_bytes=most))
        assert await rig.run() == ending


@pytest.mark.parametrize("option", ["max_result_bytes", "max_state_bytes", "max_events"])
@virtual_time
async def test_each_limit_may_be_left_out(option: str) -> None:
    bounds = {"max_result_bytes": 10**6, "max_state_bytes": 10**6, "max_events": 10**6}
    del bounds[option]
    rig = ExecutionHarness(parse_graph("a b", "a>b"), {"a": grows(500_000)}, RunOptions(**bounds))
    assert await rig.run() == "completed"
